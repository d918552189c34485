//! `stackweave info`: what is in a recording, and whether it is whole.

use std::io::{self, BufWriter, Write};

use stackweave_profile::TraceNotes;
use stackweave_recording::{ProcessRecording, Recording};

use crate::arguments::Info;
use crate::failure::Failure;
use crate::opening::open;
use crate::progress::Progress;
use crate::{info_json, info_text};

pub(crate) fn run(arguments: &Info) -> Result<(), Failure> {
    let recording = open(&arguments.recordings)?;
    let notes = notes(&recording);
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if arguments.json {
        info_json::write(&mut out, &recording, &notes)
    } else {
        info_text::write(&mut out, &recording, &notes)
    };
    written.and_then(|()| out.flush()).map_err(|error| Failure::output(&error))
}

/// What tracers have noted, as sentences for each process. What can't be read is missing, and told there.
fn notes(recording: &Recording) -> Vec<Vec<String>> {
    let mut progress = Progress::new("Reading", recording.bytes());
    let mut done = 0;
    let of = |process: &ProcessRecording| {
        let notes = TraceNotes::read_with(process, &mut |bytes| progress.at(done + bytes));
        done += process.bytes();
        notes.unwrap_or_default().sentences(process)
    };
    recording.processes().iter().map(of).collect()
}
