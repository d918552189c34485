//! When the modules are walked, and under which locks.
//!
//! [`refresh_if_needed`] is for hooks: three loads when nothing was loaded. It never waits, allocates nothing, and is
//! async-signal-safe: when another thread is loading, or is walking, the next hook tries again.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::OnceLock;

use crate::platform::interpose::definitions;
use crate::platform::interpose::kept::Kept;
use crate::platform::interpose::loader::{List, Loader};
use crate::platform::interpose::loading;
use crate::platform::interpose::turns::{Turn, Turns, patiently};
use crate::platform::interpose::walk::{Knowledge, Purpose, walk};
use crate::platform::interpose::{Function, InterposeError, InterposeStats, kept, others};

pub(super) static LOADER: OnceLock<Loader> = OnceLock::new();
static KNOWLEDGE: Turns<Option<Knowledge>> = Turns::new(None);

static NO_LOADS: u64 = 0;
/// The loader's counter while functions are led, else a constant.
static LOADS: AtomicPtr<u64> = AtomicPtr::new((&raw const NO_LOADS).cast_mut());
/// What the counter was at the last walk.
static SEEN: AtomicU64 = AtomicU64::new(0);
/// What it was at the last walk by a thread that was loading.
static SEEN_LOADING: AtomicU64 = AtomicU64::new(0);
static WANTS_A_LOOK: AtomicBool = AtomicBool::new(false);

fn loads() -> u64 {
    // SAFETY: the counter is the loader's and never goes away, or a constant. Volatile, since the loader changes it; one
    // aligned word.
    unsafe { LOADS.load(Ordering::Relaxed).read_volatile() }
}

/// Leads what was loaded since the last walk, if anything was.
#[inline]
pub(crate) fn refresh_if_needed() {
    if loads() != SEEN.load(Ordering::Relaxed) {
        try_refresh(Purpose::Lead);
    }
}

/// Looks again at slots that the loader may have bound while they were led, or that were left until it has. For a thread of
/// ours, now and then: one load if there are none.
pub(crate) fn recheck() {
    if WANTS_A_LOOK.load(Ordering::Relaxed) {
        try_refresh(Purpose::LookAgain);
    }
}

/// Finds slots that another tool has taken over, or has given up, since the last walk. For a thread of ours, now and then: it
/// reads a word of each module. It does nothing while another thread loads or walks.
pub(crate) fn look_for_others() {
    try_refresh(Purpose::LookForOthers);
}

/// Returns whether this thread holds a lock of the loader: whoever needs the loader waits for it. A call of the kernel.
fn holds_the_loader() -> bool {
    LOADER.get().is_some_and(Loader::is_held_here)
}

#[cold]
#[inline(never)]
fn try_refresh(purpose: Purpose) {
    let Some(loader) = LOADER.get() else { return };
    // The loader's locks are given back before the turn: a fork, which takes the turn, finds them free.
    let Some(mut turn) = KNOWLEDGE.try_take() else { return };
    let Some(inside) = loader.try_enter() else { return };
    refresh(&mut turn, purpose, inside.is_loading());
}

/// As [`refresh_if_needed`], and waits for threads that are loading, as `dlsym` does.
pub(super) fn refresh_now() {
    let Some(loader) = LOADER.get() else { return };
    let is_known = !loader.loads.is_null();
    if is_known && loads() == SEEN.load(Ordering::Relaxed) {
        return;
    }
    with_modules(loader, |turn, is_loading| refresh(turn, Purpose::Lead, is_loading));
}

fn refresh(turn: &mut Turn<'_, Option<Knowledge>>, purpose: Purpose, is_loading: bool) {
    let Some(knowledge) = turn.as_mut() else { return };
    // A constructor that allocates: what its thread has loaded was led at its first allocation.
    if is_loading && purpose == Purpose::Lead && loads() == SEEN_LOADING.load(Ordering::Relaxed) {
        return;
    }
    let loads = walk(knowledge, purpose, is_loading);
    let seen = if is_loading { &SEEN_LOADING } else { &SEEN };
    if !LOADER.get().is_none_or(|loader| loader.loads.is_null()) {
        seen.store(loads, Ordering::Relaxed);
    }
    others::note(knowledge.modules.entries(), knowledge.overwritten);
    let wants_a_look = knowledge.modules.entries().iter().any(super::visited::Visit::wants_a_look);
    WANTS_A_LOOK.store(wants_a_look, Ordering::Relaxed);
}

