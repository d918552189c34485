//! Commands that write: they replace nothing that they did not create, and write to standard output if the path says
//! so.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use stackweave_recording::Recording;

use crate::common::{Recorded, text};

const PARQUET: [&str; 5] = ["export", "run.swv", "--format", "parquet", "--overwrite"];

fn parquet(output: &str) -> Vec<&str> {
    PARQUET.iter().copied().chain(["-o", output]).collect()
}

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { paths.extend(files(&path)) } else { paths.push(path.display().to_string()) }
    }
    paths.sort();
    paths
}

#[test]
fn overwrite_does_not_replace_a_folder_with_other_contents() {
    let recorded = Recorded::new().with("run.swv", 3);
    fs::create_dir_all(recorded.path("precious/sub")).unwrap();
    fs::write(recorded.path("precious/sub/thesis.txt"), "years").unwrap();
    let before = files(&recorded.path("."));
    for output in ["precious", ".", "..", "./", "precious/..", "/", "run.swv"] {
        let printed = recorded.failure(&parquet(output));
        assert!(printed.contains("can't write ") && printed.contains("name a new folder"), "{printed}");
        assert_eq!(files(&recorded.path(".")), before, "{output}");
    }
    let printed = recorded.failure(&["merge", "run.swv", "-o", "precious"]);
    assert!(printed.ends_with("(--overwrite replaces only folders of earlier exports)"), "{printed}");
    let printed = recorded.failure(&["merge", "run.swv", "-o", "precious", "--overwrite"]);
    assert!(printed.contains("precious"), "{printed}");
    assert_eq!(files(&recorded.path(".")), before);
}

#[test]
fn overwrite_replaces_an_older_export_only_if_the_folder_has_nothing_else() {
    let recorded = Recorded::new().with("run.swv", 3).with("other.swv", 2);
    recorded.printed(&["export", "run.swv", "--format", "parquet", "-o", "data"]);
    let first = files(&recorded.path("data"));
    let printed = recorded.failure(&["export", "run.swv", "--format", "parquet", "-o", "data"]);
    assert!(printed.contains("data already exists") && printed.contains("--overwrite replaces only"), "{printed}");
    recorded.printed(&parquet("data"));
    assert_eq!(files(&recorded.path("data")), first);
    // The export of a second machine, beside the first.
    recorded.printed(&["export", "other.swv", "--format", "parquet", "-o", "second"]);
    let part = fs::read_dir(recorded.path("second/events")).unwrap().next().unwrap().unwrap().file_name();
    fs::rename(recorded.path("second/events").join(&part), recorded.path("data/events").join(&part)).unwrap();
    let before = files(&recorded.path("data"));
    let printed = recorded.failure(&parquet("data"));
    assert!(printed.contains("the folder also contains events/process="), "{printed}");
    assert_eq!(files(&recorded.path("data")), before);
}

#[test]
fn a_device_is_written_to_with_and_without_overwrite() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let recorded = Recorded::new().with("run.swv", 3);
    let device = recorded.path("null");
    let made = mknodat(CWD, &device, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3));
    if made.is_err() || File::options().write(true).open(&device).is_err() {
        return;
    }
    let is_device = || fs::symlink_metadata(&device).unwrap().file_type().is_char_device();
    for overwrite in [&[][..], &["--overwrite"]] {
        let with = |arguments: &[&str]| recorded.printed(&[arguments, overwrite].concat());
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
        let (out, printed) = recorded.printed(&["export", "run.swv", "--format", "folded", "-o", output]);
        assert!(out.contains("epoch (train.py);load (train.py) "), "{out}");
        assert!(printed.starts_with("Wrote standard output (folded, "), "{printed}");
        let (page, printed) = recorded.printed(&["report", "run.swv", "-o", output]);
        assert!(page.starts_with("<!doctype html>") && printed.starts_with("Wrote standard output"), "{printed}");
        let merged = recorded.run(&["merge", "run.swv", "-o", output]);
        assert!(merged.status.success());
        fs::write(recorded.path("merged.swv"), merged.stdout).unwrap();
        assert_eq!(Recording::open(&recorded.path("merged.swv")).unwrap().processes().len(), 1);
    }
    assert!(!recorded.path("-").exists());
    let printed = recorded.failure(&parquet("-"));
    assert!(printed.contains("it is not a folder"), "{printed}");
}

#[test]
fn standard_output_that_is_a_file_is_appended_to() {
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
fn a_closed_pipe_is_not_a_failure() {
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
    let printed = recorded.failure(&["export", "run.swv", "--format", "json", "-o", "/dev/full"]);
    assert!(printed.contains("can't write /dev/full: No space left on device"), "{printed}");
    assert!(fs::symlink_metadata("/dev/full").unwrap().file_type().is_char_device());
}

#[test]
fn the_recording_itself_is_never_replaced() {
    let recorded = Recorded::new().with("run.swv", 3);
    let before = fs::read(recorded.path("run.swv")).unwrap();
    symlink("run.swv", recorded.path("link.swv")).unwrap();
    for output in ["run.swv", "./run.swv", "link.swv"] {
        let printed = recorded.failure(&["export", "run.swv", "--format", "json", "-o", output, "--overwrite"]);
        assert!(printed.contains("is a recording that this export reads"), "{printed}");
        let printed = recorded.failure(&["report", "run.swv", "-o", output, "--overwrite"]);
        assert!(printed.contains("is a recording that this export reads"), "{printed}");
    }
    assert_eq!(fs::read(recorded.path("run.swv")).unwrap(), before);
}

#[test]
fn outputs_are_private_and_leave_no_other_files() {
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

/// Runs commands in a folder on a small disk, which can be made read-only; `None` if mounting is not allowed.
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
    let commands = "printf old > out.jsonl; stackweave export run.swv -o out.jsonl --overwrite; echo status $?; cat out.jsonl; echo; ls -A
        stackweave export run.swv --format parquet -o data; echo status $?; ls -A; stackweave merge run.swv -o all.swv; echo status $?; ls -A";
    let Some(printed) = on_small_disk(&recorded, commands) else { return };
    assert!(printed.starts_with("status 1\nold\nout.jsonl\nrun.swv\n"), "{printed}");
    assert!(printed.contains("can't write out.jsonl: No space left on device"), "{printed}");
    assert!(!printed.contains(".part"), "{printed}");
}

#[test]
fn a_folder_that_can_not_be_written_is_one_sentence() {
    let recorded = Recorded::new().with("run.swv", 3);
    let commands = "printf old > out.json; mount -o remount,ro .
        stackweave export run.swv -o out.json --overwrite; echo status $?; cat out.json; echo; ls -A";
    let Some(printed) = on_small_disk(&recorded, commands) else { return };
    assert!(printed.starts_with("status 1\nold\nout.json\nrun.swv\n"), "{printed}");
    assert!(printed.contains("can't write out.json: Read-only file system"), "{printed}");
}
