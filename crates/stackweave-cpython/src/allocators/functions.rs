//! The functions that the interpreter calls for each block. Hot: they may not allocate, lock, nor call the interpreter; what
//! the observer does is its own.
//!
//! A link is never freed and what it forwards to never changes: whoever has copied our functions may call them for ever.

use core::any::TypeId;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use super::api::{Allocator, Calloc, Free, Malloc, Realloc};
use super::{AllocatorObserver, Domain, Function, Pointer};

/// One of our places in the chain of a domain's allocators: the context of our functions.
#[derive(Debug)]
pub(super) struct Link {
    /// What was there before. All of its functions are there.
    pub(super) previous: Previous,
    /// Whose functions have it as their context.
    pub(super) observer: TypeId,
    /// The link of this domain that was made before it.
    pub(super) older: Option<&'static Link>,
    pub(super) is_telling: AtomicBool,
    /// Set when it is called while it does not tell.
    pub(super) was_called: AtomicBool,
}

// SAFETY: what it forwards to are functions and their context, which the interpreter calls from every thread.
unsafe impl Send for Link {}
// SAFETY: as above; nothing else of it changes but atomically.
unsafe impl Sync for Link {}

#[derive(Clone, Copy, Debug)]
pub(super) struct Previous {
    context: *mut c_void,
    malloc: Malloc,
    calloc: Calloc,
    realloc: Realloc,
    free: Free,
}

impl Previous {
    /// None if the interpreter has no allocator: it always has.
    pub(super) fn of(allocator: Allocator) -> Option<Self> {
        let Allocator { context, malloc, calloc, realloc, free } = allocator;
        Some(Self { context, malloc: malloc?, calloc: calloc?, realloc: realloc?, free: free? })
    }

    pub(super) fn allocator(&self) -> Allocator {
        let Self { context, malloc, calloc, realloc, free } = *self;
        Allocator { context, malloc: Some(malloc), calloc: Some(calloc), realloc: Some(realloc), free: Some(free) }
    }
}

/// Our functions for a domain, before those that the link has.
pub(super) fn allocator<O: AllocatorObserver>(domain: Domain, link: &'static Link) -> Allocator {
    let context = (&raw const *link).cast_mut().cast();
    match domain {
        Domain::Mem => of_domain::<O, { Domain::Mem as u8 }>(context),
        Domain::Object => of_domain::<O, { Domain::Object as u8 }>(context),
    }
}

fn of_domain<O: AllocatorObserver, const DOMAIN: u8>(context: *mut c_void) -> Allocator {
    Allocator {
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

/// The link that a context is, and whether its observer is told.
///
/// # Safety
/// The context is a link.
#[inline(always)]
unsafe fn link_of(context: *mut c_void) -> (&'static Link, bool) {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<Link>() };
    let is_telling = link.is_telling.load(Ordering::Relaxed);
    if !is_telling {
        link.was_called.store(true, Ordering::Relaxed);
    }
    (link, is_telling)
}

/// # Safety
/// The interpreter calls it, or who stands before us; the context is a link.
unsafe extern "C" fn malloc<O: AllocatorObserver, const DOMAIN: u8>(context: *mut c_void, size: usize) -> Pointer {
    // SAFETY: passed on to the caller.
    let (link, is_telling) = unsafe { link_of(context) };
    let Previous { context, malloc, .. } = link.previous;
    // SAFETY: the arguments are those that we got.
    let original = || unsafe { malloc(context, size) };
    if is_telling { O::take(domain(DOMAIN), Function::Malloc, size, original) } else { original() }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn calloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    count: usize,
    size: usize,
) -> Pointer {
    // SAFETY: passed on to the caller.
    let (link, is_telling) = unsafe { link_of(context) };
    let Previous { context, calloc, .. } = link.previous;
    // SAFETY: the arguments are those that we got.
    let original = || unsafe { calloc(context, count, size) };
    if is_telling {
        O::take(domain(DOMAIN), Function::Calloc, count.saturating_mul(size), original)
    } else {
        original()
    }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn realloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    old: Pointer,
    size: usize,
) -> Pointer {
    // SAFETY: passed on to the caller.
    let (link, is_telling) = unsafe { link_of(context) };
    let Previous { context, realloc, .. } = link.previous;
    // SAFETY: the arguments are those that we got.
    let original = || unsafe { realloc(context, old, size) };
    if is_telling { O::exchange(domain(DOMAIN), old, size, original) } else { original() }
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn free<O: AllocatorObserver>(context: *mut c_void, block: Pointer) {
    // SAFETY: passed on to the caller.
    let (link, is_telling) = unsafe { link_of(context) };
    let Previous { context, free, .. } = link.previous;
    // SAFETY: the arguments are those that we got.
    let original = || unsafe { free(context, block) };
    if is_telling && !block.is_null() { O::give_back(block, original) } else { original() }
}
