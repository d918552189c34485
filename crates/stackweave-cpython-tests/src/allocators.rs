//! Python's allocators as the hooks see them: an observer that keeps every block, and allocators of other code.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_char;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use stackweave_cpython::allocators::{AllocatorFunction, AllocatorHooks, AllocatorObserver, BlockPointer, Domain};

use crate::walks::lasting;

type Origin = (Domain, AllocatorFunction, usize);

#[derive(Default)]
struct RecordedBlocks {
    blocks: HashMap<u64, Origin>,
    allocated: u64,
    freed: u64,
    unknown: u64,
    replaced: u64,
    kept: u64,
    failed: u64,
}

static RECORDED: LazyLock<Mutex<RecordedBlocks>> = LazyLock::new(Mutex::default);
static HOOKS: Mutex<Option<AllocatorHooks>> = Mutex::new(None);

thread_local! {
    static IS_IN_EVENT: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is in a recorded call.
pub(crate) fn is_in_event() -> bool {
    IS_IN_EVENT.get()
}

fn recorded() -> MutexGuard<'static, RecordedBlocks> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` in an event. Returns its result, and whether the event is the outermost.
fn in_event<R>(body: impl FnOnce() -> R) -> (R, bool) {
    let was_in_event = IS_IN_EVENT.replace(true);
    let result = body();
    IS_IN_EVENT.set(was_in_event);
    (result, !was_in_event)
}

struct BlockKeeper;

impl BlockKeeper {
    fn allocated(domain: Domain, function: AllocatorFunction, size: usize, block: BlockPointer) {
        let mut recorded = recorded();
        if block.is_null() {
            recorded.failed += 1;
            return;
        }
        recorded.allocated += 1;
        if recorded.blocks.insert(block.addr() as u64, (domain, function, size)).is_some() {
            recorded.replaced += 1;
        }
    }

    fn freed(block: BlockPointer) -> Option<Origin> {
        let mut recorded = recorded();
        recorded.freed += 1;
        let origin = recorded.blocks.remove(&(block.addr() as u64));
        recorded.unknown += u64::from(origin.is_none());
        origin
    }
}

impl AllocatorObserver for BlockKeeper {
    fn allocate(
        domain: Domain,
        function: AllocatorFunction,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer {
        let (block, is_outermost) = in_event(original);
        if is_outermost {
            Self::allocated(domain, function, size, block);
        }
        block
    }

    fn free(block: BlockPointer, original: impl FnOnce()) {
        assert!(!block.is_null());
        if !is_in_event() {
            Self::freed(block);
        }
        in_event(original);
    }

    fn reallocate(
        domain: Domain,
        old: BlockPointer,
        size: usize,
        original: impl FnOnce() -> BlockPointer,
    ) -> BlockPointer {
        if is_in_event() {
            return original();
        }
        let origin = if old.is_null() { None } else { Self::freed(old) };
        let (block, _) = in_event(original);
        if block.is_null()
            && let Some(origin) = origin
        {
            recorded().kept += 1;
            recorded().blocks.insert(old.addr() as u64, origin);
        }
        Self::allocated(domain, AllocatorFunction::Realloc, size, block);
        block
    }

    fn is_in_event() -> bool {
        is_in_event()
    }
}

/// Another observer, such as that of a later release of ours in the same process.
struct CallCounter;

static COUNT: AtomicU64 = AtomicU64::new(0);

impl AllocatorObserver for CallCounter {
    fn allocate(_: Domain, _: AllocatorFunction, _: usize, original: impl FnOnce() -> BlockPointer) -> BlockPointer {
        COUNT.fetch_add(1, Ordering::Relaxed);
        in_event(original).0
    }

    fn free(_: BlockPointer, original: impl FnOnce()) {
        in_event(original);
    }

    fn reallocate(_: Domain, _: BlockPointer, _: usize, original: impl FnOnce() -> BlockPointer) -> BlockPointer {
        COUNT.fetch_add(1, Ordering::Relaxed);
        in_event(original).0
    }

    fn is_in_event() -> bool {
        is_in_event()
    }
}

/// Installs the observer that keeps blocks, or the one that counts calls. Returns null, or the reason why it can't.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_start(counts_only: bool) -> *const c_char {
    // SAFETY: a script may call this without the GIL, to get the error.
    let hooks = unsafe {
        if counts_only { AllocatorHooks::install::<CallCounter>() } else { AllocatorHooks::install::<BlockKeeper>() }
    };
    match hooks {
        Ok(hooks) => {
            *HOOKS.lock().expect("no thread panics") = Some(hooks);
            null()
        }
        Err(reason) => lasting(&reason.to_string()),
    }
}

/// Removes the hooks. Returns how often they were installed again.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_stop() -> u64 {
    let Some(mut hooks) = HOOKS.lock().expect("no thread panics").take() else { return u64::MAX };
    let reinstallations = hooks.reinstallations();
    // SAFETY: the script holds the GIL.
    unsafe { hooks.remove() };
    reinstallations
}

/// Clears all blocks and counts.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_clear() {
    *recorded() = RecordedBlocks::default();
}

/// Returns domain, function and size of the live block at this address; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_block(address: u64) -> *const c_char {
    let block = recorded().blocks.get(&address).copied();
    block.map_or(null(), |(domain, function, size)| lasting(&format!("{domain:?} {function:?} {size}")))
}

/// Returns a count: 0 allocated, 1 freed, 2 unknown when freed, 3 allocated at a live block's address, 4 kept, 5
/// failed, 6 calls of the observer that counts.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_count(which: u32) -> u64 {
    let recorded = recorded();
    match which {
        0 => recorded.allocated,
        1 => recorded.freed,
        2 => recorded.unknown,
        3 => recorded.replaced,
        4 => recorded.kept,
        5 => recorded.failed,
        _ => COUNT.load(Ordering::Relaxed),
    }
}
