//! Phases at explicit times: for custom clocks, replays and tests.

use std::sync::Arc;

use stackweave_core::{RawFrame, StackId};

use crate::timing::engine::{self, PhaseDetails, TimingEngine};
use crate::timing::event_time::GivenTime;
use crate::timing::token::{Outcome, Token};

/// A [`Timing`](crate::timing::Timing) at one given time.
#[derive(Clone, Copy, Debug)]
pub struct TimingAt<'a> {
    pub(crate) engine: &'a Arc<TimingEngine>,
    pub(crate) at: GivenTime,
}

impl TimingAt<'_> {
    /// See [`Timing::push`](crate::timing::Timing::push).
    pub fn push(self, frame: RawFrame) -> Token {
        engine::begin(self.engine, self.at, frame, PhaseDetails::Nothing)
    }

    /// See [`Timing::push_code`](crate::timing::Timing::push_code).
    pub fn push_code(self, frame: RawFrame, bytecode_count: u64, inline_depth: u64) -> Token {
        engine::begin(self.engine, self.at, frame, PhaseDetails::Code { bytecode_count, inline_depth })
    }

    /// See [`Timing::push_with`](crate::timing::Timing::push_with).
    pub fn push_with(self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(self.engine, self.at, frame, PhaseDetails::json(json))
    }

    /// See [`Timing::push_run`](crate::timing::Timing::push_run).
    pub fn push_run(self, frame: RawFrame, json: &[u8]) -> Token {
        engine::begin(self.engine, self.at, frame, PhaseDetails::Run(json))
    }

    /// See [`Timing::pop`](crate::timing::Timing::pop).
    pub fn pop(self) -> bool {
        self.pop_with(Outcome::Done, &[])
    }

    /// See [`Timing::pop_with`](crate::timing::Timing::pop_with).
    pub fn pop_with(self, outcome: Outcome, json: &[u8]) -> bool {
        let is_open = self.pop_if_open_with(outcome, json);
        if !is_open {
            self.unmatched_pop(None, None);
        }
        is_open
    }

    /// See [`Timing::pop_if_open`](crate::timing::Timing::pop_if_open).
    pub fn pop_if_open(self) -> bool {
        self.pop_if_open_with(Outcome::Done, &[])
    }

    /// See [`Timing::pop_if_open_with`](crate::timing::Timing::pop_if_open_with).
    pub fn pop_if_open_with(self, outcome: Outcome, json: &[u8]) -> bool {
        engine::end(self.engine, self.at, outcome, json)
    }

    /// See [`Timing::unmatched_pop`](crate::timing::Timing::unmatched_pop).
    pub fn unmatched_pop(self, call_site: Option<RawFrame>, stack: Option<StackId>) {
        self.engine.unmatched_pop(self.at, call_site, stack);
    }

    /// See [`Timing::close`](crate::timing::Timing::close).
    pub fn close(self, token: Token, outcome: Outcome, json: &[u8]) -> bool {
        engine::close(self.engine, self.at, token, (outcome, json))
    }

    /// See [`Timing::forked`](crate::timing::Timing::forked).
    pub fn forked(self) {
        engine::catch_up(self.engine, self.at);
    }
}
