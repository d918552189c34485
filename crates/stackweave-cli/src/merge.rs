//! `stackweave merge`: many recordings in one file.

use std::io::{self, Write};

use stackweave_recording::{Recording, merge_to};

use crate::arguments::Merge;
use crate::failure::Failure;
use crate::progress::Progress;

pub(crate) fn run(arguments: &Merge) -> Result<(), Failure> {
    let output = &arguments.output;
    if !arguments.force && output.exists() {
        return Err(Failure::new(format!("{} is there already; --force replaces it", output.display())));
    }
    let recording = Recording::open_all(&arguments.recordings).map_err(Failure::new)?;
    let mut progress = Progress::new("Merging", recording.bytes());
    let done = merge_to(&recording, output, &mut |bytes| progress.at(bytes)).map_err(Failure::new)?;
    drop(progress);
    let mut said = recording.report();
    said.push(format!(
        "{}: {} processes, {} events, {} bytes.",
        output.display(),
        recording.processes().len(),
        recording.event_count(),
        done.bytes
    ));
    said.iter().try_for_each(|line| writeln!(io::stderr(), "{line}")).map_err(|error| Failure::output(&error))
}
