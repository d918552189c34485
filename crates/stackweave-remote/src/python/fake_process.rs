//! A simulated process with an interpreter of any version, for tests.

use std::collections::HashMap;

use stackweave_cpython::LineTableFormat;
use stackweave_cpython::layout::{Chain, GilLayout, VersionLayout};

use super::fake_threading::FakeThreading;
use super::runtime::Runtime;
use super::snapshot::PageSource;
use super::version::Version;

/// The start of its memory.
pub(super) const BASE: u64 = 0x7000_0000_0000;
/// The contents of each thread: this number of activations, with two frames in each from 3.11 on.
pub(super) const ACTIVATIONS: usize = 3;
pub(super) const THREADS: u32 = 2;
/// The line of each frame, and the first line of its function.
pub(super) const LINE: u32 = 11;
pub(super) const FIRST_LINE: u32 = 10;
const UNITS: u64 = 100;
const INSTRUCTION: u64 = 20;

#[derive(Clone)]
pub(super) struct FakeProcess {
    pub(super) bytes: Vec<u8>,
    pub(super) layout: &'static VersionLayout,
    code: u64,
    /// The thread states.
    pub(super) states: Vec<u64>,
    /// The frames of the last thread, innermost first.
    pub(super) frames: Vec<u64>,
    pub(super) interpreter: u64,
    /// Types by name.
    pub(super) types: HashMap<&'static str, u64>,
    pub(super) threading: FakeThreading,
}

impl PageSource for FakeProcess {
    fn read(&self, address: u64, into: &mut [u8]) -> Option<()> {
        let start = usize::try_from(address.checked_sub(BASE)?).ok()?;
        into.copy_from_slice(self.bytes.get(start..start.checked_add(into.len())?)?);
        Some(())
    }
}

impl FakeProcess {
    pub(super) fn new(minor: u8) -> (Self, Runtime) {
        let layout = VersionLayout::of_minor(minor).unwrap();
        let mut process = Self {
            bytes: Vec::new(),
            layout,
            code: 0,
            states: Vec::new(),
            frames: Vec::new(),
            interpreter: 0,
            types: HashMap::new(),
            threading: FakeThreading::default(),
        };
        let runtime = process.allocate(2048);
        process.interpreter = process.allocate(8192);
        process.put(runtime, layout.lists.interpreters, process.interpreter);
        process.code = process.make_code();
        for task in 1..=THREADS {
            process.make_state(task);
        }
        process.hold_gil(runtime, process.states[0]);
        process.make_threading();
        process.fill_page();
        let version = Version::of_word(0x0300_00f0 | u64::from(minor) << 16).unwrap();
        (process, Runtime { address: runtime, version, layout, lists: layout.lists, has_greenlets: false })
    }

    pub(super) fn allocate(&mut self, size: usize) -> u64 {
        let start = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(start + size, 0);
        BASE + start as u64
    }

