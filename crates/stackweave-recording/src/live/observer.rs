//! The interface of observers, which process events while they are being recorded.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use stackweave_core::EventKind;

use super::kind_registry::KindNumber;

/// Processes the events of a recording on the writer's thread, as they are taken out of the buffers. Recording threads do not wait
/// for it, unless it is slower than they are for a long time.
pub trait Observer: Any + Send {
    /// Receives a kind of events of the recording. Called once for each kind, including built-in ones, in the order of their
    /// numbers: before the first event of the kind, and before queries of the code that registered it.
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        let _ = (number, kind);
    }

    /// Receives events of a thread, by its number in the recording, in their order. Each is a head, `ticks << 8 | kind`, and the
    /// words of its kind; a kind with bytes ends with their length and the bytes.
    fn events(&mut self, thread: u32, words: &[u64]);

    /// Notifies that all events of all threads that were recorded before `ticks` have been received. An event whose thread was just
    /// recording it may still come with a time before `ticks`; events that depend on it on other threads have later times. Called
    /// after each round of the writer, at least every [`Observer::interval`]; with the same `ticks` again if a thread was stopped
    /// while it handed a buffer over.
    fn settle(&mut self, ticks: u64, notes: &mut Notes);

    /// Notifies that the recording ends, after a last [`Observer::settle`]. In ring mode these notes are in the last dump, if there
    /// is one.
    fn end(&mut self, ticks: u64, notes: &mut Notes);

    /// Notifies of a dump. In ring mode: the kept events are about to be written to a file, after an [`Observer::settle`]. These
    /// notes are at the end of that file, and are not kept. In other modes it is called only after [`Notes::request_dump`].
    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        let _ = (ticks, notes);
    }

    /// Adds the next part of notes that are too many to be added at once. Called after each call with notes, and again after the
    /// added notes are encoded, until it returns `false` because there are no more. No events are received in between.
    fn more(&mut self, notes: &mut Notes) -> bool {
        let _ = notes;
        false
    }

    /// Returns the interval at which it must be called.
    fn interval(&self) -> Duration;

    /// Returns the observer for [`Recorder::query_observer`](super::Recorder::query_observer); the caller knows its type.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Makes the observer of a recording, on its writer's thread, and another one in each forked child that records. An observer that
/// panics is dropped, and the recording continues without it.
pub type MakeObserver = Arc<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// Events that an observer adds to the recording. They belong to a separate thread, `stackweave`.
#[derive(Debug, Default)]
pub struct Notes {
    pub(super) words: Vec<u64>,
    pub(super) dump_requested: bool,
}

impl Notes {
    /// Adds an event at this time. It is ignored if it has another number of words than its kind.
    pub fn record_at(&mut self, ticks: u64, kind: KindNumber, words: &[u64]) {
        if words.len() == usize::from(kind.words) && !kind.has_bytes {
            self.words.push(ticks << 8 | u64::from(kind.number));
            self.words.extend_from_slice(words);
        }
    }

    /// Requests that the writer immediately writes everything to the file, with the notes of [`Observer::dump`]. In ring mode that is
    /// a dump of the ring. Only for [`Observer::settle`].
    pub const fn request_dump(&mut self) {
        self.dump_requested = true;
    }
}
