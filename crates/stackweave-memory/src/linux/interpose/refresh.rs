//! Decides when the modules are walked, and under which locks.
//!
//! [`refresh_if_needed`] is for hooks: three loads when nothing was loaded. It never waits, allocates nothing, and is
//! async-signal-safe: while another thread loads modules or walks, the next hook tries again.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::OnceLock;

use crate::platform::interpose::kept_hooks::KeptFunctions;
use crate::platform::interpose::loader::{ListLock, Loader};
use crate::platform::interpose::module_table::ModuleVisit;
use crate::platform::interpose::walk::{HookedModules, Purpose, walk};
use crate::platform::interpose::walk_lock::{WalkGuard, WalkLock, retry};
use crate::platform::interpose::{HookFunction, InterposeError, InterposeStats};
use crate::platform::interpose::{definitions, foreign_slots, kept_hooks, loader_hooks};

pub(super) static LOADER: OnceLock<Loader> = OnceLock::new();
static MODULES: WalkLock<Option<HookedModules>> = WalkLock::new(None);

static NO_LOADS: u64 = 0;
/// The loader's counter while functions are hooked, else a constant.
static LOADS: AtomicPtr<u64> = AtomicPtr::new((&raw const NO_LOADS).cast_mut());
/// The counter at the last walk.
static LOADS_SEEN: AtomicU64 = AtomicU64::new(0);
/// The counter at the last walk by a thread that was loading.
static LOADS_SEEN_LOADING: AtomicU64 = AtomicU64::new(0);
static NEEDS_RECHECK: AtomicBool = AtomicBool::new(false);

fn loads() -> u64 {
    // SAFETY: the counter is the loader's and is never freed, or it is a constant. Volatile, because the loader changes
    // it; one aligned word.
    unsafe { LOADS.load(Ordering::Relaxed).read_volatile() }
}

/// Hooks modules that were loaded since the last walk, if any were.
#[inline]
pub(crate) fn refresh_if_needed() {
    if loads() != LOADS_SEEN.load(Ordering::Relaxed) {
        try_refresh(Purpose::HookNew);
    }
}

/// Checks slots again that the loader may have bound after they were hooked, or that were skipped until it has. A
/// thread of ours calls this periodically: it costs one load if there are no such slots.
pub(crate) fn recheck() {
    if NEEDS_RECHECK.load(Ordering::Relaxed) {
        try_refresh(Purpose::Recheck);
    }
}

/// Finds slots that another tool has taken over or released since the last walk. A thread of ours calls this
/// periodically: it reads one word of each module. It does nothing while another thread loads modules or walks.
pub(crate) fn update_foreign_slots() {
    try_refresh(Purpose::FindForeign);
}

/// Returns whether this thread holds a lock of the loader: other threads that need the loader wait for it. Calls the
/// kernel.
fn holds_the_loader() -> bool {
    LOADER.get().is_some_and(Loader::is_held_here)
}

#[cold]
#[inline(never)]
fn try_refresh(purpose: Purpose) {
    let Some(loader) = LOADER.get() else { return };
    // The loader's locks are released before the walk lock: a fork, which takes the walk lock, finds them free.
    let Some(mut modules) = MODULES.try_lock() else { return };
    let Some(guard) = loader.try_enter() else { return };
    refresh(&mut modules, purpose, guard.is_loading());
}

/// Refreshes like [`refresh_if_needed`], but waits for threads that are loading, as `dlsym` does.
pub(super) fn refresh_now() {
    let Some(loader) = LOADER.get() else { return };
    let is_known = !loader.loads.is_null();
    if is_known && loads() == LOADS_SEEN.load(Ordering::Relaxed) {
        return;
    }
    with_modules(loader, |modules, is_loading| refresh(modules, Purpose::HookNew, is_loading));
}

fn refresh(guard: &mut WalkGuard<'_, Option<HookedModules>>, purpose: Purpose, is_loading: bool) {
    let Some(modules) = guard.as_mut() else { return };
    // A constructor that allocates: its first allocation has hooked what its thread has loaded.
    if is_loading && purpose == Purpose::HookNew && loads() == LOADS_SEEN_LOADING.load(Ordering::Relaxed) {
        return;
    }
    let loads = walk(modules, purpose, is_loading);
    let seen = if is_loading { &LOADS_SEEN_LOADING } else { &LOADS_SEEN };
    if !LOADER.get().is_none_or(|loader| loader.loads.is_null()) {
        seen.store(loads, Ordering::Relaxed);
    }
    foreign_slots::note(modules.table.entries(), modules.overwritten);
    let needs_recheck = modules.table.entries().iter().any(ModuleVisit::needs_recheck);
    NEEDS_RECHECK.store(needs_recheck, Ordering::Relaxed);
}

