//! The events of one block, read back.

use super::column;
use super::dictionary::Dictionary;
use super::error::BlockError;
use super::events_head::EventsHead;
use super::kind_column::{Places, Shape};
use super::varint::Cursor;

/// One event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// When, in the ticks of the recording's clock since its start.
    pub ticks: u64,
    /// The number of its kind.
    pub kind: u8,
    /// The values of its kind's fields, without a byte string at the end. Stacks and frames are numbers of the section.
    pub words: &'a [u64],
    /// The byte string at the end, if its kind has one.
    pub bytes: Option<&'a [u8]>,
}

/// The most words that the events of one block may take.
const MAX_WORDS: usize = 8 << 20;

/// The events of one block at a time; its memory is used again for the next.
#[derive(Clone, Debug)]
pub struct EventBuffer {
    head: EventsHead,
    /// For each event: ticks and kind, its values, and where its byte string lies if it has one.
    words: Vec<u64>,
    bytes: Vec<u8>,
    /// By kind number.
    shapes: [Shape; 256],
    /// The columns while they are taken apart.
    values: Vec<u64>,
}

impl Default for EventBuffer {
    fn default() -> Self {
        Self {
            head: EventsHead::default(),
            words: Vec::new(),
            bytes: Vec::new(),
            shapes: [Shape::default(); 256],
            values: Vec::new(),
        }
    }
}

/// A kind that a block has events of, and where their values are.
#[derive(Clone, Copy, Debug)]
struct KindColumns {
    number: u8,
    /// Columns, with that of the lengths of byte strings.
    columns: usize,
    has_bytes: bool,
    /// How many values each column has.
    count: usize,
    /// Where the next value of the first column is.
    at: usize,
    /// Where the next byte string is.
    bytes_at: usize,
}

impl EventBuffer {
    /// Without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in the payload of an Events block, in place of what was here. Without events after an error.
    ///
    /// A kind that the dictionary does not have, because its definition was lost, has events nevertheless: how many
    /// values they have, the block says itself.
    pub fn decode(&mut self, payload: &[u8], dictionary: &Dictionary) -> Result<(), BlockError> {
        self.clear();
        let decoded = self.decode_into(payload, dictionary);
        if decoded.is_err() {
            self.clear();
        }
        decoded
    }

    fn clear(&mut self) {
        self.head = EventsHead::default();
        self.words.clear();
        self.bytes.clear();
    }

    fn decode_into(&mut self, payload: &[u8], dictionary: &Dictionary) -> Result<(), BlockError> {
        let head = EventsHead::parse(payload)?;
        let count = head.count as usize;
        let mut rest = Cursor::new(&payload[EventsHead::LEN..]);
        let kinds = self.kinds(&mut rest, dictionary)?;
        let places = Places::take(&mut rest, kinds.len(), count)?;
        self.values.clear();
        column::read_each(&mut rest, count, &mut self.values)?;
        let counts = places.counts()?;
        let size: usize = kinds.iter().zip(counts).map(|((_, shape), count)| count * (shape.words() + 2)).sum();
        if size > MAX_WORDS {
            return Err(BlockError::TooMuch);
        }
        self.values.reserve(size);
        let mut columns = Vec::with_capacity(kinds.len());
        for ((number, shape), count) in kinds.into_iter().zip(counts) {
            columns.push(self.columns(number, shape, count, &mut rest)?);
        }
        self.words.reserve(size);
        self.interleave(&head, places, &mut columns)?;
        self.head = head;
        Ok(())
    }

