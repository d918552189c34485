//! The terminal: prepared for drawing, and restored in every case.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::crossterm::{event, execute};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::app::App;
use super::draw;
use crate::failure::Failure;

/// Returns whether to use colours; `None` if there is no terminal.
pub(super) fn colour() -> Option<bool> {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    (io::stdout().is_terminal() || io::stderr().is_terminal()).then_some(!is_plain)
}

/// Returns standard output; if it is not a terminal, standard error.
fn output() -> Box<dyn Write> {
    if io::stdout().is_terminal() { Box::new(io::stdout()) } else { Box::new(io::stderr()) }
}

/// The terminal while the view is shown. It is restored when this is dropped, and before a panic is reported.
pub(super) struct LiveScreen {
    /// Never dropped: that would show the cursor, as `leave` does, and panic if the terminal is closed.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Box<dyn Write>>>>,
}

impl LiveScreen {
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
        entered.map(|terminal| Self { terminal: ManuallyDrop::new(terminal) })
    }

    pub(super) fn draw(&mut self, app: &mut App) -> Result<(), Failure> {
        self.terminal.draw(|frame| draw::draw(frame, app)).map(|_| ()).map_err(failure)
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        leave();
        // The panic hook can't be changed during a panic.
        if !std::thread::panicking() {
            let _ = panic::take_hook();
        }
    }
}

/// The source of keys, as crossterm chooses it: standard input, or else the controlling terminal of this process.
pub(super) struct Keys {
    own_terminal: Option<File>,
}

impl Keys {
    pub(super) fn open() -> Result<Self, Failure> {
        let own_terminal = if io::stdin().is_terminal() { None } else { Some(File::open("/dev/tty")) };
        Ok(Self { own_terminal: own_terminal.transpose().map_err(failure)? })
    }

    /// Waits up to this time for a key. Fails if the terminal is closed, where crossterm would read forever.
    pub(super) fn are_there(&self, time: Duration) -> Result<bool, Failure> {
        let stdin = io::stdin();
        let terminal: BorrowedFd<'_> = self.own_terminal.as_ref().map_or_else(|| stdin.as_fd(), AsFd::as_fd);
        let mut terminal = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
        let time = Timespec::try_from(time).map_err(Failure::new)?;
        match poll(&mut terminal, Some(&time)) {
            // A signal, such as of a new window size, which is queried at each drawing.
            Err(Errno::INTR) | Ok(0) => return Ok(false),
            Err(error) => return Err(failure(error.into())),
            Ok(_) => {}
        }
        if terminal[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            return Err(Failure::new("the terminal is closed"));
        }
        event::poll(Duration::ZERO).map_err(failure)
    }
}

fn leave() {
    let _ = disable_raw_mode();
    let _ = execute!(output(), LeaveAlternateScreen, Show);
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
pub(super) fn failure(error: io::Error) -> Failure {
    Failure::new(format!("can't draw on the terminal: {error}"))
}
