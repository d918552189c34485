//! Definitions that are not written yet.

use stackweave_core::{EventKind, Module};

use super::block::{BlockKind, write_block};
use super::definitions::{self, FrameCoding, tag};
use super::recorded_frames::{RecordedFrame, RecordedName, RecordedThread};
use super::varint::{put, put_bytes};

/// A block is written as soon as its length exceeds this.
const MAX_BLOCK: usize = 1 << 20;

/// Runs of definitions, one for each sort.
#[derive(Debug, Default)]
pub(super) struct DefinitionRuns {
    pub(super) section: u32,
    /// Several runs, because numbers may be left out.
    kinds: Vec<DefinitionRun>,
    threads: DefinitionRun,
    strings: DefinitionRun,
    modules: DefinitionRun,
    frames: DefinitionRun,
    names: DefinitionRun,
    stacks: DefinitionRun,
    coding: FrameCoding,
}

#[derive(Debug, Default)]
struct DefinitionRun {
    first: u32,
    count: u64,
    body: Vec<u8>,
}

impl DefinitionRun {
    /// Returns the buffer for the definition with this number. Numbers are consecutive.
    fn next(&mut self, number: u32) -> &mut Vec<u8> {
        if self.count == 0 {
            self.first = number;
        }
        debug_assert_eq!(u64::from(self.first) + self.count, u64::from(number));
        self.count += 1;
        &mut self.body
    }

    /// Returns whether the definition with this number can be appended.
    fn is_followed_by(&self, number: u32) -> bool {
        self.count == 0 || u64::from(self.first) + self.count == u64::from(number)
    }

    /// Returns the buffer for a definition that states itself what it belongs to.
    fn next_unnumbered(&mut self) -> &mut Vec<u8> {
        self.count += 1;
        &mut self.body
    }

    fn write(&mut self, tag: u8, out: &mut Vec<u8>) {
        if self.count == 0 {
            return;
        }
        let mut head = Vec::with_capacity(20);
        if tag != tag::NAMES && tag != tag::THREADS {
            put(&mut head, self.first.into());
        }
        put(&mut head, self.count);
        out.push(tag);
        put(out, (head.len() + self.body.len()) as u64);
        out.extend_from_slice(&head);
        out.append(&mut self.body);
        self.count = 0;
    }
}

impl DefinitionRuns {
    pub(super) fn of_section(section: u32) -> Self {
        Self { section, ..Self::default() }
    }

    pub(super) fn kind(&mut self, number: u8, kind: &EventKind) {
        if !self.kinds.last().is_some_and(|run| run.is_followed_by(number.into())) {
            self.kinds.push(DefinitionRun::default());
        }
        if let Some(run) = self.kinds.last_mut() {
            definitions::put_kind(run.next(number.into()), kind);
        }
    }

    pub(super) fn thread(&mut self, thread: &RecordedThread) {
        definitions::put_thread(self.threads.next_unnumbered(), thread);
    }

    pub(super) fn string(&mut self, number: u32, text: &str, out: &mut Vec<u8>) {
        put_bytes(self.strings.next(number), text.as_bytes());
        self.write_if_full(out);
    }

    pub(super) fn module(&mut self, number: u32, module: &Module, out: &mut Vec<u8>) {
        definitions::put_module(self.modules.next(number), module);
        self.write_if_full(out);
    }

    pub(super) fn frame(&mut self, number: u32, frame: RecordedFrame, out: &mut Vec<u8>) {
        self.coding.put(self.frames.next(number), frame);
        self.write_if_full(out);
    }

    pub(super) fn names(&mut self, frame: u32, names: &[RecordedName], out: &mut Vec<u8>) {
        let body = self.names.next_unnumbered();
        put(body, frame.into());
        put(body, names.len() as u64);
        for name in names {
            definitions::put_name(body, name);
        }
        self.write_if_full(out);
    }

    pub(super) fn stack(&mut self, number: u32, callers: u32, frame: u32, out: &mut Vec<u8>) {
        let body = self.stacks.next(number);
        put(body, if callers == 0 { 0 } else { (number - callers).into() });
        put(body, frame.into());
        self.write_if_full(out);
    }

    fn write_if_full(&mut self, out: &mut Vec<u8>) {
        let runs = [&self.strings, &self.modules, &self.frames, &self.names, &self.stacks];
        if runs.iter().map(|run| run.body.len()).sum::<usize>() > MAX_BLOCK {
            self.write(out);
        }
    }

    /// Appends a block with all definitions that are not written yet, if there are any.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        for mut run in self.kinds.drain(..) {
            run.write(tag::KINDS, &mut payload);
        }
        let runs = [
            (tag::THREADS, &mut self.threads),
            (tag::STRINGS, &mut self.strings),
            (tag::MODULES, &mut self.modules),
            (tag::FRAMES, &mut self.frames),
            (tag::NAMES, &mut self.names),
            (tag::STACKS, &mut self.stacks),
        ];
        for (tag, run) in runs {
            run.write(tag, &mut payload);
        }
        self.coding = FrameCoding::default();
        if !payload.is_empty() {
            let written = write_block(BlockKind::Definitions, self.section, &payload, out);
            debug_assert_eq!(written, Ok(()));
        }
    }
}
