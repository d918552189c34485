//! Ours: records the calls of the program as spans, from Rust.

use std::io;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::RawFrame;
use stackweave_recording::{Recorder, RecorderOptions};

use super::outcome::{Outcome, threads_name};
use super::program::{CALLS_PER_TREE, FUNCTIONS, Listener, NoListener, Pace, grow, grow_wildly, together};
use super::this_process::ThisProcess;

pub(super) const AREA: &str = "recording/calls";
pub(super) const FILE: &str = "calls.swv";
pub(super) const WILD_FILE: &str = "wild-calls.swv";

/// The listener that records the program's calls.
#[derive(Debug)]
pub(super) struct Spans<'a> {
    recorder: &'a Recorder,
    names: Box<[RawFrame]>,
}

impl<'a> Spans<'a> {
    pub(super) fn new(recorder: &'a Recorder) -> io::Result<Self> {
        let name = |number| stackweave_store::label(&format!("call_{number}"), "program.py", 1);
        let names = (0..FUNCTIONS).map(name).collect::<Option<Box<[_]>>>();
        Ok(Self { recorder, names: names.ok_or_else(|| io::Error::other("no memory for names"))? })
    }
}

impl Listener for Spans<'_> {
    #[inline]
    fn begin(&self, function: usize) {
        self.recorder.begin(self.names[function]);
    }

    #[inline]
    fn end(&self) {
        self.recorder.end();
    }
}

/// Records `calls` calls into the folder, and prints the cost.
pub(super) fn record(threads: usize, calls: usize, folder: &Path) -> io::Result<()> {
    let path = folder.join(FILE);
    let trees = (calls / CALLS_PER_TREE / threads).max(1);
    let outcome = Outcome::measure(
        || together(threads, || grow(trees, Pace::OfPython, &NoListener)),
        || start(&path),
        |recorder| {
            let spans = Spans::new(recorder)?;
            together(threads, || grow(trees, Pace::OfPython, &spans))
        },
        |recorder| stop(&recorder),
        &path,
    )?;
    outcome.print_figure(AREA, &threads_name(threads), "ours", trees * CALLS_PER_TREE * threads)
}

/// Records about `calls` calls for other processes to read. Returns the exact number.
pub(crate) fn write(calls: usize, path: &Path) -> io::Result<usize> {
    let trees = (calls / CALLS_PER_TREE).max(1);
    let recorder = start(path)?;
    grow(trees, Pace::OfPython, &Spans::new(&recorder)?);
    stop(&recorder)?;
    Ok(trees * CALLS_PER_TREE)
}

/// Records about `calls` calls on very many paths, for other processes to read.
pub(super) fn write_wild(calls: usize, folder: &Path) -> io::Result<()> {
    let recorder = start(&folder.join(WILD_FILE))?;
    grow_wildly((calls / CALLS_PER_TREE).max(1), &Spans::new(&recorder)?);
    stop(&recorder)
}

/// Starts a recorder that writes to this path, and replaces an existing file.
pub(crate) fn start(path: &Path) -> io::Result<Recorder> {
    let options = RecorderOptions { overwrite: true, ..RecorderOptions::new(path) };
    let recorder = Recorder::start(options, stackweave_capture::stacks(), Arc::new(ThisProcess));
    recorder.map_err(|error| io::Error::other(error.to_string()))
}

/// Completes the file. Fails if an event was lost.
pub(crate) fn stop(recorder: &Recorder) -> io::Result<()> {
    let summary = recorder.stop();
    match (summary.error, summary.lost.values().sum()) {
        (None, 0_u64) => Ok(()),
        (error, lost) => Err(io::Error::other(format!("{lost} events lost; {}", error.unwrap_or_default()))),
    }
}
