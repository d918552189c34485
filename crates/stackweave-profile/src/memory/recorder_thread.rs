//! The events that a memory recorder writes on its own thread: snapshots, the memory over time, and which hooks other tools held.
//!
//! All of it is read together: that thread's events are few, and those of the program are not read.

use std::ops::Range;
use std::sync::Arc;

use stackweave_core::Role;
use stackweave_recording::events::{self, Decoder, Event};
use stackweave_recording::{ProcessRecording, ReadError};

use super::foreign_hooks::{ForeignHooks, HookCounters};
use super::snapshot::{RecordedSnapshot, SnapshotReader, read_any_snapshot};
use super::timeline::{CounterCurve, MemoryTimeline};

/// The thread that events of recorders themselves are assigned to.
const RECORDER_THREAD: &str = "stackweave";

/// The data that the recorder of a process has written on its own thread.
#[derive(Debug, Default)]
pub(crate) struct RecorderThread {
    snapshot: Option<Arc<RecordedSnapshot>>,
    /// The memory over time, according to the recorder's counters.
    timeline: MemoryTimeline,
    /// The hooks that another tool held.
    pub(crate) hooks: Option<ForeignHooks>,
}

impl RecorderThread {
    /// Reads the events of the recorder.
    pub(crate) fn read(process: &ProcessRecording) -> Result<Self, ReadError> {
        Self::read_parts(process, true)
    }

    /// Reads the counters only.
    pub(crate) fn read_counters(process: &ProcessRecording) -> Result<Self, ReadError> {
        Self::read_parts(process, false)
    }

    fn read_parts(process: &ProcessRecording, wants_snapshot: bool) -> Result<Self, ReadError> {
        let dictionary = process.dictionary();
        let decoder = Decoder::of(dictionary);
        let threads = recorder_threads(process);
        let wants_snapshot = wants_snapshot && dictionary.declares(&events::MEMORY_TOTAL);
        if threads.is_empty() || !(wants_snapshot || decoder.has_role(Role::Counter)) {
            return Ok(Self::default());
        }
        let mut snapshot = SnapshotReader::default();
        let (mut curve, mut hooks) = (CounterCurve::default(), HookCounters::default());
        let mut order = process.in_time_order(None, Some(&threads));
        while let Some(timed) = order.next_event()? {
            match decoder.decode(&timed.event) {
                Event::Usage(usage) if wants_snapshot => snapshot.add(timed.event.ticks, &usage),
                Event::Counter(counter) => {
                    curve.add(dictionary, u64::try_from(timed.time_ns).unwrap_or(0), &counter);
                    hooks.add(dictionary, &counter);
                }
                _ => {}
            }
        }
        Ok(Self { snapshot: snapshot.finish(dictionary).map(Arc::new), timeline: curve.timeline, hooks: hooks.found() })
    }

    /// Returns the memory over time in a range, if the recorder has counted it.
    pub(crate) fn timeline_of(&self, range: &Range<u64>) -> Option<MemoryTimeline> {
        Some(self.timeline.within(range.clone())).filter(|timeline| !timeline.points.is_empty())
    }

    /// Returns it without its snapshot, which may be large.
    pub(crate) fn without_snapshot(self) -> Self {
        Self { snapshot: None, ..self }
    }

    /// Returns the last complete snapshot, if there is one. If the recorder has written it on another thread, all events
    /// are read.
    pub(crate) fn snapshot(&self, process: &ProcessRecording) -> Result<Option<Arc<RecordedSnapshot>>, ReadError> {
        match &self.snapshot {
            Some(known) => Ok(Some(Arc::clone(known))),
            None if process.dictionary().declares(&events::MEMORY_TOTAL) => {
                Ok(read_any_snapshot(process)?.map(Arc::new))
            }
            None => Ok(None),
        }
    }
}

/// Returns the threads of events of the recorder itself.
fn recorder_threads(process: &ProcessRecording) -> Vec<u32> {
    let threads = process.dictionary().threads().filter(|thread| thread.name == RECORDER_THREAD);
    threads.map(|thread| thread.number).collect()
}
