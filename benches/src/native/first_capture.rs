//! The first capture of a process, with the set-up. This program starts itself once for each capture.

use std::env;
use std::io::{self, Write};
use std::process::Command;

use super::ffi;
use super::stage::{self, Code, Scene};
use crate::options::{Effort, FIRST_CAPTURE};
use crate::peers::{self, Unwinder};
use crate::report::{Case, Entry, Outcome};
use crate::statistics::median;

pub(super) fn measure(
    unwinders: &[Unwinder],
    effort: Effort,
    done: &mut dyn FnMut(Case) -> io::Result<()>,
) -> io::Result<()> {
    for depth in [30, 100] {
        let mut firsts = vec![Vec::new(); unwinders.len()];
        for _ in 0..effort.pick(3, 7) {
            for (unwinder, firsts) in unwinders.iter().zip(&mut firsts) {
                firsts.push(in_new_process(unwinder, depth)?);
            }
        }
        let entries = unwinders.iter().zip(&firsts).map(|(unwinder, firsts)| summary(unwinder, firsts)).collect();
        done(Case { bench: "native/first-capture", name: format!("nofp {depth}"), unit: "us", entries })?;
    }
    Ok(())
}

/// Microseconds and frames, or why there are none.
type First = Result<(f64, usize), String>;

fn in_new_process(unwinder: &Unwinder, depth: usize) -> io::Result<First> {
    if let Err(why) = &unwinder.capture {
        return Ok(Err(why.clone()));
    }
    let output = Command::new(env::current_exe()?).args([FIRST_CAPTURE, unwinder.name, &depth.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Ok(Err(format!("failed: {}", output.status)));
    }
    Ok(parse(text.trim()))
}

fn parse(line: &str) -> First {
    let mut words = line.split(' ');
    let cost = words.next().and_then(|word| word.parse().ok());
    let frames = words.next().and_then(|word| word.parse().ok());
    cost.zip(frames).ok_or_else(|| line.to_owned())
}

fn summary(unwinder: &Unwinder, firsts: &[First]) -> Entry {
    let costs = firsts.iter().flatten().map(|(cost, _)| *cost).collect::<Vec<_>>();
    let frames = firsts.iter().flatten().map(|(_, frames)| *frames).next();
    let outcome = match (firsts.iter().find_map(|first| first.as_ref().err()), median(&costs)) {
        (None, Some(cost)) => Outcome::Measured { cost, frames },
        (why, _) => Outcome::Absent(why.map_or_else(|| "not sampled".to_owned(), Clone::clone)),
    };
    Entry { peer: unwinder.name, outcome }
}

/// Runs in the child process: loads one unwinder, captures once, and prints the line that [`parse`] reads.
pub(crate) fn first_capture_here(peer: &str, depth: usize) -> io::Result<()> {
    let unwinder = peers::one(peer).ok_or_else(|| io::Error::other(format!("unknown peer {peer:?}")))?;
    let scene = Scene { driver: ffi::bench_drive_once, ..Scene::repeated(Code::WithoutFramePointers, depth, 1) };
    let results = stage::run(&scene, &[unwinder])?;
    let mut out = io::stdout().lock();
    for (_, timed) in results.timed {
        match timed {
            Ok(timed) => {
                let ns = median(&timed.samples).unwrap_or(f64::NAN);
                writeln!(out, "{:.3} {}", ns / 1000.0, timed.frames)?;
            }
            Err(why) => writeln!(out, "{why}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_reports_its_cost_or_why_it_has_none() {
        assert_eq!(parse("125.250 36"), Ok((125.25, 36)));
        assert_eq!(parse("no frames"), Err("no frames".to_owned()));
        assert_eq!(parse(""), Err(String::new()));
    }
}
