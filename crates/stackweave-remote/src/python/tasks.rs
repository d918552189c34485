//! The kernel's threads of a process.

use std::collections::HashMap;
use std::fs;

/// The threads of a process, by the ids that the process itself sees. In a container these are different.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    by_own_number: HashMap<u64, u32>,
}

impl Tasks {
    pub(super) fn of(process: u32) -> Self {
        let is_contained = own_number(process, process).is_some_and(|number| number != u64::from(process));
        let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let own = |task: u32| if is_contained { own_number(process, task) } else { Some(task.into()) };
        Self { by_own_number: numbers.filter_map(|task| Some((own(task)?, task))).collect() }
    }

    #[cfg(test)]
    pub(super) fn with(numbers: impl IntoIterator<Item = u32>) -> Self {
        Self { by_own_number: numbers.into_iter().map(|number| (number.into(), number)).collect() }
    }

    /// Returns the id that a thread has in this namespace.
    pub(super) fn number_of(&self, own_number: u64) -> Option<u32> {
        self.by_own_number.get(&own_number).copied()
    }
}

/// Returns the id that a thread has in its own namespace.
fn own_number(process: u32, task: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/task/{task}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_thread_is_found() {
        let process = std::process::id();
        let tasks = Tasks::of(process);
        assert_eq!(tasks.number_of(process.into()), Some(process));
        assert_eq!(tasks.number_of(0), None);
        assert_eq!(own_number(process, process), Some(process.into()));
    }
}
