//! Captures one stack through Rust, C and a `qsort` callback, prints it, and times the capture beside glibc's.

use std::io::{self, Write};
use std::process::ExitCode;
use std::ptr;

use stackweave_demo::{Medians, interleaved_medians, name_of, sort_through_c};
use stackweave_unwind::{Captured, CodeAddress, capture};

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
    medians: Medians,
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
    let medians = interleaved_medians(
        ROUNDS,
        CALLS_PER_ROUND,
        || {
            std::hint::black_box(capture(&mut ours, 0));
        },
        || {
            std::hint::black_box(glibc_backtrace(&mut glibcs));
        },
    );
    Observation { frames, captured, glibc_frames, medians }
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
    writeln!(out, "\n  #  {:NAME_WIDTH$}  module+offset", "function")?;
    for (index, frame) in observation.frames.iter().enumerate() {
        let name = name_of(*frame);
        let function = shortened(name.function.as_deref().unwrap_or("(no symbol)"));
        writeln!(out, "{index:3}  {function:NAME_WIDTH$}  {}", name.place)?;
    }
    writeln!(out, "     {}\n", observation.captured.stop)
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_WIDTH {
        return name.to_owned();
    }
    name.chars().take(NAME_WIDTH - 1).chain(['…']).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a stack has at most DEPTH frames")]
fn print_timing(out: &mut impl Write, observation: &Observation) -> io::Result<()> {
    let Medians { first_ns: ours, second_ns: glibcs } = observation.medians;
    let ours_per_frame = ours / observation.frames.len() as f64;
    let glibcs_per_frame = glibcs / observation.glibc_frames.len() as f64;
    let ratio = glibcs_per_frame / ours_per_frame;
    writeln!(
        out,
        "Stackweave       {ours:8.0} ns per capture  {ours_per_frame:7.1} ns per frame  {ratio:.0} times as fast"
    )?;
    writeln!(out, "glibc backtrace  {glibcs:8.0} ns per capture  {glibcs_per_frame:7.1} ns per frame")?;
    let verdict = if agree(observation) { "Both return the same stack." } else { "THE TWO STACKS DIFFER." };
    writeln!(out, "{verdict} Medians of {ROUNDS} interleaved rounds on this stack, warm.")
}
