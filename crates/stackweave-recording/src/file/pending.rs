//! What can't be asked while events are written, because the answer may need an interpreter.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_core::{Names, RawFrame, SourceLocation};

use super::recorded::RecordedName;

/// Frames of which not all is told yet.
#[derive(Debug, Default)]
pub struct Pending {
    /// Which definer has given the numbers of the frames.
    pub(super) generation: u64,
    pub(super) scripts: Vec<(u32, RawFrame)>,
    pub(super) lines: Vec<PendingLine>,
}

/// A Python frame whose line may be generated code.
#[derive(Debug)]
pub(super) struct PendingLine {
    pub(super) frame: u32,
    pub(super) name: RecordedName,
    pub(super) filename: Arc<str>,
    pub(super) line: u32,
}

/// What was answered about them.
#[derive(Debug, Default)]
pub struct Answered {
    pub(super) generation: u64,
    pub(super) scripts: Vec<(u32, SourceLocation)>,
    pub(super) lines: Vec<(PendingLine, Vec<SourceLocation>)>,
    /// Lines that nobody could be asked about yet.
    pub(super) unasked: Vec<PendingLine>,
}

impl Pending {
    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.lines.is_empty()
    }

    /// Asks. To be called by a thread that may call into interpreters, with no lock held.
    pub fn ask(self, names: &dyn Names) -> Answered {
        let located = |(number, frame)| Some((number, names.locate(frame)?));
        let scripts = self.scripts.into_iter().filter_map(located).collect();
        if self.lines.is_empty() || !names.has_extra_frames() {
            return Answered { generation: self.generation, scripts, lines: Vec::new(), unasked: self.lines };
        }
        let mut known: HashMap<(Arc<str>, u32), Vec<SourceLocation>> = HashMap::new();
        let mut behind = |line: PendingLine| {
            let place = (Arc::clone(&line.filename), line.line);
            let frames = known.entry(place).or_insert_with(|| names.frames_behind(&line.filename, line.line));
            (!frames.is_empty()).then(|| (line, frames.clone()))
        };
        let lines = self.lines.into_iter().filter_map(&mut behind).collect();
        Answered { generation: self.generation, scripts, lines, unasked: Vec::new() }
    }
}
