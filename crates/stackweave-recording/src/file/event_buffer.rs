//! The decoded events of one block.

use super::column;
use super::dictionary::Dictionary;
use super::error::BlockError;
use super::events_head::EventsHead;
use super::kind_column::{KindIndices, Shape};
use super::varint::Cursor;

/// One event of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEvent<'a> {
    /// The time, in ticks of the recording's clock since its start.
    pub ticks: u64,
    /// The number of its kind.
    pub kind: u8,
    /// The values of the kind's fields, except a byte string. Stacks and frames are numbers of the section.
    pub words: &'a [u64],
    /// The byte string, if its kind has one.
    pub bytes: Option<&'a [u8]>,
}

/// The maximum number of words of the events of one block.
const MAX_WORDS: usize = 8 << 20;

/// The events of one block. Its memory is reused for the next block.
#[derive(Clone, Debug)]
pub struct EventBuffer {
    head: EventsHead,
    /// For each event: ticks and kind, its values, and the position of its byte string if it has one.
    words: Vec<u64>,
    bytes: Vec<u8>,
    /// By kind number.
    shapes: [Shape; 256],
    /// The columns during decoding.
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

/// The columns of one kind in a block.
#[derive(Clone, Copy, Debug)]
struct KindColumns {
    number: u8,
    /// The number of columns, including the one of the lengths of byte strings.
    columns: usize,
    has_bytes: bool,
    /// The number of values of each column.
    count: usize,
    /// The index of the next value of the first column.
    at: usize,
    /// The index of the next byte string.
    bytes_at: usize,
}

impl EventBuffer {
    /// Returns an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the payload of an Events block and replaces the previous events. After an error the buffer is empty.
    ///
    /// Kinds whose definitions were lost keep their events, because the block itself states how many values they have.
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
        let indices = KindIndices::take(&mut rest, kinds.len(), count)?;
        self.values.clear();
        column::read_each(&mut rest, count, &mut self.values)?;
        let counts = indices.counts()?;
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
        self.interleave(&head, indices, &mut columns)?;
        self.head = head;
        Ok(())
    }

    /// Reads the list of kinds in the block.
    fn kinds(&mut self, rest: &mut Cursor<'_>, dictionary: &Dictionary) -> Result<Vec<(u8, Shape)>, BlockError> {
        let count = usize::from(rest.byte()?);
        let mut kinds: Vec<(u8, Shape)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (number, shape) = (rest.byte()?, Shape::from_number(rest.byte()?));
            let is_as_declared =
                dictionary.kind(number).is_none_or(|kind| shape == Shape::new(kind.words(), kind.has_bytes()));
            let is_duplicate = kinds.iter().any(|(other, _)| *other == number);
            if number == 0 || !is_as_declared || is_duplicate {
                return Err(BlockError::Contradiction);
            }
            self.shapes[usize::from(number)] = shape;
            kinds.push((number, shape));
        }
        Ok(kinds)
    }

    /// Reads the columns and byte strings of a kind with this many events.
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

    /// Writes the values of the columns in the order of the events.
    fn interleave(
        &mut self,
        head: &EventsHead,
        indices: KindIndices<'_>,
        columns: &mut [KindColumns],
    ) -> Result<(), BlockError> {
        let mut ticks = head.first_ticks;
        for (index, step) in indices.iter().zip(&self.values) {
            let kind = columns.get_mut(index).ok_or(BlockError::Contradiction)?;
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

    /// Returns the thread of the events.
    pub fn thread(&self) -> u32 {
        self.head.thread
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.head.count as usize
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.head.count == 0
    }

    /// Returns the smallest ticks of any event.
    pub fn first_ticks(&self) -> u64 {
        self.head.first_ticks
    }

    /// Returns the largest ticks of any event.
    pub fn last_ticks(&self) -> u64 {
        self.head.last_ticks
    }

    /// Returns the event at an offset, and the offset of the next one. The first is at 0.
    #[inline]
    pub fn event_at(&self, offset: usize) -> Option<(RawEvent<'_>, usize)> {
        let mut events = BufferedEvents { words: self.words.get(offset..)?, buffer: self };
        let event = events.next()?;
        Some((event, self.words.len() - events.words.len()))
    }

    /// Returns the events, in the order of their recording.
    pub fn iter(&self) -> BufferedEvents<'_> {
        BufferedEvents { words: &self.words, buffer: self }
    }
}

impl<'a> IntoIterator for &'a EventBuffer {
    type Item = RawEvent<'a>;
    type IntoIter = BufferedEvents<'a>;

    fn into_iter(self) -> BufferedEvents<'a> {
        self.iter()
    }
}

/// The events of an [`EventBuffer`].
#[derive(Clone, Debug)]
pub struct BufferedEvents<'a> {
    words: &'a [u64],
    buffer: &'a EventBuffer,
}

impl<'a> Iterator for BufferedEvents<'a> {
    type Item = RawEvent<'a>;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the words consist of two numbers")]
    fn next(&mut self) -> Option<RawEvent<'a>> {
        let (first, rest) = self.words.split_first()?;
        let kind = *first as u8;
        let shape = self.buffer.shapes[usize::from(kind)];
        let (words, mut rest) = rest.split_at_checked(shape.words())?;
        let mut bytes = None;
        if shape.has_bytes() {
            let (position, after) = rest.split_first()?;
            let at = (position >> 32) as usize;
            bytes = self.buffer.bytes.get(at..at + *position as u32 as usize);
            rest = after;
        }
        self.words = rest;
        Some(RawEvent { ticks: first >> 8, kind, words, bytes })
    }
}
