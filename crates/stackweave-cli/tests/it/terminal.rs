//! Colours, widths, and Ctrl-C.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stackweave_core::NoNames;
use stackweave_recording::{Recorder, RecorderOptions};

use crate::common::{Recorded, frame, text};

fn with(recorded: &Recorded, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLORTERM", "TERM"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    let output = command.args(arguments).current_dir(recorded.path(".")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn colours_are_used_only_if_enabled() {
    let recorded = Recorded::new().with("a.swv", 3);
    let has = |arguments: &[&str], variables: &[(&str, &str)]| with(&recorded, arguments, variables).contains('\u{1b}');
    for command in ["top", "tree", "flame"] {
        assert!(!has(&[command, "a.swv"], &[]));
        assert!(has(&[command, "a.swv", "--color", "always"], &[]));
        assert!(has(&["--color=always", command, "a.swv"], &[("NO_COLOR", "1")]));
        assert!(!has(&[command, "a.swv", "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
        assert!(!has(&[command, "a.swv"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
        assert!(!has(&[command, "--json", "a.swv", "--color", "always"], &[]));
    }
    assert!(has(&["tree", "a.swv"], &[("CLICOLOR_FORCE", "1")]));
    assert!(has(&["--help", "--color", "always"], &[]) && !has(&["--help"], &[]));
}

#[test]
fn a_flame_graph_has_the_colours_of_the_terminal() {
    let recorded = Recorded::new().with("a.swv", 3);
    let drawn = |variables: &[(&str, &str)]| with(&recorded, &["flame", "a.swv"], variables);
    let force = ("CLICOLOR_FORCE", "1");
    assert!(drawn(&[force, ("COLORTERM", "truecolor")]).contains("\u{1b}[48;2;"));
    assert!(drawn(&[force, ("TERM", "xterm-256color")]).contains("\u{1b}[48;5;"));
    let plain = drawn(&[force, ("TERM", "vt100")]);
    assert!(!plain.contains('\u{1b}') && plain.contains("│epoch 100.0%"), "{plain}");
}

#[test]
fn a_flame_graph_has_the_requested_width_and_depth() {
    let recorded = Recorded::new().with("a.swv", 3);
    let drawn = with(&recorded, &["flame", "a.swv", "--measure", "calls", "--width", "50"], &[]);
    let expected = "\
│all: 5 calls────────────────────────────────────│
│epoch 100.0%────────────────────────────────────│
│load 60.0%───────────────────│step────│
";
    assert_eq!(drawn, expected);
    let shallow = with(&recorded, &["flame", "a.swv", "--measure", "calls", "--width", "50", "--depth", "1"], &[]);
    assert!(shallow.ends_with("(1 more level below; --depth shows them)\n"), "{shallow}");
    let wide = with(&recorded, &["flame", "a.swv"], &[]);
    assert_eq!(wide.lines().next().unwrap().chars().count(), 100);
}

/// Enough events for an export that takes a while.
const EVENTS: usize = 400_000;

#[test]
fn an_interrupt_ends_the_command_by_the_signal_without_a_half_written_file() {
    let recorded = Recorded::new();
    let writer = Recorder::start(
        RecorderOptions::new(recorded.path("a.swv")),
        &crate::common::STACKS,
        std::sync::Arc::new(NoNames),
    )
    .unwrap();
    for _ in 0..EVENTS {
        writer.begin(frame("load"));
        writer.end();
    }
    assert_eq!(writer.stop().error, None);
    for (arguments, signal, number) in [
        (["--format", "json", "-o", "a.jsonl"], "-INT", 2),
        (["--format", "json", "-o", "a.jsonl"], "-KILL", 9),
        (["--format", "parquet", "-o", "a.data"], "-INT", 2),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
        command.args(["export", "a.swv"]).args(arguments).current_dir(recorded.path("."));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !is_writing(child.id(), &recorded) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        let entries = std::fs::read_dir(recorded.path(".")).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a.swv"], "{arguments:?} {signal}");
    }
}

/// Returns whether the process has its output open: a file without a name yet, or one in an unfinished folder.
fn is_writing(process: u32, recorded: &Recorded) -> bool {
    let folder = std::fs::canonicalize(recorded.path(".")).unwrap();
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let mut files = open.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    files.any(|file| file.starts_with(&folder) && !file.ends_with("a.swv"))
}
