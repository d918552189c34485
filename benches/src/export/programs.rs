//! Peers that are programs: they read files that we exported, and draw.

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use stackweave_export::Format;

use super::cost::{Cost, megabytes, print_figure};
use super::ours::{must_show_all, output};
use super::{CALLS, GRAPH};

/// Measures inferno, which draws a flame graph of our folded stacks.
pub(super) fn inferno(folder: &Path, program: &str, case: &str) -> io::Result<()> {
    let (stacks, picture) = (output(folder, Format::Folded), folder.join("inferno.svg"));
    let cost = run(Command::new(program).arg(&stacks), &picture);
    print_figure(CALLS, &format!("flamegraph, {case}"), "inferno", &cost)
}

/// Measures gprof2dot, which makes a graph of our pstats file, and graphviz, which draws it.
pub(super) fn gprof2dot(area: &str, folder: &Path, python: &str, case: &str) -> io::Result<()> {
    let (profile, graph, picture) =
        (output(folder, Format::Pstats), folder.join("gprof2dot.dot"), folder.join("dot.svg"));
    let first = run(Command::new(python).args(["-m", "gprof2dot", "-f", "pstats"]).arg(&profile), &graph);
    print_figure(area, &format!("dot, {case}"), "gprof2dot", &first)?;
    let both = first.and_then(|first| Ok(first.then(draw(&graph, &picture)?)));
    let checked = both.and_then(|both| if area == GRAPH { must_show(&picture).map(|()| both) } else { Ok(both) });
    print_figure(area, &format!("callgraph, {case}"), "gprof2dot + dot", &checked)
}

/// Measures graphviz, which draws our graph.
pub(super) fn dot_of_ours(folder: &Path, case: &str) -> io::Result<()> {
    let picture = folder.join("ours.svg");
    let cost = draw(&output(folder, Format::Dot), &picture);
    let checked = cost.and_then(|cost| must_show(&picture).map(|()| cost));
    print_figure(GRAPH, &format!("callgraph, {case}"), "dot of ours", &checked)
}

fn draw(graph: &Path, picture: &Path) -> io::Result<Cost> {
    run(Command::new("dot").arg("-Tsvg").arg(graph), picture)
}

fn must_show(picture: &Path) -> io::Result<()> {
    must_show_all(picture, "class=\"node\"")
}

/// Runs a program that writes to standard output. The memory is the program's whole peak.
pub(crate) fn run(command: &mut Command, out: &Path) -> io::Result<Cost> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (before, began) = (children()?, Instant::now());
    let command = command.stdin(Stdio::null()).stdout(File::create(out)?);
    let output = command.output().map_err(|error| io::Error::other(format!("not installed: {name}: {error}")))?;
    let wall_ms = began.elapsed().as_secs_f64() * 1e3;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let why = stderr.lines().last().unwrap_or("it failed without a message");
        return Err(io::Error::other(format!("{name}: {why}")));
    }
    let after = children()?;
    let file_mb = megabytes(fs::metadata(out)?.len());
    Ok(Cost { cpu_ms: after.cpu_ms - before.cpu_ms, wall_ms, peak_mb: after.peak_mb, file_mb })
}

/// Returns the CPU time of all children that have ended, and their highest peak of memory.
#[expect(clippy::cast_precision_loss, reason = "seconds, microseconds and kilobytes are far below 2^52")]
fn children() -> io::Result<Cost> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is writable, and has the type that the call fills.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all-zero bytes are a valid `rusage`, and the call left it valid.
    let usage = unsafe { usage.assume_init() };
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    let cpu_ms = ms(usage.ru_utime) + ms(usage.ru_stime);
    Ok(Cost { cpu_ms, peak_mb: usage.ru_maxrss as f64 / 1024.0, ..Cost::default() })
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn a_program_is_measured_or_says_why_not() {
        let folder = Folder::new();
        let out = folder.file("out");
        let cost = run(Command::new("sh").args(["-c", "printf 12345678"]), &out).unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"12345678");
        assert!(cost.wall_ms > 0.0 && cost.peak_mb > 0.0 && cost.file_mb > 0.0, "{cost:?}");
        let failed = run(Command::new("sh").args(["-c", "echo no >&2; false"]), &out).unwrap_err();
        assert_eq!(failed.to_string(), "sh: no");
        let missing = run(&mut Command::new("no-such-program"), &out).unwrap_err();
        assert!(missing.to_string().starts_with("not installed: no-such-program"), "{missing}");
    }
}
