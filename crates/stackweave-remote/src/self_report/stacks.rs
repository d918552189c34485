//! Converts a reply to the stacks of a process.

use std::collections::HashMap;
use std::time::Duration;

use stackweave_core::{CodeAddress, Position, SourceLocation};
use stackweave_profile::{Frame, FrameKind};

use super::report::{ReportedFrame, ReportedThread, SelfReport};
use super::{ReportError, request_report};
use crate::InspectionOptions;
use crate::modules::Modules;
use crate::native_names::{self, NamedFrames};
use crate::process::Process;
use crate::stacks::{ProcessStacks, ThreadStack};

/// The time to wait for a process, which waits a second for its threads.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Returns the stacks that a process reports itself.
pub(crate) fn stacks_of(process: Process, options: &InspectionOptions) -> Result<ProcessStacks, ReportError> {
    let mut reply = request_report(process.number, TIMEOUT)?;
    reply.keep(options);
    let modules = Modules::of(process);
    let addresses = reply.addresses();
    let found = native_names::name(&addresses, &modules, process, options.symbolize.clone());
    let names: HashMap<CodeAddress, NamedFrames> = addresses.into_iter().zip(found).collect();
    let mut remarks = vec!["it may not be traced here, so it reported its stacks itself".to_owned()];
    remarks.extend((reply.more > 0).then(|| format!("there are {} more threads", reply.more)));
    let mut stacks = ProcessStacks {
        process: process.number,
        command_line: process.command_line(),
        python: None,
        stopped_for: None,
        threads: reply.threads.into_iter().map(|thread| named_thread(thread, &names)).collect(),
        modules: modules.as_slice().iter().map(|module| module.module.clone()).collect(),
        remarks,
    };
    stacks.mark_own_frames();
    Ok(stacks)
}

impl SelfReport {
    /// Removes the frames that were not requested.
    fn keep(&mut self, options: &InspectionOptions) {
        let is_wanted = |frame: &ReportedFrame| match frame {
            ReportedFrame::Native(_) => options.native,
            _ => options.python,
        };
        self.threads.iter_mut().for_each(|thread| thread.frames.retain(is_wanted));
    }

    /// Returns the addresses of its native frames, each once.
    fn addresses(&self) -> Vec<CodeAddress> {
        let frames = self.threads.iter().flat_map(|thread| &thread.frames);
        let mut addresses: Vec<CodeAddress> = frames
            .filter_map(|frame| if let ReportedFrame::Native(address) = frame { Some(*address) } else { None })
            .collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }
}

fn named_thread(thread: ReportedThread, names: &HashMap<CodeAddress, NamedFrames>) -> ThreadStack {
    let mut frames = Vec::with_capacity(thread.frames.len());
    for frame in thread.frames {
        match frame {
            ReportedFrame::Native(address) => {
                let there = names.get(&address).into_iter().flat_map(|there| there.iter());
                frames.extend(there.map(|frame| Frame::clone(frame)));
            }
            ReportedFrame::Python(location) => frames.push(located(location)),
            ReportedFrame::Script(text) => frames.push(named(FrameKind::Script, &text)),
            ReportedFrame::Label(text) => frames.push(named(FrameKind::Span, &text)),
        }
    }
    let ReportedThread { task, name, state, problem, .. } = thread;
    ThreadStack { task, kernel_name: name.clone(), name, state, has_gil: None, frames, problem }
}

fn located(location: SourceLocation) -> Frame {
    Frame {
        qualname: location.qualname,
        filename: Some(location.filename),
        first_line: location.first_line,
        position: location.position,
        ..named(FrameKind::Python, &location.name)
    }
}

fn named(kind: FrameKind, name: &str) -> Frame {
    Frame {
        kind,
        name: name.into(),
        qualname: None,
        filename: None,
        first_line: None,
        position: Position::default(),
        module: None,
        is_inlined: false,
        address: None,
        is_own: false,
    }
}
