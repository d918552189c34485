//! `stackweave merge`: merges recordings into one file.

use stackweave_files::output::{Existing, is_stream};
use stackweave_recording::{MergeError, merge_to};

use crate::arguments::MergeArguments;
use crate::failure::Failure;
use crate::interrupt;
use crate::open_recordings::open;
use crate::output;
use crate::progress::Progress;
use crate::safe_output::say;

pub(crate) fn run(arguments: &MergeArguments) -> Result<(), Failure> {
    let output = &output::path(&arguments.output);
    if !arguments.overwrite && output.exists() && !is_stream(output) {
        return Err(output::exists(output));
    }
    output::check(output)?;
    let recording = open(&arguments.recordings)?;
    let mut progress = Progress::new("Merging", recording.bytes());
    interrupt::watch();
    let existing = Existing::from_overwrite(arguments.overwrite);
    let done =
        merge_to(&recording, output, existing, &mut |bytes| progress.at(bytes)).map_err(|error| match error {
            MergeError::Exists(path) => output::exists(&path),
            MergeError::Write(_, error) if output::is_closed(output, &error) => Failure::Closed,
            _ => Failure::new(error),
        })?;
    drop(progress);
    let mut messages = recording.report();
    messages.push(format!(
        "{}: {} processes, {} events, {} bytes.",
        output::name(output),
        recording.processes().len(),
        recording.event_count(),
        done.bytes
    ));
    for sentence in messages {
        say(sentence);
    }
    Ok(())
}
