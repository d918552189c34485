//! The definitions of a section, as a reader has them.

use std::collections::BTreeMap;
use std::iter;

use stackweave_core::{EventKind, Module};

use super::definitions::{self, FrameCoding, tag};
use super::error::BlockError;
use super::id_table::NumberedValues;
use super::number_map::NumberMap;
use super::recorded_frames::{RecordedFrame, RecordedName, RecordedThread};
use super::varint::Cursor;

/// All definitions of a section so far. Definitions of lost blocks are missing; the numbers of the others are right.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    kinds: NumberedValues<EventKind>,
    strings: NumberedValues<Box<str>>,
    modules: NumberedValues<Module>,
    frames: NumberedValues<RecordedFrame>,
    names: Vec<RecordedName>,
    /// The names of each frame, innermost first.
    names_of: NumberMap<(u32, u32)>,
    stacks: NumberedValues<(u32, u32)>,
    threads: BTreeMap<u32, RecordedThread>,
}

impl Dictionary {
    /// Adds the payload of a Definitions block. After an error, the definitions before the damage remain.
    pub fn add(&mut self, payload: &[u8]) -> Result<(), BlockError> {
        let mut rest = Cursor::new(payload);
        while !rest.is_empty() {
            let tag = rest.byte()?;
            let mut run = Cursor::new(rest.bytes()?);
            match tag {
                tag::KINDS => add_run(&mut self.kinds, &mut run, 3, |run, _| definitions::kind(run))?,
                tag::STRINGS => add_run(&mut self.strings, &mut run, 1, |run, _| run.text().map(Into::into))?,
                tag::MODULES => add_run(&mut self.modules, &mut run, 5, |run, _| definitions::module(run))?,
                tag::FRAMES => {
                    let mut coding = FrameCoding::default();
                    add_run(&mut self.frames, &mut run, 2, |run, _| coding.take(run))?;
                }
                tag::STACKS => add_run(&mut self.stacks, &mut run, 2, stack)?,
                tag::NAMES => self.add_names(&mut run)?,
                tag::THREADS => self.add_threads(&mut run)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_names(&mut self, run: &mut Cursor<'_>) -> Result<(), BlockError> {
        for _ in 0..run.count(2)? {
            let frame = run.small()?;
            let count = run.count(4)?;
            let start = self.names.len();
            for _ in 0..count {
                self.names.push(definitions::name(run)?);
            }
            let range = (u32::try_from(start), u32::try_from(self.names.len()));
            let (Ok(start), Ok(end)) = range else { return Err(BlockError::TooMuch) };
            self.names_of.insert(frame, (start, end));
        }
        Ok(())
    }

    fn add_threads(&mut self, run: &mut Cursor<'_>) -> Result<(), BlockError> {
        for _ in 0..run.count(3)? {
            let thread = definitions::thread(run)?;
            self.threads.insert(thread.number, thread);
        }
        Ok(())
    }

    /// Returns all kinds of events, with their numbers.
    pub fn kinds(&self) -> impl Iterator<Item = (u8, &EventKind)> {
        self.kinds.iter().filter_map(|(number, kind)| Some((u8::try_from(number).ok()?, kind)))
    }

    /// Returns a kind of events.
    pub fn kind(&self, number: u8) -> Option<&EventKind> {
        self.kinds.get(number.into())
    }

    /// Returns whether a kind of this name and role is declared.
    pub fn declares(&self, known: &EventKind) -> bool {
        self.kinds().any(|(_, kind)| kind.name == known.name && kind.role == known.role)
    }

    /// Returns a string. Invalid UTF-8 was replaced.
    pub fn string(&self, number: u32) -> Option<&str> {
        self.strings.get(number).map(AsRef::as_ref)
    }

    /// Returns the number of strings.
    pub fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// Returns a module.
    pub fn module(&self, number: u32) -> Option<&Module> {
        self.modules.get(number)
    }

    /// Returns all modules, with their numbers.
    pub fn modules(&self) -> impl Iterator<Item = (u32, &Module)> {
        self.modules.iter()
    }

    /// Returns a frame.
    pub fn frame(&self, number: u32) -> Option<&RecordedFrame> {
        self.frames.get(number)
    }

    /// Returns all frames, with their numbers, in ascending order.
    pub fn frames(&self) -> impl Iterator<Item = (u32, &RecordedFrame)> {
        self.frames.iter()
    }

    /// Returns the number of frames.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Returns the names of a frame, innermost first; none if they were not recorded.
    pub fn names(&self, frame: u32) -> &[RecordedName] {
        self.names_of.get(frame).map_or(&[], |(start, end)| &self.names[*start as usize..*end as usize])
    }

    /// Returns a stack as the number of its callers' stack, which is smaller and 0 for none, and its innermost frame.
    pub fn stack(&self, number: u32) -> Option<(u32, u32)> {
        self.stacks.get(number).copied()
    }

    /// Returns the index of a stack among all, for tables of one value for each stack.
    #[inline]
    pub fn stack_index(&self, number: u32) -> Option<usize> {
        self.stacks.index(number)
    }

    /// Returns all stacks, with their numbers, in ascending order: callers come first.
    pub fn stacks(&self) -> impl Iterator<Item = (u32, (u32, u32))> {
        self.stacks.iter().map(|(number, stack)| (number, *stack))
    }

    /// Returns the number of stacks, including those that are only callers of others.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// Returns the highest number of a stack; 0 if there is none. It is no bound of memory: see [`NumberMap`](super::NumberMap).
    pub fn last_stack(&self) -> u32 {
        self.stacks.last()
    }

    /// Returns the frames of a stack, innermost first. They end early where the definition of a caller was lost.
    pub fn frames_of(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut next = stack;
        iter::from_fn(move || {
            let (callers, frame) = self.stack(next)?;
            next = callers;
            Some(frame)
        })
    }

    /// Returns a thread.
    pub fn thread(&self, number: u32) -> Option<&RecordedThread> {
        self.threads.get(&number)
    }

    /// Returns all threads, in the order of their numbers.
    pub fn threads(&self) -> impl Iterator<Item = &RecordedThread> {
        self.threads.values()
    }
}

/// Reads a run of definitions with consecutive numbers, each of at least `least` bytes.
fn add_run<T>(
    to: &mut NumberedValues<T>,
    run: &mut Cursor<'_>,
    least: usize,
    mut item: impl FnMut(&mut Cursor<'_>, u32) -> Result<T, BlockError>,
) -> Result<(), BlockError> {
    let first = run.small()?;
    let count = run.count(least)?;
    let mut items = Vec::with_capacity(count);
    for number in (first..=u32::MAX).take(count) {
        items.push(item(run, number)?);
    }
    if items.len() < count { Err(BlockError::Contradiction) } else { to.add(first, items) }
}

/// Reads a stack. Its callers are written as the difference of the two numbers; 0 means none.
fn stack(run: &mut Cursor<'_>, number: u32) -> Result<(u32, u32), BlockError> {
    let callers = match run.small()? {
        0 => 0,
        back => number.checked_sub(back).filter(|callers| *callers != 0).ok_or(BlockError::Contradiction)?,
    };
    Ok((callers, run.small()?))
}
