//! The notes of a call tracer about its own work, as sentences.
//!
//! It records events for them: `demoted(frame, calls, mean)` for a function that it stopped recording, and
//! `trace-note(frame, count)` for anything else that it counts, with a description as the frame.

use std::ops::ControlFlow;

use stackweave_core::printable;
use stackweave_recording::events::{self, Decoder, Event, InstantSubject};
use stackweave_recording::{ProcessRecording, ReadError};

use crate::aggregate::RecordedNames;
use crate::frame::Frame;
use crate::word_hash::WordMap;

/// The number of functions that are named.
const NAMES: usize = 8;

/// The notes of a process's tracer, by the numbers of frames, in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct TraceNotes {
    demoted: Vec<u32>,
    counts: Vec<(u32, u64)>,
    /// The index of each frame in these.
    indexes: WordMap<(bool, u32), usize>,
}

impl TraceNotes {
    /// Reads the notes of a process. Events are read only if the process has such events.
    pub fn read(process: &ProcessRecording) -> Result<Self, ReadError> {
        Self::read_with(process, &mut |_| {})
    }

    /// Reads the notes, and calls `progress` with the number of bytes that were read.
    pub fn read_with(process: &ProcessRecording, progress: &mut dyn FnMut(u64)) -> Result<Self, ReadError> {
        let mut notes = Self::default();
        if !Self::may_have(process) {
            return Ok(notes);
        }
        let decoder = Decoder::of(process.dictionary());
        process.visit(None, progress, &mut |block| {
            block.into_iter().for_each(|event| notes.note(&decoder.decode(&event)));
            ControlFlow::Continue(())
        })?;
        Ok(notes)
    }

    /// Returns whether a process has declared such events.
    pub fn may_have(process: &ProcessRecording) -> bool {
        let dictionary = process.dictionary();
        dictionary.declares(&events::DEMOTED) || dictionary.declares(&events::TRACE_NOTE)
    }

    /// Adds an event, if it is a note.
    pub fn note(&mut self, event: &Event<'_>) {
        let Event::Instant(instant) = event else { return };
        match instant.about {
            InstantSubject::Demoted => self.add(true, instant.frame, 0),
            InstantSubject::TraceNote { count } => self.add(false, instant.frame, count),
            _ => {}
        }
    }

    fn add(&mut self, is_demoted: bool, frame: u32, count: u64) {
        let next = if is_demoted { self.demoted.len() } else { self.counts.len() };
        let index = *self.indexes.entry((is_demoted, frame)).or_insert(next);
        if is_demoted {
            self.demoted.resize(self.demoted.len().max(index + 1), frame);
            return;
        }
        self.counts.resize(self.counts.len().max(index + 1), (frame, 0));
        let sum = &mut self.counts[index].1;
        *sum = sum.saturating_add(count);
    }

    /// Returns the notes as sentences: `3 functions were demoted: a, b, c`, `12 repairs`.
    pub fn sentences(&self, process: &ProcessRecording) -> Vec<String> {
        let counted = self.counts.iter().map(|(frame, _)| *frame);
        let frames: Vec<u32> = self.demoted.iter().copied().take(NAMES).chain(counted).collect();
        let names = RecordedNames::resolve(process, &frames, None);
        let name = |frame: u32| {
            let found = names.of(frame).first();
            found.map_or_else(|| Frame::UNKNOWN.to_owned(), |of| printable(of.qualname.as_ref().unwrap_or(&of.name)))
        };
        let mut sentences = Vec::new();
        if !self.demoted.is_empty() {
            let mut names: Vec<String> = self.demoted.iter().take(NAMES).map(|frame| name(*frame)).collect();
            if let Some(more) = self.demoted.len().checked_sub(NAMES).filter(|more| *more > 0) {
                names.push(format!("and {more} more"));
            }
            let were = if self.demoted.len() == 1 { "function was" } else { "functions were" };
            sentences.push(format!("{} {were} demoted: {}", self.demoted.len(), names.join(", ")));
        }
        sentences.extend(self.counts.iter().map(|(frame, count)| format!("{count} {}", name(*frame))));
        sentences
    }
}
