//! The frames of recordings, by their indexes in the report.

use stackweave_profile::{CodeOrigin, Frame, FrameKind, Function, WordMap};
use stackweave_recording::file::NumberMap;

use super::head::Threads;
use super::names::Names;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

/// The indexes of the frames of all processes. Each frame is looked up once.
pub(super) struct RecordedFrames<'n> {
    names: &'n mut Names,
    processes: Vec<ProcessFrames>,
}

struct ProcessFrames {
    functions: VisibleFrames,
    /// The innermost function of each frame, by its number in the recording.
    innermost: NumberMap<u32>,
    /// All functions of each frame, outermost first.
    chains: WordMap<u32, Box<[u32]>>,
}

impl<'n> RecordedFrames<'n> {
    pub(super) fn new(source: &Source<'_>, names: &'n mut Names) -> Self {
        let of = |process| {
            let (innermost, chains) = Default::default();
            ProcessFrames { functions: VisibleFrames::new(process, source.view()), innermost, chains }
        };
        Self { names, processes: source.processes().iter().map(of).collect() }
    }

    /// Returns all names so far.
    pub(super) const fn names(&self) -> &Names {
        self.names
    }

    /// Returns the index of a frame's innermost function.
    pub(super) fn innermost(&mut self, threads: &Threads<'_>, process: usize, number: u32) -> u32 {
        match self.processes[process].innermost.get(number) {
            Some(index) => *index,
            None => self.look_up(threads, process, number),
        }
    }

    #[cold]
    fn look_up(&mut self, threads: &Threads<'_>, process: usize, number: u32) -> u32 {
        let index = self.chain(threads, process, number).last().copied().unwrap_or(0);
        self.processes[process].innermost.insert(number, index);
        index
    }

    /// Returns the indexes of a frame's functions, outermost first: at least one.
    pub(super) fn chain(&mut self, threads: &Threads<'_>, process: usize, number: u32) -> &[u32] {
        let Self { names, processes } = self;
        let ProcessFrames { functions, chains, .. } = &mut processes[process];
        chains.entry(number).or_insert_with(|| {
            let innermost_first: Vec<Frame> = threads.processes[process].chain(number).rev().cloned().collect();
            let functions = functions.functions(number, &innermost_first).iter().zip(&innermost_first).rev();
            let known = functions.map(|(function, frame)| (function.clone(), frame.position.line));
            let mut known: Vec<(Function, Option<u32>)> = known.collect();
            if known.is_empty() {
                known.push((unknown(), None));
            }
            let number = |index: stackweave_profile::FrameIndex| u32::try_from(index.index()).unwrap_or(u32::MAX);
            known.into_iter().map(|(function, line)| number(names.frame(function, line))).collect()
        })
    }

    /// Returns the frame of the same function without a line.
    pub(super) fn without_line(&mut self, index: u32) -> u32 {
        let found = self.names.without_line(index).map(|frame| u32::try_from(frame.index()));
        found.and_then(Result::ok).unwrap_or(index)
    }
}

/// Returns the function for frames without a definition in the recording.
fn unknown() -> Function {
    Function {
        kind: FrameKind::Span,
        name: Frame::UNKNOWN.into(),
        qualname: None,
        filename: None,
        module: None,
        first_line: None,
        origin: CodeOrigin::Program,
    }
}
