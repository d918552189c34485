//! `stackweave merge`: many recordings in one file.

use std::io::{self, Write};

use stackweave_recording::merge_to;

use crate::arguments::Merge;
use crate::failure::Failure;
use crate::interrupt::Writing;
use crate::opening::{check_output, open};
use crate::progress::Progress;

pub(crate) fn run(arguments: &Merge) -> Result<(), Failure> {
    let output = &arguments.output;
    if !arguments.force && output.exists() {
        return Err(Failure::new(format!("{} is there already; --force replaces it", output.display())));
    }
    check_output(output)?;
    let recording = open(&arguments.recordings)?;
    let mut progress = Progress::new("Merging", recording.bytes());
    let writing = Writing::new(output);
    let done = merge_to(&recording, output, &mut |bytes| progress.at(bytes)).map_err(Failure::new)?;
    drop((writing, progress));
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
