//! Raw words into the payload of an Events block: events in, columns out.

use stackweave_core::{EventKind, FieldType};

use super::column::{self, Coding};
use super::events_head::EventsHead;
use super::kind_column::{self, Shape};

/// The columns of one block that is being made; their memory is used again for the next.
#[derive(Debug)]
pub(super) struct Transposer {
    /// By place in this block; those behind `present` are left from earlier blocks.
    columns: Vec<KindColumns>,
    present: usize,
    /// By kind number: its place, or none.
    places: [u8; 256],
    kinds: Vec<u8>,
    /// The ticks of each event, then the steps between them.
    ticks: Vec<u64>,
    /// Words that the events took when they were raw.
    words: usize,
    scratch: Vec<u8>,
}

const NO_PLACE: u8 = u8::MAX;

#[derive(Debug, Default)]
struct KindColumns {
    number: u8,
    shape: Shape,
    fields: Vec<FieldColumn>,
    lengths: Vec<u64>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct FieldColumn {
    of: FieldType,
    values: Vec<u64>,
    /// Of calls: the frames that call.
    callers: Vec<u64>,
}

impl Default for Transposer {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            present: 0,
            places: [NO_PLACE; 256],
            kinds: Vec::new(),
            ticks: Vec::new(),
            words: 0,
            scratch: Vec::new(),
        }
    }
}

/// The values of an event's fields that must be told in another way than its process does.
pub(super) trait Renumber {
    /// The section's number of a stack.
    fn stack(&mut self, word: u64) -> u64;
    /// The section's number of a frame.
    fn frame(&mut self, word: u64) -> u64;
    /// The section's numbers of what is called, and of what calls it.
    fn call(&mut self, word: u64) -> (u64, u64);
}

/// One event in raw words, found whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneEvent<'a> {
    pub(super) number: u8,
    pub(super) ticks: u64,
    pub(super) fields: &'a [u64],
    /// The words of a byte string, and how many of their bytes are its own.
    pub(super) bytes: Option<(&'a [u64], usize)>,
}

impl Transposer {
    /// How many raw words the events of this block took so far.
    pub(super) const fn words(&self) -> usize {
        self.words
    }

    /// Adds an event of one of these kinds, the first of which has number 1.
    #[inline]
    pub(super) fn push(&mut self, kinds: &[EventKind], event: LaneEvent<'_>, to: &mut impl Renumber) {
        let place = match self.places[usize::from(event.number)] {
            NO_PLACE => self.begin_kind(event.number, &kinds[usize::from(event.number) - 1]),
            place => place,
        };
        self.kinds.push(place);
        self.ticks.push(event.ticks);
        self.words += 1 + event.fields.len();
        let columns = &mut self.columns[usize::from(place)];
        for (column, value) in columns.fields.iter_mut().zip(event.fields) {
            column.values.push(match column.of {
                FieldType::Stack => to.stack(*value),
                FieldType::Frame => to.frame(*value),
                FieldType::Call => {
                    let (called, calling) = to.call(*value);
                    column.callers.push(calling);
                    called
                }
                _ => *value,
            });
        }
        if let Some((words, len)) = event.bytes {
            columns.lengths.push(len as u64);
            let end = columns.bytes.len() + len;
            for word in words {
                columns.bytes.extend_from_slice(&word.to_le_bytes());
            }
            columns.bytes.truncate(end);
            self.words += 1 + words.len();
        }
    }

    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "there are at most 255 kinds")]
    fn begin_kind(&mut self, number: u8, kind: &EventKind) -> u8 {
        let place = self.present as u8;
        self.places[usize::from(number)] = place;
        self.present += 1;
        if self.columns.len() < self.present {
            self.columns.push(KindColumns::default());
        }
        let columns = &mut self.columns[usize::from(place)];
        columns.number = number;
        let calls = kind.fields.iter().filter(|field| field.of == FieldType::Call).count();
        columns.shape = Shape::new(kind.words() + calls, kind.has_bytes());
        columns.fields.truncate(kind.words());
        for (place, field) in kind.fields[..kind.words()].iter().enumerate() {
            match columns.fields.get_mut(place) {
                Some(column) => column.of = field.of,
                None => columns.fields.push(FieldColumn { of: field.of, values: Vec::new(), callers: Vec::new() }),
            }
        }
        place
    }

    /// Appends the payload and begins anew. Nothing if there is no event.
    #[expect(clippy::cast_possible_truncation, reason = "blocks are cut long before 2^32 events")]
    pub(super) fn finish(&mut self, thread: u32, out: &mut Vec<u8>) -> bool {
        let Some(first_ticks) = self.ticks.iter().min().copied() else { return false };
        let last_ticks = self.ticks.iter().max().copied().unwrap_or(first_ticks);
        EventsHead { thread, count: self.kinds.len() as u32, first_ticks, last_ticks }.write(out);
        let columns = &mut self.columns[..self.present];
        out.push(columns.len() as u8);
        for kind in columns.iter() {
            out.extend([kind.number, kind.shape.number()]);
        }
        kind_column::write(&self.kinds, columns.len(), out);
        let coding = steps(&mut self.ticks, first_ticks);
        column::write_each(&self.ticks, coding, out, &mut self.scratch);
        for kind in columns {
            kind.write(out, &mut self.scratch);
            self.places[usize::from(kind.number)] = NO_PLACE;
        }
        self.kinds.clear();
        self.ticks.clear();
        self.present = 0;
        self.words = 0;
        true
    }
}

impl KindColumns {
    fn write(&mut self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        for field in &mut self.fields {
            column::write(&field.values, Coding::for_field(field.of), out, scratch);
            field.values.clear();
            if field.of == FieldType::Call {
                column::write(&field.callers, Coding::for_field(field.of), out, scratch);
                field.callers.clear();
            }
        }
        if self.shape.has_bytes() {
            column::write(&self.lengths, Coding::Varint, out, scratch);
            out.extend_from_slice(&self.bytes);
            self.lengths.clear();
            self.bytes.clear();
        }
    }
}

/// Turns ticks into the steps between them, from `first` on. They have a sign only where a clock went back.
fn steps(ticks: &mut [u64], first: u64) -> Coding {
    let mut before = first;
    let mut fell = false;
    for ticks in ticks {
        let now = *ticks;
        fell |= now < before;
        *ticks = now.wrapping_sub(before);
        before = now;
    }
    if fell { Coding::Zigzag } else { Coding::Varint }
}
