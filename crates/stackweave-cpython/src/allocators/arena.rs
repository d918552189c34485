//! Before who gets arenas, in which the interpreter's small blocks lie, and other memory that is mapped for it: frames.
//!
//! An arena is asked for inside a call that has come to us already. If not, it is memory for frames; or somebody has put allocators
//! back that were there before ours, as `tracemalloc.stop` does: then ours are put in again.

use core::any::TypeId;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::api::{Api, ArenaAllocator, FreeArena, Malloc};
use super::{AllocatorObserver, Domain, chain};

/// The newest of ours. Changed with the GIL held.
static NEWEST: AtomicPtr<ArenaLink> = AtomicPtr::new(ptr::null_mut());
static IS_TELLING: AtomicBool = AtomicBool::new(false);
static PUT_BACK: AtomicU64 = AtomicU64::new(0);

/// One of our places in the chain, never freed nor changed.
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

/// How often, ever, our allocators were put in again because somebody had taken them out.
pub(super) fn put_back() -> u64 {
    PUT_BACK.load(Ordering::Relaxed)
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
pub(super) unsafe fn install<O: AllocatorObserver>(api: &Api) {
    // SAFETY: passed on to the caller; ours forward, so that they serve every arena that the others serve.
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
    IS_TELLING.store(true, Ordering::Relaxed);
}

/// # Safety
/// As for [`chain::remove`].
pub(super) unsafe fn remove<O: AllocatorObserver>(api: &Api) {
    IS_TELLING.store(false, Ordering::Relaxed);
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
    if IS_TELLING.load(Ordering::Relaxed) && !O::is_inside() {
        // SAFETY: the GIL is held.
        unsafe { put_back_in::<O>() };
    }
    // SAFETY: the arguments are those that we got.
    unsafe { (link.allocate)(link.context, size) }
}

/// # Safety
/// As for [`allocate`].
unsafe extern "C" fn free(context: *mut c_void, arena: *mut c_void, size: usize) {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<ArenaLink>() };
    // SAFETY: the arguments are those that we got.
    unsafe { (link.free)(link.context, arena, size) };
}

/// # Safety
/// As for [`chain::put_on_top`].
#[cold]
unsafe fn put_back_in<O: AllocatorObserver>() {
    let Ok(api) = Api::find() else { return };
    // Other threads may be calling an allocator.
    if api.has_no_gil() {
        return;
    }
    let mut was_out = false;
    for domain in [Domain::Mem, Domain::Object] {
        // SAFETY: passed on to the caller.
        was_out |= unsafe { chain::put_on_top::<O>(api, domain) };
    }
    PUT_BACK.fetch_add(u64::from(was_out), Ordering::Relaxed);
}
