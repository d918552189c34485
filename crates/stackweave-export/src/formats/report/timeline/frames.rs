//! The frames of spans, by their places in the report.

use stackweave_profile::{Frame, FrameKind, Function, Origin};

use crate::activity::NamedProcess;
use crate::formats::report::head::Threads;
use crate::formats::report::names::Names;
use crate::source::Source;
use crate::visible_frames::VisibleFrames;

/// No frame of a report has this place.
const NOT_ASKED: u32 = u32::MAX;

/// The places of the frames of all processes. Each is looked for once, however many spans it has.
pub(super) struct SpanFrames<'n> {
    names: &'n mut Names,
    processes: Vec<ProcessFrames>,
}

struct ProcessFrames {
    functions: VisibleFrames,
    /// By the number of the frame in the recording.
    places: Vec<u32>,
}

impl<'n> SpanFrames<'n> {
    pub(super) fn new(source: &Source<'_>, names: &'n mut Names) -> Self {
        let of = |process| ProcessFrames { functions: VisibleFrames::new(process, source.view()), places: Vec::new() };
        Self { names, processes: source.processes().iter().map(of).collect() }
    }

    /// The place of what a frame stands for: the innermost of several.
    pub(super) fn place(&mut self, threads: &Threads<'_>, process: usize, number: u32) -> u32 {
        match self.processes[process].places.get(number as usize) {
            Some(place) if *place != NOT_ASKED => *place,
            _ => self.look_up(&threads.processes[process], process, number),
        }
    }

    #[cold]
    fn look_up(&mut self, named: &NamedProcess<'_>, process: usize, number: u32) -> u32 {
        let ProcessFrames { functions, places } = &mut self.processes[process];
        let innermost: Vec<Frame> = named.chain(number).rev().take(1).cloned().collect();
        let function = functions.functions(number, &innermost).first().cloned().unwrap_or_else(unknown);
        let line = innermost.first().and_then(|frame| frame.position.line);
        let place = u32::try_from(self.names.frame(function, line).index()).unwrap_or(NOT_ASKED);
        if places.len() <= number as usize {
            places.resize(number as usize + 1, NOT_ASKED);
        }
        places[number as usize] = place;
        place
    }
}

/// The function of a frame that the recording says nothing of.
fn unknown() -> Function {
    Function {
        kind: FrameKind::Label,
        name: Frame::UNKNOWN.into(),
        qualname: None,
        filename: None,
        module: None,
        first_line: None,
        origin: Origin::Program,
    }
}
