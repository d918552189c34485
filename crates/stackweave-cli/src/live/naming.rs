//! Native names, looked up beside everything else: the first look into a large library takes seconds.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use stackweave_profile::live::NativeNames;
use stackweave_recording::ProcessRecording;
use stackweave_recording::file::Start;
use stackweave_symbolize::{Options, Symbolizer};

use super::processes;
use crate::failure::Failure;

/// Frames of a process without names. Who holds it holds a copy of the process as it was.
struct Question {
    process: ProcessRecording,
    frames: Vec<u32>,
}

/// Asks for names, one process at a time.
#[derive(Debug)]
pub(super) struct Naming {
    questions: Sender<Question>,
    answers: Receiver<(Start, NativeNames)>,
    is_asked: bool,
}

impl Naming {
    pub(super) fn start() -> Result<Self, Failure> {
        let options = Options::from_environment().map_err(Failure::new)?;
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let name = move || {
            processes::yield_to_others();
            let symbolizer = Symbolizer::new(options);
            for Question { process, frames } in asked {
                let found = NativeNames::resolve(&process, &frames, &symbolizer);
                let start = process.start().clone();
                drop(process);
                if answer.send((start, found)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("stackweave-names".into()).spawn(name).map_err(Failure::new)?;
        Ok(Self { questions, answers, is_asked: false })
    }

    /// Asks for the names of these frames of a process, unless another question is open.
    pub(super) fn ask(&mut self, process: &ProcessRecording, frames: Vec<u32>) {
        if !self.is_asked && !frames.is_empty() {
            let question = Question { process: process.clone(), frames };
            self.is_asked = self.questions.send(question).is_ok();
        }
    }

    /// The answer, once it is there, and how the process began that it is about: its file may be another one by then.
    pub(super) fn answer(&mut self) -> Option<(Start, NativeNames)> {
        let answer = self.answers.try_recv().ok()?;
        self.is_asked = false;
        Some(answer)
    }
}