/// Runs `action` when nobody loads and nobody walks. None if that can't be had: in a walk of this thread's own, or after a fork
/// in which the locks were lost.
fn with_modules<R>(loader: &Loader, action: impl FnOnce(&mut Turn<'_, Option<Knowledge>>, bool) -> R) -> Option<R> {
    let settled = loader.wait_for_loads();
    // Given back while the list is waited for: who has that may be forking.
    let locked = patiently(|| {
        let turn = KNOWLEDGE.take();
        match (turn, settled.try_list()) {
            (None, _) | (_, List::Walked) => Some(None),
            (_, List::Busy) => None,
            (Some(turn), list @ (List::Held(_) | List::Unknown)) => Some(Some((list, turn))),
        }
    });
    // The loader's lock is given back before the turn.
    let (list, mut turn) = locked.flatten()?;
    let result = action(&mut turn, settled.is_loading());
    drop(list);
    Some(result)
}

/// Leads `functions` to their hooks, in all modules that are loaded and in those that will be. Hooks that were kept are used again.
pub(crate) fn install(functions: &'static [Function]) -> Result<(), InterposeError> {
    match kept::take(functions) {
        Kept::These => {
            others::forget_others();
            refresh_now();
            look_for_others();
            return Ok(());
        }
        Kept::Others => put_back(),
        Kept::None => {}
    }
    take_turns_with_forks();
    stackweave_recording::never_wait_while(holds_the_loader);
    definitions::pin_this_module();
    let loader = LOADER.get_or_init(Loader::find);
    let definitions = definitions::find(functions, &loading::functions());
    let knowledge = Knowledge::new(definitions).ok_or(InterposeError::NoMemory)?;
    let installed = with_modules(loader, |turn, is_loading| {
        if turn.is_some() {
            return Err(InterposeError::Installed);
        }
        **turn = Some(knowledge);
        others::forget_others();
        SEEN_LOADING.store(u64::MAX, Ordering::Relaxed);
        refresh(turn, Purpose::Lead, is_loading);
        let stats = turn.as_ref().map(stats_of).unwrap_or_default();
        if stats.slots == 0 {
            **turn = None;
            let is_taken = stats.foreign_slots != 0;
            return Err(if is_taken { InterposeError::Taken } else { InterposeError::NothingToLead });
        }
        if !loader.loads.is_null() {
            LOADS.store(loader.loads.cast_mut(), Ordering::Relaxed);
        }
        Ok(())
    });
    installed.unwrap_or(Err(InterposeError::Busy))
}

/// Puts back what the loader would have put into the slots, unless the hooks of `functions` are to be kept.
pub(crate) fn remove(functions: &'static [Function]) {
    if !kept::keep(functions) {
        put_back();
    }
}

/// Puts back what the loader would have put into the slots, if functions are led.
pub(super) fn put_back() {
    let Some(loader) = LOADER.get() else { return };
    with_modules(loader, |turn, is_loading| {
        LOADS.store((&raw const NO_LOADS).cast_mut(), Ordering::Relaxed);
        SEEN.store(NO_LOADS, Ordering::Relaxed);
        WANTS_A_LOOK.store(false, Ordering::Relaxed);
        if let Some(mut knowledge) = turn.take() {
            walk(&mut knowledge, Purpose::PutBack, is_loading);
        }
    });
}

/// What was found at the last walk.
pub(crate) fn stats() -> InterposeStats {
    recheck();
    KNOWLEDGE.take().and_then(|turn| turn.as_ref().map(stats_of)).unwrap_or_default()
}

fn stats_of(knowledge: &Knowledge) -> InterposeStats {
    let mut stats = InterposeStats::default();
    for visit in knowledge.modules.entries() {
        stats.modules += u64::from(visit.slots != 0);
        stats.slots += u64::from(visit.slots);
        stats.foreign_slots += u64::from(visit.foreign);
    }
    stats
}

fn take_turns_with_forks() {
    static IS_ARRANGED: AtomicBool = AtomicBool::new(false);
    static HAS_TURN: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn before_fork() {
        if let Some(turn) = KNOWLEDGE.take() {
            core::mem::forget(turn);
            HAS_TURN.store(true, Ordering::Relaxed);
        }
    }
    unsafe extern "C" fn after_fork() {
        if HAS_TURN.swap(false, Ordering::Relaxed) {
            // SAFETY: forgotten above, by this thread: nobody else gets there while it is taken.
            unsafe { KNOWLEDGE.give_back() };
        }
    }
    unsafe extern "C" fn after_fork_in_child() {
        if let Some(loader) = LOADER.get() {
            loader.free_list_in_child();
        }
        // SAFETY: as a handler of the same fork.
        unsafe { after_fork() };
    }
    if !IS_ARRANGED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers only touch flags.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) };
    }
}
