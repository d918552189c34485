//! Who looks at events while they are being recorded.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use stackweave_core::EventKind;

use super::kinds::KindNumber;

/// Looks at the events of a recording on the writer's thread, as they are taken out of the buffers: nobody who records waits
/// for it, unless it is slower than they are for long.
pub trait Observer: Any + Send {
    /// A kind of events that the recording has, the built-in ones too, each once and in the order of their numbers: before any
    /// event of it is told, and before who has declared it asks.
    fn kind(&mut self, number: KindNumber, kind: &EventKind) {
        let _ = (number, kind);
    }

    /// Events of a thread, by its number in the recording, in their order. Each is a head, `ticks << 8 | kind`, and the words of
    /// its kind; a kind with bytes has their length and the bytes at its end.
    fn events(&mut self, thread: u32, words: &[u64]);

    /// All events of all threads that were recorded before `ticks` were told. One whose thread was just recording it may come
    /// later with a time before `ticks`: what other threads could do because of it has later times. Called after each round of
    /// the writer, at least every [`Observer::interval`]; with the same `ticks` again if a thread was stopped in the middle
    /// of handing a buffer over.
    fn settle(&mut self, ticks: u64, notes: &mut Notes);

    /// The recording ends, after a last [`Observer::settle`]. In ring mode these notes are in the last dump, if there is one.
    fn end(&mut self, ticks: u64, notes: &mut Notes);

    /// In ring mode: what is kept is about to be written to a file, after an [`Observer::settle`]. These notes come at the end
    /// of that file, and are not kept. In other modes only where [`Notes::ask_for_dump`] has asked for it.
    fn dump(&mut self, ticks: u64, notes: &mut Notes) {
        let _ = (ticks, notes);
    }

    /// Adds the next part of notes that are too many to be added at once. Called after each call with notes, and again after what was
    /// added is encoded, until it returns false: there is no more. No events come in between.
    fn more(&mut self, notes: &mut Notes) -> bool {
        let _ = notes;
        false
    }

    /// How often it wants to be called.
    fn interval(&self) -> Duration;

    /// Itself, for who asks ([`Recorder::ask`](super::Recorder::ask)) and knows which it is.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Makes the observer of a recording, on its writer's thread; another one in each forked child that records. An observer that
/// panics is dropped, and the recording goes on without it.
pub type MakeObserver = Arc<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// Events that an observer adds to the recording. They are of a thread of their own, `stackweave`.
#[derive(Debug, Default)]
pub struct Notes {
    pub(super) words: Vec<u64>,
    pub(super) wants_dump: bool,
}

impl Notes {
    /// Adds an event at this time. One with another number of words than its kind has is left out.
    pub fn record_at(&mut self, ticks: u64, kind: KindNumber, words: &[u64]) {
        if words.len() == usize::from(kind.words) && !kind.has_bytes {
            self.words.push(ticks << 8 | u64::from(kind.number));
            self.words.extend_from_slice(words);
        }
    }

    /// Asks the writer to bring what it has into the file at once, with what [`Observer::dump`] notes. In ring mode that is a
    /// dump of the ring. From [`Observer::settle`] only.
    pub const fn ask_for_dump(&mut self) {
        self.wants_dump = true;
    }
}
