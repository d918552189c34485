//! Names that can't be resolved while events are written, because that may need an interpreter.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_core::{FrameNames, RawFrame, SourceLocation};

use super::recorded_frames::RecordedName;

/// Frames whose names are not resolved yet.
#[derive(Debug, Default)]
pub struct PendingNames {
    /// The generation of the definer that assigned the frames' numbers.
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

/// The resolved names of pending frames.
#[derive(Debug, Default)]
pub struct ResolvedNames {
    pub(super) generation: u64,
    pub(super) scripts: Vec<(u32, SourceLocation)>,
    pub(super) lines: Vec<(PendingLine, Vec<SourceLocation>)>,
    /// Lines that could not be resolved yet.
    pub(super) unresolved: Vec<PendingLine>,
}

impl PendingNames {
    /// Returns whether no names are pending.
    pub fn is_empty(&self) -> bool {
        self.scripts.is_empty() && self.lines.is_empty()
    }

    /// Resolves the names. The calling thread must be allowed to call into interpreters, and must hold no lock.
    pub fn resolve(self, names: &dyn FrameNames) -> ResolvedNames {
        let located = |(number, frame)| Some((number, names.locate(frame)?));
        let scripts = self.scripts.into_iter().filter_map(located).collect();
        if self.lines.is_empty() || !names.has_extra_frames() {
            return ResolvedNames { generation: self.generation, scripts, lines: Vec::new(), unresolved: self.lines };
        }
        let mut known: HashMap<(Arc<str>, u32), Vec<SourceLocation>> = HashMap::new();
        let mut behind = |line: PendingLine| {
            let key = (Arc::clone(&line.filename), line.line);
            let frames = known.entry(key).or_insert_with(|| names.frames_behind(&line.filename, line.line));
            (!frames.is_empty()).then(|| (line, frames.clone()))
        };
        let lines = self.lines.into_iter().filter_map(&mut behind).collect();
        ResolvedNames { generation: self.generation, scripts, lines, unresolved: Vec::new() }
    }
}
