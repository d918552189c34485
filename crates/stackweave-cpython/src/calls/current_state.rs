//! The thread state of the thread that has the GIL, from 3.12 on: a word that each thread has for itself.
//!
//! The interpreter's own function finds it by a call into its library and, there, often another into the loader. Where
//! the word is at the same place in every thread, it is read directly.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::Once;

use super::thread_memory;
use crate::interpreter::{Interpreter, first_of};

/// From the thread's own pointer to the word; 0 where it has to be asked for.
static OFFSET: AtomicU64 = AtomicU64::new(0);
/// The interpreter's own function.
static ASK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The state. A hot function: one load, or a call that does as much.
#[inline(always)]
pub(super) fn get() -> u64 {
    let offset = OFFSET.load(Ordering::Relaxed);
    if offset != 0 {
        // SAFETY: `prepare` found the word there, in the memory that every thread has.
        return unsafe { thread_memory::word(offset) };
    }
    ask()
}

#[inline(never)]
fn ask() -> u64 {
    // SAFETY: `prepare` put the function there; it may be called at any time.
    unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u64>(ASK.load(Ordering::Relaxed))() }
}

/// Finds the way, once. The GIL is held, and may be given up meanwhile.
pub(super) fn prepare(interpreter: &'static Interpreter) {
    static PREPARED: Once = Once::new();
    ASK.store(interpreter.functions.holder_state as *mut c_void, Ordering::Relaxed);
    if PREPARED.is_completed() {
        return;
    }
    let offset = find(interpreter).unwrap_or(0);
    PREPARED.call_once(|| OFFSET.store(offset, Ordering::Relaxed));
}

/// Whether the word was found: for tests.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn is_read_directly() -> bool {
    OFFSET.load(Ordering::Relaxed) != 0
}

/// The word is in the memory that the interpreter's module has in each thread. It holds the state, nothing while the GIL
/// is given up, and the state again.
fn find(interpreter: &'static Interpreter) -> Option<u64> {
    let function = interpreter.functions.holder_state as *const c_void as u64;
    let block = Block::of(function)?;
    let elsewhere = std::thread::spawn(move || Block::of(function)).join().ok()??;
    if block != elsewhere {
        return None;
    }
    // SAFETY: the signatures are those of the documentation.
    let (give_up, take): (unsafe extern "C" fn() -> *mut c_void, unsafe extern "C" fn(*mut c_void)) = unsafe {
        let symbols = interpreter.symbols;
        (first_of(symbols, &[c"PyEval_SaveThread"]).ok()?, first_of(symbols, &[c"PyEval_RestoreThread"]).ok()?)
    };
    let mut found = block.words_equal(ask());
    // SAFETY: the GIL is held, and taken again at once.
    unsafe {
        let state = give_up();
        found.retain(|offset| thread_memory::word(*offset) == 0);
        take(state);
        found.retain(|offset| thread_memory::word(*offset) == state as u64);
    }
    match found[..] {
        [offset] => Some(offset),
        _ => None,
    }
}

/// Where a module has its memory for the calling thread, from the thread's own pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    offset: u64,
    length: u64,
}

impl Block {
    /// Of the module that has this function.
    fn of(function: u64) -> Option<Self> {
        let mut search = Search { function, found: None };
        // SAFETY: the callback gets the search, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look_at_module), (&raw mut search).cast()) };
        search.found
    }

    fn words_equal(self, wanted: u64) -> Vec<u64> {
        let offsets = (0..self.length / 8).map(|index| self.offset.wrapping_add(8 * index));
        // SAFETY: the whole block is this thread's, and readable.
        offsets.filter(|offset| unsafe { thread_memory::word(*offset) } == wanted).collect()
    }
}

struct Search {
    function: u64,
    found: Option<Block>,
}

/// # Safety
/// `info` is what the loader passes, `search` a `Search`.
unsafe extern "C" fn look_at_module(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid record, `Block::of` its own variable.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
    // SAFETY: the record says where its headers are.
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
        search.found = Some(Block { offset, length: memory.p_memsz });
    }
    1
}
