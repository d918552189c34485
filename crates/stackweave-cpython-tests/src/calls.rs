//! An observer of calls that writes down each event with names, and one that is measured.

use std::ffi::c_char;
use std::fmt::Write;
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use stackweave_cpython::calls::{
    CallFrame, CallObserver, Entering, HookError, HookOptions, Hooks, Leaving, Mechanism, StackFrame, Verdict,
    is_read_directly, known_code, native_definition,
};
use stackweave_cpython::{CodePointer, Interpreter};

use stackweave_testkit::counting_allocator;

use crate::sources::source;
use crate::walks::lasting;

static RECORDED: Mutex<String> = Mutex::new(String::new());
static HOOKS: Mutex<Option<Hooks>> = Mutex::new(None);
/// Whether the observer disables each event.
static DISABLES: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);

struct CallWriter;

fn name_of(code: u64) -> String {
    let interpreter = Interpreter::find().expect("it is supported");
    // SAFETY: a frame keeps its code alive during its event.
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
    let mut recorded = RECORDED.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(recorded, "{thread:?} {what} {name} {caller}");
}

fn verdict() -> Verdict {
    if DISABLES.load(Ordering::Relaxed) { Verdict::Disable } else { Verdict::Record }
}

impl CallObserver for CallWriter {
    unsafe fn enter<F: CallFrame>(entering: Entering, frame: F) -> Verdict {
        let what = match entering {
            Entering::Call => "call",
            Entering::Resume => "resume",
            Entering::Throw => "throw",
        };
        write(what, &name_of(frame.code()), frame.caller());
        // SAFETY: the mechanism holds the GIL, and the frame keeps its code alive.
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
        // SAFETY: it is the argument of the event, and the GIL is held.
        let (name, definition) = unsafe { (source().native_name(callable), native_definition(callable)) };
        assert_ne!(definition, 0);
        write("c_call", &name.expect("frames are read directly"), Some(frame));
    }

    unsafe fn leave_native<F: CallFrame>(raised: bool, frame: F) {
        write(if raised { "c_raise" } else { "c_return" }, "-", Some(frame));
    }
}

/// An observer that does as little as possible: it reads the clock and stores sixteen bytes.
struct Stamper;

const CAPACITY: usize = 1 << 16;
static STAMPS: [[AtomicU64; 2]; CAPACITY] = [const { [const { AtomicU64::new(0) }; 2] }; CAPACITY];

#[inline(always)]
#[expect(clippy::inline_always, reason = "what is measured is the mechanism")]
fn stamp(frame: impl CallFrame) {
    let count = COUNT.load(Ordering::Relaxed);
    COUNT.store(count + 1, Ordering::Relaxed);
    #[expect(clippy::cast_possible_truncation, reason = "cut to the capacity")]
    let slot = &STAMPS[count as usize % CAPACITY];
    // SAFETY: every x86-64 has the instruction.
    slot[0].store(unsafe { std::arch::x86_64::_rdtsc() }, Ordering::Relaxed);
    slot[1].store(frame.address(), Ordering::Relaxed);
}

impl CallObserver for Stamper {
    #[inline]
    unsafe fn enter<F: CallFrame>(_: Entering, frame: F) -> Verdict {
        stamp(frame);
        Verdict::Record
    }

    #[inline]
    unsafe fn leave<F: CallFrame>(_: Leaving, frame: F) -> Verdict {
        stamp(frame);
        Verdict::Record
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
            *HOOKS.lock().expect("no thread panics") = Some(hooks);
            null()
        }
        Err(reason) => lasting(&reason.to_string()),
    }
}

/// Starts to write down calls. 0: the mechanism is chosen. Returns null, or the reason why it can't.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_start(mechanism: u32, c_calls: bool) -> *const c_char {
    // SAFETY: the script holds the GIL.
    keep(unsafe { Hooks::install::<CallWriter>(source(), options(mechanism, c_calls)) })
}

/// Starts the observer that does as little as possible.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stamps_start(mechanism: u32, c_calls: bool) -> *const c_char {
    // SAFETY: the script holds the GIL.
    keep(unsafe { Hooks::install::<Stamper>(source(), options(mechanism, c_calls)) })
}

/// Returns how many events were ever stamped.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_stamps() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Returns how often this process has allocated.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_memory_requests() -> u64 {
    counting_allocator::requests()
}

/// Returns whether the thread state is read without a call.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_state_is_read_directly() -> bool {
    is_read_directly()
}

/// Removes the hooks. Returns how often the hook stepped aside.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_stop() -> u64 {
    let Some(mut hooks) = HOOKS.lock().expect("no thread panics").take() else { return u64::MAX };
    let stepped_aside = hooks.stepped_aside();
    // SAFETY: the script holds the GIL.
    unsafe { hooks.remove() };
    stepped_aside
}

/// Returns the mechanism, and why it is not the best one.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_mechanism() -> *const c_char {
    let hooks = HOOKS.lock().expect("no thread panics");
    let Some(hooks) = &*hooks else { return null() };
    let reason = hooks.fallback_reason().map_or_else(String::new, |reason| format!(" ({reason})"));
    lasting(&format!("{}{reason}", hooks.mechanism()))
}

/// Makes the observer disable each event, or enables all events again.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_disable(disable: bool) {
    DISABLES.store(disable, Ordering::Relaxed);
    if !disable && let Some(hooks) = &*HOOKS.lock().expect("no thread panics") {
        // SAFETY: the script holds the GIL.
        unsafe { hooks.enable_all_events() }.expect("the interpreter does it");
    }
}

/// Returns what was recorded since the last call, one line per event.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_take() -> *const c_char {
    let recorded = std::mem::take(&mut *RECORDED.lock().unwrap_or_else(PoisonError::into_inner));
    lasting(&recorded)
}

/// Returns the frames of the thread with that identity, innermost first, or of this one for 0: code, `f_lasti`, flags
/// of the code and name of the module, one line each.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_calls_frames(thread: u64) -> *const c_char {
    let mut text = String::new();
    let visit = |frame: StackFrame| {
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
