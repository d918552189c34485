//! Converts the results of an inspection to stacks with names.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_capture::weave::{InterpretedFrames, NativeStack, weave};
use stackweave_core::{CodeAddress, RawFrame, RawFrameKind, StackPointer, StopReason};
use stackweave_profile::{Frame, FrameKind};

use crate::InspectionOptions;
use crate::inspection::{InspectedThread, Inspection};
use crate::native_names::{self, NamedFrames};
use crate::process::Process;
use crate::python::RemotePythonFrame;
use crate::stacks::{ProcessStacks, ThreadStack};

/// Resolves the names of all frames, and weaves the stacks.
pub(crate) fn name_stacks(process: Process, inspection: Inspection, options: &InspectionOptions) -> ProcessStacks {
    let mut addresses: Vec<CodeAddress> =
        inspection.threads.iter().flat_map(|thread| thread.native.addresses.iter().copied()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let found = native_names::name(&addresses, &inspection.modules, process, options.symbolize.clone());
    let names: HashMap<CodeAddress, NamedFrames> = addresses.into_iter().zip(found).collect();
    let mut threads: Vec<ThreadStack> =
        inspection.threads.into_iter().map(|thread| thread_stack(thread, &names, inspection.python.is_ok())).collect();
    threads.sort_by_key(|thread| (thread.task != process.number, thread.task));
    let remarks = inspection.python.as_ref().err().map(|reason| reason.0.clone()).filter(|reason| !reason.is_empty());
    let mut stacks = ProcessStacks {
        process: process.number,
        command_line: process.command_line(),
        python: inspection.python.ok(),
        stopped_for: Some(inspection.stopped_for),
        threads,
        modules: inspection.modules.as_slice().iter().map(|module| module.module.clone()).collect(),
        remarks: remarks.into_iter().collect(),
    };
    stacks.mark_own_frames();
    stacks
}

fn thread_stack(thread: InspectedThread, names: &HashMap<CodeAddress, NamedFrames>, has_python: bool) -> ThreadStack {
    let InspectedThread { task, native, python, problem } = thread;
    let is_complete = native.stop == StopReason::EndOfStack;
    let name = python.as_ref().and_then(|python| python.name.as_deref()).unwrap_or(&task.name).to_owned();
    let (python_frames, has_gil, python_problem) = match python {
        Some(python) => (python.frames, Some(python.has_gil), python.problem),
        None => (Vec::new(), has_python.then_some(false), None),
    };
    let native_problem = (!is_complete).then(|| native.stop.to_string());
    let native = NativeStack { addresses: &native.addresses, stack_pointers: &native.stack_pointers, is_complete };
    ThreadStack {
        task: task.number,
        name,
        kernel_name: task.name,
        state: task.state,
        has_gil,
        frames: woven(native, &python_frames, names),
        problem: problem.or(python_problem).or(native_problem),
    }
}

/// Weaves both stacks, with the rules of `stackweave_capture::weave`.
fn woven(
    native: NativeStack<'_>,
    python: &[RemotePythonFrame],
    names: &HashMap<CodeAddress, NamedFrames>,
) -> Vec<Frame> {
    let stand_ins: Vec<RawFrame> = (0..python.len() as u64).map(|index| RawFrame::script(0, index)).collect();
    let activations: Vec<StackPointer> = python.iter().map(|frame| frame.activation).collect();
    let mut raw = vec![RawFrame::default(); native.addresses.len() + python.len()];
    let length = weave(native, InterpretedFrames { frames: &stand_ins, activations: &activations }, &mut raw);
    let mut frames = Vec::with_capacity(length);
    for frame in &raw[..length] {
        match frame.kind() {
            RawFrameKind::Native(address) => {
                frames.extend(
                    names.get(&address).into_iter().flat_map(|named| named.iter()).map(|frame| Frame::clone(frame)),
                );
            }
            RawFrameKind::Script { word, .. } => {
                frames.extend(usize::try_from(word).ok().and_then(|index| python.get(index)).map(python_frame));
            }
            RawFrameKind::Python { .. } | RawFrameKind::Label(_) => {}
        }
    }
    frames
}

fn python_frame(frame: &RemotePythonFrame) -> Frame {
    Frame {
        kind: FrameKind::Python,
        name: Arc::clone(&frame.name),
        qualname: frame.qualname.clone(),
        filename: Some(Arc::clone(&frame.filename)),
        first_line: frame.first_line,
        position: frame.position,
        module: None,
        is_inlined: false,
        address: None,
        is_own: false,
    }
}
