//! `stackweave phases`: how long phases took, in total and in each run.

use stackweave_profile::AggregateOptions;
use stackweave_profile::timing::read_timing;
use stackweave_recording::Missing;

use crate::arguments::PhasesArguments;
use crate::failure::Failure;
use crate::open_recordings::symbolizer;
use crate::phases_json;
use crate::progress::Progress;
use crate::screen::{OutputFeatures, show, show_json};
use crate::text::{ALL, PhasesOptions, write_hidden, write_phases};

pub(crate) fn run(arguments: &PhasesArguments) -> Result<(), Failure> {
    let recording = arguments.filters.scope.recording(&arguments.recordings)?;
    let options = AggregateOptions {
        threads: arguments.filters.scope.thread.clone(),
        range: arguments.filters.scope.range()?,
        ..AggregateOptions::default()
    };
    let view = arguments.filters.view();
    let symbolizer = symbolizer()?;
    // The events are read twice.
    let mut progress = Progress::new("Reading", 2 * recording.bytes());
    let read = read_timing(recording.processes(), &options, &view, Some(symbolizer), &mut |bytes| progress.at(bytes));
    drop(progress);
    let report = read.map_err(Failure::new)?;
    let is_all = options.threads.is_empty() && options.range.is_none() && view.filter.is_empty();
    if report.rows.is_empty() && report.runs.is_empty() && is_all {
        return Err(Failure::new(
            "no phases were recorded; stackweave.Timing records those of a program, stackweave dynamo those of torch.compile",
        ));
    }
    if arguments.runs && report.runs.is_empty() {
        return Err(Failure::new("the recording has no runs; without --runs all phases are shown"));
    }
    let mut remarks = recording.report();
    remarks.extend(report.missing.iter().flat_map(Missing::sentences));
    if report.rows.is_empty() {
        remarks.push("No phases are selected.".to_owned());
    }
    let OutputFeatures { width, colour, .. } = OutputFeatures::of_output();
    let options =
        PhasesOptions { sort: arguments.sort, limit: Some(arguments.limit), only_runs: arguments.runs, width, colour };
    if arguments.json {
        return show_json(|out| phases_json::write(out, &report, &options, &remarks));
    }
    remarks.extend(report.problems());
    let hidden = report.hidden_sentence(ALL).filter(|_| !arguments.runs);
    show(&remarks, |out| {
        write_phases(out, &report, &options)?;
        write_hidden(out, hidden)
    })
}
