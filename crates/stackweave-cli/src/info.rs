//! `stackweave info`: describes a recording and what is missing in it.

use stackweave_profile::TraceNotes;
use stackweave_recording::{ProcessRecording, Recording};

use crate::arguments::InfoArguments;
use crate::failure::Failure;
use crate::open_recordings::open;
use crate::progress::Progress;
use crate::screen::{show, show_json};
use crate::{info_json, info_text};

pub(crate) fn run(arguments: &InfoArguments) -> Result<(), Failure> {
    let recording = open(&arguments.recordings)?;
    let notes = notes(&recording);
    if arguments.json {
        return show_json(|out| info_json::write(out, &recording, &notes));
    }
    show(&[], |out| info_text::write(out, &recording, &notes))
}

/// Returns the notes of the recorders, as sentences for each process. Parts that can't be read are reported elsewhere.
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
