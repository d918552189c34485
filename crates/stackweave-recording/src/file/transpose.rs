//! Transposition of raw events to the columns of an Events block.

use stackweave_core::{EventKind, FieldType};

use super::column::{self, Coding};
use super::events_head::EventsHead;
use super::kind_column::{self, Shape};

/// The columns of the current block. Their memory is reused for the next block.
#[derive(Debug)]
pub(super) struct Transposer {
    /// By index of the kind in this block; those after `present` remain from earlier blocks.
    columns: Vec<TransposedKind>,
    present: usize,
    /// By kind number: the index of the kind in this block, or none.
    indices: [u8; 256],
    kinds: Vec<u8>,
    /// The ticks of each event, then the steps between them.
    ticks: Vec<u64>,
    /// The number of raw words of the events.
    words: usize,
    scratch: Vec<u8>,
}

const NO_INDEX: u8 = u8::MAX;

#[derive(Debug, Default)]
struct TransposedKind {
    number: u8,
    shape: Shape,
    fields: Vec<FieldColumn>,
    lengths: Vec<u64>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct FieldColumn {
    field_type: FieldType,
    values: Vec<u64>,
    /// The frames of the callers, if the field is a call.
    callers: Vec<u64>,
}

impl Default for Transposer {
    fn default() -> Self {
        Self {
            columns: Vec::new(),
            present: 0,
            indices: [NO_INDEX; 256],
            kinds: Vec::new(),
            ticks: Vec::new(),
            words: 0,
            scratch: Vec::new(),
        }
    }
}

/// Converts values of a process to numbers of its section.
pub(super) trait Renumber {
    /// Returns the section's number of a stack.
    fn stack(&mut self, word: u64) -> u64;
    /// Returns the section's number of a frame.
    fn frame(&mut self, word: u64) -> u64;
    /// Returns the section's numbers of the callee and of the caller.
    fn call(&mut self, word: u64) -> (u64, u64);
}

/// One complete event in raw words.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneEvent<'a> {
    pub(super) number: u8,
    pub(super) ticks: u64,
    pub(super) fields: &'a [u64],
    /// The words of a byte string, and its length in bytes.
    pub(super) bytes: Option<(&'a [u64], usize)>,
}

impl Transposer {
    /// Returns the number of raw words of the block's events.
    pub(super) const fn words(&self) -> usize {
        self.words
    }

    /// Adds an event of one of these kinds, whose numbers begin with 1.
    #[inline]
    pub(super) fn push(&mut self, kinds: &[EventKind], event: LaneEvent<'_>, to: &mut impl Renumber) {
        let index = match self.indices[usize::from(event.number)] {
            NO_INDEX => self.begin_kind(event.number, &kinds[usize::from(event.number) - 1]),
            index => index,
        };
        self.kinds.push(index);
        self.ticks.push(event.ticks);
        self.words += 1 + event.fields.len();
        let columns = &mut self.columns[usize::from(index)];
        for (column, value) in columns.fields.iter_mut().zip(event.fields) {
            column.values.push(match column.field_type {
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
        let index = self.present as u8;
        self.indices[usize::from(number)] = index;
        self.present += 1;
        if self.columns.len() < self.present {
            self.columns.push(TransposedKind::default());
        }
        let columns = &mut self.columns[usize::from(index)];
        columns.number = number;
        let calls = kind.fields.iter().filter(|field| field.field_type == FieldType::Call).count();
        columns.shape = Shape::new(kind.words() + calls, kind.has_bytes());
        columns.fields.truncate(kind.words());
        for (position, field) in kind.fields[..kind.words()].iter().enumerate() {
            match columns.fields.get_mut(position) {
                Some(column) => column.field_type = field.field_type,
                None => columns.fields.push(FieldColumn {
                    field_type: field.field_type,
                    values: Vec::new(),
                    callers: Vec::new(),
                }),
            }
        }
        index
    }

    /// Appends the payload and clears the columns. Returns `false` if there are no events.
    #[expect(clippy::cast_possible_truncation, reason = "blocks end long before 2^32 events")]
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
            self.indices[usize::from(kind.number)] = NO_INDEX;
        }
        self.kinds.clear();
        self.ticks.clear();
        self.present = 0;
        self.words = 0;
        true
    }
}

impl TransposedKind {
    fn write(&mut self, out: &mut Vec<u8>, scratch: &mut Vec<u8>) {
        for field in &mut self.fields {
            column::write(&field.values, Coding::for_field(field.field_type), out, scratch);
            field.values.clear();
            if field.field_type == FieldType::Call {
                column::write(&field.callers, Coding::for_field(field.field_type), out, scratch);
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

/// Replaces ticks by the steps between them, from `first` on. They are signed only if a clock went back.
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
