//! The observer of calls: handles the common events in few instructions, and passes all others to the engine.
//!
//! Hot file: [`TraceObserver::enter`] and [`TraceObserver::leave`] neither allocate nor lock nor call the system nor run Python
//! code when the function was seen before, unless a recorder's buffer is full. The GIL is held, and an exception of the
//! program may be set, which is preserved.

use stackweave_core::{BlobId, Call, CodeId};
use stackweave_cpython::calls::{CallFrame, CallObserver, Entering, Leaving, Verdict, known_code, native_definition};

use crate::code_states::CodeState;
use crate::engine::CodeLibrary;
use crate::session::{self, TraceSession};
use crate::shadow::Shadow;
use crate::shadow_entry::{EntryKind, EntryStatus, INSIDE, ShadowEntry};
use crate::traced_threads::{self, TracedThread};

/// The number of lookups of a thread's name.
const NAME_ATTEMPTS: u32 = 64;
/// The number of open calls from which on it is looked up: a thread that has just begun has no name.
const NAMED_FROM: usize = 2;

/// All calls are recorded.
pub(crate) const PLAIN: u8 = 0;
/// All calls are recorded, and their times are measured.
pub(crate) const TIMED: u8 = 1;
/// Some calls are not recorded, because of limits.
pub(crate) const LIMITED: u8 = 2;

/// Observes calls, in one of three modes.
#[derive(Debug)]
pub(crate) struct TraceObserver<const MODE: u8>;

impl<const MODE: u8> CallObserver for TraceObserver<MODE> {
    #[inline(always)]
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
        // SAFETY: an event comes with the GIL held.
        let Some(session) = (unsafe { session::current() }) else { return Verdict::Record };
        if let Some(code) = known_code(frame.code()) {
            let state = session.codes.state(code.get());
            if !state.is_recorded() {
                return Verdict::Disable;
            }
            if MODE != LIMITED
                && let Some(thread) = traced_threads::current()
                && enter_fast::<MODE, F>(thread, session, (code, state, entering), frame)
            {
                return Verdict::Record;
            }
        }
        enter(entering, frame)
    }

    #[inline(always)]
    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
        if let Some(thread) = traced_threads::current()
            // SAFETY: as above.
            && let Some(session) = unsafe { session::current() }
        {
            if thread.stack.shadow.top().key == frame.address() {
                if MODE != LIMITED && leave_fast::<MODE>(thread, session, leaving) {
                    return Verdict::Record;
                }
            } else if known_code(frame.code()).is_some_and(|code| session.codes.is_finished(code.get())) {
                return Verdict::Disable;
            }
        }
        leave(leaving, frame)
    }

    #[inline(always)]
    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F) {
        if MODE == LIMITED || !enter_native_fast::<MODE, F>(callable, frame) {
            enter_native(callable, frame);
        }
    }

    #[inline(always)]
    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F) {
        if MODE == LIMITED || !leave_native_fast::<MODE, F>(raised, frame) {
            leave_native(raised, frame);
        }
    }
}

/// Handles the common case: the caller is the innermost open frame.
#[inline(always)]
fn enter_fast<const MODE: u8, F: CallFrame>(
    thread: &TracedThread,
    session: &TraceSession,
    (code, state, entering): (CodeId, CodeState, Entering),
    frame: F,
) -> bool {
    let shadow = &thread.stack.shadow;
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
    let (kind, began) = match (state, entering) {
        (CodeState::Plain, Entering::Call) => (EntryKind::Call, recorder.record_fixed(kinds.call, [call])),
        // A coroutine without an outer one may be that of a task, whose name is then looked up.
        (CodeState::Coroutine, Entering::Call) if matches!(top.kind, EntryKind::Generator | EntryKind::Resumed) => {
            (EntryKind::Generator, recorder.record_fixed(kinds.generator, [call, key]))
        }
        (CodeState::Generator, Entering::Call) => {
            (EntryKind::Generator, recorder.record_fixed(kinds.generator, [call, key]))
        }
        (CodeState::Generator | CodeState::Coroutine, Entering::Resume | Entering::Throw)
            if !thread.stack.has_suspended_spans() =>
        {
            (EntryKind::Resumed, recorder.record_fixed(kinds.resume, [call, key]))
        }
        _ => return false,
    };
    let entry = ShadowEntry { key, call, code: code.get(), kind, status: EntryStatus::Written, began, callee_ticks: 0 };
    push::<MODE>(shadow, entry);
    thread.calls.set(thread.calls.get() + 1);
    true
}

