//! Names of native frames, resolved while the recording continues.
//!
//! Resolving takes seconds the first time. Until then, frames are named by their address in the module.

use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordedFrame;
use stackweave_symbolize::Symbolizer;

use crate::aggregate::RecordedNames;
use crate::frame::Frame;
use crate::word_hash::WordMap;

/// The names of native frames of a process, by their numbers in its recording.
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

    /// Returns the native frames of these that have no name in the recording or here, without duplicates.
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

    /// Adds resolved names.
    pub fn add(&mut self, resolved: Self) {
        self.frames.extend(resolved.frames);
    }

    pub(crate) fn get(&self, number: u32) -> Option<&[Frame]> {
        self.frames.get(&number).map(AsRef::as_ref)
    }
}
