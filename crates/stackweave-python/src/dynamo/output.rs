//! Prints and saves the timings of a state.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::prof_file::read_graph;
use super::report::DynamoReport;
use super::state::DynamoProfilerState;

type State<'a, 'py> = &'a Bound<'py, DynamoProfilerState>;

/// Converts a report to `pstats.Stats`.
pub(super) fn stats<'py>(py: Python<'py>, report: &DynamoReport<'py>) -> PyResult<Bound<'py, PyAny>> {
    let stream = PyDict::new(py);
    stream.set_item("stream", py.import("io")?.call_method0("StringIO")?)?;
    let stats = py.import("pstats")?.getattr("Stats")?.call((), Some(&stream))?;
    stats.setattr("stats", report.table()?)?;
    stats.call_method0("get_top_level_stats")?;
    Ok(stats)
}

/// Saves a file for `pstats`, and logs its path.
pub(super) fn save(state: State<'_, '_>, report: &DynamoReport<'_>, requested: &Path) -> PyResult<PathBuf> {
    let py = state.py();
    let bytes = py.import("marshal")?.call_method1("dumps", (report.table()?,))?.cast_into::<PyBytes>()?;
    let path = state.try_borrow_mut()?.files.save(requested, bytes.as_bytes())?;
    log(py)?.call_method1("info", ("Saved pstats to %s. Visualize with: snakeviz %s", &path, &path))?;
    Ok(path)
}

/// Saves a file as [`save`] does, and logs a warning if it has another name.
pub(super) fn save_for_caller(state: State<'_, '_>, report: &DynamoReport<'_>, requested: &Path) -> PyResult<()> {
    let path = save(state, report, requested)?;
    if path != requested {
        log(state.py())?.call_method1("warning", ("%s already exists: saved to %s", requested, &path))?;
    }
    Ok(())
}

fn log(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("logging")?.call_method1("getLogger", ("stackweave.torch.dynamo",))
}

/// Draws the call graph of a file. Prints errors.
pub(super) fn draw(state: State<'_, '_>, profile: &Path, svg: Option<PathBuf>) -> PyResult<Option<PathBuf>> {
    let py = state.py();
    let requested = svg.unwrap_or_else(|| profile.with_extension("svg"));
    let save_picture = || -> PyResult<PathBuf> {
        let graph = read_graph(py, profile)?;
        let picture = py.detach(|| graph.svg());
        Ok(state.try_borrow_mut()?.files.save(&requested, picture.as_bytes())?)
    };
    match save_picture() {
        Ok(path) => {
            print(py, &format!("SVG call graph saved to: {}{}", path.display(), renamed_note(&requested, &path)))?;
            Ok(Some(path))
        }
        Err(error) if error.is_instance_of::<PyException>(py) => {
            print(py, &format!("Failed to generate SVG of {}: {}", profile.display(), error.value(py)))?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The destination of a report.
enum DumpTarget {
    Nothing,
    Print,
    Save(PathBuf),
}

impl DumpTarget {
    /// Returns the target for a path. Torch passes the value of its environment variable unchanged, as if it were a
    /// path.
    fn of(output_file: Option<PathBuf>) -> Self {
        let Some(path) = output_file else { return Self::Print };
        match path.to_str().map(str::to_ascii_lowercase).as_deref() {
            Some("" | "1" | "true" | "yes" | "on") => Self::Print,
            Some("0" | "false" | "no" | "off") => Self::Nothing,
            _ => Self::Save(path),
        }
    }
}

/// Prints and saves the report, unless it was printed or saved already.
pub(super) fn dump(state: State<'_, '_>, output_file: Option<PathBuf>, with_svg: bool) -> PyResult<()> {
    let target = DumpTarget::of(output_file);
    let timings = state.try_borrow()?.timings.bind(state.py()).clone();
    if timings.is_empty() || matches!(target, DumpTarget::Nothing) {
        return Ok(());
    }
    let report = DynamoReport::of(&timings)?;
    let content = report.content_hash()?;
    if state.try_borrow_mut()?.printed.replace(content) != Some(content) {
        print_report(state.py(), &report)?;
    }
    let DumpTarget::Save(requested) = target else { return Ok(()) };
    if state.try_borrow_mut()?.saved.insert(requested.clone(), content) == Some(content) {
        return Ok(());
    }
    save_and_print(state, &report, &requested, with_svg)
}

fn print_report(py: Python<'_>, report: &DynamoReport<'_>) -> PyResult<()> {
    print(py, &report.text()?)?;
    print(py, "\n=== Dynamo Profiler (pstats) ===")?;
    let stats = stats(py, report)?;
    stats.setattr("stream", py.import("sys")?.getattr("stdout")?)?;
    stats.call_method1("sort_stats", ("cumulative",))?.call_method0("print_stats").map(drop)
}

fn save_and_print(state: State<'_, '_>, report: &DynamoReport<'_>, requested: &Path, with_svg: bool) -> PyResult<()> {
    let py = state.py();
    let path = match save(state, report, requested) {
        Ok(path) => path,
        Err(error) if error.is_instance_of::<PyException>(py) => {
            return print(py, &format!("\nThe profile can't be saved to {}: {}", requested.display(), error.value(py)));
        }
        Err(error) => return Err(error),
    };
    print(py, &format!("\nProfile saved to: {}{}", path.display(), renamed_note(requested, &path)))?;
    print(py, &format!("Visualize with: snakeviz {}", path.display()))?;
    if with_svg {
        draw(state, &path, None)?;
    }
    Ok(())
}

fn renamed_note(requested: &Path, path: &Path) -> String {
    if path == requested { String::new() } else { format!(" ({} already exists)", requested.display()) }
}

/// Prints to the current `sys.stdout`.
pub(super) fn print(py: Python<'_>, text: &str) -> PyResult<()> {
    py.import(intern!(py, "builtins"))?.call_method1(intern!(py, "print"), (text,)).map(drop)
}