#[inline(always)]
fn push<const MODE: u8>(shadow: &Shadow, entry: ShadowEntry) {
    if MODE == TIMED {
        shadow.push_written::<true>(entry);
    } else {
        shadow.push_written::<false>(entry);
    }
}

/// Adds the caller to the call, if the caller is behind native code, or there is none. `None` if the caller is not the
/// innermost open frame.
#[inline(never)]
fn call_from_far<F: CallFrame>(call: Call, top: &ShadowEntry, frame: F) -> Option<Call> {
    let caller = frame.caller();
    if top.frame() != caller.map_or(0, F::address) {
        return None;
    }
    Some(match (caller, CodeId::new(top.code)) {
        (Some(caller), Some(code)) => call.from(code, caller.unit()),
        _ => call,
    })
}

/// Handles the common case: the frame is the innermost open one, and nothing is open in it.
#[inline(always)]
fn leave_fast<const MODE: u8>(thread: &TracedThread, session: &TraceSession, leaving: Leaving) -> bool {
    let shadow = &thread.stack.shadow;
    let top = *shadow.top();
    if !top.is_written() || (MODE == TIMED && !session.codes.state(top.code).is_recorded()) {
        return false;
    }
    let ticks = session.recorder.record_fixed(session.hot_kinds.ends[leaving as usize], []);
    shadow.pop_written();
    if MODE == TIMED {
        let took = ticks.saturating_sub(top.began);
        shadow.add_callee_ticks(took);
        let calls = session.judged_after().unwrap_or(u32::MAX);
        if let Some(timing) = session.codes.time(top.code, took.saturating_sub(top.callee_ticks), calls) {
            session.judge(top.code, timing);
        }
    }
    true
}

/// Handles the common case: the calling frame is the innermost open one, and the native function is known.
#[inline(always)]
fn enter_native_fast<const MODE: u8, F: CallFrame>(callable: u64, frame: F) -> bool {
    let Some(thread) = traced_threads::current() else { return false };
    // SAFETY: an event comes with the GIL held.
    let Some(session) = (unsafe { session::current() }) else { return true };
    let shadow = &thread.stack.shadow;
    let top = shadow.top();
    if top.frame() != frame.address() || !shadow.has_room() {
        return false;
    }
    // SAFETY: the mechanism only passes such objects.
    let known = session.natives.get(unsafe { native_definition(callable) });
    let (Some(call), Some(code)) = (known.and_then(BlobId::new).and_then(Call::to_label), CodeId::new(top.code)) else {
        return false;
    };
    let call = call.from(code, frame.unit()).to_bits();
    let began = session.recorder.record_fixed(session.hot_kinds.native, [call]);
    let (key, kind, code) = (top.key | INSIDE, EntryKind::Native, top.code);
    push::<MODE>(shadow, ShadowEntry { key, call, code, kind, status: EntryStatus::Written, began, callee_ticks: 0 });
    thread.native_calls.set(thread.native_calls.get() + 1);
    true
}

#[inline(always)]
fn leave_native_fast<const MODE: u8, F: CallFrame>(raised: bool, frame: F) -> bool {
    let Some(thread) = traced_threads::current() else { return false };
    // SAFETY: an event comes with the GIL held.
    let Some(session) = (unsafe { session::current() }) else { return true };
    let top = *thread.stack.shadow.top();
    if top.key != frame.address() | INSIDE || top.kind != EntryKind::Native || !top.is_written() {
        return false;
    }
    let how = if raised { Leaving::Raise } else { Leaving::Return };
    let ticks = session.recorder.record_fixed(session.hot_kinds.ends[how as usize], []);
    thread.stack.shadow.pop_written();
    if MODE == TIMED {
        thread.stack.shadow.add_callee_ticks(ticks.saturating_sub(top.began));
    }
    true
}

