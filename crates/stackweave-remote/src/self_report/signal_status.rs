//! The signals and the state of a process or thread in `/proc/PID/status`.

use std::fs;

use super::ReportError;
use super::reporter::read_error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignalStatus {
    pub(super) state: char,
    pub(super) is_in_other_namespace: bool,
    caught: u64,
    blocked: u64,
}

impl SignalStatus {
    pub(super) fn of_process(process: u32) -> Result<Self, ReportError> {
        let text = fs::read(format!("/proc/{process}/status")).map_err(|error| read_error(&error))?;
        Self::read(&text).ok_or(ReportError::NoProcess)
    }

    /// Reads the status of a thread; `None` if it has ended.
    pub(super) fn of_thread(process: u32, task: u32) -> Option<Self> {
        Self::read(&fs::read(format!("/proc/{process}/task/{task}/status")).ok()?)
    }

    fn read(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let signals = |name| field(name).and_then(|set| u64::from_str_radix(set, 16).ok());
        Some(Self {
            state: field("State:")?.chars().next()?,
            // Its ids, from this process's namespace inward.
            is_in_other_namespace: field("NSpid:").is_some_and(|numbers| numbers.split_whitespace().count() > 1),
            caught: signals("SigCgt:")?,
            blocked: signals("SigBlk:")?,
        })
    }

    pub(super) fn handles(&self, signal: i32) -> bool {
        self.caught & bit(signal) != 0
    }

    pub(super) fn blocks(&self, signal: i32) -> bool {
        self.blocked & bit(signal) != 0
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_and_namespaces_are_read() {
        let text = b"Name:\tpython\nState:\tS (sleeping)\nNSpid:\t100\t1\nSigBlk:\t0000000000000400\nSigCgt:\t8000000000000002\n";
        let status = SignalStatus::read(text).unwrap();
        assert_eq!((status.state, status.is_in_other_namespace), ('S', true));
        assert!(status.handles(64) && status.handles(2) && !status.handles(63));
        assert!(status.blocks(11) && !status.blocks(64));
        let own = SignalStatus::of_process(std::process::id()).unwrap();
        assert!(!own.has_ended() && !own.is_in_other_namespace);
        assert_eq!(SignalStatus::of_process(u32::MAX), Err(ReportError::NoProcess));
    }
}
