//! The open phases of the calling thread, in each timing recording.
//!
//! The stack of the most recent recording is directly accessible; the stacks of other recordings are in a list. The memory is
//! usable until the thread ends, also in destructors of thread-locals: it has no destructor, and a guard with one empties it.
//!
//! Hot file: [`with_open_phases`] neither allocates nor locks nor makes system calls while a thread uses the same recording.

use std::cell::RefCell;
use std::mem::{self, ManuallyDrop};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use stackweave_core::RawFrame;

use crate::gap_count;
use crate::timing::engine::TimingEngine;
use crate::timing::event_time::GivenTime;
use crate::timing::token::Token;

/// The phases that a thread has open in one recording.
#[derive(Debug, Default)]
pub(crate) struct OpenPhases {
    /// The key of the recording's engine; 0 for none.
    key: u64,
    /// Unique among all stacks of the process; 0 for none.
    thread: u64,
    /// The frames of the open phases, outermost first.
    pub(crate) frames: Vec<RawFrame>,
    /// The number in the token of each frame.
    numbers: Vec<u64>,
    last_number: u64,
    /// The recording's number of gaps when the open phases were recorded last.
    pub(crate) gaps: u64,
    /// The process that recorded them.
    pub(crate) process: u32,
    /// The last time that the program gave on this thread.
    pub(crate) given: Option<GivenTime>,
    engine: Weak<TimingEngine>,
}

impl OpenPhases {
    fn new(engine: &Arc<TimingEngine>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self {
            key: engine.key,
            thread: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            gaps: gap_count(),
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

    /// Pops the innermost phase. Returns whether one was open.
    #[inline]
    pub(crate) fn pop(&mut self) -> bool {
        self.numbers.pop();
        self.frames.pop().is_some()
    }

    /// Returns the number of phases inside the one with this token; `None` if that is not open.
    pub(crate) fn inside(&self, token: Token) -> Option<usize> {
        let is_open = self.thread == token.thread && self.numbers.get(token.depth()) == Some(&token.number);
        is_open.then(|| self.numbers.len() - token.depth() - 1)
    }
}

#[derive(Debug, Default)]
struct Stacks {
    current: OpenPhases,
    others: Vec<OpenPhases>,
}

impl Stacks {
    const fn new() -> Self {
        let current = OpenPhases {
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

    /// Makes the stack of this recording the current one. Drops the stacks of recordings that have ended.
    #[cold]
    #[inline(never)]
    fn switch_to(&mut self, engine: &Arc<TimingEngine>) {
        let found = self.others.iter_mut().find(|other| other.key == engine.key);
        if let Some(found) = found {
            return mem::swap(found, &mut self.current);
        }
        // Fails if the guard is already destroyed: then the thread is about to end.
        let _ = THREAD_END.try_with(|_| ());
        let before = mem::replace(&mut self.current, OpenPhases::new(engine));
        self.others.push(before);
        self.others.retain(|other| other.engine.strong_count() > 0);
    }
}

thread_local! {
    static STACKS: RefCell<ManuallyDrop<Stacks>> = const { RefCell::new(ManuallyDrop::new(Stacks::new())) };
    static THREAD_END: ThreadEnd = const { ThreadEnd };
}

const _: () = assert!(!mem::needs_drop::<RefCell<ManuallyDrop<Stacks>>>(), "destructors could not use it otherwise");

/// Ends the open phases of the thread, and frees its stacks.
struct ThreadEnd;

impl Drop for ThreadEnd {
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

/// Calls `act` with the open phases of the thread in this recording. Returns `None` if it interrupts another such call.
#[inline]
pub(crate) fn with_open_phases<R>(engine: &Arc<TimingEngine>, act: impl FnOnce(&mut OpenPhases) -> R) -> Option<R> {
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

/// Calls `read` with the frames of the open phases in this recording; with none if it interrupts a call of another recording.
pub(crate) fn with_open_frames<R>(engine: &Arc<TimingEngine>, read: impl FnOnce(&[RawFrame]) -> R) -> R {
    STACKS.with(|stacks| {
        if let Ok(mut stacks) = stacks.try_borrow_mut()
            && stacks.current.key != engine.key
        {
            stacks.switch_to(engine);
        }
        match stacks.try_borrow() {
            Ok(stacks) if stacks.current.key == engine.key => read(&stacks.current.frames),
            _ => read(&[]),
        }
    })
}
