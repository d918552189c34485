//! The frames of a thread state, innermost first.
//!
//! This does what [`stackweave_cpython::Interpreter::walk`] does in its own process, but trusts nothing.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use stackweave_core::StackPointer;
use stackweave_cpython::layout::{Chain, CodePosition, SHIM, TAG, VersionLayout, is_plausible};

use super::RemotePythonFrame;
use super::codes::{Code, Codes};
use super::problem::Problem;
use super::snapshot::PageSnapshot;

/// The maximum length of a chain.
const MAX_CHAIN: usize = 1 << 20;
/// The maximum size of the fixed fields of a frame of 3.11 or later.
const MAX_FRAME_SIZE: usize = 80;

/// Reads the frames of thread states.
#[derive(Clone, Copy)]
pub(super) struct RemoteFrameReader<'a> {
    pub(super) snapshot: &'a PageSnapshot<'a>,
    pub(super) layout: &'a VersionLayout,
    pub(super) codes: &'a Codes<'a>,
    pub(super) has_greenlets: bool,
}

/// The frames that were found, and why there are not more.
#[derive(Debug, Default)]
pub(super) struct WalkedFrames {
    pub(super) frames: Vec<RemotePythonFrame>,
    pub(super) problem: Option<Problem>,
}

/// A frame of 3.11 or later.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterpreterFrame {
    pub(super) previous: u64,
    code: u64,
    instruction: u64,
    owner: u8,
    /// Whether it is the last one of its eval loop.
    pub(super) ends_loop: bool,
}

/// A classified frame.
pub(super) enum ChainFrame {
    /// A frame that runs Python, and the offset of its instruction.
    Frame(Rc<Code>, u32),
    /// A frame that is not complete yet, or runs no Python.
    Hidden,
}

impl RemoteFrameReader<'_> {
    /// Returns the frames of a thread state, up to a maximum.
    pub(super) fn walk(&self, state: u64, most: usize) -> WalkedFrames {
        let mut walked = WalkedFrames::default();
        walked.problem = self.walk_into(state, &mut walked.frames).err();
        if walked.frames.len() > most {
            walked.frames.truncate(most);
            walked.problem = Some(Problem::TooMany);
        }
        walked
    }

    fn walk_into(&self, state: u64, frames: &mut Vec<RemotePythonFrame>) -> Result<(), Problem> {
        match self.layout.thread.chain {
            Chain::FrameObjects { .. } => self.walk_objects(state, frames),
            Chain::EntryFlags { .. } => {
                let top = self.settled_top(state)?;
                self.walk_entries(top.frame, top.c_frame, frames)
            }
            Chain::ShimsBehindCFrame { .. } => self.walk_shims(self.settled_top(state)?.frame, frames),
            Chain::Shims { current_frame } => self.walk_shims(self.word(state, current_frame)?, frames),
        }
    }

    /// Walks frames of 3.11: each entry frame is the last of the loop of the next `_PyCFrame`.
    fn walk_entries(&self, top: u64, top_loop: u64, frames: &mut Vec<RemotePythonFrame>) -> Result<(), Problem> {
        let Chain::EntryFlags { previous_c_frame, .. } = self.layout.thread.chain else {
            return Err(Problem::NotAFrame);
        };
        let mut c_frame = top_loop;
        let mut steps = VisitedFrames::default();
        let mut frame = top;
        while frame != 0 {
            steps.visit(frame)?;
            let raw = self.frame(frame)?;
            if let ChainFrame::Frame(code, instruction) = self.classify(raw)? {
                frames.push(self.named(&code, instruction, c_frame));
            }
            if raw.ends_loop {
                c_frame = if is_plausible(c_frame) { self.word(c_frame, previous_c_frame)? } else { 0 };
            }
            frame = raw.previous;
        }
        Ok(())
    }

    /// Walks frames of 3.12 and later: a shim on the C stack ends the frames of each eval loop.
    fn walk_shims(&self, top: u64, frames: &mut Vec<RemotePythonFrame>) -> Result<(), Problem> {
        let mut steps = VisitedFrames::default();
        let mut frame = top;
        let mut open = 0;
        while frame != 0 {
            steps.visit(frame)?;
            let raw = self.frame(frame)?;
            if raw.ends_loop {
                for inside in &mut frames[open..] {
                    inside.activation = StackPointer(frame);
                }
                open = frames.len();
            } else if let ChainFrame::Frame(code, instruction) = self.classify(raw)? {
                frames.push(self.named(&code, instruction, 0));
            }
            frame = raw.previous;
        }
        Ok(())
    }

    /// Reads the frame at an address with one read: its fixed fields end where the local variables begin.
    pub(super) fn frame(&self, address: u64) -> Result<InterpreterFrame, Problem> {
        let layout = &self.layout.frame;
        let mut bytes = [0; MAX_FRAME_SIZE];
        let fields = bytes.get_mut(..layout.locals).ok_or(Problem::Unreadable)?;
        self.snapshot.read(address, fields).ok_or(Problem::Unreadable)?;
        let word = |at: usize| {
            let field = bytes.get(at..at + 8).and_then(|field| field.try_into().ok());
            field.map(u64::from_le_bytes).ok_or(Problem::Unreadable)
        };
        let owner = bytes[layout.owner];
        let ends_loop = match self.layout.thread.chain {
            Chain::EntryFlags { is_entry, .. } => bytes[is_entry] != 0,
            _ => owner == SHIM,
        };
        Ok(InterpreterFrame {
            previous: word(layout.previous)?,
            code: word(layout.code)? & !TAG,
            instruction: word(layout.instruction)?,
            owner,
            ends_loop,
        })
    }

    /// Classifies a frame, which must not be a shim.
    pub(super) fn classify(&self, raw: InterpreterFrame) -> Result<ChainFrame, Problem> {
        if raw.owner >= SHIM {
            return Ok(ChainFrame::Hidden);
        }
        let code = self.codes.at(raw.code).ok_or(Problem::NotAFrame)?;
        match self.layout.code_position(raw.code, raw.instruction, raw.owner, || code.first_traceable) {
            CodePosition::At(instruction) | CodePosition::InGenerator(instruction)
                if u64::from(instruction) < code.length =>
            {
                Ok(ChainFrame::Frame(code, instruction))
            }
            CodePosition::NotBegun => Ok(ChainFrame::Hidden),
            _ => Err(Problem::NotAFrame),
        }
    }

    pub(super) fn named(&self, code: &Code, instruction: u32, activation: u64) -> RemotePythonFrame {
        RemotePythonFrame {
            name: Arc::clone(&code.name),
            qualname: code.qualname.clone(),
            filename: Arc::clone(&code.filename),
            first_line: code.first_line(),
            position: self.codes.position(code, instruction),
            activation: StackPointer(activation),
        }
    }

    pub(super) fn word(&self, address: u64, offset: usize) -> Result<u64, Problem> {
        self.snapshot.word(address, offset).ok_or(Problem::Unreadable)
    }
}

/// The visited frames, which end a walk in a cycle.
#[derive(Debug, Default)]
pub(super) struct VisitedFrames {
    seen: HashSet<u64>,
}

impl VisitedFrames {
    pub(super) fn visit(&mut self, frame: u64) -> Result<(), Problem> {
        if !is_plausible(frame) {
            return Err(Problem::NotAFrame);
        }
        if self.seen.len() >= MAX_CHAIN {
            return Err(Problem::TooMany);
        }
        if self.seen.insert(frame) { Ok(()) } else { Err(Problem::Circle) }
    }
}