    /// Extends the memory to full pages, because it is read by pages.
    pub(super) fn fill_page(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4096), 0);
    }

    pub(super) fn put(&mut self, address: u64, offset: usize, word: u64) {
        self.put_bytes(address, offset, &word.to_le_bytes());
    }

    pub(super) fn put_bytes(&mut self, address: u64, offset: usize, bytes: &[u8]) {
        let start = usize::try_from(address - BASE).unwrap() + offset;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn make_type(&mut self, name: &'static str) -> u64 {
        if let Some(known) = self.types.get(name) {
            return *known;
        }
        let address = self.allocate(1024);
        let text = self.allocate(8);
        self.put_bytes(text, 0, name.as_bytes());
        self.put(address, 24, text);
        self.types.insert(name, address);
        address
    }

    pub(super) fn make_object(&mut self, type_name: &'static str, size: usize) -> u64 {
        let of_type = self.make_type(type_name);
        let object = self.allocate(size);
        self.put(object, 8, of_type);
        object
    }

    /// Creates a `str` of ASCII characters.
    pub(super) fn make_text(&mut self, characters: &str) -> u64 {
        let text = self.layout.text;
        let object = self.make_object("str", 128);
        self.put(object, text.length, characters.len() as u64);
        self.put(object, text.state, 1 << 2 | 1 << 5 | 1 << 6);
        self.put_bytes(object, text.ascii, characters.as_bytes());
        object
    }

    fn make_code(&mut self) -> u64 {
        let (layout, text) = (self.layout, self.layout.text);
        let code = self.make_object("code", 512);
        self.put(code, 16, UNITS);
        for (offset, name) in [
            (layout.code.name, "work"),
            (layout.code.filename, "work.py"),
            (layout.code.qualname.unwrap_or(0), "A.work"),
        ] {
            let object = self.make_text(name);
            if offset != 0 {
                self.put(code, offset, object);
            }
        }
        let table: &[u8] = match layout.line_table {
            LineTableFormat::Lines => &[200, 1],
            _ => &[0x80 | 13 << 3 | 7, 2, 0x80 | 13 << 3 | 7, 0],
        };
        let object = self.allocate(64);
        self.put(object, text.bytes_length, table.len() as u64);
        self.put_bytes(object, text.bytes, table);
        self.put(code, layout.code.line_table, object);
        self.put_bytes(code, layout.code.first_line, &FIRST_LINE.to_le_bytes());
        code
    }

    fn make_state(&mut self, task: u32) {
        let (layout, lists) = (self.layout, self.layout.lists);
        let state = self.allocate(1024);
        self.put(state, lists.interpreter, self.interpreter);
        self.put(state, layout.thread.thread_id, 0x1000 * u64::from(task));
        if let Some(offset) = lists.native_thread_id {
            self.put(state, offset, task.into());
        }
        match self.states.last().copied() {
            Some(older) => self.put(older, lists.next_thread, state),
            None => self.put(self.interpreter, lists.threads, state),
        }
        self.states.push(state);
        self.frames.clear();
        match layout.thread.chain {
            Chain::FrameObjects { frame, c_frame, previous_c_frame, last_c_frame } => {
                let loops = self.make_loops(state + last_c_frame as u64, previous_c_frame);
                self.put(state, c_frame, loops[0]);
                self.make_frames(1);
                self.put(state, frame, self.frames[0]);
            }
            Chain::EntryFlags { c_frame, current_frame, previous_c_frame, .. } => {
                let loops = self.make_loops(state + 512, previous_c_frame);
                self.put(state, c_frame, loops[0]);
                self.make_frames(2);
                self.lead_to_frames(&loops, current_frame, 2);
            }
            Chain::ShimsBehindCFrame { c_frame, current_frame, previous_c_frame } => {
                let loops = self.make_loops(state + 512, previous_c_frame);
                self.put(state, c_frame, loops[0]);
                self.make_frames(3);
                self.lead_to_frames(&loops, current_frame, 3);
            }
            Chain::Shims { current_frame } => {
                self.make_frames(3);
                self.put(state, current_frame, self.frames[0]);
            }
        }
    }

    /// Creates the list of `_PyCFrame`s: innermost first, each further up the stack.
    fn make_loops(&mut self, last: u64, previous: usize) -> Vec<u64> {
        let loops: Vec<u64> = (0..ACTIVATIONS).map(|_| self.allocate(32)).collect();
        for (index, c_frame) in loops.iter().enumerate() {
            self.put(*c_frame, previous, loops.get(index + 1).copied().unwrap_or(last));
        }
        loops
    }

    fn lead_to_frames(&mut self, loops: &[u64], current_frame: usize, each: usize) {
        for (index, c_frame) in loops.iter().enumerate() {
            self.put(*c_frame, current_frame, self.frames[index * each]);
        }
    }

    /// Creates this number of frames in each activation, including shims.
    fn make_frames(&mut self, each: usize) {
        let layout = self.layout;
        let frames: Vec<u64> = (0..ACTIVATIONS * each).map(|_| self.allocate(128)).collect();
        for (index, frame) in frames.iter().enumerate() {
            self.put(*frame, layout.frame.code, self.code);
            self.put(*frame, layout.frame.previous, frames.get(index + 1).copied().unwrap_or(0));
            let is_last = index % each == each - 1;
            match layout.thread.chain {
                Chain::FrameObjects { .. } => self.put(*frame, layout.frame.instruction, INSTRUCTION / 2),
                Chain::EntryFlags { is_entry, .. } => self.put_bytes(*frame, is_entry, &[u8::from(is_last)]),
                _ => self.put_bytes(*frame, layout.frame.owner, &[if is_last { 3 } else { 0 }]),
            }
            if !matches!(layout.thread.chain, Chain::FrameObjects { .. }) {
                self.put(*frame, layout.frame.instruction, self.code + layout.code.units as u64 + INSTRUCTION);
            }
        }
        self.frames = frames;
    }

    fn hold_gil(&mut self, runtime: u64, state: u64) {
        match self.layout.lists.gil {
            GilLayout::OfRuntime { holder } => self.put(runtime, holder, state),
            GilLayout::OfInterpreter { gil, holder, locked } => {
                let object = self.allocate(64);
                self.put(self.interpreter, gil, object);
                self.put(object, holder, state);
                self.put_bytes(object, locked, &1_u32.to_le_bytes());
            }
        }
    }
}
