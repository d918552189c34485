//! Calls, as the mechanisms tell of them: an observer that writes down everything, with names.

use std::ffi::c_char;
use std::fmt::Write;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use stackweave_cpython::calls::{
    CallFrame, CallObserver, Entering, FrameAt, HookError, HookOptions, Hooks, Leaving, Mechanism, Verdict,
    is_read_directly, known_code, native_definition,
};
use stackweave_cpython::{CodePointer, Interpreter};

use stackweave_testkit::counting_allocator;

use crate::sources::source;
use crate::walks::lasting;

static TOLD: Mutex<String> = Mutex::new(String::new());
static HOOKS: Mutex<Option<Hooks>> = Mutex::new(None);
/// Whether the observer wants to hear nothing again.
static DISABLES: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

struct Writer;

fn name_of(code: u64) -> String {
    let interpreter = Interpreter::find().expect("it is supported");
    // SAFETY: a frame that is told of keeps its code alive.
    let code = unsafe { interpreter.read_code(CodePointer::new(code)) }.expect("it is a code object");
    code.qualname.unwrap_or(code.name)
}

fn line_of(code: u64, unit: u32) -> i64 {
    let interpreter = Interpreter::find().expect("it is supported");
    // SAFETY: as above.
    let code = unsafe { interpreter.read_code(CodePointer::new(code)) }.expect("it is a code object");
    code.position(unit.saturating_mul(2)).line.map_or(-1, i64::from)
}

fn write(what: &str, name: &str, caller: Option<impl CallFrame>) {
    let thread = std::thread::current().id();
    let caller = caller.map_or_else(
        || "- 0".to_owned(),
        |caller| format!("{} {}", name_of(caller.code()), line_of(caller.code(), caller.unit())),
    );
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(told, "{thread:?} {what} {name} {caller}");
}

fn verdict() -> Verdict {
    if DISABLES.load(Ordering::Relaxed) { Verdict::Disable } else { Verdict::Tell }
}

impl CallObserver for Writer {
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
        let what = match entering {
            Entering::Call => "call",
            Entering::Resume => "resume",
            Entering::Throw => "throw",
        };
        write(what, &name_of(frame.code()), frame.caller());
        // SAFETY: the mechanism has the GIL, and the frame keeps its code alive.
        let id = unsafe { source().code_id(CodePointer::new(frame.code())) };
        assert_eq!(known_code(frame.code()), id);
        verdict()
    }

    unsafe fn leave<F: CallFrame>(leaving: Leaving, frame: F) -> Verdict {
        let what = match leaving {
            Leaving::Return => "return",
            Leaving::Yield => "yield",
            Leaving::Raise => "raise",
        };
        write(what, &name_of(frame.code()), frame.caller());
        verdict()
    }

    unsafe fn enter_native<F: CallFrame>(callable: u64, frame: F) {
        // SAFETY: it is what the mechanism tells of, with the GIL held.
        let (name, definition) = unsafe { (source().native_name(callable), native_definition(callable)) };
        assert_ne!(definition, 0);
        write("c_call", &name.expect("frames are read directly"), Some(frame));
    }

    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F) {
        write(if raised { "c_raise" } else { "c_return" }, "-", Some(frame));
    }
}

/// As little as an observer can do: the clock and sixteen bytes.
struct Stamper;

const ROOM: usize = 1 << 16;
static STAMPS: [[AtomicU64; 2]; ROOM] = [const { [const { AtomicU64::new(0) }; 2] }; ROOM];

#[inline(always)]
#[expect(clippy::inline_always, reason = "what is measured is the mechanism")]
fn stamp(frame: impl CallFrame) {
    let count = COUNT.load(Ordering::Relaxed);
    COUNT.store(count + 1, Ordering::Relaxed);
    #[expect(clippy::cast_possible_truncation, reason = "cut to the room")]
    let slot = &STAMPS[count as usize % ROOM];
    // SAFETY: every x86-64 has the instruction.
    slot[0].store(unsafe { std::arch::x86_64::_rdtsc() }, Ordering::Relaxed);
    slot[1].store(frame.address(), Ordering::Relaxed);
}

