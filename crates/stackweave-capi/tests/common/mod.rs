//! Finds the libraries and examples, and builds hosts.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::expect_used, reason = "a test that cannot do its work must fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

use stackweave_testkit::child;

/// The folder of the crate's headers.
pub(crate) const INCLUDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Returns the shared library, which is beside the running test.
pub(crate) fn shared_library() -> PathBuf {
    beside_test("libstackweave.so")
}

pub(crate) fn static_library() -> PathBuf {
    beside_test("libstackweave.a")
}

fn beside_test(name: &str) -> PathBuf {
    let path = child::own_executable().with_file_name(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Creates a folder for the files that a test builds.
pub(crate) fn workshop(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the target folder can be written to");
    folder
}

/// Creates a folder with the shared library under the names that the linker and the loader use.
pub(crate) fn library_folder() -> PathBuf {
    let folder = workshop("library");
    for name in ["libstackweave.so", "libstackweave.so.0"] {
        let link = folder.join(name);
        let linked = std::os::unix::fs::symlink(shared_library(), &link);
        assert!(linked.is_ok() || link.exists(), "{linked:?}");
    }
    folder
}

pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(ROOT).join("examples").join(name)
}

/// Runs a command that must succeed. Returns its output.
pub(crate) fn run(command: &mut Command) -> String {
    let output = child::run_for(command, 300);
    let text = child::text(&output);
    assert!(output.status.success(), "{command:?}: {text}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the compilers that are installed.
pub(crate) fn compilers(names: &[&'static str]) -> Vec<&'static str> {
    let is_installed =
        |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    let found: Vec<_> = names.iter().filter(is_installed).copied().collect();
    assert!(!found.is_empty(), "none of {names:?} is installed");
    found
}

/// Builds targets of `examples/cpp-host`.
pub(crate) fn make_cpp_host(targets: &[&str]) -> PathBuf {
    let build = workshop("cpp-host");
    let library = library_folder();
    let mut command = Command::new("make");
    command.arg("-s").arg("-C").arg(example("cpp-host"));
    command.arg(format!("BUILD={}", build.display())).arg(format!("LIBRARY={}", library.display()));
    command.args(targets.iter().map(|target| build.join(target)));
    // Lock the folder, because tests may run at the same time.
    run(Command::new("flock").arg(build.join("lock")).arg(command.get_program()).args(command.get_args()));
    build
}
