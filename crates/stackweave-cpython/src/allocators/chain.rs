//! Inserts our functions into the chain of a domain's allocators, and removes them.
//!
//! Other code also installs allocators and restores the ones that it found: over ours, or those from before ours. So a
//! link always forwards to the same allocator, and a new link is created when another allocator is found; no link can
//! lead back to itself. Links are leaked: a hundred bytes each time that other code has changed the chain.

use core::any::TypeId;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::api::AllocatorApi;
use super::functions::{self, AllocatorLink, Previous};
use super::{AllocatorObserver, Domain};

/// The newest link of each domain. Changed with the GIL held.
static NEWEST: [AtomicPtr<AllocatorLink>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

fn newest(domain: Domain) -> Option<&'static AllocatorLink> {
    let link = NEWEST[domain as usize - 1].load(Ordering::Acquire);
    // SAFETY: links are never freed.
    unsafe { link.as_ref() }
}

/// Makes the domain's calls reach `O`, and no other observer of ours. The newest link is reused if possible: if it is
/// anywhere in the chain, or if the chain is what it was before that link.
///
/// # Safety
/// The GIL is held, no other thread runs in a build without it, and the caller is not inside an allocator.
pub(super) unsafe fn install<O: AllocatorObserver>(api: &AllocatorApi, domain: Domain) {
    if let Some(link) = newest(domain)
        && link.observer == TypeId::of::<O>()
        // SAFETY: passed on to the caller.
        && unsafe { is_in_chain(api, domain, link) }
    {
        link.is_recording.store(true, Ordering::Relaxed);
        return;
    }
    // SAFETY: passed on to the caller.
    unsafe { install_first::<O>(api, domain) };
}

/// Makes the domain's calls reach `O` first. A link of ours deeper in the chain does no harm: the observer is in an
/// event already when it is called. Returns whether `O` was not the first.
///
/// # Safety
/// The GIL is held, and no other thread runs in a build without it.
pub(super) unsafe fn install_first<O: AllocatorObserver>(api: &AllocatorApi, domain: Domain) -> bool {
    // SAFETY: passed on to the caller; our functions forward, so they serve every block that the previous ones serve.
    unsafe {
        let now = api.get(domain);
        let newest = newest(domain).filter(|link| link.observer == TypeId::of::<O>());
        if let Some(link) = newest {
            let ours = functions::allocator::<O>(domain, link);
            if now.is(&ours) || now.is(&link.previous.allocator()) {
                link.is_recording.store(true, Ordering::Relaxed);
                if now.is(&ours) {
                    return false;
                }
                api.set(domain, ours);
                return true;
            }
        }
        let Some(previous) = Previous::of(now) else { return false };
        api.set(domain, functions::allocator::<O>(domain, new_link::<O>(domain, previous)));
        true
    }
}

/// Stops recording. Restores the previous allocators, unless other code has installed its own after ours: it may call
/// us.
///
/// # Safety
/// As for [`install_first`].
pub(super) unsafe fn remove<O: AllocatorObserver>(api: &AllocatorApi, domain: Domain) {
    let mut link = newest(domain);
    while let Some(each) = link {
        each.is_recording.store(false, Ordering::Relaxed);
        link = each.older;
    }
    let Some(link) = newest(domain) else { return };
    // SAFETY: passed on to the caller.
    unsafe {
        if api.get(domain).is(&functions::allocator::<O>(domain, link)) {
            api.set(domain, link.previous.allocator());
        }
    }
}

/// Returns whether a call reaches this link, which does not record: allocates a block to find out.
///
/// # Safety
/// As for [`install`].
unsafe fn is_in_chain(api: &AllocatorApi, domain: Domain, link: &AllocatorLink) -> bool {
    link.was_called.store(false, Ordering::Relaxed);
    // SAFETY: passed on to the caller.
    unsafe { api.allocate_and_free(domain) };
    link.was_called.load(Ordering::Relaxed)
}

fn new_link<O: AllocatorObserver>(domain: Domain, previous: Previous) -> &'static AllocatorLink {
    let link = Box::leak(Box::new(AllocatorLink {
        previous,
        observer: TypeId::of::<O>(),
        older: newest(domain),
        is_recording: AtomicBool::new(true),
        was_called: AtomicBool::new(false),
    }));
    NEWEST[domain as usize - 1].store(link, Ordering::Release);
    link
}
