//! Names native frames in a thread: reading a large library takes seconds.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use stackweave_profile::live::NativeNames;
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::ProcessStart;
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};

use super::processes;
use crate::failure::Failure;

/// Frames of a process without names, with a copy of the process.
struct NameRequest {
    process: ProcessRecording,
    frames: Vec<u32>,
}

/// Requests names, for one process at a time.
#[derive(Debug)]
pub(super) struct NativeNaming {
    requests: Sender<NameRequest>,
    replies: Receiver<(ProcessStart, NativeNames)>,
    is_pending: bool,
}

impl NativeNaming {
    pub(super) fn start() -> Result<Self, Failure> {
        let options = SymbolizerOptions::from_environment().map_err(Failure::new)?;
        let (requests, received) = channel::<NameRequest>();
        let (reply, replies) = channel();
        let name = move || {
            processes::yield_to_others();
            let symbolizer = Symbolizer::new(options);
            for NameRequest { process, frames } in received {
                let names = NativeNames::resolve(&process, &frames, &symbolizer);
                let start = process.start().clone();
                drop(process);
                if reply.send((start, names)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("stackweave-names".into()).spawn(name).map_err(Failure::new)?;
        Ok(Self { requests, replies, is_pending: false })
    }

    /// Requests the names of these frames of a process, unless another request is pending.
    pub(super) fn request(&mut self, process: &ProcessRecording, frames: Vec<u32>) {
        if !self.is_pending && !frames.is_empty() {
            let request = NameRequest { process: process.clone(), frames };
            self.is_pending = self.requests.send(request).is_ok();
        }
    }

    /// Returns the names once they are resolved, with the start of their process: its file may have been replaced
    /// meanwhile.
    pub(super) fn reply(&mut self) -> Option<(ProcessStart, NativeNames)> {
        let reply = self.replies.try_recv().ok()?;
        self.is_pending = false;
        Some(reply)
    }
}
