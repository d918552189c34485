//! Python's allocators, as the hooks tell of them: an observer that keeps every block, and somebody else's allocators.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_char;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use stackweave_cpython::allocators::{AllocatorHooks, AllocatorObserver, Domain, Function, Pointer};

use crate::walks::lasting;

type Origin = (Domain, Function, usize);

#[derive(Default)]
struct Told {
    blocks: HashMap<u64, Origin>,
    allocated: u64,
    freed: u64,
    unknown: u64,
    replaced: u64,
    kept: u64,
    failed: u64,
}

static TOLD: LazyLock<Mutex<Told>> = LazyLock::new(Mutex::default);
static HOOKS: Mutex<Option<AllocatorHooks>> = Mutex::new(None);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a call that is told.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.get()
}

fn told() -> MutexGuard<'static, Told> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` inside, if the thread is not; says so.
fn inside<R>(body: impl FnOnce() -> R) -> (R, bool) {
    let was_inside = IS_INSIDE.replace(true);
    let result = body();
    IS_INSIDE.set(was_inside);
    (result, !was_inside)
}

struct Keeper;

impl Keeper {
    fn taken(domain: Domain, function: Function, size: usize, block: Pointer) {
        let mut told = told();
        if block.is_null() {
            told.failed += 1;
            return;
        }
        told.allocated += 1;
        if told.blocks.insert(block.addr() as u64, (domain, function, size)).is_some() {
            told.replaced += 1;
        }
    }

    fn given_back(block: Pointer) -> Option<Origin> {
        let mut told = told();
        told.freed += 1;
        let origin = told.blocks.remove(&(block.addr() as u64));
        told.unknown += u64::from(origin.is_none());
        origin
    }
}

impl AllocatorObserver for Keeper {
    fn take(domain: Domain, function: Function, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        let (block, is_outermost) = inside(original);
        if is_outermost {
            Self::taken(domain, function, size, block);
        }
        block
    }

    fn give_back(block: Pointer, original: impl FnOnce()) {
        assert!(!block.is_null());
        if !is_inside() {
            Self::given_back(block);
        }
        inside(original);
    }

    fn exchange(domain: Domain, old: Pointer, size: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        if is_inside() {
            return original();
        }
        let origin = if old.is_null() { None } else { Self::given_back(old) };
        let (block, _) = inside(original);
        if block.is_null()
            && let Some(origin) = origin
        {
            told().kept += 1;
            told().blocks.insert(old.addr() as u64, origin);
        }
        Self::taken(domain, Function::Realloc, size, block);
        block
    }

    fn is_inside() -> bool {
        is_inside()
    }
}

/// Another observer, as a later release of ours in the same process is one.
struct Counter;

static COUNT: AtomicU64 = AtomicU64::new(0);

impl AllocatorObserver for Counter {
    fn take(_: Domain, _: Function, _: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        COUNT.fetch_add(1, Ordering::Relaxed);
        inside(original).0
    }

    fn give_back(_: Pointer, original: impl FnOnce()) {
        inside(original);
    }

    fn exchange(_: Domain, _: Pointer, _: usize, original: impl FnOnce() -> Pointer) -> Pointer {
        COUNT.fetch_add(1, Ordering::Relaxed);
        inside(original).0
    }

    fn is_inside() -> bool {
        is_inside()
    }
}

/// Has the allocators tell the observer that keeps blocks, or the one that counts. Null, or why not.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_start(counts_only: bool) -> *const c_char {
    // SAFETY: a script that does not hold the GIL wants to hear so.
    let hooks =
        unsafe { if counts_only { AllocatorHooks::install::<Counter>() } else { AllocatorHooks::install::<Keeper>() } };
    match hooks {
        Ok(hooks) => {
            *HOOKS.lock().expect("nobody panics") = Some(hooks);
            null()
        }
        Err(reason) => lasting(&reason.to_string()),
    }
}

/// Ends it. How often the hooks were put in again.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_stop() -> u64 {
    let Some(mut hooks) = HOOKS.lock().expect("nobody panics").take() else { return u64::MAX };
    let put_back = hooks.put_back();
    // SAFETY: the script holds the GIL.
    unsafe { hooks.remove() };
    put_back
}

/// Forgets all blocks and counts.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_clear() {
    *TOLD.lock().expect("nobody panics") = Told::default();
}

/// Domain, function and size of the live block at this address; null if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_block(address: u64) -> *const c_char {
    let block = TOLD.lock().expect("nobody panics").blocks.get(&address).copied();
    block.map_or(null(), |(domain, function, size)| lasting(&format!("{domain:?} {function:?} {size}")))
}

/// How many of these were told: 0 allocated, 1 freed, 2 unknown when freed, 3 taken where one was, 4 kept, 5 failed, 6 told
/// to the one that counts.
#[unsafe(no_mangle)]
pub extern "C" fn cpython_tests_allocators_told(which: u32) -> u64 {
    let told = TOLD.lock().expect("nobody panics");
    match which {
        0 => told.allocated,
        1 => told.freed,
        2 => told.unknown,
        3 => told.replaced,
        4 => told.kept,
        5 => told.failed,
        _ => COUNT.load(Ordering::Relaxed),
    }
}
