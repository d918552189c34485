//! Checks exports of well-formed recordings with extreme numbers, in every format: an export is complete, or one
//! sentence says why there is none.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::Value;
use stackweave_export::{ExportError, ExportOptions, Format, export, write};
use stackweave_profile::{AggregateOptions, Measure};
use stackweave_recording::Recording;

use crate::{choices_and_recording, range, scratch};

/// Checks one input.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check_input(data: &[u8]) {
    let (mut choices, recording) = choices_and_recording(data);
    let format = FORMATS[choices.below(FORMATS.len())];
    let measure = choices.below(2 * Measure::ALL.len());
    let options = ExportOptions {
        part: AggregateOptions {
            measure: Measure::ALL.get(measure).copied(),
            range: range(&mut choices),
            ..AggregateOptions::default()
        },
        time_order: choices.below(2) == 0,
        // The paths of sources are generated, and must not be opened.
        sources: Some(false),
        before: (choices.below(3) == 0).then_some(&recording),
        overwrite: true,
        ..ExportOptions::default()
    };
    match written(&recording, format, &options) {
        Ok(bytes) => check(format, &bytes),
        Err(ExportError::Unsupported(why)) => assert!(!why.is_empty()),
        Err(error) => panic!("{format}: {error}"),
    }
}

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| Format::all().collect());

fn written(recording: &Recording, format: Format, options: &ExportOptions<'_>) -> Result<Vec<u8>, ExportError> {
    let mut bytes = Vec::new();
    if format == Format::Parquet {
        let folder = scratch("parquet");
        export(recording, format, &folder, options, (None, &mut |_| ()))?;
        bytes = file_in(&folder);
        fs::remove_dir_all(&folder).expect("the folder can be removed");
    } else {
        write(recording, format, &mut bytes, options, (None, &mut |_| ()))?;
    }
    Ok(bytes)
}

/// Returns the event table of one process.
fn file_in(folder: &Path) -> Vec<u8> {
    let processes = fs::read_dir(folder.join("events")).expect("there are events");
    let of_process = processes.map(|process| process.expect("a folder").path()).next();
    fs::read(of_process.expect("there is a process").join("part-0.parquet")).expect("there is a table")
}

fn check(format: Format, bytes: &[u8]) {
    match format {
        Format::Chrome | Format::Speedscope | Format::Firefox => {
            serde_json::from_slice::<Value>(bytes).expect("JSON");
        }
        Format::Json => {
            let is_object = |line: &str| serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object());
            assert!(text(bytes).lines().all(is_object));
        }
        Format::Folded => {
            let ends_with_a_number = |line: &str| line.rsplit(' ').next().is_some_and(|end| end.parse::<i64>().is_ok());
            assert!(text(bytes).lines().all(ends_with_a_number));
        }
        Format::Flamegraph | Format::Callgraph | Format::MemoryCurve => {
            roxmltree::Document::parse(text(bytes)).expect("XML");
        }
        Format::Report => {
            assert!(text(bytes).starts_with("<!doctype html>") && text(bytes).contains("</html>"));
        }
        Format::Dot => assert!(text(bytes).starts_with("digraph") && text(bytes).trim_end().ends_with('}')),
        Format::Allocations => assert!(text(bytes).ends_with('\n')),
        Format::Parquet => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")),
        Format::Pprof => {
            let read = GzDecoder::new(bytes).read_to_end(&mut Vec::new()).expect("complete");
            assert!(read > 0);
        }
        Format::Pstats | Format::Perfetto | Format::Pytorch => assert!(!bytes.is_empty()),
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}
