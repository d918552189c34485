//! Queries and interrupts other processes.

use rustix::process::{Signal, kill_current_process_group, setpriority_process};

/// Returns whether a process is running; a zombie is not.
pub(super) fn is_running(process: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name of the program, in parentheses, may contain any character.
    let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Interrupts all processes in the foreground, as Ctrl-C does on a terminal, except this one.
pub(super) fn interrupt_group() {
    let _ = kill_current_process_group(Signal::INT);
}

/// Returns the boot id of this machine.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Lowers the priority of this thread, so that the program that is watched runs first.
pub(super) fn yield_to_others() {
    const LOW: i32 = 10;
    let _ = setpriority_process(None, LOW);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_process_is_not_running() {
        assert!(is_running(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while is_running(number) {
            assert!(std::time::Instant::now() < deadline, "the process did not end");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_running(number));
    }
}