    /// The kinds that the block has events of.
    fn kinds(&mut self, rest: &mut Cursor<'_>, dictionary: &Dictionary) -> Result<Vec<(u8, Shape)>, BlockError> {
        let count = usize::from(rest.byte()?);
        let mut kinds: Vec<(u8, Shape)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (number, shape) = (rest.byte()?, Shape::from_number(rest.byte()?));
            let is_as_declared =
                dictionary.kind(number).is_none_or(|kind| shape == Shape::new(kind.words(), kind.has_bytes()));
            let is_there = kinds.iter().any(|(other, _)| *other == number);
            if number == 0 || !is_as_declared || is_there {
                return Err(BlockError::Contradiction);
            }
            self.shapes[usize::from(number)] = shape;
            kinds.push((number, shape));
        }
        Ok(kinds)
    }

    /// The values of a kind with this many events, and their byte strings.
    fn columns(
        &mut self,
        number: u8,
        shape: Shape,
        count: usize,
        rest: &mut Cursor<'_>,
    ) -> Result<KindColumns, BlockError> {
        let (at, bytes_at) = (self.values.len(), self.bytes.len());
        for _ in 0..shape.words() {
            column::read(rest, count, &mut self.values)?;
        }
        if shape.has_bytes() {
            let lengths = self.values.len();
            column::read(rest, count, &mut self.values)?;
            let add = |sum: u64, len: &u64| sum.checked_add(*len).ok_or(BlockError::TooMuch);
            let sum = self.values[lengths..].iter().try_fold(0, add)?;
            self.bytes.extend_from_slice(rest.take(usize::try_from(sum).map_err(|_| BlockError::TooMuch)?)?);
        }
        let columns = shape.words() + usize::from(shape.has_bytes());
        Ok(KindColumns { number, columns, has_bytes: shape.has_bytes(), count, at, bytes_at })
    }

    /// Puts the values of the columns in the order of the events.
    fn interleave(
        &mut self,
        head: &EventsHead,
        places: Places<'_>,
        columns: &mut [KindColumns],
    ) -> Result<(), BlockError> {
        let mut ticks = head.first_ticks;
        for (place, step) in places.iter().zip(&self.values) {
            let kind = columns.get_mut(place).ok_or(BlockError::Contradiction)?;
            ticks = ticks.wrapping_add(*step);
            if ticks < head.first_ticks || ticks > head.last_ticks {
                return Err(BlockError::Contradiction);
            }
            self.words.push(ticks << 8 | u64::from(kind.number));
            for column in 0..kind.columns {
                self.words.push(self.values[kind.at + column * kind.count]);
            }
            kind.at += 1;
            if kind.has_bytes
                && let Some(len) = self.words.last_mut()
            {
                let at = kind.bytes_at as u64;
                kind.bytes_at += usize::try_from(*len).map_err(|_| BlockError::TooMuch)?;
                *len |= at << 32;
            }
        }
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

    /// The event at a place, and the place of the next one. The first is at 0.
    #[inline]
    pub fn event_at(&self, place: usize) -> Option<(RawEvent<'_>, usize)> {
        let mut events = Events { words: self.words.get(place..)?, buffer: self };
        let event = events.next()?;
        Some((event, self.words.len() - events.words.len()))
    }

    /// The events, in the order in which they were recorded.
    pub fn iter(&self) -> Events<'_> {
        Events { words: &self.words, buffer: self }
    }
}

impl<'a> IntoIterator for &'a EventBuffer {
    type Item = RawEvent<'a>;
    type IntoIter = Events<'a>;

    fn into_iter(self) -> Events<'a> {
        self.iter()
    }
}

/// The events of an [`EventBuffer`].
#[derive(Clone, Debug)]
pub struct Events<'a> {
    words: &'a [u64],
    buffer: &'a EventBuffer,
}

impl<'a> Iterator for Events<'a> {
    type Item = RawEvent<'a>;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the words are taken apart")]
    fn next(&mut self) -> Option<RawEvent<'a>> {
        let (first, rest) = self.words.split_first()?;
        let kind = *first as u8;
        let shape = self.buffer.shapes[usize::from(kind)];
        let (words, mut rest) = rest.split_at_checked(shape.words())?;
        let mut bytes = None;
        if shape.has_bytes() {
            let (place, after) = rest.split_first()?;
            let at = (place >> 32) as usize;
            bytes = self.buffer.bytes.get(at..at + *place as u32 as usize);
            rest = after;
        }
        self.words = rest;
        Some(RawEvent { ticks: first >> 8, kind, words, bytes })
    }
}