/// Runs `action` while no other thread loads modules or walks. `None` if that is impossible: inside a walk of this
/// thread, or after a fork in which the locks were lost.
fn with_modules<R>(
    loader: &Loader,
    action: impl FnOnce(&mut WalkGuard<'_, Option<HookedModules>>, bool) -> R,
) -> Option<R> {
    let load_guard = loader.wait_for_loads();
    // The walk lock is released while this waits for the list: the thread that holds the list's lock may be forking.
    let locked = retry(|| {
        let modules = MODULES.lock();
        match (modules, load_guard.try_list()) {
            (None, _) | (_, ListLock::HeldHere) => Some(None),
            (_, ListLock::Busy) => None,
            (Some(modules), list @ (ListLock::Locked(_) | ListLock::Unknown)) => Some(Some((list, modules))),
        }
    });
    // The lock of the list is released before the walk lock.
    let (list, mut modules) = locked.flatten()?;
    let result = action(&mut modules, load_guard.is_loading());
    drop(list);
    Some(result)
}

/// Hooks `functions` in all modules that are loaded and in those that will be. Hooks that were kept are used again.
pub(crate) fn install(functions: &'static [HookFunction]) -> Result<(), InterposeError> {
    match kept_hooks::take(functions) {
        KeptFunctions::Same => {
            foreign_slots::reset_foreign_slots();
            refresh_now();
            update_foreign_slots();
            return Ok(());
        }
        KeptFunctions::Different => restore_slots(),
        KeptFunctions::None => {}
    }
    hold_walk_lock_during_forks();
    stackweave_recording::never_block_while(holds_the_loader);
    definitions::pin_this_module();
    let loader = LOADER.get_or_init(Loader::find);
    let definitions = definitions::find(functions, &loader_hooks::functions());
    let hooked = HookedModules::new(definitions).ok_or(InterposeError::NoMemory)?;
    let installed = with_modules(loader, |modules, is_loading| {
        if modules.is_some() {
            return Err(InterposeError::AlreadyInstalled);
        }
        **modules = Some(hooked);
        foreign_slots::reset_foreign_slots();
        LOADS_SEEN_LOADING.store(u64::MAX, Ordering::Relaxed);
        refresh(modules, Purpose::HookNew, is_loading);
        let stats = modules.as_ref().map(stats_of).unwrap_or_default();
        if stats.slots == 0 {
            **modules = None;
            let is_foreign = stats.foreign_slots != 0;
            return Err(if is_foreign { InterposeError::HookedByAnotherTool } else { InterposeError::NoSlots });
        }
        if !loader.loads.is_null() {
            LOADS.store(loader.loads.cast_mut(), Ordering::Relaxed);
        }
        Ok(())
    });
    installed.unwrap_or(Err(InterposeError::Busy))
}

/// Restores what the loader would have put into the slots, unless the hooks of `functions` are to be kept.
pub(crate) fn remove(functions: &'static [HookFunction]) {
    if !kept_hooks::keep(functions) {
        restore_slots();
    }
}

/// Restores what the loader would have put into the slots, if functions are hooked.
pub(super) fn restore_slots() {
    let Some(loader) = LOADER.get() else { return };
    with_modules(loader, |modules, is_loading| {
        LOADS.store((&raw const NO_LOADS).cast_mut(), Ordering::Relaxed);
        LOADS_SEEN.store(NO_LOADS, Ordering::Relaxed);
        NEEDS_RECHECK.store(false, Ordering::Relaxed);
        if let Some(mut hooked) = modules.take() {
            walk(&mut hooked, Purpose::Restore, is_loading);
        }
    });
}

/// Returns the counts of the last walk.
pub(crate) fn stats() -> InterposeStats {
    recheck();
    MODULES.lock().and_then(|modules| modules.as_ref().map(stats_of)).unwrap_or_default()
}

fn stats_of(modules: &HookedModules) -> InterposeStats {
    let mut stats = InterposeStats::default();
    for visit in modules.table.entries() {
        stats.modules += u64::from(visit.slots != 0);
        stats.slots += u64::from(visit.slots);
        stats.foreign_slots += u64::from(visit.foreign);
    }
    stats
}

fn hold_walk_lock_during_forks() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);
    static IS_LOCKED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        if let Some(guard) = MODULES.lock() {
            core::mem::forget(guard);
            IS_LOCKED.store(true, Ordering::Relaxed);
        }
    }
    unsafe extern "C" fn after_fork() {
        if IS_LOCKED.swap(false, Ordering::Relaxed) {
            // SAFETY: this thread locked it above and forgot the guard.
            unsafe { MODULES.unlock_forgotten() };
        }
    }
    unsafe extern "C" fn after_fork_in_child() {
        if let Some(loader) = LOADER.get() {
            loader.free_list_in_child();
        }
        // SAFETY: called as a handler of the same fork.
        unsafe { after_fork() };
    }
    if !IS_REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers only touch flags.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) };
    }
}
