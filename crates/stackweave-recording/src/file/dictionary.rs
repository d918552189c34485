//! What the events of a section refer to, read back.

use std::collections::{BTreeMap, HashMap};
use std::iter;

use stackweave_core::{EventKind, Module};

use super::definitions::{self, FrameCoding, tag};
use super::error::BlockError;
use super::numbered::Numbered;
use super::recorded::{RecordedFrame, RecordedName, RecordedThread};
use super::varint::Cursor;

/// All that was defined so far in a section. What a lost block defined is not there; all else has its right number.
#[derive(Clone, Debug, Default)]
pub struct Dictionary {
    kinds: Numbered<EventKind>,
    strings: Numbered<Box<str>>,
    modules: Numbered<Module>,
    frames: Numbered<RecordedFrame>,
    names: HashMap<u32, Box<[RecordedName]>>,
    stacks: Numbered<(u32, u32)>,
    threads: BTreeMap<u32, RecordedThread>,
}

impl Dictionary {
    /// Takes in the payload of a Definitions block. What came before something that can't be read stays.
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
            let names = (0..count).map(|_| definitions::name(run)).collect::<Result<_, _>>()?;
            self.names.insert(frame, names);
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

    /// All kinds of events, with their numbers.
    pub fn kinds(&self) -> impl Iterator<Item = (u8, &EventKind)> {
        self.kinds.iter().filter_map(|(number, kind)| Some((u8::try_from(number).ok()?, kind)))
    }

    /// A kind of events.
    pub fn kind(&self, number: u8) -> Option<&EventKind> {
        self.kinds.get(number.into())
    }

    /// Returns whether a kind of this name and role is declared.
    pub fn declares(&self, known: &EventKind) -> bool {
        self.kinds().any(|(_, kind)| kind.name == known.name && kind.role == known.role)
    }

    /// A string. What was no UTF-8 was replaced.
    pub fn string(&self, number: u32) -> Option<&str> {
        self.strings.get(number).map(AsRef::as_ref)
    }

    /// How many strings there are.
    pub fn string_count(&self) -> usize {
        self.strings.len()
    }

    /// A module.
    pub fn module(&self, number: u32) -> Option<&Module> {
        self.modules.get(number)
    }

    /// All modules, with their numbers.
    pub fn modules(&self) -> impl Iterator<Item = (u32, &Module)> {
        self.modules.iter()
    }

    /// A frame.
    pub fn frame(&self, number: u32) -> Option<&RecordedFrame> {
        self.frames.get(number)
    }

    /// All frames, with their numbers, in their order.
    pub fn frames(&self) -> impl Iterator<Item = (u32, &RecordedFrame)> {
        self.frames.iter()
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// What a frame is called, innermost first; nothing if that was not recorded.
    pub fn names(&self, frame: u32) -> &[RecordedName] {
        self.names.get(&frame).map_or(&[], AsRef::as_ref)
    }

    /// A stack: that of its callers, which has a smaller number and is 0 if there are none, and its innermost frame.
    pub fn stack(&self, number: u32) -> Option<(u32, u32)> {
        self.stacks.get(number).copied()
    }

    /// All stacks, with their numbers, in their order, so that callers come first.
    pub fn stacks(&self) -> impl Iterator<Item = (u32, (u32, u32))> {
        self.stacks.iter().map(|(number, stack)| (number, *stack))
    }

    /// How many stacks there are, with those that are only callers of others.
    pub fn stack_count(&self) -> usize {
        self.stacks.len()
    }

    /// Returns the greatest number of a stack; 0 if there is none. It is no size: see [`NumberMap`](super::NumberMap).
    pub fn last_stack(&self) -> u32 {
        self.stacks.last()
    }

    /// The frames of a stack, innermost first. Ends early where the definition of a caller was lost.
    pub fn frames_of(&self, stack: u32) -> impl Iterator<Item = u32> {
        let mut next = stack;
        iter::from_fn(move || {
            let (callers, frame) = self.stack(next)?;
            next = callers;
            Some(frame)
        })
    }

    /// A thread.
    pub fn thread(&self, number: u32) -> Option<&RecordedThread> {
        self.threads.get(&number)
    }

    /// All threads, in the order of their numbers.
    pub fn threads(&self) -> impl Iterator<Item = &RecordedThread> {
        self.threads.values()
    }
}

/// Reads things that have the numbers from the first one on, each of `least` bytes or more.
fn add_run<T>(
    to: &mut Numbered<T>,
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

/// The callers are told by how much smaller their number is; 0 stands for none.
fn stack(run: &mut Cursor<'_>, number: u32) -> Result<(u32, u32), BlockError> {
    let callers = match run.small()? {
        0 => 0,
        back => number.checked_sub(back).filter(|callers| *callers != 0).ok_or(BlockError::Contradiction)?,
    };
    Ok((callers, run.small()?))
}
