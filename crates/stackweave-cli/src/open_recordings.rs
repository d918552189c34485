//! Opens recordings by path, with advice if a path has none; and the symbolizer for their frames.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

use stackweave_core::printable;
use stackweave_recording::{OpenError, Recording};
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};

use crate::failure::Failure;

/// Opens recordings as one.
pub(crate) fn open(paths: &[impl AsRef<Path>]) -> Result<Recording, Failure> {
    Recording::open_all(paths).map_err(|error| Failure::new(format!("{error}{}", remedy(&error))))
}

/// Returns the symbolizer of this process. It is never dropped: that takes a tenth of the time of a short command.
pub(crate) fn symbolizer() -> Result<&'static Symbolizer, Failure> {
    static SYMBOLIZER: OnceLock<Symbolizer> = OnceLock::new();
    if let Some(known) = SYMBOLIZER.get() {
        return Ok(known);
    }
    let mut options = SymbolizerOptions::from_environment().map_err(Failure::new)?;
    options.keeps_files = false;
    Ok(SYMBOLIZER.get_or_init(|| Symbolizer::new(options)))
}

/// Returns advice, as the end of the error message.
fn remedy(error: &OpenError) -> String {
    match error {
        OpenError::NotFound(path) => suggestions(path),
        OpenError::NotARecording(path, kind) => other_reader(path, kind.unwrap_or_default()).to_owned(),
        OpenError::NoRecordings(path) => {
            format!("; stackweave record -o {} records a program to it", path.join("run.swv").display())
        }
        OpenError::Empty(_) | OpenError::NothingReadable(_) => "; record the program again".to_owned(),
        OpenError::Denied(_) => "; its owner can allow it with chmod".to_owned(),
        _ => String::new(),
    }
}

/// Returns which program reads a file that is not a recording.
fn other_reader(path: &Path, kind: &str) -> &'static str {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let starts = |start: &str| kind.starts_with(start);
    if starts("data of memray") {
        "; the command memray reads it"
    } else if starts("data of perf") {
        "; perf report reads it"
    } else if starts("marshal data") {
        "; python -m pstats and snakeviz read it"
    } else if starts("pickled") {
        "; Python's pickle reads it, and pytorch.org/memory_viz where it is a memory snapshot of torch"
    } else if starts("a Parquet") {
        "; DuckDB and pandas read it"
    } else if starts("JSON") {
        "; ui.perfetto.dev and speedscope.app read traces and profiles in JSON"
    } else if ends(&[".py", ".pyw"]) {
        "; stackweave record records a program"
    } else if ends(&[".html", ".svg"]) || starts("an SVG") {
        "; a browser shows it"
    } else if ends(&[".folded", ".collapsed"]) {
        "; speedscope.app and flamegraph.pl read it"
    } else {
        ""
    }
}

/// The number of names that are suggested.
const MAX_SUGGESTIONS: usize = 3;
/// The least likeness of a suggested name; 1 means equal.
const MIN_LIKENESS: f64 = 0.85;

/// Returns similar names in the folder, or else the newest recordings there.
fn suggestions(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else {
        return format!("; there is no folder {}", folder.display());
    };
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let mut known: Vec<(String, SystemTime)> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_recording = Path::new(&name).extension().is_some_and(|end| end == "swv");
        if is_recording || entry.path().is_dir() && strsim::jaro_winkler(&wanted, &name) >= MIN_LIKENESS {
            let time = entry.metadata().and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            known.push((name, time));
        }
    }
    let likeness = |name: &str| strsim::jaro_winkler(&wanted, name);
    let mut like: Vec<&str> =
        known.iter().map(|(name, _)| name.as_str()).filter(|name| likeness(name) >= MIN_LIKENESS).collect();
    like.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)).then(a.cmp(b)));
    if !like.is_empty() {
        return format!("; did you mean {}?", listed(&like, " or "));
    }
    known.sort_by(|a, b| (Reverse(a.1), &a.0).cmp(&(Reverse(b.1), &b.0)));
    let newest: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    if newest.is_empty() { String::new() } else { format!("; the newest recordings there: {}", listed(&newest, ", ")) }
}

fn listed(names: &[&str], between: &str) -> String {
    let shown: Vec<String> = names.iter().take(MAX_SUGGESTIONS).map(|name| printable(name)).collect();
    shown.join(between)
}
