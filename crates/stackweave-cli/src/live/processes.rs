//! Other processes: whether they run, and telling them to stop.

use rustix::process::{Signal, kill_current_process_group, setpriority_process};

/// Whether a process runs: a dead one that nobody has asked about does not.
pub(super) fn is_running(process: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The name of the program, in parentheses, may hold anything.
    let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// What Ctrl-C does on a terminal: all that run in the foreground are interrupted, and this process takes no notice.
pub(super) fn interrupt_group() {
    let _ = kill_current_process_group(Signal::INT);
}

/// The run of the machine that this is.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// From here on this thread comes last where others want to work: the program that is watched goes first.
pub(super) fn yield_to_others() {
    const LOW: i32 = 10;
    let _ = setpriority_process(None, LOW);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_do_not_run() {
        assert!(is_running(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let number = child.id();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while is_running(number) {
            assert!(std::time::Instant::now() < deadline, "it ends at once");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_running(number));
    }
}
