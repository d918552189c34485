//! Captures one stack through Rust, C and a `qsort` callback, prints it, and times the capture beside glibc's.

use std::io::{self, Write};
use std::process::ExitCode;
use std::ptr;
use std::time::Instant;

use stackweave_demo::{Cost, interleaved_costs, sort_through_c};
use stackweave_symbolize::{Frame, Options, Resolved, Symbolizer};
use stackweave_unwind::{Captured, CodeAddress, capture, modules};

const DEPTH: usize = 128;
const ROUNDS: u32 = 101;
const CALLS_PER_ROUND: u32 = 64;
const NAME_WIDTH: usize = 54;

type OurFrames = [CodeAddress; DEPTH];
type GlibcFrames = [*mut libc::c_void; DEPTH];

/// One stack as both saw it, from the same function in the same run.
struct Observation {
    frames: Vec<CodeAddress>,
    captured: Captured,
    glibc_frames: Vec<u64>,
    /// Ours, then glibc's.
    costs: [Cost; 2],
}

fn main() -> io::Result<ExitCode> {
    let mut observation = None;
    sort_through_c(&mut [3, 1, 2], &mut || {
        observation.get_or_insert_with(observe_stack);
    });
    let Some(observation) = observation else { return Err(io::Error::other("qsort compared nothing")) };
    let out = &mut io::stdout().lock();
    if observation.frames.is_empty() {
        writeln!(out, "Stackweave captured no frame here: {}.", observation.captured.stop)?;
        return Ok(ExitCode::FAILURE);
    }
    print_stack(out, &observation)?;
    print_timing(out, &observation)?;
    Ok(if agree(&observation) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[inline(never)]
fn observe_stack() -> Observation {
    let mut ours: OurFrames = [CodeAddress::default(); DEPTH];
    let mut glibcs: GlibcFrames = [ptr::null_mut(); DEPTH];
    let captured = capture(&mut ours, 0);
    let glibc_count = glibc_backtrace(&mut glibcs);
    let frames = ours[..captured.len].to_vec();
    let glibc_frames = glibcs[..glibc_count].iter().map(|frame| *frame as u64).collect();
    let costs = interleaved_costs(
        ROUNDS,
        CALLS_PER_ROUND,
        [&mut || capture(&mut ours, 0).len, &mut || glibc_backtrace(&mut glibcs)],
    );
    Observation { frames, captured, glibc_frames, costs }
}

#[inline(always)]
#[expect(clippy::inline_always, reason = "glibc must see the same stack as capture, which is inlined too")]
fn glibc_backtrace(frames: &mut GlibcFrames) -> usize {
    let room = libc::c_int::try_from(frames.len()).unwrap_or(0);
    // SAFETY: the buffer is writable and at least `room` pointers long.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), room) };
    usize::try_from(count).unwrap_or(0)
}

/// Whether both saw the same stack. The innermost frames differ: each is its own call site in one function.
fn agree(observation: &Observation) -> bool {
    let ours = observation.frames.iter().map(|frame| frame.address());
    ours.skip(1).eq(observation.glibc_frames.iter().copied().skip(1))
}

fn print_stack(out: &mut impl Write, observation: &Observation) -> io::Result<()> {
    let symbolizer = Symbolizer::new(Options::default());
    let start = Instant::now();
    let resolved = symbolizer.resolve(&observation.frames, &modules());
    let elapsed = start.elapsed();
    writeln!(out, "\n  #  {:NAME_WIDTH$}  where", "function (⤷ inlined into the next)")?;
    for (index, resolved) in resolved.iter().enumerate() {
        let place = format!("{}+{:#x}", resolved.module.as_deref().unwrap_or("?"), resolved.offset);
        for (frame, number) in resolved.frames().iter().zip(numbers(index, resolved)) {
            let at = source_place(frame).unwrap_or_else(|| place.clone());
            writeln!(out, "{number:>3}  {:NAME_WIDTH$}  {at}", shortened(&frame.function))?;
        }
        if resolved.frames().is_empty() {
            writeln!(out, "{index:3}  {:NAME_WIDTH$}  {place}", "(unknown)")?;
        }
    }
    writeln!(out, "     {}; named in {:.0} ms\n", observation.captured.stop, elapsed.as_secs_f64() * 1e3)
}

/// The number of a frame, shown at its outermost function: those inlined into it share it.
fn numbers(index: usize, resolved: &Resolved) -> impl Iterator<Item = String> {
    resolved.frames().iter().map(move |frame| if frame.is_inlined { "⤷".to_owned() } else { index.to_string() })
}

/// The file, without most of its folders, and the line.
fn source_place(frame: &Frame) -> Option<String> {
    let (file, line) = (frame.file.as_deref()?, frame.line?);
    let parts: Vec<&str> = file.rsplit('/').take(2).collect();
    Some(format!("{}:{line}", parts.into_iter().rev().collect::<Vec<_>>().join("/")))
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_WIDTH {
        return name.to_owned();
    }
    name.chars().take(NAME_WIDTH - 1).chain(['…']).collect()
}

fn print_timing(out: &mut impl Write, observation: &Observation) -> io::Result<()> {
    let [ours, glibcs] = observation.costs;
    let line = |name, cost: Cost| {
        let (capture, frame) = (cost.ns_per_capture, cost.ns_per_frame());
        format!("{name:15}  {capture:7.0} ns per capture  {frame:7.1} ns per frame")
    };
    let ratio = glibcs.ns_per_frame() / ours.ns_per_frame();
    writeln!(out, "{}  ({ratio:.0} times faster)", line("Stackweave", ours))?;
    writeln!(out, "{}", line("glibc backtrace", glibcs))?;
    let verdict = if agree(observation) { "Both return the same stack." } else { "THE TWO STACKS DIFFER." };
    writeln!(out, "{verdict} Medians of {ROUNDS} interleaved rounds, warm.")
}
