//! The visible frames of a process, for exports of single events.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_profile::{Frame, Function, FunctionModule, View, WordMap};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordedFrame;

/// Decides for each frame of a stack, starting with the outermost, whether it is visible.
#[derive(Debug)]
pub(crate) struct VisibleFrames {
    process: ProcessRecording,
    /// `None` if all frames are visible.
    view: Option<View>,
    /// By the number of the frame in the recording.
    functions: WordMap<u32, Vec<Function>>,
    modules: HashMap<u32, Arc<FunctionModule>>,
}

impl VisibleFrames {
    pub(crate) fn new(process: &ProcessRecording, view: &View) -> Self {
        let view = (!view.show_all || !view.filter.is_empty()).then(|| view.clone());
        Self { process: process.clone(), view, functions: WordMap::default(), modules: HashMap::new() }
    }

    /// Returns a bit for each function of this frame, innermost first: set if it is visible. There are at most 64.
    /// `is_library` is the state of [`View::shows`] between frames; false before the outermost one.
    pub(crate) fn visible_bits(&mut self, number: u32, frames: &[Frame], is_library: &mut bool) -> u64 {
        let Some(view) = self.view.take() else { return frames.iter().fold(0, |seen, _| seen << 1 | 1) };
        let outermost_first = self.functions(number, frames).iter().rev();
        let visible = outermost_first.fold(0, |seen, function| seen << 1 | u64::from(view.shows(function, is_library)));
        self.view = Some(view);
        visible
    }

    /// Returns whether the innermost function of this frame is hidden because of its origin. What a filter hides does
    /// not count.
    pub(crate) fn hides_innermost(&mut self, number: u32, frames: &[Frame], mut is_library: bool) -> bool {
        let Some(view) = self.view.take() else { return false };
        let mut is_hidden = false;
        for function in self.functions(number, frames).iter().rev() {
            is_hidden = !view.shows_origin(function.origin, &mut is_library) && view.filter.shows(function);
        }
        self.view = Some(view);
        is_hidden
    }

    /// Returns the functions of this frame.
    pub(crate) fn functions(&mut self, number: u32, frames: &[Frame]) -> &[Function] {
        let (process, modules) = (&self.process, &mut self.modules);
        self.functions.entry(number).or_insert_with(|| {
            let module = module(process, number, modules);
            frames.iter().map(|frame| Function::of_frame(frame, module.as_ref())).collect()
        })
    }
}

fn module(
    process: &ProcessRecording,
    frame: u32,
    modules: &mut HashMap<u32, Arc<FunctionModule>>,
) -> Option<Arc<FunctionModule>> {
    let dictionary = process.dictionary();
    let Some(RecordedFrame::Native { module: Some(number), .. }) = dictionary.frame(frame) else { return None };
    let module = dictionary.module(*number)?;
    Some(Arc::clone(modules.entry(*number).or_insert_with(|| Arc::new(module.into()))))
}