impl CallObserver for Stamper {
    #[inline]
    unsafe fn enter<F: CallFrame>(_: Entering, frame: F) -> Verdict {
        stamp(frame);
        Verdict::Tell
    }

    #[inline]
    unsafe fn leave<F: CallFrame>(_: Leaving, frame: F) -> Verdict {
        stamp(frame);
        Verdict::Tell
    }

    unsafe fn enter_native<F: CallFrame>(_: u64, frame: F) {
        stamp(frame);
    }

    unsafe fn leave_native<F: CallFrame>(_: bool, frame: F) {
        stamp(frame);
    }
}

fn options(mechanism: u32, c_calls: bool) -> HookOptions {
    let mechanism = match mechanism {
        1 => Some(Mechanism::Monitoring),
        2 => Some(Mechanism::EvalHook),
        3 => Some(Mechanism::ProfileSlot),
        _ => None,
    };
    HookOptions { mechanism, c_calls }
}

fn keep(hooks: Result<Hooks, HookError>) -> *const c_char {
    match hooks {
        Ok(hooks) => {
            *HOOKS.lock().expect("nobody panics") = Some(hooks);
            null()
        }
        Err(reason) => lasting(&reason.to_string()),
    }
}

/// Begins to write down calls. 0: the mechanism is chosen. Null, or why not.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_start(mechanism: u32, c_calls: bool) -> *const c_char {
    // SAFETY: the script holds the GIL.
    keep(unsafe { Hooks::install::<Writer>(source(), options(mechanism, c_calls)) })
}

/// Begins to do next to nothing with calls.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stamps_start(mechanism: u32, c_calls: bool) -> *const c_char {
    // SAFETY: the script holds the GIL.
    keep(unsafe { Hooks::install::<Stamper>(source(), options(mechanism, c_calls)) })
}

/// How many events were stamped, ever.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stamps() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// How often this process has asked for memory.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_memory_requests() -> u64 {
    counting_allocator::requests()
}

/// Whether the thread state is read without a call.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_state_is_read_directly() -> bool {
    is_read_directly()
}

/// Ends it. How often the hook stepped aside.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_stop() -> u64 {
    let Some(mut hooks) = HOOKS.lock().expect("nobody panics").take() else { return u64::MAX };
    let stepped_aside = hooks.stepped_aside();
    // SAFETY: the script holds the GIL.
    unsafe { hooks.remove() };
    stepped_aside
}

/// What tells of calls, and why not by something better.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_mechanism() -> *const c_char {
    let hooks = HOOKS.lock().expect("nobody panics");
    let Some(hooks) = &*hooks else { return null() };
    let reason = hooks.fallback_reason().map_or_else(String::new, |reason| format!(" ({reason})"));
    lasting(&format!("{}{reason}", hooks.mechanism()))
}

/// From now on the observer wants to hear nothing again, or everything.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_disable(disable: bool) {
    DISABLES.store(disable, Ordering::Relaxed);
    if !disable && let Some(hooks) = &*HOOKS.lock().expect("nobody panics") {
        // SAFETY: the script holds the GIL.
        unsafe { hooks.tell_all_again() }.expect("the interpreter does it");
    }
}

/// What was told since this was asked last, a line each.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_take() -> *const c_char {
    let told = std::mem::take(&mut *TOLD.lock().unwrap_or_else(PoisonError::into_inner));
    lasting(&told)
}

/// The frames of the thread with that identity, innermost first, or of this one for 0: code, `f_lasti`, flags of the code
/// and name of the module, a line each.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_frames(thread: u64) -> *const c_char {
    let mut text = String::new();
    let visit = |frame: FrameAt| {
        // SAFETY: the script holds the GIL, and the frame is on a stack.
        let (flags, module) = unsafe { (source().code_flags(frame.code), source().module_name(frame.address)) };
        let (code, lasti) = (frame.code, u64::from(frame.unit) * 2);
        let _ = writeln!(text, "{code} {lasti} {flags} {}", module.as_deref().unwrap_or("-"));
    };
    // SAFETY: the script holds the GIL since the states were listed.
    unsafe {
        match source().thread_states().iter().find(|(ident, _)| *ident == thread) {
            Some((_, state)) => source().visit_frames_of(*state, visit),
            None => source().visit_frames(visit),
        }
    }
    lasting(&text)
}
