//! Tests that need a process of their own: the test binary runs itself again, in a role.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::folder::Folder;

const ROLE: &str = "STACKWEAVE_TEST_ROLE";
/// A child that runs longer hangs, and is ended by the system. One of 8 seconds takes a minute on a machine with eight times as
/// many runnable threads as cores.
const LIMIT_SECONDS: u32 = 240;

/// The role this process was started in; none when it is the test runner.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// A command that runs the test `name` of `executable` again, alone and in the main thread, in `role`.
pub fn command(executable: &Path, name: &str, role: &str) -> Command {
    let mut command = Command::new(executable);
    command.args(arguments(name)).env(ROLE, role);
    command
}

/// What makes a test binary run the test `name` alone, in the main thread, with its output shown.
pub fn arguments(name: &str) -> [&str; 4] {
    ["--exact", name, "--nocapture", "--test-threads=1"]
}

/// The environment variable that sets the role, and its value, as a debugger wants them.
pub fn environment(role: &str) -> String {
    format!("{ROLE}={role}")
}

/// Runs the test `name`, with its modules, again in a process of its own, which may fork, and where `inside` gets the test's folder. Gives the
/// folder to the test; in that process, nothing.
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

/// Runs the command to its end, at most for four minutes.
///
/// # Panics
/// When it cannot be started.
pub fn run(command: &mut Command) -> Output {
    run_for(command, LIMIT_SECONDS)
}

/// Runs the command to its end, at most for that many seconds.
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

/// Lets the command's process have no more memory than this.
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

/// Both outputs of a child as text, for a message.
pub fn text(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}{error}", output.status)
}

/// This test binary.
///
/// # Panics
/// When the system does not say.
pub fn own_executable() -> std::path::PathBuf {
    std::env::current_exe().expect("a process knows its executable")
}
