//! Hooks the allocator of arenas, which hold the interpreter's small blocks, and of other memory that it maps: frames.
//!
//! An arena is allocated inside a call that has reached our hooks already. If not, it is memory for frames; or other
//! code has restored allocators from before ours, as `tracemalloc.stop` does: then ours are installed again.

use core::any::TypeId;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::api::{AllocatorApi, ArenaAllocator, FreeArena, Malloc};
use super::{AllocatorObserver, Domain, chain};

/// The newest of our links. Changed with the GIL held.
static NEWEST: AtomicPtr<ArenaLink> = AtomicPtr::new(ptr::null_mut());
static IS_RECORDING: AtomicBool = AtomicBool::new(false);
static REINSTALLED: AtomicU64 = AtomicU64::new(0);

/// A link of ours in the chain of arena allocators, never freed or changed.
#[derive(Debug)]
struct ArenaLink {
    context: *mut c_void,
    allocate: Malloc,
    free: FreeArena,
    observer: TypeId,
}

impl ArenaLink {
    fn previous(&self) -> ArenaAllocator {
        ArenaAllocator { context: self.context, allocate: Some(self.allocate), free: Some(self.free) }
    }
}

/// Returns how often our allocators were ever installed again because other code had removed them.
pub(super) fn reinstallations() -> u64 {
    REINSTALLED.load(Ordering::Relaxed)
}

fn ours<O: AllocatorObserver>(link: &'static ArenaLink) -> ArenaAllocator {
    let context = ptr::from_ref(link).cast_mut().cast();
    ArenaAllocator { context, allocate: Some(allocate::<O>), free: Some(free) }
}

fn newest<O: AllocatorObserver>() -> Option<&'static ArenaLink> {
    // SAFETY: links are never freed.
    let link = unsafe { NEWEST.load(Ordering::Acquire).as_ref() };
    link.filter(|link| link.observer == TypeId::of::<O>())
}

/// # Safety
/// As for [`chain::install`].
pub(super) unsafe fn install<O: AllocatorObserver>(api: &AllocatorApi) {
    // SAFETY: passed on to the caller; our functions forward, so they serve every arena that the previous ones serve.
    unsafe {
        let now = api.get_arena();
        let link = newest::<O>().filter(|link| now.is(&link.previous()) || now.is(&ours::<O>(link)));
        let (Some(allocate), Some(free)) = (now.allocate, now.free) else { return };
        let link = link.unwrap_or_else(|| {
            let observer = TypeId::of::<O>();
            let link = Box::leak(Box::new(ArenaLink { context: now.context, allocate, free, observer }));
            NEWEST.store(link, Ordering::Release);
            link
        });
        if !now.is(&ours::<O>(link)) {
            api.set_arena(ours::<O>(link));
        }
    }
    IS_RECORDING.store(true, Ordering::Relaxed);
}

/// # Safety
/// As for [`chain::remove`].
pub(super) unsafe fn remove<O: AllocatorObserver>(api: &AllocatorApi) {
    IS_RECORDING.store(false, Ordering::Relaxed);
    let Some(link) = newest::<O>() else { return };
    // SAFETY: passed on to the caller.
    unsafe {
        if api.get_arena().is(&ours::<O>(link)) {
            api.set_arena(link.previous());
        }
    }
}

/// # Safety
/// The interpreter calls it, with the GIL held; the context is a link.
unsafe extern "C" fn allocate<O: AllocatorObserver>(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<ArenaLink>() };
    if IS_RECORDING.load(Ordering::Relaxed) && !O::is_in_event() {
        // SAFETY: the GIL is held.
        unsafe { reinstall::<O>() };
    }
    // SAFETY: the arguments are those that we received.
    unsafe { (link.allocate)(link.context, size) }
}

/// # Safety
/// As for [`allocate`].
unsafe extern "C" fn free(context: *mut c_void, arena: *mut c_void, size: usize) {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<ArenaLink>() };
    // SAFETY: the arguments are those that we received.
    unsafe { (link.free)(link.context, arena, size) };
}

/// # Safety
/// As for [`chain::install_first`].
#[cold]
unsafe fn reinstall<O: AllocatorObserver>() {
    let Ok(api) = AllocatorApi::find() else { return };
    // Other threads may be calling an allocator.
    if api.has_no_gil() {
        return;
    }
    let mut was_removed = false;
    for domain in [Domain::Mem, Domain::Object] {
        // SAFETY: passed on to the caller.
        was_removed |= unsafe { chain::install_first::<O>(api, domain) };
    }
    REINSTALLED.fetch_add(u64::from(was_removed), Ordering::Relaxed);
}
