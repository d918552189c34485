//! Records what a test does, and reads the recording.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stackweave_capture::stacks;
use stackweave_core::NoNames;
use stackweave_recording::file::RecordedFrame;
use stackweave_recording::{MakeObserver, ProcessRecording, Recorder, RecorderOptions, Recording};
use stackweave_testkit::folder::Folder;

use crate::{MemoryOptions, MemoryRecorder};

/// Gives one test at a time the right to hook or record: a process records memory once at a time, and tests may run in
/// parallel.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static EXCLUSIVE: Mutex<()> = Mutex::new(());
    EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A memory recording in progress.
pub(super) struct Running {
    _exclusive: MutexGuard<'static, ()>,
    pub(super) folder: Folder,
    pub(super) recorder: Recorder,
    pub(super) memory: MemoryRecorder,
}

/// An event as it is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordedEvent {
    pub(super) ticks: u64,
    pub(super) thread: u32,
    pub(super) kind: String,
    pub(super) words: Vec<u64>,
    pub(super) bytes: Vec<u8>,
    /// The native frames of its stack, innermost first.
    pub(super) frames: Vec<u64>,
}

impl Running {
    pub(super) fn start(options: MemoryOptions) -> Self {
        Self::start_with(options, None)
    }

    /// Starts a recording with the ledgers.
    pub(super) fn start_observed(options: MemoryOptions) -> Self {
        let observer = MemoryRecorder::observer(&options);
        Self::start_with(options, Some(observer))
    }

    fn start_with(options: MemoryOptions, observer: Option<MakeObserver>) -> Self {
        let exclusive = exclusive();
        let folder = Folder::new();
        let to = RecorderOptions::new(folder.file("out.swv"));
        let recorder = Recorder::start_observed(to, stacks(), Arc::new(NoNames), observer).unwrap();
        let memory = MemoryRecorder::start(recorder.clone(), options).unwrap();
        Self { _exclusive: exclusive, folder, recorder, memory }
    }

    pub(super) fn stop(self) -> Vec<RecordedEvent> {
        self.memory.stop();
        let summary = self.recorder.stop();
        assert_eq!((summary.error, summary.lost.len()), (None, 0));
        read(&summary.path)
    }

    /// Stops, and returns the recordings of all processes.
    pub(super) fn stop_all(self) -> Vec<(PathBuf, Vec<RecordedEvent>)> {
        self.memory.stop();
        self.recorder.stop();
        self.folder.paths().into_iter().map(|path| (path.clone(), read(&path))).collect()
    }
}

/// Returns the events that were recorded while `work` ran.
pub(super) fn record(options: MemoryOptions, work: impl FnOnce(&MemoryRecorder)) -> Vec<RecordedEvent> {
    let running = Running::start(options);
    work(&running.memory);
    running.stop()
}

/// Returns the events about these addresses, without times and stacks.
pub(super) fn about(seen: &[RecordedEvent], addresses: &[usize]) -> Vec<(String, Vec<u64>)> {
    let is_about =
        |event: &&RecordedEvent| event.words.first().is_some_and(|word| addresses.contains(&(*word as usize)));
    let short = |event: &RecordedEvent| {
        let count = if event.kind == "free" || event.kind == "kept" { 1 } else { 2 };
        (event.kind.clone(), event.words[..count].to_vec())
    };
    seen.iter().filter(is_about).map(short).collect()
}

/// Returns what [`about`] returns for an event with a size.
pub(super) fn sized(kind: &str, address: usize, size: usize) -> (String, Vec<u64>) {
    (kind.to_owned(), vec![address as u64, size as u64])
}

/// Returns what [`about`] returns for an event without a size.
pub(super) fn plain(kind: &str, address: usize) -> (String, Vec<u64>) {
    (kind.to_owned(), vec![address as u64])
}

fn read(path: &Path) -> Vec<RecordedEvent> {
    let recording = Recording::open(path).unwrap();
    let process = &recording.processes()[0];
    let mut seen = Vec::new();
    let each = &mut |buffer: &stackweave_recording::file::EventBuffer| {
        for event in buffer {
            let kind = process.dictionary().kind(event.kind).unwrap();
            let stack = kind.position_of(stackweave_core::FieldType::Stack).map_or(0, |at| event.words[at]);
            seen.push(RecordedEvent {
                ticks: event.ticks,
                thread: buffer.thread(),
                kind: kind.name.to_string(),
                words: event.words.to_vec(),
                bytes: event.bytes.unwrap_or_default().to_vec(),
                frames: native_frames(process, stack as u32),
            });
        }
        ControlFlow::Continue(())
    };
    process.visit(None, &mut |_| {}, each).unwrap();
    seen.sort_by_key(|event| event.ticks);
    seen
}

fn native_frames(process: &ProcessRecording, stack: u32) -> Vec<u64> {
    let address = |frame: u32| match process.dictionary().frame(frame) {
        Some(RecordedFrame::Native { address, .. }) => Some(address.address()),
        _ => None,
    };
    process.dictionary().frames_of(stack).filter_map(address).collect()
}
