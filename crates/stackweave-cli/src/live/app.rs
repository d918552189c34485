//! What the screen shows, and what keys do to it.

use std::cmp::Reverse;
use std::path::Path;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stackweave_profile::live::FunctionRow;
use stackweave_profile::{Measure, Pattern};

use super::picture::{Picture, State, Wanted};

/// What is to be done after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Quit,
    /// The program is to be interrupted.
    Interrupt,
    /// Something else is wanted from the worker.
    Ask,
}

/// What comes first in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Own,
    Total,
    Calls,
}

/// What keys are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Table,
    /// A filter is being written.
    Filter,
    Help,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) title: String,
    pub(super) picture: Picture,
    pub(super) mode: Mode,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) wanted: Wanted,
    /// Whether the user has chosen between calls and memory.
    has_chosen: bool,
    /// The first row that is shown.
    pub(super) first: usize,
    /// How many rows fit, when they were drawn last.
    pub(super) fitting: usize,
    pub(super) colour: bool,
    /// Whether the program that is run by this command still runs; `None` if there is none.
    pub(super) program_runs: Option<bool>,
    pub(super) printed: Vec<String>,
}

impl App {
    pub(super) fn new(path: &Path, colour: bool, has_program: bool) -> Self {
        Self {
            title: super::texts::printable(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()),
            picture: Picture::default(),
            mode: Mode::Table,
            sort: Sort::Own,
            filter: String::new(),
            wanted: Wanted::default(),
            has_chosen: false,
            first: 0,
            fitting: 1,
            colour,
            program_runs: has_program.then_some(true),
            printed: Vec::new(),
        }
    }

    pub(super) fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Shows a new picture. A recording of memory alone is shown as that.
    pub(super) fn take(&mut self, picture: Option<Picture>) -> Action {
        let Some(picture) = picture else { return Action::Nothing };
        if self.wanted.is_paused {
            return Action::Nothing;
        }
        self.picture = picture;
        let shows_memory = self.picture.has_memory && !self.picture.has_calls;
        if self.has_chosen || shows_memory == self.wanted.shows_memory {
            return Action::Nothing;
        }
        self.wanted.shows_memory = shows_memory;
        Action::Ask
    }

    pub(super) fn printed(&mut self, lines: Option<Vec<String>>) {
        if let Some(lines) = lines {
            self.printed = lines;
        }
    }

    /// Whether nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        let has_ended = matches!(self.picture.state, State::Ended | State::Killed);
        let is_known = match self.program_runs {
            None => has_ended,
            Some(runs) => !runs && (has_ended || self.picture.state == State::Waiting),
        };
        is_known && self.picture.behind == 0
    }

    /// The rows that the filter lets through, in order.
    pub(super) fn rows(&self) -> Vec<&FunctionRow> {
        let all = if self.wanted.shows_memory { &self.picture.memory.rows } else { &self.picture.calls.rows };
        let pattern = Some(&self.filter).filter(|text| !text.is_empty()).and_then(|text| text.parse::<Pattern>().ok());
        let is_shown =
            |row: &&FunctionRow| pattern.as_ref().is_none_or(|pattern| pattern.matches(row.function.names()));
        let mut rows: Vec<&FunctionRow> = all.iter().filter(is_shown).collect();
        match self.sort {
            Sort::Own => rows.sort_by_key(|row| Reverse((row.cost.own, row.cost.total))),
            Sort::Total => rows.sort_by_key(|row| Reverse((row.cost.total, row.cost.own))),
            Sort::Calls => rows.sort_by_key(|row| Reverse((row.cost.calls, row.cost.own))),
        }
        rows
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') if self.program_runs == Some(true) => Action::Interrupt,
                KeyCode::Char('c') => Action::Quit,
                _ => Action::Nothing,
            };
        }
        match self.mode {
            Mode::Filter => {
                self.key_of_filter(key.code);
                Action::Nothing
            }
            Mode::Help if key.code == KeyCode::Char('q') => Action::Quit,
            Mode::Help => {
                self.mode = Mode::Table;
                Action::Nothing
            }
            Mode::Table => self.key_of_table(key.code),
        }
    }

    fn key_of_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = Mode::Table,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::Table;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.first = 0;
    }

    fn key_of_table(&mut self, code: KeyCode) -> Action {
        match code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('s') => self.order_by(Sort::Own),
            KeyCode::Char('t') => self.order_by(Sort::Total),
            KeyCode::Char('c' | 'b') => self.order_by(Sort::Calls),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p' | ' ') => return self.ask(|wanted| wanted.is_paused ^= true),
            KeyCode::Char('h') => return self.ask(|wanted| wanted.show_all ^= true),
            KeyCode::Char('l') => return self.ask(|wanted| wanted.measure = Measure::LiveBytes),
            KeyCode::Char('a') => return self.ask(|wanted| wanted.measure = Measure::AllocatedBytes),
            KeyCode::Char('k') => return self.ask(|wanted| wanted.measure = Measure::PeakBytes),
            KeyCode::Tab if self.picture.has_calls && self.picture.has_memory => {
                (self.has_chosen, self.first) = (true, 0);
                return self.ask(|wanted| wanted.shows_memory ^= true);
            }
            KeyCode::Down => self.first = self.first.saturating_add(1),
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first = self.first.saturating_add(self.fitting),
            KeyCode::PageUp => self.first = self.first.saturating_sub(self.fitting),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = usize::MAX,
            _ => {}
        }
        Action::Nothing
    }

    fn order_by(&mut self, sort: Sort) {
        (self.sort, self.first) = (sort, 0);
    }

    fn ask(&mut self, change: impl FnOnce(&mut Wanted)) -> Action {
        change(&mut self.wanted);
        Action::Ask
    }
}
