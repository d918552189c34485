//! What a state prints and saves.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::prof_file::read_graph;
use super::report::Report;
use super::state::DynamoProfilerState;

type State<'a, 'py> = &'a Bound<'py, DynamoProfilerState>;

/// A `pstats.Stats` of a report.
pub(super) fn stats<'py>(py: Python<'py>, report: &Report<'py>) -> PyResult<Bound<'py, PyAny>> {
    let stream = PyDict::new(py);
    stream.set_item("stream", py.import("io")?.call_method0("StringIO")?)?;
    let stats = py.import("pstats")?.getattr("Stats")?.call((), Some(&stream))?;
    stats.setattr("stats", report.table()?)?;
    stats.call_method0("get_top_level_stats")?;
    Ok(stats)
}

/// Saves what `pstats` reads, and logs where.
pub(super) fn save(state: State<'_, '_>, report: &Report<'_>, wanted: &Path) -> PyResult<PathBuf> {
    let py = state.py();
    let bytes = py.import("marshal")?.call_method1("dumps", (report.table()?,))?.cast_into::<PyBytes>()?;
    let path = state.try_borrow_mut()?.files.save(wanted, bytes.as_bytes())?;
    log(py)?.call_method1("info", ("Saved pstats to %s. Visualize with: snakeviz %s", &path, &path))?;
    Ok(path)
}

/// The same for whoever gets the statistics: another name is logged, too.
pub(super) fn save_for_caller(state: State<'_, '_>, report: &Report<'_>, wanted: &Path) -> PyResult<()> {
    let path = save(state, report, wanted)?;
    if path != wanted {
        log(state.py())?.call_method1("warning", ("%s is there already: saved to %s", wanted, &path))?;
    }
    Ok(())
}

fn log(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("logging")?.call_method1("getLogger", ("stackweave.torch.dynamo",))
}

/// Draws a file as a call graph. Whatever goes wrong is printed.
pub(super) fn draw(state: State<'_, '_>, profile: &Path, svg: Option<PathBuf>) -> PyResult<Option<PathBuf>> {
    let py = state.py();
    let wanted = svg.unwrap_or_else(|| profile.with_extension("svg"));
    let drawn = || -> PyResult<PathBuf> {
        let graph = read_graph(py, profile)?;
        let picture = py.detach(|| graph.svg());
        Ok(state.try_borrow_mut()?.files.save(&wanted, picture.as_bytes())?)
    };
    match drawn() {
        Ok(path) => {
            print(py, &format!("SVG call graph saved to: {}{}", path.display(), instead_of(&wanted, &path)))?;
            Ok(Some(path))
        }
        Err(error) if error.is_instance_of::<PyException>(py) => {
            print(py, &format!("Failed to generate SVG of {}: {}", profile.display(), error.value(py)))?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// What shall happen with a report.
enum Wish {
    Nothing,
    Print,
    Save(PathBuf),
}

impl Wish {
    /// The value of torch's environment variable gets here as it is, as if it were a path.
    fn of(output_file: Option<PathBuf>) -> Self {
        let Some(path) = output_file else { return Self::Print };
        match path.to_str().map(str::to_ascii_lowercase).as_deref() {
            Some("" | "1" | "true" | "yes" | "on") => Self::Print,
            Some("0" | "false" | "no" | "off") => Self::Nothing,
            _ => Self::Save(path),
        }
    }
}

/// Prints and saves what has not been printed or saved yet.
pub(super) fn dump(state: State<'_, '_>, output_file: Option<PathBuf>, with_svg: bool) -> PyResult<()> {
    let wish = Wish::of(output_file);
    let timings = state.try_borrow()?.timings.bind(state.py()).clone();
    if timings.is_empty() || matches!(wish, Wish::Nothing) {
        return Ok(());
    }
    let report = Report::of(&timings)?;
    let content = report.content()?;
    if state.try_borrow_mut()?.printed.replace(content) != Some(content) {
        print_report(state.py(), &report)?;
    }
    let Wish::Save(wanted) = wish else { return Ok(()) };
    if state.try_borrow_mut()?.saved.insert(wanted.clone(), content) == Some(content) {
        return Ok(());
    }
    save_and_say(state, &report, &wanted, with_svg)
}

fn print_report(py: Python<'_>, report: &Report<'_>) -> PyResult<()> {
    print(py, &report.text()?)?;
    print(py, "\n=== Dynamo Profiler (pstats) ===")?;
    let stats = stats(py, report)?;
    stats.setattr("stream", py.import("sys")?.getattr("stdout")?)?;
    stats.call_method1("sort_stats", ("cumulative",))?.call_method0("print_stats").map(drop)
}

fn save_and_say(state: State<'_, '_>, report: &Report<'_>, wanted: &Path, with_svg: bool) -> PyResult<()> {
    let py = state.py();
    let path = match save(state, report, wanted) {
        Ok(path) => path,
        Err(error) if error.is_instance_of::<PyException>(py) => {
            return print(py, &format!("\nThe profile can't be saved to {}: {}", wanted.display(), error.value(py)));
        }
        Err(error) => return Err(error),
    };
    print(py, &format!("\nProfile saved to: {}{}", path.display(), instead_of(wanted, &path)))?;
    print(py, &format!("Visualize with: snakeviz {}", path.display()))?;
    if with_svg {
        draw(state, &path, None)?;
    }
    Ok(())
}

fn instead_of(wanted: &Path, path: &Path) -> String {
    if path == wanted { String::new() } else { format!(" ({} is there already)", wanted.display()) }
}

/// As Python does it: to whatever `sys.stdout` is now.
pub(super) fn print(py: Python<'_>, text: &str) -> PyResult<()> {
    py.import(intern!(py, "builtins"))?.call_method1(intern!(py, "print"), (text,)).map(drop)
}
