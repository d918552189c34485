//! Who is told of calls: what happens most, done in few instructions; all else is left to the engine.
//!
//! Hot file: [`Observer::enter`] and [`Observer::leave`] neither allocate nor lock nor call the system nor run Python code
//! when the function has been seen before, but where a recorder's buffer is full. The GIL is held, and an exception of the
//! program's may be set, which stays as it is.

use stackweave_core::{BlobId, Call, CodeId};
use stackweave_cpython::calls::{CallFrame, CallObserver, Entering, Leaving, Verdict, known_code, native_definition};

use crate::blocks::{self, Block};
use crate::codes::State;
use crate::engine::Library;
use crate::entry::{Entry, Form, INSIDE, Status};
use crate::session::{self, Session};
use crate::shadow::Shadow;

/// How often a thread's name is looked for.
const NAME_ATTEMPTS: u32 = 64;
/// From that many open calls on: before, a thread that has just begun has no name.
const NAMED_FROM: usize = 2;

/// All is recorded.
pub(crate) const PLAIN: u8 = 0;
/// All is recorded, and its time is looked at.
pub(crate) const TIMED: u8 = 1;
/// There are limits to what is recorded.
pub(crate) const LIMITED: u8 = 2;

/// Is told of calls, in one of three ways.
#[derive(Debug)]
pub(crate) struct Observer<const WAY: u8>;

impl<const WAY: u8> CallObserver for Observer<WAY> {
    #[inline(always)]
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
        // SAFETY: an event comes with the GIL held.
        let Some(session) = (unsafe { session::current() }) else { return Verdict::Tell };
        if let Some(code) = known_code(frame.code()) {
            let state = session.codes.state(code.get());
            if !state.is_recorded() {
                return Verdict::Disable;
            }
            if WAY != LIMITED
                && let Some(block) = blocks::of_this_thread()
                && enter_at_once::<WAY, F>(block, session, (code, state, entering), frame)
            {
                return Verdict::Tell;
            }
        }
        enter(entering, frame)
    }

    #[inline(always)]
    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
        if let Some(block) = blocks::of_this_thread()
            // SAFETY: as above.
            && let Some(session) = unsafe { session::current() }
        {
            if block.thread.shadow.top().key == frame.address() {
                if WAY != LIMITED && leave_at_once::<WAY>(block, session, leaving) {
                    return Verdict::Tell;
                }
            } else if known_code(frame.code()).is_some_and(|code| session.codes.is_over(code.get())) {
                return Verdict::Disable;
            }
        }
        leave(leaving, frame)
    }

    #[inline(always)]
    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F) {
        if WAY == LIMITED || !enter_native_at_once::<WAY, F>(callable, frame) {
            enter_native(callable, frame);
        }
    }

    #[inline(always)]
    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F) {
        if WAY == LIMITED || !leave_native_at_once::<WAY, F>(raised, frame) {
            leave_native(raised, frame);
        }
    }
}

/// The common case: the caller is the innermost frame that is open.
#[inline(always)]
fn enter_at_once<const WAY: u8, F: CallFrame>(
    block: &Block,
    session: &Session,
    (code, state, entering): (CodeId, State, Entering),
    frame: F,
) -> bool {
    let shadow = &block.thread.shadow;
    let top = shadow.top();
    if !shadow.has_room() {
        return false;
    }
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
    let (form, began) = match (state, entering) {
        (State::Plain, Entering::Call) => (Form::Call, recorder.record_fixed(kinds.call, [call])),
        // A coroutine that no other runs may be a task's, which is asked for its name.
        (State::Coroutine, Entering::Call) if matches!(top.form, Form::Generator | Form::Resumed) => {
            (Form::Generator, recorder.record_fixed(kinds.generator, [call, key]))
        }
        (State::Generator, Entering::Call) => (Form::Generator, recorder.record_fixed(kinds.generator, [call, key])),
        (State::Generator | State::Coroutine, Entering::Resume | Entering::Throw) if !block.thread.has_away() => {
            (Form::Resumed, recorder.record_fixed(kinds.resume, [call, key]))
        }
        _ => return false,
    };
    let entry = Entry { key, call, code: code.get(), form, status: Status::Written, began, inside: 0 };
    push::<WAY>(shadow, entry);
    block.calls.set(block.calls.get() + 1);
    true
}

