//! Every command states the share that it hides inside libraries and the interpreter, and how it is shown.

use serde_json::{Value, json};
use stackweave_tapes::Tape;

use crate::common::Recorded;

const LIBRARY: &str = "/usr/lib/python3.11/json/encoder.py";
/// The functions that are hidden.
const HIDDEN: [&str; 2] = ["encode", "escape"];

/// Records a `main` that is mostly in a function of a library that is visible, and in hidden functions that it calls.
fn tape(hidden: u64) -> Tape {
    let mut tape = Tape::new();
    tape.thread(1, 1, "main");
    let mut of = |name, file| Tape::at(tape.python(name, file, 1), 0);
    let [main, dumps] = [of("main", "/app/a.py"), of("dumps", LIBRARY)];
    let [encode, escape] = HIDDEN.map(|name| of(name, LIBRARY));
    tape.begin((1, 0), main);
    tape.begin((1, 1000), dumps);
    tape.begin((1, 1500), encode);
    tape.begin((1, 2000), escape);
    tape.allocate((1, 2000), (0x1000, hidden), &[escape, encode, dumps, main]);
    tape.allocate((1, 2001), (0x9000, 700), &[main]);
    tape.end((1, 2000 + hidden));
    tape.end((1, 2500 + hidden));
    tape.end((1, 3000 + hidden));
    tape.end((1, 4000 + hidden));
    tape
}

fn recorded() -> Recorded {
    let recorded = Recorded::new();
    std::fs::write(recorded.path("a.swv"), tape(6000).bytes()).unwrap();
    std::fs::write(recorded.path("b.swv"), tape(1000).bytes()).unwrap();
    recorded
}

fn json_of(recorded: &Recorded, arguments: &[&str]) -> Value {
    let (printed, _) = recorded.printed(&[arguments, &["--json"]].concat());
    serde_json::from_str(&printed).unwrap()
}

/// Returns the share of the hidden functions, computed from a table of everything.
fn share_of_all(recorded: &Recorded, file: &str, measure: &str) -> f64 {
    let all = json_of(recorded, &["top", file, "--all", "--measure", measure]);
    assert_eq!(all["hidden"]["functions"], 0);
    let rows = all["functions"].as_array().unwrap().iter();
    let hidden = rows.filter(|row| HIDDEN.iter().any(|name| row["name"] == *name));
    let nanoseconds = |cost: &Value| (cost.as_f64().unwrap() * 1e9).round();
    hidden.map(|row| nanoseconds(&row["self"])).sum::<f64>() / nanoseconds(&all["total"])
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

#[test]
fn each_text_has_a_line_about_it() {
    let recorded = recorded();
    let share = |file, measure| percent(share_of_all(&recorded, file, measure));
    let (time, before, peak) = (share("a.swv", "time"), share("b.swv", "time"), share("a.swv", "peak"));
    assert_eq!((&*time, &*before, &*peak), ("70.0%", "40.0%", "89.6%"));
    let lines = |arguments: &[&str]| {
        let (printed, _) = recorded.printed(arguments);
        let lines = printed.lines().filter(|line| line.contains("are hidden: ")).map(str::to_owned);
        lines.collect::<Vec<String>>()
    };
    for (arguments, share) in [
        (&["top", "a.swv", "--measure", "time"][..], &time),
        (&["tree", "a.swv", "--measure", "time"], &time),
        (&["flame", "a.swv", "--measure", "time"], &time),
        (&["phases", "a.swv"], &time),
        (&["top", "a.swv", "--measure", "peak"], &peak),
        (&["heap", "a.swv"], &peak),
        (&["heap", "a.swv", "--view", "leaks"], &peak),
    ] {
        let [line] = lines(arguments).try_into().unwrap();
        let start = format!("(2 functions inside libraries and the interpreter are hidden: {share} (");
        let end = " of self, counted for their callers; --all shows them)";
        assert!(line.starts_with(&start) && line.ends_with(end), "{arguments:?}: {line}");
        assert!(lines(&[arguments, &["--all"]].concat()).is_empty(), "{arguments:?}");
    }
    let [line] = lines(&["diff", "b.swv", "a.swv", "--measure", "time"]).try_into().unwrap();
    assert!(line.contains(&format!("hidden: {before} (2.00 us) of self before, {time} (7.00 us) after")), "{line}");
    assert!(lines(&["diff", "b.swv", "a.swv", "--measure", "time", "--all"]).is_empty());
    assert!(lines(&["heap", "a.swv", "--view", "sizes"]).is_empty());
}

#[test]
fn each_json_has_it_as_a_field() {
    let recorded = recorded();
    let time = share_of_all(&recorded, "a.swv", "time");
    let hidden = json!({"functions": 2, "self": 7e-6, "share": time, "costly": 0, "shown_by": "--all"});
    for command in ["top", "tree"] {
        assert_eq!(json_of(&recorded, &[command, "a.swv", "--measure", "time"])["hidden"], hidden, "{command}");
    }
    assert_eq!(json_of(&recorded, &["phases", "a.swv"])["hidden"], hidden);
    let flame = &json_of(&recorded, &["flame", "a.swv", "--measure", "time"])["hidden"];
    assert_eq!((&flame["self"], &flame["share"]), (&json!(7000), &json!(time)));
    let diff = &json_of(&recorded, &["diff", "b.swv", "a.swv", "--measure", "time"])["hidden"];
    let before = share_of_all(&recorded, "b.swv", "time");
    assert_eq!((&diff["after"], &diff["before"]["share"]), (&hidden, &json!(before)));
    let heap = &json_of(&recorded, &["heap", "a.swv"])["hidden"];
    let peak = json!({
        "functions": 2, "self": 6000, "share": share_of_all(&recorded, "a.swv", "peak"), "costly": 0, "shown_by": "--all"
    });
    assert_eq!((&heap["peak"], &heap["leaks"]), (&peak, &peak));
    let all = json_of(&recorded, &["heap", "a.swv", "--view", "peak", "--all"]);
    assert_eq!(
        all["hidden"],
        json!({"peak": {"functions": 0, "self": 0, "share": 0.0, "costly": 0, "shown_by": "--all"}})
    );
}
