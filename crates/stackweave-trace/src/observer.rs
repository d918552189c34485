//! Who is told of calls: what happens most, done in few instructions; all else is left to the engine.
//!
//! Hot file: [`Observer::enter`] and [`Observer::leave`] neither allocate nor lock nor call the system nor run Python code
//! when the function has been seen before, but where a recorder's buffer is full. The GIL is held, and an exception of the
//! program's may be set, which stays as it is.

use stackweave_core::{Call, CodeId};
use stackweave_cpython::calls::{CallFrame, CallObserver, Entering, Leaving, Verdict, known_code};

use crate::blocks::{self, Block};
use crate::codes::State;
use crate::entry::{Entry, Form, Status};
use crate::session::{self, Session};

/// How often a thread's name is looked for.
const NAME_ATTEMPTS: u32 = 64;
/// From that many open calls on: before, a thread that has just begun has no name.
const NAMED_FROM: usize = 2;

/// Is told of calls. `LIMITED`: there are limits to what is recorded, and times to be looked at.
#[derive(Debug)]
pub(crate) struct Observer<const LIMITED: bool>;

impl<const LIMITED: bool> CallObserver for Observer<LIMITED> {
    #[inline(always)]
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
        if !LIMITED
            && let Some(block) = blocks::of_this_thread()
            // SAFETY: an event comes with the GIL held.
            && let Some(session) = unsafe { session::current() }
            && enter_at_once(block, session, entering, frame)
        {
            return Verdict::Tell;
        }
        enter(entering, frame)
    }

    #[inline(always)]
    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
        if !LIMITED
            && let Some(block) = blocks::of_this_thread()
            // SAFETY: as above.
            && let Some(session) = unsafe { session::current() }
            && leave_at_once(block, session, leaving, frame)
        {
            return Verdict::Tell;
        }
        leave(leaving, frame)
    }

    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F) {
        // SAFETY: as above.
        let Some((block, session)) = (unsafe { here() }) else { return };
        // SAFETY: the mechanism tells of such objects only.
        if let Some(call) = unsafe { session.native(callable) } {
            session.on(block, |engine| engine.enter_native(call, frame));
        }
    }

    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F) {
        // SAFETY: as above.
        let Some((block, session)) = (unsafe { here() }) else { return };
        session.on(block, |engine| engine.leave_native(raised, frame));
    }
}

/// The common case: the caller is the innermost frame that is open, and the function is known.
#[inline(always)]
fn enter_at_once<F: CallFrame>(block: &Block, session: &Session, entering: Entering, frame: F) -> bool {
    let shadow = &block.thread.shadow;
    let top = shadow.top();
    if !shadow.has_room() {
        return false;
    }
    let Some(code) = known_code(frame.code()) else { return false };
    let Some(mut call) = Call::to_code(code) else { return false };
    match frame.caller_at(top.frame()) {
        Some(caller) if top.code != 0 => {
            let Some(code) = CodeId::new(top.code) else { return false };
            call = call.from(code, caller.unit());
        }
        _ => {
            let Some(with_caller) = call_from_far(call, top, frame) else { return false };
            call = with_caller;
        }
    }
    let (call, key) = (call.to_bits(), frame.address());
    let (recorder, kinds) = (&session.recorder, &session.hot_kinds);
    let form = match (session.codes.state(code.get()), entering) {
        (State::Plain, Entering::Call) => {
            recorder.record_fixed(kinds.call, [call]);
            Form::Call
        }
        (State::Generator, Entering::Call) => {
            recorder.record_fixed(kinds.generator, [call, key]);
            Form::Generator
        }
        (State::Generator | State::Coroutine, Entering::Resume | Entering::Throw) if !block.thread.has_away() => {
            recorder.record_fixed(kinds.resume, [call, key]);
            Form::Resumed
        }
        _ => return false,
    };
    shadow.push_if_room(Entry { key, call, began: 0, code: code.get(), form, status: Status::Written });
    block.calls.set(block.calls.get() + 1);
    true
}

