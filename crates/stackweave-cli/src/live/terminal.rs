//! The terminal, taken for the time that something is drawn on it, and given back whatever happens.

use std::io::{self, IsTerminal, Write};
use std::panic;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use super::app::App;
use super::draw;
use crate::failure::Failure;

/// Whether colours are shown; `None` if there is no terminal to draw on.
pub(super) fn colour() -> Option<bool> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    (io::stdout().is_terminal() || io::stderr().is_terminal()).then_some(!is_plain)
}

/// Standard output; if that goes elsewhere, standard error.
fn output() -> Box<dyn Write> {
    if io::stdout().is_terminal() { Box::new(io::stdout()) } else { Box::new(io::stderr()) }
}

/// What is drawn on. The terminal is as it was before once this is dropped, and before a panic is told.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Box<dyn Write>>>,
}

impl Screen {
    pub(super) fn enter() -> Result<Self, Failure> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave();
            before(info);
        }));
        enable_raw_mode().map_err(failure)?;
        let entered = execute!(output(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(output())))
            .map_err(failure);
        if entered.is_err() {
            leave();
        }
        entered.map(|terminal| Self { terminal })
    }

    pub(super) fn draw(&mut self, app: &mut App) -> Result<(), Failure> {
        self.terminal.draw(|frame| draw::draw(frame, app)).map(|_| ()).map_err(failure)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
        // A hook can't be changed while a panic is under way.
        if !std::thread::panicking() {
            let _ = panic::take_hook();
        }
    }
}

fn leave() {
    let _ = disable_raw_mode();
    let _ = execute!(output(), LeaveAlternateScreen, Show);
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
pub(super) fn failure(error: io::Error) -> Failure {
    Failure::new(format!("can't draw on the terminal: {error}"))
}
