//! Commands that write: they destroy nothing that they did not create, and write to standard output if the path says so.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use stackweave_recording::Recording;

use crate::common::{Recorded, text};

const PARQUET: [&str; 5] = ["export", "run.swv", "--format", "parquet", "--force"];

fn parquet(output: &str) -> Vec<&str> {
    PARQUET.iter().copied().chain(["-o", output]).collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path.display().to_string()) }
    }
    found.sort();
    found
}

#[test]
fn a_folder_of_something_else_is_not_replaced_by_force() {
    let recorded = Recorded::new().with("run.swv", 3);
    fs::create_dir_all(recorded.path("precious/sub")).unwrap();
    fs::write(recorded.path("precious/sub/thesis.txt"), "years").unwrap();
    let before = files(&recorded.path("."));
    for output in ["precious", ".", "..", "./", "precious/..", "/", "run.swv"] {
        let said = recorded.failure(&parquet(output));
        assert!(said.contains("can't write ") && said.contains("name a new folder"), "{said}");
        assert_eq!(files(&recorded.path(".")), before, "{output}");
    }
    let said = recorded.failure(&["merge", "run.swv", "-o", "precious"]);
    assert!(said.ends_with("(--force replaces only folders of earlier exports)"), "{said}");
    let said = recorded.failure(&["merge", "run.swv", "-o", "precious", "--force"]);
    assert!(said.contains("precious"), "{said}");
    assert_eq!(files(&recorded.path(".")), before);
}

#[test]
fn an_older_export_is_replaced_by_force_and_only_if_it_is_alone() {
    let recorded = Recorded::new().with("run.swv", 3).with("other.swv", 2);
    recorded.said(&["export", "run.swv", "--format", "parquet", "-o", "data"]);
    let first = files(&recorded.path("data"));
    let said = recorded.failure(&["export", "run.swv", "--format", "parquet", "-o", "data"]);
    assert!(said.contains("data is there already") && said.contains("--force replaces only"), "{said}");
    recorded.said(&parquet("data"));
    assert_eq!(files(&recorded.path("data")), first);
    // A second machine's export, put beside the first.
    recorded.said(&["export", "other.swv", "--format", "parquet", "-o", "second"]);
    let part = fs::read_dir(recorded.path("second/events")).unwrap().next().unwrap().unwrap().file_name();
    fs::rename(recorded.path("second/events").join(&part), recorded.path("data/events").join(&part)).unwrap();
    let before = files(&recorded.path("data"));
    let said = recorded.failure(&parquet("data"));
    assert!(said.contains("the folder also holds events/process="), "{said}");
    assert_eq!(files(&recorded.path("data")), before);
}

#[test]
fn a_device_is_written_through_with_and_without_force() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let recorded = Recorded::new().with("run.swv", 3);
    let device = recorded.path("null");
    let made = mknodat(CWD, &device, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3));
    if made.is_err() || File::options().write(true).open(&device).is_err() {
        return;
    }
    let is_device = || fs::symlink_metadata(&device).unwrap().file_type().is_char_device();
    for force in [&[][..], &["--force"]] {
        let with = |arguments: &[&str]| recorded.said(&[arguments, force].concat());
        with(&["export", "run.swv", "--format", "json", "-o", "null"]);
        with(&["report", "run.swv", "-o", "null"]);
        with(&["merge", "run.swv", "-o", "null"]);
        assert!(is_device());
    }
}

#[test]
fn a_dash_is_standard_output() {
    let recorded = Recorded::new().with("run.swv", 3);
    for output in ["-", "/dev/stdout"] {
        let (out, said) = recorded.said(&["export", "run.swv", "--format", "folded", "-o", output]);
        assert!(out.contains("epoch (train.py);load (train.py) "), "{out}");
        assert!(said.starts_with("Wrote standard output (folded, "), "{said}");
        let (page, said) = recorded.said(&["report", "run.swv", "-o", output]);
        assert!(page.starts_with("<!doctype html>") && said.starts_with("Wrote standard output"), "{said}");
        let merged = recorded.run(&["merge", "run.swv", "-o", output]);
        assert!(merged.status.success());
        fs::write(recorded.path("merged.swv"), merged.stdout).unwrap();
        assert_eq!(Recording::open(&recorded.path("merged.swv")).unwrap().processes().len(), 1);
    }
    assert!(!recorded.path("-").exists());
    let said = recorded.failure(&parquet("-"));
    assert!(said.contains("it is no folder"), "{said}");
}

#[test]
fn standard_output_that_is_a_file_is_added_to() {
    let recorded = Recorded::new().with("run.swv", 3);
    let path = recorded.path("out.txt");
    fs::write(&path, "kept\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["export", "run.swv", "--format", "folded", "-o", "-"]).current_dir(recorded.path("."));
    let out = File::options().append(true).open(&path).unwrap();
    assert!(command.stdout(out).stderr(Stdio::null()).status().unwrap().success());
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("kept\n") && text.contains("epoch (train.py);load (train.py) "), "{text}");
}

#[test]
fn nobody_who_reads_is_no_failure() {
    let recorded = Recorded::new().with("run.swv", 3);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["report", "run.swv", "-o", "-"]).current_dir(recorded.path("."));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(0), String::new()));
}

