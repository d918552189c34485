//! Our exports: opens a recording and exports it, in a process that has done nothing else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;

use super::cost::{Cost, print_figure, print_target};
use super::{CALLS, GRAPH, graph_program};

pub(super) const RECORDING: &str = "recording.swv";

/// The formats that peers read. Their files are kept after the measurement.
const READ_BY_PEERS: [Format; 3] = [Format::Pstats, Format::Folded, Format::Dot];

/// The targets for 1 million calls, and for a call graph of 200 functions.
const TARGET_MS: f64 = 5_000.0;
const GRAPH_TARGET_MS: f64 = 2_000.0;

/// The attribute that every function has in our picture.
const BOX: &str = "class=\"box\"";

/// Returns the path of an export.
pub(super) fn output(folder: &Path, format: Format) -> PathBuf {
    folder.join(format!("export{}", format.suffix()))
}

/// Exports the folder's recording, and prints the cost. `case` names the recording.
pub(super) fn measure(area: &str, folder: &Path, format: &str, case: &str) -> io::Result<()> {
    let format = format.parse::<Format>().map_err(io::Error::other)?;
    let path = output(folder, format);
    let is_graph = area == GRAPH && format == Format::Callgraph;
    let cost = Cost::of(|| write(&folder.join(RECORDING), format, &path));
    let cost = cost.and_then(|cost| if is_graph { must_show_all(&path, BOX).map(|()| cost) } else { Ok(cost) });
    let case = format!("{format}, {case}");
    print_figure(area, &case, "ours", &cost)?;
    if is_graph {
        print_target(area, &case, GRAPH_TARGET_MS)?;
    } else if area == CALLS && case.ends_with(", 1 M calls") {
        print_target(area, &case, TARGET_MS)?;
    }
    if !READ_BY_PEERS.contains(&format) && cost.is_ok() {
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }?;
    }
    Ok(())
}

/// Fails if a picture of the call graph does not show all functions. `mark` appears once for each function that is
/// shown.
pub(super) fn must_show_all(picture: &Path, mark: &str) -> io::Result<()> {
    let (shown, wanted) = (fs::read_to_string(picture)?.matches(mark).count(), graph_program::FUNCTIONS);
    let message = || io::Error::other(format!("{shown} of {wanted} functions are shown"));
    if shown == wanted { Ok(()) } else { Err(message()) }
}

/// Exports the recording, and returns how many bytes it wrote.
fn write(recording: &Path, format: Format, path: &Path) -> io::Result<u64> {
    let recording = Recording::open(recording).map_err(io::Error::other)?;
    let options = ExportOptions { overwrite: true, ..ExportOptions::default() };
    let exported = export(&recording, format, path, &options, (None, &mut |_| {})).map_err(io::Error::other)?;
    match exported.missing.first() {
        None => Ok(exported.bytes),
        Some(missing) => Err(io::Error::other(missing.clone())),
    }
}
