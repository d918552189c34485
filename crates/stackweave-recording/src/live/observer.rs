//! Who looks at events while they are being recorded.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use super::kinds::KindNumber;

/// Looks at the events of a recording on the writer's thread, as they are taken out of the buffers: nobody who records waits
/// for it, unless it is slower than they are for long.
pub trait Observer: Any + Send {
    /// Events of a thread, by its number in the recording, in their order. Each is a head, `ticks << 8 | kind`, and the words of
    /// its kind; a kind with bytes has their length and the bytes at its end.
    fn events(&mut self, thread: u32, words: &[u64]);

    /// All events of all threads that were recorded before `ticks` were told, but for those of a thread that was stopped in the
    /// middle of recording one: these come later. Called after each round of the writer, at least every
    /// [`Observer::interval`].
    fn settle(&mut self, ticks: u64, notes: &mut Notes);

    /// The recording ends, after a last [`Observer::settle`].
    fn end(&mut self, ticks: u64, notes: &mut Notes);

    /// How often it wants to be called.
    fn interval(&self) -> Duration;

    /// Itself, for who asks ([`Recorder::ask`](super::Recorder::ask)) and knows which it is.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// Makes the observer of a recording, on its writer's thread; another one in each forked child that records.
pub type MakeObserver = Arc<dyn Fn() -> Box<dyn Observer> + Send + Sync>;

/// Events that an observer adds to the recording. They are of a thread of their own, `stackweave`.
#[derive(Debug, Default)]
pub struct Notes {
    pub(super) words: Vec<u64>,
}

impl Notes {
    /// Adds an event at this time. One with another number of words than its kind has is left out.
    pub fn record_at(&mut self, ticks: u64, kind: KindNumber, words: &[u64]) {
        if words.len() == usize::from(kind.words) && !kind.has_bytes {
            self.words.push(ticks << 8 | u64::from(kind.number));
            self.words.extend_from_slice(words);
        }
    }
}
