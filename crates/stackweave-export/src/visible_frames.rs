//! Which frames of a process are seen, where they are not merged to a profile first.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_profile::{Frame, Function, FunctionModule, View};
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::RecordedFrame;

/// Says of each frame on a stack, from the outermost one on, whether it is seen.
#[derive(Debug)]
pub(crate) struct VisibleFrames {
    process: ProcessRecording,
    /// `None` if all is seen.
    view: Option<View>,
    /// By the number of the frame in the recording.
    functions: HashMap<u32, Vec<Function>>,
    modules: HashMap<u32, Arc<FunctionModule>>,
}

impl VisibleFrames {
    pub(crate) fn new(process: &ProcessRecording, view: &View) -> Self {
        let view = (!view.show_all || !view.filter.is_empty()).then(|| view.clone());
        Self { process: process.clone(), view, functions: HashMap::new(), modules: HashMap::new() }
    }

    /// A bit for each of the frames that this one stands for, innermost first: set if it is seen. There are no more than
    /// 64. `is_library` is what [`View::shows`] keeps from frame to frame; false above the outermost one.
    pub(crate) fn seen(&mut self, number: u32, frames: &[Frame], is_library: &mut bool) -> u64 {
        let Some(view) = self.view.take() else { return frames.iter().fold(0, |seen, _| seen << 1 | 1) };
        let outermost_first = self.functions(number, frames).iter().rev();
        let seen = outermost_first.fold(0, |seen, function| seen << 1 | u64::from(view.shows(function, is_library)));
        self.view = Some(view);
        seen
    }

    /// The functions of the frames that this one stands for.
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
