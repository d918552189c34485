//! The events of one block, read back.

use super::column::Column;
use super::dictionary::Dictionary;
use super::error::BlockError;
use super::events_head::EventsHead;
use super::kind_column::{Places, Shape};
use super::varint::Cursor;

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

/// The most words that the events of one block may take.
const MAX_WORDS: usize = 8 << 20;
/// Ticks have 56 bits.
const TICKS_END: u64 = 1 << 56;

/// The events of one block at a time; its memory is used again for the next.
#[derive(Clone, Debug)]
pub struct EventBuffer {
    head: EventsHead,
    /// For each event: ticks and kind, its values, and where its byte string lies if it has one.
    words: Vec<u64>,
    bytes: Vec<u8>,
    /// By kind number.
    shapes: [Shape; 256],
}

impl Default for EventBuffer {
    fn default() -> Self {
        Self { head: EventsHead::default(), words: Vec::new(), bytes: Vec::new(), shapes: [Shape::default(); 256] }
    }
}

/// A kind that a block has events of, and their columns.
#[derive(Debug)]
struct KindColumns<'a> {
    number: u8,
    shape: Shape,
    fields: Vec<Column<'a>>,
    lengths: Option<Column<'a>>,
    /// Where in the buffer's bytes the next byte string lies, and the last ends.
    bytes: (usize, usize),
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
        let ticks = Column::take(&mut rest)?;
        if !ticks.holds(count) {
            return Err(BlockError::EndsEarly);
        }
        let counts = places.counts()?;
        let sizes = kinds.iter().zip(counts).map(|((_, shape), count)| count * (1 + shape.words() + 1));
        let size: usize = sizes.sum();
        if size > MAX_WORDS {
            return Err(BlockError::TooMuch);
        }
        let mut columns = Vec::with_capacity(kinds.len());
        for ((number, shape), count) in kinds.into_iter().zip(counts) {
            columns.push(self.columns(number, shape, count, &mut rest)?);
        }
        self.words.reserve(size);
        self.interleave(&head, places, ticks, &mut columns)?;
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

    /// The columns of a kind with this many events. Takes their byte strings in.
    fn columns<'a>(
        &mut self,
        number: u8,
        shape: Shape,
        count: usize,
        rest: &mut Cursor<'a>,
    ) -> Result<KindColumns<'a>, BlockError> {
        let fields = (0..shape.words()).map(|_| Column::take(rest)).collect::<Result<_, _>>()?;
        let start = self.bytes.len();
        let mut lengths = None;
        if shape.has_bytes() {
            let column = Column::take(rest)?;
            lengths = Some(column);
            let mut column = column;
            let mut sum = 0_usize;
            for _ in 0..count {
                let len = usize::try_from(column.next()?).map_err(|_| BlockError::TooMuch)?;
                sum = sum.checked_add(len).ok_or(BlockError::TooMuch)?;
            }
            self.bytes.extend_from_slice(rest.take(sum)?);
        }
        Ok(KindColumns { number, shape, fields, lengths, bytes: (start, self.bytes.len()) })
    }

    /// Puts the values of the columns in the order of the events.
    fn interleave(
        &mut self,
        head: &EventsHead,
        places: Places<'_>,
        mut steps: Column<'_>,
        columns: &mut [KindColumns<'_>],
    ) -> Result<(), BlockError> {
        let mut ticks = head.first_ticks;
        for place in places.iter() {
            let kind = columns.get_mut(place).ok_or(BlockError::Contradiction)?;
            ticks = ticks.wrapping_add(steps.next()?);
            if ticks < head.first_ticks || ticks > head.last_ticks || ticks >= TICKS_END {
                return Err(BlockError::Contradiction);
            }
            self.words.push(ticks << 8 | u64::from(kind.number));
            for field in &mut kind.fields {
                self.words.push(field.next()?);
            }
            if kind.shape.has_bytes() {
                self.words.push(kind.next_bytes()?);
            }
        }
        let are_spent = steps.is_empty() && columns.iter().all(KindColumns::is_spent);
        if are_spent { Ok(()) } else { Err(BlockError::Contradiction) }
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
        Events { words: &self.words, buffer: self }
    }
}

impl KindColumns<'_> {
    /// Where the next byte string lies, and how long it is, in one word. All of them fit in a payload.
    fn next_bytes(&mut self) -> Result<u64, BlockError> {
        let (at, end) = self.bytes;
        let len = self.lengths.as_mut().ok_or(BlockError::Contradiction)?.next()?;
        let next = usize::try_from(len).ok().and_then(|len| at.checked_add(len)).filter(|next| *next <= end);
        self.bytes.0 = next.ok_or(BlockError::Contradiction)?;
        Ok((at as u64) << 32 | len)
    }

    fn is_spent(&self) -> bool {
        self.fields.iter().all(Column::is_empty)
            && self.lengths.as_ref().is_none_or(Column::is_empty)
            && self.bytes.0 == self.bytes.1
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
    buffer: &'a EventBuffer,
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the words are taken apart")]
    fn next(&mut self) -> Option<Event<'a>> {
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
        Some(Event { ticks: first >> 8, kind, words, bytes })
    }
}
