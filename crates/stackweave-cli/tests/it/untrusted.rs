//! Untrusted recordings can't harm the user who opens them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use stackweave_testkit::folder::Folder;
use stackweave_testkit::hostile_recording::{HOSTILE_TEXTS, HostileOptions, hostile_recording_with};

/// Commands, including ones that fail.
const COMMANDS: &[&[&str]] = &[
    &["info", "x.swv"],
    &["top", "x.swv", "-n", "1000"],
    &["top", "x.swv", "--measure", "live"],
    &["tree", "x.swv", "--all"],
    &["heap", "x.swv"],
    &["phases", "x.swv"],
    &["flame", "x.swv"],
    &["diff", "x.swv", "y.swv"],
    &["diff", "x.swv", "y.swv", "--fail-above", "0", "--allow-incomplete"],
    &["diff", "x.swv", "y.swv", "--fail-above", "0", "--measure", "calls", "--allow-incomplete"],
    &["top", "x.swv", "--thread", "none"],
    &["top", "x.swv", "--process", "1"],
    &["report", "x.swv", "--overwrite"],
    &["merge", "x.swv", "y.swv", "-o", "merged.swv", "--overwrite"],
    &["export", "x.swv", "-o", "x.folded", "--overwrite"],
    &["export", "x.swv", "-o", "no such\u{1b}[2J/x.json"],
    &["top", "\u{1b}]0;t\u{7}\u{202e}.swv"],
    &["top", "x.swv", "--measure", "\u{1b}[31m\u{9b}"],
    &["t\u{1b}[31mop", "x.swv"],
    &["top", "--no\u{1b}[2J\u{202e}", "x.swv"],
];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", env!("CARGO_BIN_EXE_stackweave")]).args(arguments);
    command.current_dir(folder).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).output().unwrap()
}

/// Returns the parts of a text that a terminal would obey; with `colours`, except the codes for colours.
fn obeyed(text: &str, colours: bool) -> Vec<String> {
    let is_obeyed = |letter: char| {
        let is_direction = "\u{61c}\u{200e}\u{200f}".contains(letter)
            || ('\u{202a}'..='\u{202e}').contains(&letter)
            || ('\u{2066}'..='\u{2069}').contains(&letter);
        letter != '\n' && (letter.is_control() || is_direction)
    };
    let is_colour = |rest: &str| {
        rest.starts_with("\u{1b}[")
            && rest[2..].trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    };
    let found = text.char_indices().filter(|(at, letter)| is_obeyed(*letter) && !(colours && is_colour(&text[*at..])));
    found.map(|(at, _)| text[at..].chars().take(12).collect::<String>().escape_default().to_string()).collect()
}

#[test]
fn no_terminal_control_codes_are_printed() {
    let options = HostileOptions {
        numbers: false,
        texts: HOSTILE_TEXTS.map(str::to_owned).to_vec(),
        names: true,
        modules: vec!["/\u{1b}]0;t\u{7}\u{202e}/lib\u{9b}.so".to_owned()],
        nested: 3,
    };
    let folder = Folder::new();
    let (mut shown, mut found) = (0, Vec::new());
    for seed in 0..4 {
        folder.write("x.swv", &hostile_recording_with(seed, &options));
        folder.write("y.swv", &hostile_recording_with(seed + 100, &options));
        for arguments in COMMANDS {
            for colours in ["never", "always"] {
                let output = run(folder.path(), &[*arguments, &["--color", colours]].concat());
                for stream in [&output.stdout, &output.stderr] {
                    let text = String::from_utf8(stream.clone()).unwrap();
                    shown += text.matches('\u{fffd}').count();
                    let obeyed = obeyed(&text, colours == "always");
                    found.extend(obeyed.iter().map(|code| format!("seed {seed}: {arguments:?} {colours}: {code}")));
                }
                assert!(matches!(output.status.code(), Some(0..=3)), "{arguments:?}: {}", output.status);
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(shown > 1_000, "the hostile texts are shown: {shown}");
}

#[test]
fn json_has_the_original_names_without_terminal_control_codes() {
    let name = "\u{1b}]0;t\u{7}\u{202e}\u{9b}";
    let options = HostileOptions {
        numbers: false,
        texts: vec![name.to_owned()],
        names: true,
        modules: vec!["lib.so".to_owned()],
        nested: 3,
    };
    let folder = Folder::new();
    folder.write("x.swv", &hostile_recording_with(1, &options));
    for command in ["info", "top", "tree", "heap", "phases"] {
        let output = run(folder.path(), &[command, "x.swv", "--json"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(obeyed(&text, false), Vec::<String>::new(), "{command}");
        assert!(output.status.success() && serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{command}");
    }
    let output = run(folder.path(), &["info", "x.swv", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(info.to_string().contains(&serde_json::json!(name).to_string()), "{info}");
}

#[test]
fn a_pipe_or_a_device_as_a_module_is_not_opened() {
    let folder = Folder::new();
    let pipe = folder.file("lib.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let options = HostileOptions {
        numbers: false,
        texts: vec!["a".to_owned()],
        names: false,
        modules: vec![pipe.display().to_string(), "/dev/tty".to_owned(), "/dev/zero".to_owned()],
        nested: 3,
    };
    for seed in 0..6 {
        folder.write("x.swv", &hostile_recording_with(seed, &options));
        for command in ["top", "tree", "flame", "heap", "report"] {
            let output = run(folder.path(), &[command, "x.swv"]);
            let printed = String::from_utf8_lossy(&output.stderr);
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{command}, seed {seed}: {}: {printed}",
                output.status
            );
        }
        std::fs::remove_file(folder.file("x.html")).unwrap();
    }
}
