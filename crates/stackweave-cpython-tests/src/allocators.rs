//! Python's allocators, as the hooks tell of them: an observer that keeps every block, and somebody else's allocators.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_char;
use std::ptr::null;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use stackweave_cpython::allocators::{AllocatorHooks, AllocatorObserver, Domain, Function};

use crate::walks::lasting;

#[derive(Default)]
struct Told {
    blocks: HashMap<u64, (Domain, Function, u64)>,
    /// What was about to be given back last, until it is moved.
    last: Option<(u64, (Domain, Function, u64))>,
    allocated: u64,
    freed: u64,
    unknown: u64,
    replaced: u64,
    kept: u64,
    failed: u64,
}

static TOLD: LazyLock<Mutex<Told>> = LazyLock::new(Mutex::default);
static HOOKS: Mutex<Option<AllocatorHooks>> = Mutex::new(None);
/// What was told outside of a call, or a call that ends what nobody has begun.
static ASTRAY: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a call that is told.
pub(crate) fn is_inside() -> bool {
    IS_INSIDE.get()
}

fn told() -> MutexGuard<'static, Told> {
    if !is_inside() {
        ASTRAY.fetch_add(1, Ordering::Relaxed);
    }
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Keeper;

impl AllocatorObserver for Keeper {
    fn enter() -> bool {
        !IS_INSIDE.replace(true)
    }

    fn leave() {
        if !IS_INSIDE.replace(false) {
            ASTRAY.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn allocated(domain: Domain, function: Function, address: u64, size: u64) {
        let mut told = told();
        told.allocated += 1;
        if told.blocks.insert(address, (domain, function, size)).is_some() {
            told.replaced += 1;
        }
    }

    fn about_to_free(address: u64) {
        let mut told = told();
        told.freed += 1;
        let block = told.blocks.remove(&address);
        told.unknown += u64::from(block.is_none());
        told.last = block.map(|block| (address, block));
    }

    fn kept(address: u64) {
        let mut told = told();
        told.kept += 1;
        if let Some((last, block)) = told.last.take().filter(|(last, _)| *last == address) {
            told.blocks.insert(last, block);
        }
    }

    fn failed(_: Domain, _: Function, _: u64) {
        told().failed += 1;
    }
}

/// Another observer, as a later release of ours in the same process is one.
struct Counter;

static COUNT: AtomicU64 = AtomicU64::new(0);

impl AllocatorObserver for Counter {
    fn enter() -> bool {
        !IS_INSIDE.replace(true)
    }

    fn leave() {
        IS_INSIDE.set(false);
    }

    fn allocated(_: Domain, _: Function, _: u64, _: u64) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }

    fn about_to_free(_: u64) {}

    fn kept(_: u64) {}

    fn failed(_: Domain, _: Function, _: u64) {}
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
/// outside of a call, 7 told to the one that counts.
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
        6 => ASTRAY.load(Ordering::Relaxed),
        _ => COUNT.load(Ordering::Relaxed),
    }
}