#[test]
fn a_full_device_is_one_sentence() {
    let recorded = Recorded::new().with("run.swv", 3);
    let said = recorded.failure(&["export", "run.swv", "--format", "json", "-o", "/dev/full"]);
    assert!(said.contains("can't write /dev/full: No space left on device"), "{said}");
    assert!(fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn the_recording_itself_is_never_replaced() {
    let recorded = Recorded::new().with("run.swv", 3);
    let before = fs::read(recorded.path("run.swv")).unwrap();
    symlink("run.swv", recorded.path("link.swv")).unwrap();
    for output in ["run.swv", "./run.swv", "link.swv"] {
        let said = recorded.failure(&["export", "run.swv", "--format", "json", "-o", output, "--force"]);
        assert!(said.contains("is a recording that is read"), "{said}");
        let said = recorded.failure(&["report", "run.swv", "-o", output, "--force"]);
        assert!(said.contains("is a recording that is read"), "{said}");
    }
    assert_eq!(fs::read(recorded.path("run.swv")).unwrap(), before);
}

#[test]
fn what_is_written_is_its_owners_only_and_leaves_nothing_beside_it() {
    let recorded = Recorded::new().with("run.swv", 3);
    let run = |arguments: &str| {
        let script = format!("umask 0; exec {} {arguments}", env!("CARGO_BIN_EXE_stackweave"));
        let mut command = Command::new("sh");
        assert!(command.args(["-c", &script]).current_dir(recorded.path(".")).output().unwrap().status.success());
    };
    run("export run.swv -o out.json");
    run("report run.swv");
    run("merge run.swv -o all.swv");
    run("export run.swv --format parquet -o data");
    let mode = |name: &str| fs::metadata(recorded.path(name)).unwrap().mode() & 0o777;
    assert_eq!([mode("out.json"), mode("run.html"), mode("all.swv"), mode("data")], [0o600, 0o600, 0o600, 0o700]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["export", "run.swv", "-o", "shared.json"]).env("STACKWEAVE_FILE_MODE", "664");
    assert!(command.current_dir(recorded.path(".")).output().unwrap().status.success());
    assert_eq!(mode("shared.json"), 0o664);
    let mut names: Vec<_> = fs::read_dir(recorded.path(".")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["all.swv", "data", "out.json", "run.html", "run.swv", "shared.json"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stackweave"));
    command.args(["export", "run.swv", "-o", "wrong.json"]).env("STACKWEAVE_FILE_MODE", "rw-r-----");
    let wrong = command.current_dir(recorded.path(".")).output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("STACKWEAVE_FILE_MODE must be an octal number"));
}

#[test]
fn wrong_arguments_exit_with_2() {
    let recorded = Recorded::new().with("run.swv", 3);
    for arguments in [
        &["export", "run.swv", "--format", "word"][..],
        &["export", "run.swv"],
        &["export", "run.swv", "-o", "a.unknown"],
        &["export", "run.swv", "--format", "json", "--measure", "calls"],
        &["report", "run.swv", "-o", "-", "--open"],
        &["export", "run.swv", "--no-such-option"],
    ] {
        let output = recorded.run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
    }
}

/// Runs commands in a folder of their own, which has little room and can be made read-only; `None` where that is not allowed.
fn on_small_disk(recorded: &Recorded, commands: &str) -> Option<String> {
    fs::create_dir(recorded.path("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=192k none disk || exit 77\ncp run.swv disk && cd disk && stackweave() {{ {} \"$@\"; }}\n{commands}",
        env!("CARGO_BIN_EXE_stackweave")
    );
    let mut command = Command::new("unshare");
    let done = command.args(["-m", "sh", "-c", &script]).current_dir(recorded.path(".")).output().ok()?;
    if done.status.code() == Some(77) || text(&done.stderr).contains("unshare") {
        return None;
    }
    Some(text(&done.stdout) + &text(&done.stderr))
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let recorded = Recorded::new().with("run.swv", 3_000);
    let commands = "printf old > out.jsonl; stackweave export run.swv -o out.jsonl --force; echo status $?; cat out.jsonl; echo; ls -A
        stackweave export run.swv --format parquet -o data; echo status $?; ls -A; stackweave merge run.swv -o all.swv; echo status $?; ls -A";
    let Some(said) = on_small_disk(&recorded, commands) else { return };
    assert!(said.starts_with("status 1\nold\nout.jsonl\nrun.swv\n"), "{said}");
    assert!(said.contains("can't write out.jsonl: No space left on device"), "{said}");
    assert!(!said.contains(".part"), "{said}");
}

#[test]
fn a_folder_that_can_not_be_written_is_one_sentence() {
    let recorded = Recorded::new().with("run.swv", 3);
    let commands = "printf old > out.json; mount -o remount,ro .
        stackweave export run.swv -o out.json --force; echo status $?; cat out.json; echo; ls -A";
    let Some(said) = on_small_disk(&recorded, commands) else { return };
    assert!(said.starts_with("status 1\nold\nout.json\nrun.swv\n"), "{said}");
    assert!(said.contains("can't write out.json: Read-only file system"), "{said}");
}
