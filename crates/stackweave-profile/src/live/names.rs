//! Names of native frames, found out while the recording goes on.
//!
//! To resolve them takes seconds the first time. Until they are known, frames are called by their place in their module.

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordedFrame;
use stackweave_symbolize::Symbolizer;

use crate::aggregate::RecordedNames;
use crate::frame::Frame;
use crate::word_hash::WordMap;

/// The names of native frames of one process, by their numbers in its recording.
#[derive(Clone, Debug, Default)]
pub struct NativeNames {
    frames: WordMap<u32, Box<[Frame]>>,
}

impl NativeNames {
    /// Resolves these frames.
    pub fn resolve(process: &ProcessRecording, frames: &[u32], symbolizer: &Symbolizer) -> Self {
        let names = RecordedNames::resolve(process, frames, Some(symbolizer));
        Self { frames: frames.iter().map(|frame| (*frame, names.of(*frame).into())).collect() }
    }

    /// Which of these frames are native, and have no name in the recording, and none here: each once.
    pub fn missing(&self, process: &ProcessRecording, frames: impl IntoIterator<Item = u32>) -> Vec<u32> {
        let dictionary = process.dictionary();
        let is_nameless = |frame: &u32| {
            !self.frames.contains_key(frame)
                && matches!(dictionary.frame(*frame), Some(RecordedFrame::Native { .. }))
                && dictionary.names(*frame).is_empty()
        };
        let mut missing: Vec<u32> = frames.into_iter().filter(is_nameless).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Adds names that were found out.
    pub fn add(&mut self, found: Self) {
        self.frames.extend(found.frames);
    }

    pub(super) fn put_into(&self, names: &mut RecordedNames, frames: &[u32]) {
        if self.frames.is_empty() {
            return;
        }
        for frame in frames {
            if let Some(known) = self.frames.get(frame) {
                names.rename(*frame, known);
            }
        }
    }
}
