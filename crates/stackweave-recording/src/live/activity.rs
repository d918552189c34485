//! What the writer is doing, and how long a thread waits for it.
//!
//! A thread that waits for room may hold a lock that the writer needs: the loader's, inside a callback of `dl_iterate_phdr`, or
//! the allocator's, in a signal handler. Which locks there are nobody can know. So a wait ends when the writer makes no
//! progress, unless the file blocks it, which needs no lock: the thread then takes memory beyond the limit.
//!
//! Async-signal-safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stackweave_core::{ModuleList, Names, RawFrame, SourceLocation};

use super::session::Session;

/// So long a thread waits while the writer queries the loader, which takes microseconds unless its lock is held.
const QUERY_PATIENCE: Duration = Duration::from_millis(100);
/// So long a thread waits for a writer that gives no buffer back, although the file does not block it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the writer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Doing {
    /// It encodes, or lets the observer look.
    Working,
    /// It has nothing to do.
    Sleeping,
    /// It writes to the file, which may block for as long as it likes.
    Writing,
    /// It needs the loader's lock.
    Querying,
}

/// The writer's activity, which other threads read.
#[derive(Debug)]
pub(super) struct Activity(AtomicU32);

impl Activity {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(Doing::Working as u32))
    }

    /// Runs `action` as this activity.
    pub(super) fn during<T>(&self, doing: Doing, action: impl FnOnce() -> T) -> T {
        let before = self.0.swap(doing as u32, Ordering::SeqCst);
        let result = action();
        self.0.store(before, Ordering::SeqCst);
        result
    }

    pub(super) fn is(&self, doing: Doing) -> bool {
        self.0.load(Ordering::SeqCst) == doing as u32
    }

    /// How long a thread waits that sees no progress; `None`: as long as it takes.
    fn patience(&self) -> Option<Duration> {
        if self.is(Doing::Writing) {
            return None;
        }
        Some(if self.is(Doing::Querying) { QUERY_PATIENCE } else { PATIENCE })
    }
}

/// A thread's wait for the writer.
#[derive(Debug)]
pub(super) struct Wait {
    progress: u32,
    since: Instant,
}

impl Wait {
    /// Begins when the writer has come so far.
    pub(super) fn begin(progress: u32) -> Self {
        Self { progress, since: Instant::now() }
    }

    /// Returns whether the wait has to end: the writer, which has come so far, may need a lock that this thread holds.
    pub(super) fn is_over(&mut self, progress: u32, activity: &Activity) -> bool {
        let patience = activity.patience().filter(|_| progress == self.progress);
        match patience {
            None => {
                *self = Self::begin(progress);
                false
            }
            Some(patience) => self.since.elapsed() >= patience,
        }
    }
}

/// The names of a process, which show when the writer needs the loader.
pub(super) struct WatchedNames {
    pub(super) names: Arc<dyn Names + Send + Sync>,
    pub(super) session: Arc<Session>,
}

impl Names for WatchedNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        self.names.locate(frame)
    }

    fn has_extra_frames(&self) -> bool {
        self.names.has_extra_frames()
    }

    fn frames_behind(&self, filename: &str, line: u32) -> Vec<SourceLocation> {
        self.names.frames_behind(filename, line)
    }

    fn modules(&self) -> ModuleList {
        self.session.activity.during(Doing::Querying, || self.names.modules())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(progress: u32, age: Duration) -> Wait {
        Wait { progress, since: Instant::now().checked_sub(age).unwrap() }
    }

    #[test]
    fn a_wait_ends_without_progress_unless_the_file_blocks() {
        let activity = Activity::new();
        assert!(!Wait::begin(1).is_over(1, &activity));
        assert!(aged(1, PATIENCE).is_over(1, &activity));
        assert!(!aged(1, PATIENCE).is_over(2, &activity), "a buffer came back");
        assert!(!activity.during(Doing::Writing, || aged(1, 100 * PATIENCE).is_over(1, &activity)));
        assert!(activity.during(Doing::Querying, || aged(1, QUERY_PATIENCE).is_over(1, &activity)));
        assert!(activity.is(Doing::Working));
    }
}
