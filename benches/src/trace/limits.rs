//! The lower limit of the cost of a trace: our hooks with an observer that does almost nothing, for the script
//! `tools.py`, which loads this library into Python.

use std::ffi::{CString, c_char, c_uint};
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use stackweave_cpython::PythonSource;
use stackweave_cpython::calls::{CallFrame, CallObserver, Entering, HookOptions, Hooks, Leaving, Verdict};

use crate::recording::words::ticks;

/// An observer that does nothing.
#[derive(Debug)]
struct Nothing;

impl CallObserver for Nothing {
    #[inline]
    unsafe fn enter<F: CallFrame>(_: Entering, _: F) -> Verdict {
        Verdict::Record
    }

    #[inline]
    unsafe fn leave<F: CallFrame>(_: Leaving, _: F) -> Verdict {
        Verdict::Record
    }

    #[inline]
    unsafe fn enter_native<F: CallFrame>(_: u64, _: F) {}

    #[inline]
    unsafe fn leave_native<F: CallFrame>(_: bool, _: F) {}
}

/// An observer for one thread that writes the time and the code object to a ring in the cache.
#[derive(Debug)]
struct Words;

const RING: usize = 8 << 10;
static WORDS: [AtomicU64; RING] = [const { AtomicU64::new(0) }; RING];
static NEXT: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn write(word: u64) {
    let next = NEXT.load(Ordering::Relaxed);
    WORDS[next % RING].store(ticks(), Ordering::Relaxed);
    WORDS[(next + 1) % RING].store(word, Ordering::Relaxed);
    NEXT.store(next + 2, Ordering::Relaxed);
}

impl CallObserver for Words {
    #[inline]
    unsafe fn enter<F: CallFrame>(_: Entering, frame: F) -> Verdict {
        write(frame.code());
        Verdict::Record
    }

    #[inline]
    unsafe fn leave<F: CallFrame>(_: Leaving, frame: F) -> Verdict {
        write(frame.code());
        Verdict::Record
    }

    #[inline]
    unsafe fn enter_native<F: CallFrame>(callable: u64, _: F) {
        write(callable);
    }

    #[inline]
    unsafe fn leave_native<F: CallFrame>(_: bool, _: F) {
        write(0);
    }
}

static HOOKS: Mutex<Option<Hooks>> = Mutex::new(None);

/// Installs the hooks. `words` is 0 for the observer that does nothing. Returns null, or why it failed; the reason is
/// never freed.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_hooks_start(words: c_uint) -> *const c_char {
    let source = match PythonSource::install() {
        Ok(source) => source,
        Err(why) => return reason(&why.to_string()),
    };
    let options = HookOptions::default();
    // SAFETY: the caller is Python, which holds the GIL through `PyDLL`, and no exception is set.
    let hooks = unsafe {
        if words == 0 { Hooks::install::<Nothing>(source, options) } else { Hooks::install::<Words>(source, options) }
    };
    match hooks {
        Ok(hooks) => {
            *HOOKS.lock().unwrap_or_else(PoisonError::into_inner) = Some(hooks);
            ptr::null()
        }
        Err(why) => reason(&why.to_string()),
    }
}

/// Removes the hooks.
#[unsafe(no_mangle)]
extern "C" fn stackweave_bench_hooks_stop() {
    let hooks = HOOKS.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut hooks) = hooks {
        // SAFETY: as above.
        unsafe { hooks.remove() };
    }
}

fn reason(why: &str) -> *const c_char {
    CString::new(why).unwrap_or_default().into_raw().cast_const()
}
