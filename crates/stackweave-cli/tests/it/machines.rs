//! Output for programs: JSON, gates, completions.

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Recorded, text};

fn json_of(recorded: &Recorded, arguments: &[&str]) -> Value {
    let (printed, remarks) = recorded.printed(arguments);
    assert_eq!(remarks, "");
    serde_json::from_str(&printed).unwrap()
}

#[test]
fn top_writes_json() {
    let recorded = Recorded::new().with("a.swv", 3);
    let top = json_of(&recorded, &["top", "--json", "--sort", "calls", "-n", "1", "a.swv"]);
    assert_eq!((&top["measure"], &top["unit"], &top["left_out"]), (&json!("time"), &json!("seconds"), &json!(2)));
    let row = &top["functions"][0];
    assert_eq!([&row["name"], &row["calls"], &row["primitive_calls"]], [&json!("load"), &json!(3), &json!(3)]);
    assert_eq!([&row["filename"], &row["lineno"], &row["module"]], [&json!("train.py"), &json!(7), &Value::Null]);
    assert!(row["self"].as_f64().unwrap() <= top["total"].as_f64().unwrap());
    let calls = json_of(&recorded, &["top", "--json", "--measure", "calls", "a.swv"]);
    assert_eq!(
        (&calls["total"], &calls["unit"], &calls["functions"][0]["self"]),
        (&json!(5), &json!("calls"), &json!(3))
    );
    let one = json_of(&recorded, &["top", "--json", "--measure", "calls", "--include", "function:load", "a.swv"]);
    assert_eq!(one["total"], 3, "what is not shown does not count");
}

#[test]
fn trees_and_flames_are_nested() {
    let recorded = Recorded::new().with("a.swv", 3);
    let tree = json_of(&recorded, &["tree", "--json", "--min", "0", "--measure", "calls", "a.swv"]);
    let epoch = &tree["children"][0];
    assert_eq!(
        (&tree["total"], &tree["outside"], &epoch["name"], &epoch["total"]),
        (&json!(5), &json!(0), &json!("epoch"), &json!(5))
    );
    let below: Vec<_> =
        epoch["children"].as_array().unwrap().iter().map(|node| (&node["name"], &node["self"])).collect();
    assert_eq!(below, [(&json!("load"), &json!(3)), (&json!("step"), &json!(1))]);
    assert!(epoch.get("left_out").is_none() && epoch["children"][0].get("children").is_none());
    let cut = json_of(&recorded, &["tree", "--json", "--depth", "1", "--measure", "calls", "a.swv"]);
    assert_eq!(cut["children"][0]["left_out"], json!({"paths": 2, "total": 4}));
    let flame = json_of(&recorded, &["flame", "--json", "--measure", "calls", "a.swv"]);
    assert_eq!((&flame["name"], &flame["value"], &flame["unit"]), (&json!("all"), &json!(5), &json!("calls")));
    assert_eq!(flame["children"][0]["children"][0]["name"], "load");
    let up = json_of(&recorded, &["flame", "--json", "--bottom-up", "--measure", "calls", "a.swv"]);
    assert_eq!(
        (&up["children"][0]["name"], &up["children"][0]["children"][0]["name"]),
        (&json!("load"), &json!("epoch"))
    );
    let root = json_of(&recorded, &["flame", "--json", "--root", "load", "--measure", "calls", "a.swv"]);
    assert_eq!((&root["value"], &root["total"]), (&json!(3), &json!(5)));
}

