//! The writer's state, and how long a thread waits for the writer.
//!
//! A thread that waits for a buffer may hold a lock that the writer needs: the loader's, inside a callback of `dl_iterate_phdr`, or
//! the allocator's, in a signal handler. The set of such locks is unknown. So a wait ends if the writer makes no progress, unless
//! the file blocks it, which needs no lock. The thread then allocates memory beyond the limit.
//!
//! Async-signal-safe.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use stackweave_core::{FrameNames, ModuleList, RawFrame, SourceLocation};

use super::session::RecordingSession;

/// The maximum wait while the writer queries the loader, which takes microseconds unless its lock is held.
const QUERY_PATIENCE: Duration = Duration::from_millis(100);
/// The maximum wait for a writer that returns no buffer although the file does not block it.
const PATIENCE: Duration = Duration::from_secs(1);

/// The state of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum WriterState {
    /// It encodes, or calls the observer.
    Working,
    /// It is idle.
    Sleeping,
    /// It writes to the file, which may block without limit.
    Writing,
    /// It needs the loader's lock.
    Querying,
}

/// The writer's current state, which other threads read.
#[derive(Debug)]
pub(super) struct WriterStateCell(AtomicU32);

impl WriterStateCell {
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(WriterState::Working as u32))
    }

    /// Runs `action` in this state.
    pub(super) fn during<T>(&self, state: WriterState, action: impl FnOnce() -> T) -> T {
        let before = self.0.swap(state as u32, Ordering::SeqCst);
        let result = action();
        self.0.store(before, Ordering::SeqCst);
        result
    }

    pub(super) fn is(&self, state: WriterState) -> bool {
        self.0.load(Ordering::SeqCst) == state as u32
    }

    /// Returns how long a thread waits without progress; `None` for no limit.
    fn patience(&self) -> Option<Duration> {
        if self.is(WriterState::Writing) {
            return None;
        }
        Some(if self.is(WriterState::Querying) { QUERY_PATIENCE } else { PATIENCE })
    }
}

/// A thread's wait for the writer.
#[derive(Debug)]
pub(super) struct WriterWait {
    progress: u32,
    since: Instant,
}

impl WriterWait {
    /// Begins a wait at this progress of the writer.
    pub(super) fn begin(progress: u32) -> Self {
        Self { progress, since: Instant::now() }
    }

    /// Returns whether the wait must end: without further progress, the writer may need a lock that this thread holds.
    pub(super) fn is_over(&mut self, progress: u32, writer_state: &WriterStateCell) -> bool {
        let patience = writer_state.patience().filter(|_| progress == self.progress);
        match patience {
            None => {
                *self = Self::begin(progress);
                false
            }
            Some(patience) => self.since.elapsed() >= patience,
        }
    }
}

/// The names of a process. They set the writer's state while it queries the loader.
pub(super) struct WatchedNames {
    pub(super) names: Arc<dyn FrameNames + Send + Sync>,
    pub(super) session: Arc<RecordingSession>,
}

impl FrameNames for WatchedNames {
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
        self.session.writer_state.during(WriterState::Querying, || self.names.modules())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(progress: u32, age: Duration) -> WriterWait {
        WriterWait { progress, since: Instant::now().checked_sub(age).unwrap() }
    }

    #[test]
    fn a_wait_ends_without_progress_unless_the_file_blocks() {
        let writer_state = WriterStateCell::new();
        assert!(!WriterWait::begin(1).is_over(1, &writer_state));
        assert!(aged(1, PATIENCE).is_over(1, &writer_state));
        assert!(!aged(1, PATIENCE).is_over(2, &writer_state), "a buffer was returned");
        assert!(!writer_state.during(WriterState::Writing, || aged(1, 100 * PATIENCE).is_over(1, &writer_state)));
        assert!(writer_state.during(WriterState::Querying, || aged(1, QUERY_PATIENCE).is_over(1, &writer_state)));
        assert!(writer_state.is(WriterState::Working));
    }
}
