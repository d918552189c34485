//! A recorded process, and the names of its frames, which are looked up once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use stackweave_profile::{Frame, RecordedNames};
use stackweave_recording::ProcessRecording;
use stackweave_store::PerProcess;
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};

use crate::errors::Error;

/// The named frames of a frame of the recording, innermost first.
type Frames = Arc<[Arc<Frame>]>;

#[derive(Debug)]
pub(super) struct OpenedProcess {
    pub(super) recording: ProcessRecording,
    /// The names by the number of the frame. Locked only briefly, with the GIL held.
    known: Mutex<HashMap<u32, Frames>>,
}

impl OpenedProcess {
    pub(super) fn new(recording: &ProcessRecording) -> Self {
        Self { recording: recording.clone(), known: Mutex::new(HashMap::new()) }
    }

    /// Returns the frames of a stack, innermost first.
    pub(super) fn stack(&self, py: Python<'_>, stack: u32) -> PyResult<Vec<Arc<Frame>>> {
        let numbers: Vec<u32> = self.recording.dictionary().frames_of(stack).collect();
        self.name(py, &numbers)?;
        let known = self.known();
        let frames = numbers.iter().filter_map(|number| known.get(number));
        Ok(frames.flat_map(|frames| frames.iter().cloned()).collect())
    }

    /// Returns the named frames of each frame, innermost first.
    pub(super) fn frames(&self, py: Python<'_>, numbers: &[u32]) -> PyResult<HashMap<u32, Frames>> {
        self.name(py, numbers)?;
        let known = self.known();
        Ok(numbers.iter().filter_map(|number| Some((*number, Arc::clone(known.get(number)?)))).collect())
    }

    /// Returns the innermost named frame of a frame.
    pub(super) fn frame(&self, py: Python<'_>, number: u32) -> PyResult<Option<Arc<Frame>>> {
        self.name(py, &[number])?;
        Ok(self.known().get(&number).and_then(|frames| frames.first().cloned()))
    }

    /// Looks up unknown names, while other threads run Python.
    fn name(&self, py: Python<'_>, numbers: &[u32]) -> PyResult<()> {
        let unknown: Vec<u32> = {
            let known = self.known();
            numbers.iter().copied().filter(|number| !known.contains_key(number)).collect()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let symbolizer = symbolizer()?;
        let names = py.detach(|| RecordedNames::resolve(&self.recording, &unknown, Some(symbolizer)));
        let mut known = self.known();
        for number in unknown {
            known.entry(number).or_insert_with(|| names.of(number).iter().cloned().map(Arc::new).collect());
        }
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u32, Frames>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the symbolizer of native frames in recordings. A forked child creates its own, because another thread of the parent may
/// have held a lock of the parent's symbolizer at the fork.
pub(super) fn symbolizer() -> PyResult<&'static Symbolizer> {
    static SYMBOLIZER: PerProcess<Symbolizer> = PerProcess::new();
    SYMBOLIZER.get_or_try_make(|_| {
        let options = SymbolizerOptions::from_environment().map_err(Error::from)?;
        Ok(Symbolizer::new(options))
    })
}
