//! The thread state of the thread that holds the GIL, from 3.12 on: a thread-local word of the interpreter.
//!
//! The interpreter's own function finds it by a call into its library and, there, often another into the loader. If the
//! word has the same offset in every thread, it is read directly.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Once;

use super::thread_memory;
use crate::interpreter::{Interpreter, first_of};

/// The offset of the word from the thread pointer; 0 if the interpreter must be called.
static OFFSET: AtomicU64 = AtomicU64::new(0);
/// The interpreter's own function.
static STATE_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Returns the state. A hot function: one load, or a call that does as much.
#[inline(always)]
pub(super) fn get() -> u64 {
    let offset = OFFSET.load(Ordering::Relaxed);
    if offset != 0 {
        // SAFETY: `prepare` found the word there, in memory that every thread has.
        return unsafe { thread_memory::word(offset) };
    }
    call_interpreter()
}

#[inline(never)]
fn call_interpreter() -> u64 {
    // SAFETY: `prepare` stored the function; it may be called at any time.
    unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u64>(STATE_FUNCTION.load(Ordering::Relaxed))() }
}

/// Finds the offset, once. The GIL is held, and may be released meanwhile.
pub(super) fn prepare(interpreter: &'static Interpreter) {
    static PREPARED: Once = Once::new();
    STATE_FUNCTION.store(interpreter.functions.holder_state as *mut c_void, Ordering::Relaxed);
    if PREPARED.is_completed() {
        return;
    }
    let offset = find(interpreter).unwrap_or(0);
    PREPARED.call_once(|| OFFSET.store(offset, Ordering::Relaxed));
}

/// Returns whether the word was found: for tests.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn is_read_directly() -> bool {
    OFFSET.load(Ordering::Relaxed) != 0
}

/// Finds the word in the thread-local memory of the interpreter's module. It holds the state, zero while the GIL is
/// released, and then the state again.
fn find(interpreter: &'static Interpreter) -> Option<u64> {
    let function = interpreter.functions.holder_state as *const c_void as u64;
    let block = TlsBlock::of(function)?;
    let elsewhere = std::thread::spawn(move || TlsBlock::of(function)).join().ok()??;
    if block != elsewhere {
        return None;
    }
    // SAFETY: the signatures are those of the documentation.
    let (release, acquire): (unsafe extern "C" fn() -> *mut c_void, unsafe extern "C" fn(*mut c_void)) = unsafe {
        let symbols = interpreter.symbols;
        (first_of(symbols, &[c"PyEval_SaveThread"]).ok()?, first_of(symbols, &[c"PyEval_RestoreThread"]).ok()?)
    };
    let mut found = block.words_equal(call_interpreter());
    // SAFETY: the GIL is held, and acquired again at once.
    unsafe {
        let state = release();
        found.retain(|offset| thread_memory::word(*offset) == 0);
        acquire(state);
        found.retain(|offset| thread_memory::word(*offset) == state as u64);
    }
    match found[..] {
        [offset] => Some(offset),
        _ => None,
    }
}

/// The thread-local memory of a module for the calling thread, by its offset from the thread pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TlsBlock {
    offset: u64,
    length: u64,
}

impl TlsBlock {
    /// Returns the block of the module that contains this function.
    fn of(function: u64) -> Option<Self> {
        let mut search = TlsSearch { function, found: None };
        // SAFETY: the callback gets the search, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit_module), (&raw mut search).cast()) };
        search.found
    }

    fn words_equal(self, wanted: u64) -> Vec<u64> {
        let offsets = (0..self.length / 8).map(|index| self.offset.wrapping_add(8 * index));
        // SAFETY: the whole block is this thread's, and readable.
        offsets.filter(|offset| unsafe { thread_memory::word(*offset) } == wanted).collect()
    }
}

struct TlsSearch {
    function: u64,
    found: Option<TlsBlock>,
}

/// # Safety
/// `info` is what the loader passes, `search` points to a `TlsSearch`.
unsafe extern "C" fn visit_module(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid structure, `TlsBlock::of` its own variable.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<TlsSearch>()) };
    // SAFETY: the structure describes the module's headers.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let holds = |header: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        header.p_type == libc::PT_LOAD && search.function.wrapping_sub(start) < header.p_memsz
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let memory = headers.iter().find(|header| header.p_type == libc::PT_TLS);
    if let Some(memory) = memory.filter(|_| !info.dlpi_tls_data.is_null()) {
        let offset = (info.dlpi_tls_data as u64).wrapping_sub(thread_memory::pointer());
        search.found = Some(TlsBlock { offset, length: memory.p_memsz });
    }
    1
}
