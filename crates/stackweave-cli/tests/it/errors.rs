//! Error messages: one sentence, with advice.

use std::fs;
use std::process::Command;

use crate::common::{Recorded, text};

/// Returns the one sentence about wrong arguments.
fn refusal(recorded: &Recorded, arguments: &[&str]) -> String {
    let output = recorded.run(arguments);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{arguments:?}");
    let printed = text(&output.stderr);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    printed.trim_end().to_owned()
}

#[test]
fn wrong_arguments_are_one_sentence_with_the_help_of_the_command() {
    let recorded = Recorded::new();
    for (arguments, expected) in [
        (&["paint"][..], "stackweave: there is no command paint; see stackweave --help"),
        (&["tpo", "x"], "stackweave: there is no command tpo; did you mean top? See stackweave --help"),
        (&["help", "flmae"], "stackweave: there is no command flmae; did you mean flame? See stackweave --help"),
        (&["top"], "stackweave top: RECORDING is missing; see stackweave top --help"),
        (&["diff", "a"], "stackweave diff: AFTER is missing; see stackweave diff --help"),
        (&["diff", "a", "b", "c"], "stackweave diff: 'c' is one argument too many; see stackweave diff --help"),
        (&["merge", "a"], "stackweave merge: --output is missing; see stackweave merge --help"),
        (&["top", "--mesure", "x"], "there is no option --mesure; did you mean --measure? See stackweave top --help"),
        (
            &["top", "--measure", "x", "a"],
            "--measure can't be 'x', only time, calls, samples, bytes, allocations, live, ",
        ),
        (&["top", "--start", "1h", "a"], "--start can't be '1h': write a time like 1.5s or 200ms; see stackweave top"),
        (&["top", "-n", "few", "a"], "--limit can't be 'few': write a whole number; see"),
        (&["flame", "--width", "5", "a"], "--width can't be '5': write a number from 20 to 10000; see"),
        (&["diff", "--fail-above", "-5", "a", "b"], "--fail-above can't be '-5': write a number like 5 or 2.5; see"),
        (
            &["export", "--max-size", "much", "a"],
            "--max-size can't be 'much': write a size like 4GB or 1.5GiB, or none; see",
        ),
        (&["diff", "--fail-above"], "--fail-above needs a value; see stackweave diff --help"),
        (
            &["completions", "tcsh"],
            "SHELL can't be 'tcsh', only bash, elvish, fish, powershell, zsh; did you mean zsh? See",
        ),
        (
            &["--color", "blue", "top", "a"],
            "--color can't be 'blue', only auto, always, never; see stackweave top --help",
        ),
    ] {
        let printed = refusal(&recorded, arguments);
        assert!(printed.contains(expected), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_missing_file_is_reported_with_similar_names_and_the_newest_recordings() {
    let recorded = Recorded::new().with("train.4242.swv", 1).with("other.swv", 1);
    let printed = recorded.failure(&["top", "trian.4242.swv"]);
    assert!(printed.ends_with("no such file or folder; did you mean train.4242.swv?"), "{printed}");
    let printed = recorded.failure(&["tree", "x"]);
    assert!(printed.contains("; the newest recordings there: ") && printed.contains("other.swv"), "{printed}");
    let printed = recorded.failure(&["flame", "no/such/run.swv"]);
    assert!(printed.ends_with("; there is no folder no/such"), "{printed}");
    fs::create_dir(recorded.path("empty")).unwrap();
    let printed = recorded.failure(&["info", "empty"]);
    assert!(
        printed.contains("holds no recordings")
            && printed.ends_with("; stackweave record -o empty/run.swv records a program to it"),
        "{printed}"
    );
}

#[test]
fn an_export_that_is_too_large_gives_advice_and_leaves_no_file() {
    let recorded = Recorded::new().with("a.swv", 50);
    let advice = "--start and --end export a part of the time, --max-size 4GB or --max-size none allows more";
    for arguments in [&["export", "a.swv", "-o", "a.jsonl"][..], &["export", "a.swv", "-o", "a.parquet"]] {
        let printed = recorded.failure(&[arguments, &["--max-size", "200B"]].concat());
        assert!(printed.contains("is larger than its limit of 200 B") && printed.ends_with(advice), "{printed}");
        assert_eq!(fs::read_dir(recorded.path(".")).unwrap().count(), 1, "{arguments:?}");
        let output = recorded.run(&[arguments, &["--max-size", "none"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let path = recorded.path(arguments[3]);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
}

#[test]
fn files_of_other_programs_are_reported_with_their_readers() {
    let recorded = Recorded::new();
    for (name, start, reader) in [
        ("out.bin", &b"memray\0\x0b"[..], "memray reads it"),
        ("out.prof", b"{\xa9\x03\xda\x01~\xe9\x00\0\0\0", "snakeviz"),
        ("perf.data", b"PERFILE2\0\0", "perf report"),
        ("trace.json", b"{\"traceEvents\": []}", "ui.perfetto.dev"),
        ("snapshot.pickle", b"\x80\x04\x95\x10", "memory_viz"),
        ("events.parquet", b"PAR1\0\0", "DuckDB"),
        ("train.py", b"import os\n", "stackweave record records"),
        ("run.html", b"<!doctype html>\n", "a browser shows it"),
        ("run.folded", b"a;b 3\n", "speedscope"),
    ] {
        fs::write(recorded.path(name), start).unwrap();
        for command in ["top", "info", "flame"] {
            let printed = recorded.failure(&[command, name]);
            assert!(printed.contains("this is no recording of Stackweave") && printed.contains(reader), "{printed}");
        }
    }
}

#[test]
fn unknown_threads_and_measures_are_reported_with_those_that_exist() {
    let recorded = Recorded::new().with("a.swv", 1);
    let printed = recorded.failure(&["top", "a.swv", "--thread", "unknown"]);
    assert!(printed.contains("there is no thread unknown; the recording has trainer ("), "{printed}");
    let printed = recorded.failure(&["flame", "a.swv", "--measure", "samples"]);
    assert!(printed.ends_with("the recording has no samples, but wall time; --measure time shows it"), "{printed}");
    let printed = recorded.failure(&["flame", "a.swv", "--root", "unknown"]);
    assert!(printed.contains("--root") && printed.contains("stackweave top lists"), "{printed}");
    let output = recorded.run(&["export", "a.swv", "--measure", "calls", "-o", "a.svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("leave out --measure"));
    let printed = recorded.failure(&["diff", "a.swv", "a.swv", "--shares", "--fail-above", "1"]);
    assert!(printed.contains("needs --include"), "{printed}");
}

#[test]
fn outputs_that_can_not_be_written_are_reported_before_anything_is_read() {
    let recorded = Recorded::new().with("a.swv", 1);
    for arguments in [
        ["export", "a.swv", "-o", "no/such/a.svg"],
        ["report", "a.swv", "-o", "no/such/a.html"],
        ["merge", "a.swv", "-o", "no/such/b.swv"],
    ] {
        let printed = recorded.failure(&arguments);
        assert!(
            printed.contains("can't write no/such/")
                && printed.ends_with("there is no folder no/such; create it first"),
            "{printed}"
        );
    }
    let printed = recorded.failure(&["export", "a.swv", "-o", "/proc/a.svg"]);
    assert!(
        printed.contains("can't write /proc/a.svg") && printed.ends_with("choose another path with --output"),
        "{printed}"
    );
}

#[test]
fn help_is_short_and_has_examples() {
    let recorded = Recorded::new();
    let (page, _) = recorded.printed(&[]);
    assert_eq!(page, recorded.printed(&["--help"]).0);
    assert_eq!(page, recorded.printed(&["help"]).0);
    for heading in ["Record:", "Inspect:", "Share:", "Diagnose, set up:", "Options:"] {
        assert!(page.contains(&format!("\n{heading}\n")), "{page}");
    }
    for command in
        ["info", "heap", "phases", "tree", "top", "flame", "diff", "report", "export", "merge", "completions"]
    {
        let (help, _) = recorded.printed(&["help", command]);
        assert_eq!(help, recorded.printed(&[command, "--help"]).0);
        assert!(help.lines().next().unwrap().len() <= 100, "{help}");
        let examples = help.split_once("\nExamples:\n").unwrap().1;
        assert!((2..=4).contains(&examples.matches(&format!("stackweave {command}")).count()), "{help}");
        assert!(help.contains(&format!("Usage: stackweave {command} ")), "{help}");
    }
}

#[test]
fn help_that_can_not_be_written_is_a_failure() {
    for arguments in [&[][..], &["--help"], &["help", "top"], &["--version"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
        let output = command.args(arguments).stdout(full).output().unwrap();
        let printed = text(&output.stderr);
        assert!(printed.starts_with("stackweave: can't write to standard output: "), "{arguments:?}: {printed}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
}
