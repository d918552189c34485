//! Tests that need their own process: the test binary runs itself again, in a role.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::folder::Folder;

const ROLE: &str = "STACKWEAVE_TEST_ROLE";
/// The time limit of a child; the system ends a child that hangs. A child of 8 seconds takes a minute on a machine
/// with eight times as many runnable threads as cores.
const LIMIT_SECONDS: u32 = 240;

/// Returns the role in which this process was started; `None` in the test runner.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Returns a command that runs the test `name` of `executable` again, alone and in the main thread, in `role`.
pub fn command(executable: &Path, name: &str, role: &str) -> Command {
    let mut command = Command::new(executable);
    command.args(arguments(name)).env(ROLE, role);
    command
}

/// Returns the arguments that make a test binary run the test `name` alone, in the main thread, with its output
/// shown.
pub fn arguments(name: &str) -> [&str; 4] {
    ["--exact", name, "--nocapture", "--test-threads=1"]
}

/// Returns the environment variable that sets the role and its value, in the syntax of a debugger.
pub fn environment(role: &str) -> String {
    format!("{ROLE}={role}")
}

/// Runs the test `name`, including its module path, again in its own process, which may fork. In that process,
/// calls `inside` with the test's folder and returns `None`; in the test runner, returns the folder.
///
/// # Panics
/// When that process fails.
pub fn in_own_process(name: &str, inside: impl FnOnce(&Path)) -> Option<Folder> {
    if let Some(path) = role() {
        inside(Path::new(&path));
        return None;
    }
    let folder = Folder::new();
    let output = run(&mut command(&own_executable(), name, folder.path().to_str().expect("a path of letters")));
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("running 1 test\n"), "there is no test {name}");
    Some(folder)
}

/// Runs the command to its end, for at most four minutes.
///
/// # Panics
/// When it cannot be started.
pub fn run(command: &mut Command) -> Output {
    run_for(command, LIMIT_SECONDS)
}

/// Runs the command to its end, for at most `seconds`.
///
/// # Panics
/// When it cannot be started.
pub fn run_for(command: &mut Command, seconds: u32) -> Output {
    // SAFETY: `alarm` is async-signal-safe; the timer outlives the exec and ends the child by SIGALRM.
    unsafe {
        command.pre_exec(move || {
            libc::alarm(seconds);
            Ok(())
        });
    }
    command.output().expect("the child starts")
}

/// Limits the memory of the command's process to this number of bytes.
pub fn limit_memory(command: &mut Command, bytes: u64) -> &mut Command {
    // SAFETY: `setrlimit` is async-signal-safe and gets a valid limit; it holds for the child alone.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            if libc::setrlimit(libc::RLIMIT_AS, &raw const limit) == 0 {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        })
    }
}

/// Returns both outputs of a child as text, for a message.
pub fn text(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{error}", output.status)
}

/// Returns the path of this test binary.
///
/// # Panics
/// When the system does not report it.
pub fn own_executable() -> std::path::PathBuf {
    std::env::current_exe().expect("a process knows its executable")
}
