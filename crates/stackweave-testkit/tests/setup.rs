//! Tests `scripts/setup` on simulated machines: what it installs, prints and leaves unchanged.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a failed preparation fails the test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

use stackweave_testkit::folder::Folder;

/// The tools that the script itself runs, taken from this machine.
const TOOLS: [&str; 15] = [
    "awk", "bash", "cat", "chmod", "cut", "dirname", "env", "grep", "mktemp", "rm", "sed", "sh", "sort", "tail",
    "touch",
];
const NEW: &str = "99.0.0";
const OLD: &str = "1.63.0";

/// A simulated machine: a folder of programs as its PATH, and a home folder.
struct Machine {
    folder: Folder,
}

impl Machine {
    /// Creates a machine with everything that a build needs, except Rust. apt-get writes its arguments to a log;
    /// sudo may run everything.
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

    /// Adds an apt that knows these packages. Installing them runs `effect`, with the folder of programs as
    /// `$bin`.
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

fn messages(output: &Output) -> &str {
    str::from_utf8(&output.stderr).unwrap()
}

/// Returns a script that creates a new version of `rustc` and `cargo` in `$bin`.
fn script_that_installs_rust() -> String {
    format!(
        "for name in rustc cargo; do printf '#!/bin/sh\\necho rustc {NEW}\\n' >$bin/$name; chmod +x $bin/$name; done"
    )
}

#[test]
fn setup_prints_and_does_nothing_if_nothing_is_missing() {
    let machine = Machine::without_rust();
    machine.apt(&[], "exit 1");
    machine.rust("bin", NEW);
    let output = machine.setup("demo");
    assert_eq!((output.status.code(), messages(&output)), (Some(0), ""));
    assert_eq!(machine.apt_log(), "");
}

#[test]
fn setup_finds_rust_in_the_home_folder_if_it_is_not_on_the_path() {
    let machine = Machine::without_rust();
    machine.apt(&[], "exit 1");
    machine.rust("bin", OLD);
    machine.rust("home/.cargo/bin", NEW);
    let output = machine.setup("demo");
    assert_eq!((output.status.code(), messages(&output)), (Some(0), ""));
    let path = |machine: &Machine| String::from_utf8(machine.setup("path").stdout).unwrap();
    let (own, bin) = (machine.folder.file("home/.cargo/bin"), machine.folder.file("bin"));
    assert_eq!(path(&machine), format!("{}:{}\n", own.display(), bin.display()));
    machine.rust("bin", NEW);
    assert_eq!(path(&machine), format!("{}\n", bin.display()), "a new enough version on the path is preferred");
}

#[test]
fn setup_installs_rust_of_debian_if_it_is_new_enough() {
    let machine = Machine::without_rust();
    let debian = format!("{NEW}+dfsg1-1");
    machine.apt(&[("rustc", &debian), ("cargo", &debian), ("rustup", "1.27")], &script_that_installs_rust());
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        messages(&output).starts_with("installing Rust ")
            && messages(&output).ends_with(": apt-get install cargo rustc\n")
    );
    assert!(machine.apt_log().ends_with(" cargo rustc\n"), "{}", machine.apt_log());
}

#[test]
fn setup_installs_rustup_of_debian_if_its_rust_is_too_old() {
    let machine = Machine::without_rust();
    let rustup = format!("bin={}; {}", machine.folder.file("bin").display(), script_that_installs_rust());
    machine.program("elsewhere", "rustup", &rustup);
    let source = machine.folder.file("elsewhere/rustup");
    let effect = format!("cat {} >$bin/rustup; chmod +x $bin/rustup", source.display());
    machine.apt(&[("rustc", OLD), ("rustup", "1.27")], &effect);
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(messages(&output).contains("apt-get install rustup, then rustup toolchain install stable"), "{output:?}");
    assert!(messages(&output).contains("(apt has 1.63.0)"), "{output:?}");
}

#[test]
fn one_message_names_what_cannot_be_installed_before_anything_is_installed() {
    let machine = Machine::without_rust();
    machine.program("bin", "cc", "exit 1");
    machine.apt(&[("rustc", OLD), ("gcc", "12"), ("libc6-dev", "2"), ("curl", "8")], "exit 0");
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(1));
    let sentence = messages(&output);
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert!(sentence.starts_with("error: not installed: a C compiler, Rust "), "{sentence}");
    assert!(sentence.contains("`apt-get update && apt-get install gcc libc6-dev curl`, then `curl "), "{sentence}");
    assert!(!machine.apt_log().contains("install"), "{}", machine.apt_log());
}

#[test]
fn setup_fails_if_an_installation_installs_nothing() {
    let machine = Machine::without_rust();
    machine.apt(&[("rustc", NEW), ("cargo", NEW)], "exit 0");
    let output = machine.setup("demo");
    assert_eq!(output.status.code(), Some(1));
    assert!(messages(&output).contains("error: not installed: Rust "), "{output:?}");
}