#[inline(always)]
fn push<const WAY: u8>(shadow: &Shadow, entry: Entry) {
    if WAY == TIMED {
        shadow.push_written::<true>(entry);
    } else {
        shadow.push_written::<false>(entry);
    }
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
fn leave_at_once<const WAY: u8>(block: &Block, session: &Session, leaving: Leaving) -> bool {
    let shadow = &block.thread.shadow;
    let top = *shadow.top();
    if !top.is_written() || (WAY == TIMED && !session.codes.state(top.code).is_recorded()) {
        return false;
    }
    let ticks = session.recorder.record_fixed(session.hot_kinds.ends[leaving as usize], []);
    shadow.pop_written();
    if WAY == TIMED {
        let took = ticks.saturating_sub(top.began);
        shadow.add_inside(took);
        let calls = session.judged_after().unwrap_or(u32::MAX);
        if let Some(timing) = session.codes.time(top.code, took.saturating_sub(top.inside), calls) {
            session.judge(top.code, timing);
        }
    }
    true
}

/// The common case: the frame that calls is the innermost that is open, and the native function is known.
#[inline(always)]
fn enter_native_at_once<const WAY: u8, F: CallFrame>(callable: u64, frame: F) -> bool {
    let Some(block) = blocks::of_this_thread() else { return false };
    // SAFETY: an event comes with the GIL held.
    let Some(session) = (unsafe { session::current() }) else { return true };
    let shadow = &block.thread.shadow;
    let top = shadow.top();
    if top.frame() != frame.address() || !shadow.has_room() {
        return false;
    }
    // SAFETY: the mechanism tells of such objects only.
    let known = session.natives.get(unsafe { native_definition(callable) });
    let (Some(call), Some(code)) = (known.and_then(BlobId::new).and_then(Call::to_label), CodeId::new(top.code)) else {
        return false;
    };
    let call = call.from(code, frame.unit()).to_bits();
    let began = session.recorder.record_fixed(session.hot_kinds.native, [call]);
    let (key, form, code) = (top.key | INSIDE, Form::Native, top.code);
    push::<WAY>(shadow, Entry { key, call, code, form, status: Status::Written, began, inside: 0 });
    block.native_calls.set(block.native_calls.get() + 1);
    true
}

#[inline(always)]
fn leave_native_at_once<const WAY: u8, F: CallFrame>(raised: bool, frame: F) -> bool {
    let Some(block) = blocks::of_this_thread() else { return false };
    // SAFETY: an event comes with the GIL held.
    let Some(session) = (unsafe { session::current() }) else { return true };
    let top = *block.thread.shadow.top();
    if top.key != frame.address() | INSIDE || top.form != Form::Native || !top.is_written() {
        return false;
    }
    let how = if raised { Leaving::Raise } else { Leaving::Return };
    let ticks = session.recorder.record_fixed(session.hot_kinds.ends[how as usize], []);
    block.thread.shadow.pop_written();
    if WAY == TIMED {
        block.thread.shadow.add_inside(ticks.saturating_sub(top.began));
    }
    true
}

#[cold]
#[inline(never)]
fn enter_native<F: CallFrame>(callable: u64, frame: F) {
    // SAFETY: an event comes with the GIL held.
    let Some((block, session)) = (unsafe { here() }) else { return };
    // SAFETY: the mechanism tells of such objects only.
    if let Some(call) = unsafe { session.native(callable) } {
        session.on(block, |engine| engine.enter_native(call, frame));
        let top = *block.thread.shadow.top();
        let is_recorded = top.key == frame.address() | INSIDE && top.form == Form::Native && top.is_written();
        block.native_calls.set(block.native_calls.get() + u64::from(is_recorded));
    }
}

#[cold]
#[inline(never)]
fn leave_native<F: CallFrame>(raised: bool, frame: F) {
    // SAFETY: an event comes with the GIL held.
    let Some((block, session)) = (unsafe { here() }) else { return };
    session.on(block, |engine| engine.leave_native(raised, frame));
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
