//! The functions that the interpreter calls for each block. Hot: they may not allocate, lock, nor call the interpreter; what
//! the observer does is its own.
//!
//! A link is never freed and what it forwards to never changes: whoever has copied our functions may call them for ever.

use core::any::TypeId;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use super::api::{Allocator, Calloc, Free, Malloc, Realloc};
use super::{AllocatorObserver, Domain, Function};

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

/// Whether to tell of a call; then the observer is entered.
#[inline(always)]
fn enter<O: AllocatorObserver>(link: &Link) -> bool {
    if link.is_telling.load(Ordering::Relaxed) {
        return O::enter();
    }
    link.was_called.store(true, Ordering::Relaxed);
    false
}

#[inline(always)]
fn tell<O: AllocatorObserver>(domain: Domain, function: Function, address: *mut c_void, size: usize) {
    if address.is_null() {
        O::failed(domain, function, size as u64);
    } else {
        O::allocated(domain, function, address.addr() as u64, size as u64);
    }
}

/// # Safety
/// The interpreter calls it, or who stands before us; the context is a link.
unsafe extern "C" fn malloc<O: AllocatorObserver, const DOMAIN: u8>(context: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<Link>() };
    let Previous { context, malloc, .. } = link.previous;
    if !enter::<O>(link) {
        // SAFETY: the arguments are those that we got.
        return unsafe { malloc(context, size) };
    }
    // SAFETY: as above.
    let address = unsafe { malloc(context, size) };
    tell::<O>(domain(DOMAIN), Function::Malloc, address, size);
    O::leave();
    address
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn calloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<Link>() };
    let Previous { context, calloc, .. } = link.previous;
    if !enter::<O>(link) {
        // SAFETY: the arguments are those that we got.
        return unsafe { calloc(context, count, size) };
    }
    // SAFETY: as above.
    let address = unsafe { calloc(context, count, size) };
    tell::<O>(domain(DOMAIN), Function::Calloc, address, count.saturating_mul(size));
    O::leave();
    address
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn realloc<O: AllocatorObserver, const DOMAIN: u8>(
    context: *mut c_void,
    old: *mut c_void,
    size: usize,
) -> *mut c_void {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<Link>() };
    let Previous { context, realloc, .. } = link.previous;
    if !enter::<O>(link) {
        // SAFETY: the arguments are those that we got.
        return unsafe { realloc(context, old, size) };
    }
    if !old.is_null() {
        O::about_to_free(old.addr() as u64);
    }
    // SAFETY: as above.
    let address = unsafe { realloc(context, old, size) };
    if address.is_null() && !old.is_null() {
        O::kept(old.addr() as u64);
    }
    tell::<O>(domain(DOMAIN), Function::Realloc, address, size);
    O::leave();
    address
}

/// # Safety
/// As for [`malloc`].
unsafe extern "C" fn free<O: AllocatorObserver>(context: *mut c_void, address: *mut c_void) {
    // SAFETY: links are never freed.
    let link = unsafe { &*context.cast::<Link>() };
    let Previous { context, free, .. } = link.previous;
    if address.is_null() || !enter::<O>(link) {
        // SAFETY: the arguments are those that we got.
        return unsafe { free(context, address) };
    }
    O::about_to_free(address.addr() as u64);
    // SAFETY: as above.
    unsafe { free(context, address) };
    O::leave();
}
