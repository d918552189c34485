//! `scripts/setup` on machines that are made of scripts: what it installs, what it says, and what it leaves alone.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what can't be had fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use stackweave_testkit::folder::Folder;

/// What the script itself runs, taken from this machine.
const TOOLS: [&str; 15] = [
    "awk", "bash", "cat", "chmod", "cut", "dirname", "env", "grep", "mktemp", "rm", "sed", "sh", "sort", "tail",
    "touch",
];
const NEW: &str = "99.0.0";
const OLD: &str = "1.63.0";

/// A machine: programs in a folder that is all of its PATH, and a home.
struct Machine {
    folder: Folder,
}

impl Machine {
    /// Has what a build needs, except Rust. apt-get writes its arguments to a log; sudo may do everything.
    fn without_rust() -> Self {
        let machine = Self { folder: Folder::new() };
        fs::create_dir_all(machine.folder.file("bin")).unwrap();
        fs::create_dir_all(machine.folder.file("home")).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        for tool in TOOLS {
            let found = std::env::split_paths(&path).map(|folder| folder.join(tool)).find(|path| path.exists());
            symlink(found.unwrap(), machine.folder.file("bin").join(tool)).unwrap();
        }
        for program in ["make", "cc", "python3"] {
            machine.program("bin", program, "exit 0");
        }
        machine.program("bin", "sudo", "[ \"$1\" != -n ] || shift; exec \"$@\"");
        machine
    }

    fn program(&self, folder: &str, name: &str, script: &str) {
        let path = self.folder.write(&format!("{folder}/{name}"), format!("#!/bin/sh\n{script}\n").as_bytes());
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn rust(&self, folder: &str, version: &str) {
        self.program(folder, "rustc", &format!("echo 'rustc {version} (of this test)'"));
        self.program(folder, "cargo", "exit 0");
    }

    /// apt knows these packages; installing them runs `effect`, with the folder of programs as `$bin`.
    fn apt(&self, candidates: &[(&str, &str)], effect: &str) {
        let known: Vec<_> = candidates
            .iter()
            .map(|(name, version)| format!("[ $2 != {name} ] || echo '  Candidate: {version}'"))
            .collect();
        self.program("bin", "apt-cache", &known.join("\n"));
        let (log, bin) = (self.folder.file("apt-log"), self.folder.file("bin"));
        let script = format!("echo \"$*\" >>{}\nbin={}\n{effect}", log.display(), bin.display());
        self.program("bin", "apt-get", &script);
    }

    fn apt_log(&self) -> String {
        fs::read_to_string(self.folder.file("apt-log")).unwrap_or_default()
    }

    fn setup(&self, level: &str) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/setup");
        let mut command = Command::new("bash");
        command.arg(script).arg(level).env_clear();
        command.env("PATH", self.folder.file("bin")).env("HOME", self.folder.file("home")).output().unwrap()
    }
}

fn said(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// A script that makes `rustc` and `cargo` of a new version in `$bin`.
fn brings_rust() -> String {
    format!(
        "for name in rustc cargo; do printf '#!/bin/sh\\necho rustc {NEW}\\n' >$bin/$name; chmod +x $bin/$name; done"
    )
}

#[test]
fn nothing_is_said_and_nothing_done_where_nothing_is_missing() {
    let machine = Machine::without_rust();
    machine.apt(&[], "exit 1");
    machine.rust("bin", NEW);
    let output = machine.setup("demo");
    assert_eq!((output.status.code(), said(&output)), (Some(0), ""));
    assert_eq!(machine.apt_log(), "");
}

#[test]
fn rust_that_is_not_on_the_path_is_found_in_the_home_folder() {
    let machine = Machine::without_rust();
    machine.apt(&[], "exit 1");
    machine.rust("bin", OLD);
    machine.rust("home/.cargo/bin", NEW);
    let output = machine.setup("demo");
    assert_eq!((output.status.code(), said(&output)), (Some(0), ""));
    let path = |machine: &Machine| String::from_utf8(machine.setup("path").stdout).unwrap();
    let (own, bin) = (machine.folder.file("home/.cargo/bin"), machine.folder.file("bin"));
    assert_eq!(path(&machine), format!("{}:{}\n", own.display(), bin.display()));
    machine.rust("bin", NEW);
    assert_eq!(path(&machine), format!("{}\n", bin.display()), "what is on the path is good enough");
}

#[test]
fn rust_of_debian_is_installed_where_it_is_new_enough() {
    let machine = Machine::without_rust();
    let debian = format!("{NEW}+dfsg1-1");
    machine.apt(&[("rustc", &debian), ("cargo", &debian), ("rustup", "1.27")], &brings_rust());
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        said(&output).starts_with("installing Rust ") && said(&output).ends_with(": apt-get install cargo rustc\n")
    );
    assert!(machine.apt_log().ends_with(" cargo rustc\n"), "{}", machine.apt_log());
}

#[test]
fn rustup_of_debian_is_installed_where_its_rust_is_too_old() {
    let machine = Machine::without_rust();
    let rustup = format!("bin={}; {}", machine.folder.file("bin").display(), brings_rust());
    machine.program("elsewhere", "rustup", &rustup);
    let source = machine.folder.file("elsewhere/rustup");
    let effect = format!("cat {} >$bin/rustup; chmod +x $bin/rustup", source.display());
    machine.apt(&[("rustc", OLD), ("rustup", "1.27")], &effect);
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(said(&output).contains("apt-get install rustup, then rustup toolchain install stable"), "{output:?}");
    assert!(said(&output).contains("(apt has 1.63.0)"), "{output:?}");
}

#[test]
fn what_can_not_be_installed_is_named_in_one_sentence_before_anything_is_installed() {
    let machine = Machine::without_rust();
    machine.program("bin", "cc", "exit 1");
    machine.apt(&[("rustc", OLD), ("gcc", "12"), ("libc6-dev", "2"), ("curl", "8")], "exit 0");
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(1));
    let sentence = said(&output);
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert!(sentence.starts_with("error: not installed: a C compiler, Rust "), "{sentence}");
    assert!(sentence.contains("`apt-get update && apt-get install gcc libc6-dev curl`, then `curl "), "{sentence}");
    assert!(!machine.apt_log().contains("install"), "{}", machine.apt_log());
}

#[test]
fn an_installation_that_brings_nothing_is_not_taken_for_one() {
    let machine = Machine::without_rust();
    machine.apt(&[("rustc", NEW), ("cargo", NEW)], "exit 0");
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("error: not installed: Rust "), "{output:?}");
}