/// Runs a command that fails with status 1, and returns the last line of its error output.
fn unchecked(recorded: &Recorded, arguments: &[&str]) -> String {
    let output = recorded.run(&[&["diff"], arguments].concat());
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {printed}");
    printed.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_gate_with_nothing_to_check_fails() {
    let recorded = Recorded::new().with("a.swv", 10).with("b.swv", 10);
    for gate in ["--fail-above", "--fail-above-each"] {
        let printed = unchecked(&recorded, &["a.swv", "b.swv", "--include", "no_such_function", gate, "5"]);
        assert!(
            printed
                .starts_with("stackweave: the gate can't be checked, because nothing is selected in a.swv and b.swv"),
            "{printed}"
        );
        unchecked(&recorded, &["a.swv", "b.swv", "--start", "3600s", gate, "5"]);
        unchecked(&recorded, &["a.swv", "b.swv", "--include", "no_such_function", gate, "5", "--json"]);
    }
    // Without a gate, an empty selection is no failure.
    recorded.printed(&["diff", "a.swv", "b.swv", "--include", "no_such_function"]);
}

#[test]
fn new_functions_count_as_growth_and_missing_ones_can_not_be_checked() {
    let recorded = Recorded::new().with("none.swv", 0).with("some.swv", 10);
    let only = ["--include", "function:load", "--fail-above", "5", "--measure", "calls"];
    let grown = recorded.run(&[&["diff", "none.swv", "some.swv"], &only[..]].concat());
    assert_eq!(grown.status.code(), Some(3), "{}", text(&grown.stderr));
    let printed = unchecked(&recorded, &[&["some.swv", "none.swv"], &only[..]].concat());
    assert!(printed.contains("what is selected in some.swv is not in none.swv"), "{printed}");
}

#[test]
fn a_gate_does_not_pass_truncated_recordings() {
    let recorded = Recorded::new().with("a.swv", 3000);
    let whole = std::fs::read(recorded.path("a.swv")).unwrap();
    // Truncated before its last block, which is the end; and within a block.
    std::fs::write(recorded.path("unclosed.swv"), &whole[..whole.len() - 40]).unwrap();
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(recorded.path("damaged.swv"), &damaged).unwrap();
    for other in ["unclosed.swv", "damaged.swv"] {
        for sides in [["a.swv", other], [other, "a.swv"]] {
            let gate = ["--measure", "calls", "--fail-above", "1000"];
            let printed = unchecked(&recorded, &[&sides, &gate[..]].concat());
            assert!(printed.contains(&format!("{other} is incomplete: ")), "{printed}");
            assert!(printed.ends_with("--allow-incomplete compares it anyway"), "{printed}");
            let allowed = recorded.run(&[&["diff", "--allow-incomplete"][..], &sides, &gate].concat());
            assert!(matches!(allowed.status.code(), Some(0 | 3)), "{}", text(&allowed.stderr));
        }
    }
    recorded.printed(&["diff", "a.swv", "a.swv", "--measure", "calls", "--fail-above", "0"]);
}

#[test]
fn a_gate_fails_even_if_the_table_is_not_read() {
    let recorded = Recorded::new().with("before.swv", 10).with("after.swv", 16);
    for format in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
        command.args(["diff", "before.swv", "after.swv", "--measure", "calls", "--fail-above", "5"]).args(format);
        let status = command.current_dir(recorded.path("")).stdout(writer).status().unwrap();
        assert_eq!(status.code(), Some(3));
    }
}