/// The caller is behind native code, or there is none. `None` if it is not the innermost frame that is open.
#[inline(never)]
fn call_from_far<F: CallFrame>(call: Call, top: &Entry, frame: F) -> Option<Call> {
    let caller = frame.caller();
    if top.frame() != caller.map_or(0, F::address) {
        return None;
    }
    Some(match (caller, CodeId::new(top.code)) {
        (Some(caller), Some(code)) => call.from(code, caller.unit()),
        _ => call,
    })
}

/// The common case: the frame is the innermost that is open, and nothing is open in it.
#[inline(always)]
fn leave_at_once<F: CallFrame>(block: &Block, session: &Session, leaving: Leaving, frame: F) -> bool {
    let top = block.thread.shadow.top();
    if top.key != frame.address() || !top.is_written() {
        return false;
    }
    session.recorder.record_fixed(session.hot_kinds.ends[leaving as usize], []);
    block.thread.shadow.pop_written();
    true
}

/// The trace, and the block of this thread, unless nothing is to be told.
///
/// # Safety
/// The GIL is held, and kept as long as this is used.
pub(crate) unsafe fn here() -> Option<(&'static Block, &'static Session)> {
    // SAFETY: passed on to the caller.
    let session = unsafe { session::current() }.filter(|session| !session.is_paused.get())?;
    // SAFETY: passed on to the caller.
    let block = blocks::of_this_thread().unwrap_or_else(|| unsafe { first_of_thread(session) });
    if block.thread.shadow.is_asleep() {
        return None;
    }
    if !block.thread.shadow.is_followed() {
        first_of_session(block, session);
    }
    Some((block, session))
}

/// # Safety
/// The GIL is held.
#[cold]
unsafe fn first_of_thread(session: &Session) -> &'static Block {
    // SAFETY: passed on to the caller; a thread that has ended has no references to its block.
    unsafe {
        blocks::sweep(|ended| session.end_thread(ended));
        blocks::make_for_this_thread()
    }
}

/// A thread's first event in a trace, or after a pause.
#[cold]
fn first_of_session(block: &Block, session: &Session) {
    block.set_recorder(Some(&session.recorder));
    if session.name_thread() {
        block.name_attempts.set(0);
        block.thread.shadow.lift_limit();
    } else {
        block.name_attempts.set(NAME_ATTEMPTS);
        block.thread.shadow.set_limit(NAMED_FROM);
    }
}

/// A thread that has begun lately may have got its name.
fn look_for_name(block: &Block, session: &Session) {
    let left = block.name_attempts.get();
    if left == 0 || block.thread.shadow.has_room() && block.thread.shadow.len() <= NAMED_FROM {
        return;
    }
    let is_named = session.name_thread();
    block.name_attempts.set(if is_named { 0 } else { left - 1 });
    if block.name_attempts.get() == 0 {
        block.thread.shadow.lift_limit();
    }
}

#[cold]
#[inline(never)]
fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
    // SAFETY: an event comes with the GIL held, which is given away only where the thread's mark says so.
    let Some((block, session)) = (unsafe { here() }) else { return Verdict::Tell };
    look_for_name(block, session);
    let verdict = session.on(block, |engine| engine.enter(entering, frame));
    let top = *block.thread.shadow.top();
    if verdict == Verdict::Tell {
        block.calls.set(block.calls.get() + u64::from(top.is_written()));
        let is_coroutine = entering == Entering::Call && session.codes.state(top.code) == State::Coroutine;
        if is_coroutine && session.tasks && top.is_written() && is_outermost(block) {
            session.name_task(top.key);
        }
    }
    verdict
}

/// Whether the innermost frame is a coroutine that no other runs.
fn is_outermost(block: &Block) -> bool {
    let shadow = &block.thread.shadow;
    let around = (1..shadow.len()).rev().map(|place| shadow.at(place)).find(Entry::is_frame);
    !around.is_some_and(|entry| matches!(entry.form, Form::Generator | Form::Resumed))
}

#[cold]
#[inline(never)]
fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
    // SAFETY: as in `enter`.
    let Some((block, session)) = (unsafe { here() }) else { return Verdict::Tell };
    session.on(block, |engine| engine.leave(leaving, frame))
}
