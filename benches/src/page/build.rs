//! Report pages: ours of a recording, and those of peers.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use stackweave_export::{ExportOptions, Format, export};
use stackweave_recording::Recording;

use super::plan::{CALLS, MEMORY, TARGET_EVENTS};
use crate::export::cost::{Cost, megabytes, print_figure, print_target};
use crate::export::programs::run;
use crate::recording::calls;

const BUILD: &str = "report/build";
const TARGET_MS: f64 = 20_000.0;

/// Records `events` events; a call is two events.
pub(super) fn record(folder: &Path, events: usize) -> io::Result<()> {
    calls::write(events / 2, &folder.join(format!("{CALLS}.swv"))).map(drop)
}

/// Returns the path of a page, or of the file that a peer's page reads.
pub(super) fn output(folder: &Path, recording: &str, format: Format) -> PathBuf {
    folder.join(format!("{recording}{}", format.suffix()))
}

/// Measures our page of a recording, or the file for a peer's page.
pub(super) fn ours(folder: &Path, recording: &str, format: &str, peer: &str, case: &str) -> io::Result<()> {
    let format = format.parse::<Format>().map_err(io::Error::other)?;
    let (from, to) = (folder.join(format!("{recording}.swv")), output(folder, recording, format));
    let cost = Cost::of(|| {
        let recording = Recording::open(&from).map_err(io::Error::other)?;
        let options = ExportOptions { overwrite: true, ..ExportOptions::default() };
        export(&recording, format, &to, &options, (None, &mut |_| ())).map_err(io::Error::other)?;
        Ok(fs::metadata(&to)?.len())
    });
    print_figure(BUILD, case, peer, &cost)?;
    if format == Format::Report && case.ends_with(TARGET_EVENTS) {
        print_target(BUILD, case, TARGET_MS)?;
    }
    cost.map(drop)
}

/// Measures memray's page of its own recording.
pub(super) fn memray(folder: &Path, python: &str, peer: &str, case: &str) -> io::Result<()> {
    let page = folder.join(format!("{peer}.html"));
    let mut command = Command::new(python);
    command.args(["-m", "memray", "flamegraph", "--force", "--no-web", "-o"]).arg(&page);
    if peer.ends_with("temporal") {
        command.arg("--temporal");
    }
    command.arg(folder.join(format!("{MEMORY}.bin")));
    let cost = run(&mut command, &folder.join("memray.log"));
    let sized = cost.and_then(|cost| Ok(Cost { file_mb: megabytes(fs::metadata(&page)?.len()), ..cost }));
    print_figure(BUILD, case, peer, &sized)
}
