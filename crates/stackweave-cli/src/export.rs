//! `stackweave export`: converts a recording to the format of a viewer.

use std::path::{Path, PathBuf};

use stackweave_export::{ExportError, ExportOptions, Format, export};
use stackweave_profile::Measure;
use stackweave_recording::Recording;

use crate::arguments::{ExportArguments, MeasureChoice};
use crate::failure::Failure;
use crate::interrupt;
use crate::open_recordings::{open, symbolizer};
use crate::output;
use crate::progress::Progress;
use crate::safe_output::say;

pub(crate) fn run(arguments: &ExportArguments) -> Result<(), Failure> {
    let format = format(arguments)?;
    if matches!(arguments.selection.measure, Some(MeasureChoice::Calls)) {
        return Err(Failure::arguments(
            "exports contain calls and time: leave out --measure; top, tree, flame and diff count calls",
        ));
    }
    let given = arguments.output.as_deref().map(output::path);
    let output = given.unwrap_or_else(|| beside(&arguments.recordings[0], format));
    output::check(&output)?;
    let recording = arguments.selection.filters.scope.recording(&arguments.recordings)?;
    let before = arguments.before.as_deref().map(|path| open(&[path])).transpose()?;
    let is_said = arguments.selection.filters.has_view();
    let options = ExportOptions {
        part: arguments.selection.options()?,
        view: is_said.then(|| arguments.selection.filters.view()),
        title: arguments.title.clone(),
        time_order: arguments.time_order,
        sources: arguments.sources.chosen(),
        texts: Vec::new(),
        before: before.as_ref(),
        overwrite: arguments.overwrite,
        min_block: arguments.min_block,
        max_size: arguments.max_size.unwrap_or_default(),
    };
    let message = export_to(&recording, format, &output, &options)?;
    say(message);
    Ok(())
}

/// Advice for an export that is too large.
const SMALLER: &str = "--start and --end export a part of the time, --max-size 4GB or --max-size none allows more";

/// Writes a file, prints what could not be read, and returns the sentence about what was written.
pub(crate) fn export_to(
    recording: &Recording,
    format: Format,
    output: &Path,
    options: &ExportOptions<'_>,
) -> Result<String, Failure> {
    let symbolizer = symbolizer()?;
    let mut progress = Progress::new("Exporting", recording.bytes());
    interrupt::watch();
    let done = export(recording, format, output, options, (Some(symbolizer), &mut |bytes| progress.at(bytes)));
    drop(progress);
    let done = done.map_err(|error| match error {
        ExportError::Exists(path) => output::exists(&path),
        ExportError::Write(_, error) if output::is_closed(output, &error) => Failure::Closed,
        ExportError::Write(..) => Failure::new(format!("{error}; choose another path with --output")),
        ExportError::TooLarge(_) if format.filters_frames() => {
            Failure::new(format!("{error}; --kind python leaves out native frames; {SMALLER}"))
        }
        ExportError::TooLarge(_) => Failure::new(format!("{error}; {SMALLER}")),
        _ => Failure::new(error),
    })?;
    for sentence in done.missing.into_iter().chain(done.remarks).chain(done.sources.left_out_text()) {
        say(format_args!("stackweave: {sentence}"));
    }
    if let Some(sentence) = done.sources.included_text() {
        say(sentence);
    }
    let size = Measure::AllocatedBytes.text(cast(done.bytes));
    Ok(format!("Wrote {} ({format}, {size}).", output::name(output)))
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
const fn cast(bytes: u64) -> f64 {
    bytes as f64
}

/// Returns the requested format, or that of the output's suffix.
fn format(arguments: &ExportArguments) -> Result<Format, Failure> {
    if let Some(name) = &arguments.format {
        return name.parse().map_err(Failure::arguments);
    }
    let Some(output) = &arguments.output else {
        return Err(Failure::arguments(
            "name a format with --format, or a file with --output whose name ends with the format's suffix",
        ));
    };
    Format::of_path(output).ok_or_else(|| {
        let (path, names) = (output.display(), Format::names());
        Failure::arguments(format!("{path} has no suffix of a format; --format takes {names}"))
    })
}

/// Returns the recording's name with the format's suffix, in the current folder.
pub(crate) fn beside(recording: &Path, format: Format) -> PathBuf {
    let name = recording.file_stem().unwrap_or("recording".as_ref()).to_string_lossy();
    PathBuf::from(format!("{name}{}", format.suffix()))
}
