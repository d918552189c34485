//! The state of the live view, and the actions of keys.

use std::cmp::Reverse;
use std::path::Path;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use stackweave_profile::live::TopRow;
use stackweave_profile::{Measure, Pattern};

use super::snapshot::{LiveSnapshot, RecordingState, ViewOptions};

/// The action after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Nothing,
    Quit,
    /// Interrupt the program.
    Interrupt,
    /// Send the changed options to the worker.
    UpdateOptions,
}

/// The column that the table is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveSort {
    SelfCost,
    Total,
    Calls,
}

/// The mode of the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyboardMode {
    Table,
    /// A filter is being typed.
    Filter,
    Help,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) title: String,
    pub(super) snapshot: LiveSnapshot,
    pub(super) mode: KeyboardMode,
    pub(super) sort: LiveSort,
    pub(super) filter: String,
    pub(super) options: ViewOptions,
    /// Whether the user has switched between calls and memory.
    has_chosen: bool,
    /// The first row that is shown.
    pub(super) first: usize,
    /// The number of rows that fitted when they were last drawn.
    pub(super) fitting: usize,
    pub(super) colour: bool,
    /// Whether the program that this command runs is still running; `None` if it runs none.
    pub(super) program_runs: Option<bool>,
    pub(super) output: Vec<String>,
}

impl App {
    pub(super) fn new(path: &Path, colour: bool, has_program: bool) -> Self {
        Self {
            title: super::format::printable(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()),
            snapshot: LiveSnapshot::default(),
            mode: KeyboardMode::Table,
            sort: LiveSort::SelfCost,
            filter: String::new(),
            options: ViewOptions::default(),
            has_chosen: false,
            first: 0,
            fitting: 1,
            colour,
            program_runs: has_program.then_some(true),
            output: Vec::new(),
        }
    }

    pub(super) fn options(&self) -> ViewOptions {
        self.options
    }

    /// Shows a new snapshot. A recording that has only memory is shown as memory.
    pub(super) fn take(&mut self, snapshot: Option<LiveSnapshot>) -> KeyAction {
        let Some(snapshot) = snapshot else { return KeyAction::Nothing };
        if self.options.is_paused {
            return KeyAction::Nothing;
        }
        self.snapshot = snapshot;
        let shows_memory = self.snapshot.has_memory && !self.snapshot.has_calls;
        if self.has_chosen || shows_memory == self.options.shows_memory {
            return KeyAction::Nothing;
        }
        self.options.shows_memory = shows_memory;
        KeyAction::UpdateOptions
    }

    pub(super) fn set_output(&mut self, lines: Option<Vec<String>>) {
        if let Some(lines) = lines {
            self.output = lines;
        }
    }

    /// Returns whether nothing more will be recorded.
    pub(super) fn is_over(&self) -> bool {
        let has_ended = matches!(self.snapshot.state, RecordingState::Ended | RecordingState::Killed);
        let is_known = match self.program_runs {
            None => has_ended,
            Some(runs) => !runs && (has_ended || self.snapshot.state == RecordingState::Waiting),
        };
        is_known && self.snapshot.behind == 0
    }

    /// Returns the rows that match the filter, sorted.
    pub(super) fn rows(&self) -> Vec<&TopRow> {
        let all = if self.options.shows_memory { &self.snapshot.memory.rows } else { &self.snapshot.calls.rows };
        let pattern = Some(&self.filter).filter(|text| !text.is_empty()).and_then(|text| text.parse::<Pattern>().ok());
        let is_shown = |row: &&TopRow| pattern.as_ref().is_none_or(|pattern| pattern.matches(row.function.names()));
        let mut rows: Vec<&TopRow> = all.iter().filter(is_shown).collect();
        match self.sort {
            LiveSort::SelfCost => rows.sort_by_key(|row| Reverse((row.cost.self_cost, row.cost.total))),
            LiveSort::Total => rows.sort_by_key(|row| Reverse((row.cost.total, row.cost.self_cost))),
            LiveSort::Calls => rows.sort_by_key(|row| Reverse((row.cost.calls, row.cost.self_cost))),
        }
        rows
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> KeyAction {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') if self.program_runs == Some(true) => KeyAction::Interrupt,
                KeyCode::Char('c') => KeyAction::Quit,
                _ => KeyAction::Nothing,
            };
        }
        match self.mode {
            KeyboardMode::Filter => {
                self.key_of_filter(key.code);
                KeyAction::Nothing
            }
            KeyboardMode::Help if key.code == KeyCode::Char('q') => KeyAction::Quit,
            KeyboardMode::Help => {
                self.mode = KeyboardMode::Table;
                KeyAction::Nothing
            }
            KeyboardMode::Table => self.key_of_table(key.code),
        }
    }

    fn key_of_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.mode = KeyboardMode::Table,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = KeyboardMode::Table;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.first = 0;
    }

    fn key_of_table(&mut self, code: KeyCode) -> KeyAction {
        match code {
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('s') => self.order_by(LiveSort::SelfCost),
            KeyCode::Char('t') => self.order_by(LiveSort::Total),
            KeyCode::Char('c' | 'b') => self.order_by(LiveSort::Calls),
            KeyCode::Char('/') => self.mode = KeyboardMode::Filter,
            KeyCode::Char('?') => self.mode = KeyboardMode::Help,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('p' | ' ') => return self.update(|options| options.is_paused ^= true),
            KeyCode::Char('h') => return self.update(|options| options.show_all ^= true),
            KeyCode::Char('l') => return self.update(|options| options.measure = Measure::LiveBytes),
            KeyCode::Char('a') => return self.update(|options| options.measure = Measure::AllocatedBytes),
            KeyCode::Char('k') => return self.update(|options| options.measure = Measure::PeakBytes),
            KeyCode::Tab if self.snapshot.has_calls && self.snapshot.has_memory => {
                (self.has_chosen, self.first) = (true, 0);
                return self.update(|options| options.shows_memory ^= true);
            }
            KeyCode::Down => self.first = self.first.saturating_add(1),
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first = self.first.saturating_add(self.fitting),
            KeyCode::PageUp => self.first = self.first.saturating_sub(self.fitting),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = usize::MAX,
            _ => {}
        }
        KeyAction::Nothing
    }

    fn order_by(&mut self, sort: LiveSort) {
        (self.sort, self.first) = (sort, 0);
    }

    fn update(&mut self, change: impl FnOnce(&mut ViewOptions)) -> KeyAction {
        change(&mut self.options);
        KeyAction::UpdateOptions
    }
}