#[cold]
#[inline(never)]
fn enter_native<F: CallFrame>(callable: u64, frame: F) {
    // SAFETY: an event comes with the GIL held.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return };
    // SAFETY: the mechanism only passes such objects.
    if let Some(call) = unsafe { session.native(callable) } {
        session.on(thread, |engine| engine.enter_native(call, frame));
        let top = *thread.stack.shadow.top();
        let is_recorded = top.key == frame.address() | INSIDE && top.kind == EntryKind::Native && top.is_written();
        thread.native_calls.set(thread.native_calls.get() + u64::from(is_recorded));
    }
}

#[cold]
#[inline(never)]
fn leave_native<F: CallFrame>(raised: bool, frame: F) {
    // SAFETY: an event comes with the GIL held.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return };
    session.on(thread, |engine| engine.leave_native(raised, frame));
}

/// Returns the state of this thread and the trace, unless nothing is recorded.
///
/// # Safety
/// The GIL is held, and kept as long as the result is used.
pub(crate) unsafe fn current_thread() -> Option<(&'static TracedThread, &'static TraceSession)> {
    // SAFETY: passed on to the caller.
    let session = unsafe { session::current() }.filter(|session| !session.is_paused.get())?;
    // SAFETY: passed on to the caller.
    let thread = traced_threads::current().unwrap_or_else(|| unsafe { attach_thread(session) });
    if thread.stack.shadow.is_suspended() {
        return None;
    }
    if !thread.stack.shadow.is_followed() {
        begin_on_thread(thread, session);
    }
    Some((thread, session))
}

/// # Safety
/// The GIL is held.
#[cold]
unsafe fn attach_thread(session: &TraceSession) -> &'static TracedThread {
    // SAFETY: passed on to the caller; there are no references to the state of a thread that has ended.
    unsafe {
        traced_threads::remove_ended(|ended| session.end_thread(ended));
        traced_threads::create()
    }
}

/// Prepares a thread for its first event in a trace, or after a pause.
#[cold]
fn begin_on_thread(thread: &TracedThread, session: &TraceSession) {
    thread.set_recorder(Some(&session.recorder));
    if session.name_thread() {
        thread.name_attempts.set(0);
        thread.stack.shadow.lift_limit();
    } else {
        thread.name_attempts.set(NAME_ATTEMPTS);
        thread.stack.shadow.set_limit(NAMED_FROM);
    }
}

/// Looks up the name of a thread that has begun recently.
fn try_to_name(thread: &TracedThread, session: &TraceSession) {
    let left = thread.name_attempts.get();
    if left == 0 || thread.stack.shadow.has_room() && thread.stack.shadow.len() <= NAMED_FROM {
        return;
    }
    let is_named = session.name_thread();
    thread.name_attempts.set(if is_named { 0 } else { left - 1 });
    if thread.name_attempts.get() == 0 {
        thread.stack.shadow.lift_limit();
    }
}

#[cold]
#[inline(never)]
fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
    // SAFETY: an event comes with the GIL held, which is only released while the thread's mark states so.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return Verdict::Record };
    try_to_name(thread, session);
    let verdict = session.on(thread, |engine| engine.enter(entering, frame));
    let top = *thread.stack.shadow.top();
    if verdict == Verdict::Record {
        thread.calls.set(thread.calls.get() + u64::from(top.is_written()));
        let is_coroutine = entering == Entering::Call && session.codes.state(top.code) == CodeState::Coroutine;
        if is_coroutine && session.tasks && top.is_written() && is_outermost(thread) {
            session.name_task(top.key);
        }
    }
    verdict
}

/// Returns whether the innermost frame is a coroutine without an outer one.
fn is_outermost(thread: &TracedThread) -> bool {
    let shadow = &thread.stack.shadow;
    let around = (1..shadow.len()).rev().map(|index| shadow.at(index)).find(ShadowEntry::is_frame);
    !around.is_some_and(|entry| matches!(entry.kind, EntryKind::Generator | EntryKind::Resumed))
}

#[cold]
#[inline(never)]
fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
    // SAFETY: as in `enter`.
    let Some((thread, session)) = (unsafe { current_thread() }) else { return Verdict::Record };
    session.on(thread, |engine| engine.leave(leaving, frame))
}
