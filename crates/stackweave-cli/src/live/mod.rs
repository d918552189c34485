//! `stackweave live`: shows a recording while it is made.

mod app;
mod draw;
mod draw_rows;
mod figures;
mod followed_files;
mod format;
mod native_naming;
mod processes;
mod program_output;
mod signals;
mod snapshot;
mod terminal;
#[cfg(test)]
mod tests;
mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::failure::Failure;
use app::{App, KeyAction};
use program_output::ProgramOutput;
use signals::Signals;
use terminal::{Keys, LiveScreen};
use worker::Worker;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stackweave trace --live train.py     run a program, and watch it
  stackweave live run.swv              watch a recording that any process writes
  stackweave live run.swv              wait for a recording that does not exist yet

Keys: s self, t total, c calls; / filter, h internals, Tab calls or memory, p pause, ? help, q quit.
A recording that keeps the last moments only (--ring) is written at its end: until then there is nothing to see.")]
pub(crate) struct Live {
    /// The recording: a file (.swv) that grows, or does not exist yet. Files of forked processes beside it are included
    pub(crate) recording: PathBuf,
    /// Seconds between refreshes
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) refresh: f64,
    /// The program that this command runs, which gets Ctrl-C
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) program: Option<u32>,
    /// The device and inode of an older file that will be replaced
    #[arg(long, value_name = "DEVICE:INODE", hide = true, value_parser = identity)]
    pub(crate) old: Option<(u64, u64)>,
    /// Files with the output of the program
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) printed: Vec<PathBuf>,
}

fn identity(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once(':').and_then(|(device, inode)| Some((device.parse().ok()?, inode.parse().ok()?)));
    numbers.ok_or_else(|| "write two numbers".to_owned())
}

/// Keys are handled within this time.
const TICK: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &Live) -> Result<(), Failure> {
    let Some(colour) = terminal::colour() else {
        return Err(Failure::new("live draws on a terminal, and neither standard output nor error is one"));
    };
    let worker = Worker::start(&arguments.recording, arguments.old, Duration::from_secs_f64(arguments.refresh))?;
    let signals = Signals::watch(arguments.program.is_some())?;
    let keys = Keys::open()?;
    let mut screen = LiveScreen::enter()?;
    let mut app = App::new(&arguments.recording, colour, arguments.program.is_some());
    let mut printed = ProgramOutput::new(&arguments.printed);
    let result = show((&mut screen, &keys), &mut app, &worker, (&signals, &mut printed, arguments.program));
    drop(screen);
    drop(worker);
    let signal = signals.caught();
    drop(signals);
    // Without a program, the view ends by the signal.
    if let (Some(signal), None) = (signal, arguments.program) {
        signals::end_by(signal);
    }
    result
}

/// Shows the view until the user or a signal ends it.
fn show(
    (screen, keys): (&mut LiveScreen, &Keys),
    app: &mut App,
    worker: &Worker,
    (signals, printed, program): (&Signals, &mut ProgramOutput, Option<u32>),
) -> Result<(), Failure> {
    let mut last_update: Option<Instant> = None;
    while signals.caught().is_none() {
        if last_update.is_none_or(|at| at.elapsed() >= TICK) {
            last_update = Some(Instant::now());
            app.program_runs = program.map(processes::is_running);
            app.set_output(printed.read_new());
        }
        if app.take(worker.newest()?) == KeyAction::UpdateOptions {
            worker.set_options(app.options());
        }
        screen.draw(app)?;
        let mut is_key = keys.are_there(TICK)?;
        while is_key {
            match event::read().map_err(terminal::failure)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match app.key(key) {
                    KeyAction::Quit => return Ok(()),
                    KeyAction::Interrupt => processes::interrupt_group(),
                    KeyAction::UpdateOptions => worker.set_options(app.options()),
                    KeyAction::Nothing => {}
                },
                _ => {}
            }
            is_key = event::poll(Duration::ZERO).map_err(terminal::failure)?;
        }
    }
    Ok(())
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
    if (0.1..=3600.0).contains(&value) { Ok(value) } else { Err("write a number from 0.1 to 3600".to_owned()) }
}
