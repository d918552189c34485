//! A progress bar for long work, on a terminal.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt;

/// Work that finishes sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(700);
const EVERY: Duration = Duration::from_millis(100);

/// A bar on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    total: u64,
    began: Instant,
    shown: Option<Instant>,
    bar: Option<ProgressBar>,
    is_terminal: bool,
}

impl Progress {
    /// Starts to measure work on a number of bytes.
    pub(crate) fn new(label: &'static str, total: u64) -> Self {
        let is_terminal = io::stderr().is_terminal();
        if is_terminal {
            interrupt::watch();
        }
        Self { label, total, began: Instant::now(), shown: None, bar: None, is_terminal }
    }

    /// Reports how many bytes are done.
    pub(crate) fn at(&mut self, done: u64) {
        if !self.is_terminal || self.began.elapsed() < PATIENCE || self.shown.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.shown = Some(Instant::now());
        interrupt::has_bar(true);
        self.bar.get_or_insert_with(|| bar(self.label, self.total)).set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
            interrupt::has_bar(false);
        }
    }
}

fn bar(label: &'static str, total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let template = "{msg} [{bar:30}] {bytes} of {total_bytes}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(label);
    bar
}