#[test]
fn a_failed_gate_has_its_own_status() {
    let recorded = Recorded::new().with("before.swv", 10).with("after.swv", 16);
    let gate = |arguments: &[&str]| {
        let output = recorded.run(&[&["diff", "before.swv", "after.swv", "--measure", "calls"], arguments].concat());
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let (status, table, printed) = gate(&["--fail-above", "49"]);
    assert_eq!(status, 3);
    assert_eq!(
        printed,
        "stackweave: calls grew by 50.0 %, from 12 to 18, and --fail-above allows 49 %; most in load (+6)\n"
    );
    assert!(table.contains("+50.0%"), "{table}");
    assert_eq!(gate(&["--fail-above", "50%"]).0, 0);
    assert_eq!(gate(&["--fail-above", "0", "--include", "function:step"]).0, 0);
    let (status, _, printed) = gate(&["--fail-above", "59", "--include", "function:load"]);
    assert_eq!((status, printed.contains("grew by 60.0 %, from 10 to 16")), (3, true), "{printed}");
    let (status, _, printed) = gate(&["--fail-above-each", "49.9"]);
    assert_eq!((status, printed.contains("self calls of load grew by 60.0 %, from 10 to 16")), (3, true), "{printed}");
    assert_eq!(gate(&["--fail-above-each", "50"]).0, 0);
    let (status, json, _) = gate(&["--fail-above", "49", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["gate"]["passed"]), (3, &json!(false)));
    assert_eq!(json["selected"], json!({"before": 12, "after": 18, "difference": 6, "ratio": 1.5}));
    let load = &json["functions"][0];
    assert_eq!(
        (&load["name"], &load["before"]["calls"], &load["after"]["self"]),
        (&json!("load"), &json!(10), &json!(16))
    );
    let (_, json, _) = gate(&["--json", "--paths"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json.get("gate").is_none());
    assert_eq!((&json["paths"][1]["name"], &json["paths"][1]["callers"]), (&json!("load"), &json!(["epoch"])));
}

/// Returns the words that bash would offer.
fn offered(recorded: &Recorded, words: &[&str]) -> Vec<String> {
    let script = "compopt() { :; }; source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
                  _stackweave stackweave \"${@: -1}\" \"${@: -2:1}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, "bash"]).arg(recorded.path("completions.bash")).args(words);
    let output = bash.current_dir(recorded.path(".")).output().unwrap();
    assert_eq!(text(&output.stderr), "");
    let mut words: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn bash_completes_commands_options_values_and_files() {
    let recorded = Recorded::new().with("train.swv", 1);
    std::fs::write(recorded.path("train.py"), "").unwrap();
    let script = recorded.printed(&["completions", "bash"]).0;
    std::fs::write(recorded.path("completions.bash"), script).unwrap();
    assert_eq!(offered(&recorded, &["stackweave", "tr"]), ["trace", "tree"]);
    assert_eq!(offered(&recorded, &["stackweave", "diff", "--fail-above-"]), ["--fail-above-each"]);
    assert_eq!(offered(&recorded, &["stackweave", "top", "--measure", "p"]), ["peak"]);
    assert_eq!(offered(&recorded, &["stackweave", "trace", "--min-"]), ["--min-duration"]);
    assert_eq!(offered(&recorded, &["stackweave", "trace", "--mechanism", "m"]), ["monitoring"]);
    assert_eq!(offered(&recorded, &["stackweave", "memory", "--dump-at"]), ["--dump-at-rss"]);
    assert_eq!(offered(&recorded, &["stackweave", "dynamo", "--no-ph"]), ["--no-phases"]);
    assert!(
        offered(&recorded, &["stackweave", "export", "train.swv", "--output", "tr"]).contains(&"train.swv".to_owned())
    );
    // Bash completes files if there is nothing to offer: the script enables that.
    for words in [["stackweave", "top", "tr"], ["stackweave", "trace", "tr"]] {
        let files = offered(&recorded, &words);
        assert!(files.iter().all(|word| word.is_empty() || word.starts_with("train.")), "{files:?}");
    }
    assert!(std::fs::read_to_string(recorded.path("completions.bash")).unwrap().contains("-o default"));
    assert!(!offered(&recorded, &["stackweave", "top", ""]).iter().any(|word| word.contains("RECORDING")));
}

#[test]
fn every_shell_has_completions_of_the_python_commands() {
    let recorded = Recorded::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _) = recorded.printed(&["completions", shell]);
        assert!(script.contains("min-duration") && script.contains("fail-above"), "{shell}");
    }
}

#[test]
fn help_of_python_commands_needs_no_python() {
    let recorded = Recorded::new();
    let (help, printed) = recorded.printed(&["trace", "--python", "no/such/python", "--help"]);
    assert!(
        help.starts_with("Record every call that a Python program makes") && help.contains("--min-duration <TIME>"),
        "{help}"
    );
    assert!(printed.contains("can't run no/such/python") && printed.contains("--python"), "{printed}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    let output = command.args(["help", "memory"]).env("STACKWEAVE_PYTHON", "no/such/python").output().unwrap();
    assert!(output.status.success() && text(&output.stdout).contains("--dump-at-rss <SIZE>"));
}
