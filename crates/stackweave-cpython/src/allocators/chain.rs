//! How our functions come into the chain of a domain's allocators, and out of it.
//!
//! Others come and go as they like, and may put back what they found when they came: over us, or what was there before us.
//! So a link forwards to the same for ever, and another one is made when something else is there; none of them can lead back
//! to itself. They are leaked: a hundred bytes for each time that somebody has come in between.

use core::any::TypeId;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::api::Api;
use super::functions::{self, Link, Previous};
use super::{AllocatorObserver, Domain};

/// The newest link of each domain. Changed with the GIL held.
static NEWEST: [AtomicPtr<Link>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

fn newest(domain: Domain) -> Option<&'static Link> {
    let link = NEWEST[domain as usize - 1].load(Ordering::Acquire);
    // SAFETY: links are never freed.
    unsafe { link.as_ref() }
}

/// Has the domain's calls come to `O`, and nobody else of ours. The newest link is used again if it can be: if it is in the
/// chain, wherever, or if the chain is what it was before it.
///
/// # Safety
/// The GIL is held, no other thread runs in a build without it, and this is not inside an allocator.
pub(super) unsafe fn install<O: AllocatorObserver>(api: &Api, domain: Domain) {
    if let Some(link) = newest(domain)
        && link.observer == TypeId::of::<O>()
        // SAFETY: passed on to the caller.
        && unsafe { is_in_chain(api, domain, link) }
    {
        link.is_telling.store(true, Ordering::Relaxed);
        return;
    }
    // SAFETY: passed on to the caller.
    unsafe { put_on_top::<O>(api, domain) };
}

/// Has the domain's calls come to `O` first. A link of ours that lies deeper in the chain does no harm: the observer is
/// inside already when it is called. Says whether that was not so.
///
/// # Safety
/// The GIL is held, and no other thread runs in a build without it.
pub(super) unsafe fn put_on_top<O: AllocatorObserver>(api: &Api, domain: Domain) -> bool {
    // SAFETY: passed on to the caller; our functions forward, so that they serve every block that the others serve.
    unsafe {
        let now = api.get(domain);
        let newest = newest(domain).filter(|link| link.observer == TypeId::of::<O>());
        if let Some(link) = newest {
            let ours = functions::allocator::<O>(domain, link);
            if now.is(&ours) || now.is(&link.previous.allocator()) {
                link.is_telling.store(true, Ordering::Relaxed);
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

/// Nothing more is told. What was there before is put back, unless somebody has come after us, who may call us.
///
/// # Safety
/// As for [`put_on_top`].
pub(super) unsafe fn remove<O: AllocatorObserver>(api: &Api, domain: Domain) {
    let mut link = newest(domain);
    while let Some(each) = link {
        each.is_telling.store(false, Ordering::Relaxed);
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

/// Asks for a block, to see whether that comes to a link that does not tell.
///
/// # Safety
/// As for [`install`].
unsafe fn is_in_chain(api: &Api, domain: Domain, link: &Link) -> bool {
    link.was_called.store(false, Ordering::Relaxed);
    // SAFETY: passed on to the caller.
    unsafe { api.ask_for_a_block(domain) };
    link.was_called.load(Ordering::Relaxed)
}

fn new_link<O: AllocatorObserver>(domain: Domain, previous: Previous) -> &'static Link {
    let link = Box::leak(Box::new(Link {
        previous,
        observer: TypeId::of::<O>(),
        older: newest(domain),
        is_telling: AtomicBool::new(true),
        was_called: AtomicBool::new(false),
    }));
    NEWEST[domain as usize - 1].store(link, Ordering::Release);
    link
}
