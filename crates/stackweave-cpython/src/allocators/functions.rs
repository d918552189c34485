//! The functions that the interpreter calls for each block. Hot: they may not allocate, lock, or call the interpreter,
//! except for what the observer does.
//!
//! A link is never freed, and what it forwards to never changes: code that has copied our functions may call them for
//! ever.

use core::any::TypeId;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use super::api::{Calloc, Free, Malloc, PyMemAllocatorEx, Realloc};
use super::{AllocatorFunction, AllocatorObserver, BlockPointer, Domain};

/// A link of ours in the chain of a domain's allocators: the context of our functions.
#[derive(Debug)]
pub(super) struct AllocatorLink {
    /// The allocator before this one. It has all functions.
    pub(super) previous: Previous,
    /// The observer whose functions have this link as their context.
    pub(super) observer: TypeId,
    /// The link of this domain that was created before this one.
    pub(super) older: Option<&'static AllocatorLink>,
    pub(super) is_recording: AtomicBool,
    /// Set when the link is called while it does not record.
    pub(super) was_called: AtomicBool,
}

// SAFETY: it forwards to functions and their context, which the interpreter calls from every thread.
unsafe impl Send for AllocatorLink {}
// SAFETY: as above; its other fields only change atomically.
unsafe impl Sync for AllocatorLink {}

#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    context: *mut c_void,
    malloc: Malloc,
    calloc: Calloc,
    realloc: Realloc,
    free: Free,
}

impl Previous {
    /// Copies an allocator. `None` if it lacks a function, which no allocator of the interpreter does.
    pub(super) fn of(allocator: PyMemAllocatorEx) -> Option<Self> {
        let PyMemAllocatorEx { context, malloc, calloc, realloc, free } = allocator;
        Some(Self { context, malloc: malloc?, calloc: calloc?, realloc: realloc?, free: free? })
    }

    pub(super) fn allocator(&self) -> PyMemAllocatorEx {
        let Self { context, malloc, calloc, realloc, free } = *self;
        PyMemAllocatorEx {
            context,
            malloc: Some(malloc),
            calloc: Some(calloc),
            realloc: Some(realloc),
            free: Some(free),
        }
    }
}

/// Returns our functions for a domain, which forward to those of the link.
pub(super) fn allocator<O: AllocatorObserver>(domain: Domain, link: &'static AllocatorLink) -> PyMemAllocatorEx {
    let context = (&raw const *link).cast_mut().cast();
    match domain {
        Domain::Mem => of_domain::<O, { Domain::Mem as u8 }>(context),
        Domain::Object => of_domain::<O, { Domain::Object as u8 }>(context),
    }
}

fn of_domain<O: AllocatorObserver, const DOMAIN: u8>(context: *mut c_void) -> PyMemAllocatorEx {
    PyMemAllocatorEx {
        context,
        malloc: Some(malloc::<O, DOMAIN>),
        calloc: Some(calloc::<O, DOMAIN>),
        realloc: Some(realloc::<O, DOMAIN>),
        free: Some(free::<O>),
    }
}

const fn domain(number: u8) -> Domain {
    if number == Domain::Mem as u8 { Domain::Mem } else { Domain::Object }
}

/// Returns the link of a context, and whether its observer records.
///
/// # Safety
/// The context is a link.
#[inline(always)]
unsafe fn link_of(context: *mut c_void) -> (&'static AllocatorLink, bool) {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<AllocatorLink>() };
    let is_recording = link.is_recording.load(Ordering::Relaxed);
    if !is_recording {
        link.was_called.store(true, Ordering::Relaxed);
    }
    (link, is_recording)
}

/// # Safety
/// The interpreter calls it, or another allocator in the chain; the context is a link.
unsafe extern "C" fn malloc<O: AllocatorObserver, const DOMAIN: u8>(context: *mut c_void, size: usize) -> BlockPointer {
    // SAFETY: passed on to the caller.
    let (link, is_recording) = unsafe { link_of(context) };
    let Previous { context, malloc, .. } = link.previous;
    // SAFETY: the arguments are those that we received.
    let original = || unsafe { malloc(context, size) };
    if is_recording { O::allocate(domain(DOMAIN), AllocatorFunction::Malloc, size, original) } else { original() }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn calloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    count: usize,
    size: usize,
) -> BlockPointer {
    // SAFETY: passed on to the caller.
    let (link, is_recording) = unsafe { link_of(context) };
    let Previous { context, calloc, .. } = link.previous;
    // SAFETY: the arguments are those that we received.
    let original = || unsafe { calloc(context, count, size) };
    if is_recording {
        O::allocate(domain(DOMAIN), AllocatorFunction::Calloc, count.saturating_mul(size), original)
    } else {
        original()
    }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn realloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    old: BlockPointer,
    size: usize,
) -> BlockPointer {
    // SAFETY: passed on to the caller.
    let (link, is_recording) = unsafe { link_of(context) };
    let Previous { context, realloc, .. } = link.previous;
    // SAFETY: the arguments are those that we received.
    let original = || unsafe { realloc(context, old, size) };
    if is_recording { O::reallocate(domain(DOMAIN), old, size, original) } else { original() }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn free<O: AllocatorObserver>(context: *mut c_void, block: BlockPointer) {
    // SAFETY: passed on to the caller.
    let (link, is_recording) = unsafe { link_of(context) };
    let Previous { context, free, .. } = link.previous;
    // SAFETY: the arguments are those that we received.
    let original = || unsafe { free(context, block) };
    if is_recording && !block.is_null() { O::free(block, original) } else { original() }
}
