//! What the calling thread has open, in each timing recording.
//!
//! The stack of the recording that was used last is at hand; those of others lie beside it. The memory is usable for as long
//! as the thread runs, also in the destructors of its thread-locals: it has none itself, and is emptied by a guard that has.
//!
//! Hot file: [`with_open_of`] neither allocates nor locks nor calls the system on a thread that has used the same recording last.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use stackweave_core::RawFrame;

use crate::gaps;
use crate::timing::engine::Engine;
use crate::timing::token::Token;
use crate::timing::when::At;

/// The phases that a thread has open in one recording.
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The recording's; 0 for none.
    key: u64,
    /// Unique among all stacks of the process; 0 for none.
    thread: u64,
    /// Outermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// Of each frame, the one that its token has.
    numbers: Vec<u64>,
    last_number: u64,
    /// Up to which gap of the recording it is known there what is open.
    pub(crate) gaps: u64,
    /// The process that it was told in.
    pub(crate) process: u32,
    /// The last time that was given on this thread.
    pub(crate) given: Option<At>,
    engine: Weak<Engine>,
}

impl Open {
    fn new(engine: &Arc<Engine>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            key: engine.key,
            thread: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            gaps: gaps(),
            process: process::id(),
            engine: Arc::downgrade(engine),
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, frame: RawFrame) -> Token {
        let depth = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.last_number += 1;
        self.frames.push(frame);
        self.numbers.push(self.last_number);
        Token { thread: self.thread, number: self.last_number, depth }
    }

    /// Whether anything was open.
    #[inline]
    pub(crate) fn pop(&mut self) -> bool {
        self.numbers.pop();
        self.frames.pop().is_some()
    }

    /// How many phases are open inside the one with this token; `None` if that is not open.
    pub(crate) fn inside(&self, token: Token) -> Option<usize> {
        let is_open = self.thread == token.thread && self.numbers.get(token.depth()) == Some(&token.number);
        is_open.then(|| self.numbers.len() - token.depth() - 1)
    }
}

#[derive(Debug, Default)]
struct Stacks {
    current: Open,
    others: Vec<Open>,
}

impl Stacks {
    const fn new() -> Self {
        let current = Open {
            key: 0,
            thread: 0,
            frames: Vec::new(),
            numbers: Vec::new(),
            last_number: 0,
            gaps: 0,
            process: 0,
            given: None,
            engine: Weak::new(),
        };
        Self { current, others: Vec::new() }
    }

    /// Makes the stack of this recording the current one. Those of recordings that are gone are dropped.
    #[cold]
    #[inline(never)]
    fn switch_to(&mut self, engine: &Arc<Engine>) {
        let found = self.others.iter_mut().find(|other| other.key == engine.key);
        if let Some(found) = found {
            return mem::swap(found, &mut self.current);
        }
        // Fails when the guard is gone: then the thread is about to end.
        let _ = AT_END.try_with(|_| ());
        let before = mem::replace(&mut self.current, Open::new(engine));
        self.others.push(before);
        self.others.retain(|other| other.engine.strong_count() > 0);
    }
}

thread_local! {
    static STACKS: RefCell<ManuallyDrop<Stacks>> = const { RefCell::new(ManuallyDrop::new(Stacks::new())) };
    static AT_END: AtEnd = const { AtEnd };
}

const _: () = assert!(!mem::needs_drop::<RefCell<ManuallyDrop<Stacks>>>(), "else it is not usable in destructors");

/// Ends what the thread has left open, and frees its stacks.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let stacks = STACKS.with(|stacks| stacks.try_borrow_mut().ok().map(|mut stacks| mem::take(&mut **stacks)));
        let Some(Stacks { current, others }) = stacks else { return };
        for mut open in others.into_iter().chain([current]) {
            if let Some(engine) = open.engine.upgrade() {
                engine.end_of_thread(&mut open);
            }
        }
    }
}

/// Calls `act` with what the thread has open in this recording. `None` if the thread is in the middle of another such call.
#[inline]
pub(crate) fn with_open_of<R>(engine: &Arc<Engine>, act: impl FnOnce(&mut Open) -> R) -> Option<R> {
    STACKS.with(|stacks| {
        let Ok(mut stacks) = stacks.try_borrow_mut() else {
            engine.counters.refused();
            return None;
        };
        if stacks.current.key != engine.key {
            stacks.switch_to(engine);
        }
        Some(act(&mut stacks.current))
    })
}

/// Calls `look` with the frames that the thread has open in this recording: none in the middle of a call of another recording.
pub(crate) fn with_frames_of<R>(engine: &Arc<Engine>, look: impl FnOnce(&[RawFrame]) -> R) -> R {
    STACKS.with(|stacks| {
        if let Ok(mut stacks) = stacks.try_borrow_mut()
            && stacks.current.key != engine.key
        {
            stacks.switch_to(engine);
        }
        match stacks.try_borrow() {
            Ok(stacks) if stacks.current.key == engine.key => look(&stacks.current.frames),
            _ => look(&[]),
        }
    })
}
