//! Installs and removes the hooks.

use core::sync::atomic::{AtomicBool, Ordering};

use super::api::AllocatorApi;
use super::error::AllocatorError;
use super::{AllocatorObserver, Domain, arena, chain};

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// Makes Python's allocators call an observer, until it is removed. A process has one at a time.
#[derive(Debug)]
pub struct AllocatorHooks {
    api: &'static AllocatorApi,
    remove: unsafe fn(&AllocatorApi),
    is_installed: bool,
    reinstalled_before: u64,
}

impl AllocatorHooks {
    /// Makes the interpreter's allocators call `O`. Blocks that were allocated before may be freed later.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn install<O: AllocatorObserver>() -> Result<Self, AllocatorError> {
        let api = AllocatorApi::find()?;
        if !api.holds_gil() {
            return Err(AllocatorError::NoGil);
        }
        if IS_INSTALLED.swap(true, Ordering::AcqRel) {
            return Err(AllocatorError::AlreadyInstalled);
        }
        // SAFETY: the GIL is held, and the caller is not inside an allocator.
        unsafe {
            api.alone(|| {
                arena::install::<O>(api);
                for domain in [Domain::Mem, Domain::Object] {
                    chain::install::<O>(api, domain);
                }
            });
        }
        Ok(Self { api, remove: remove::<O>, is_installed: true, reinstalled_before: arena::reinstallations() })
    }

    /// Stops recording. Restores the previous allocators; where other code has installed its own after ours, our
    /// functions stay and forward.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn remove(&mut self) {
        if core::mem::take(&mut self.is_installed) {
            // SAFETY: passed on to the caller.
            unsafe { self.api.alone(|| (self.remove)(self.api)) };
            IS_INSTALLED.store(false, Ordering::Release);
        }
    }

    /// Returns how often the hooks were installed again, because other code had restored the allocators from before
    /// them. What was allocated and freed in between was not recorded.
    pub fn reinstallations(&self) -> u64 {
        arena::reinstallations() - self.reinstalled_before
    }
}

/// # Safety
/// As for [`chain::remove`].
unsafe fn remove<O: AllocatorObserver>(api: &AllocatorApi) {
    // SAFETY: passed on to the caller.
    unsafe {
        arena::remove::<O>(api);
        for domain in [Domain::Mem, Domain::Object] {
            chain::remove::<O>(api, domain);
        }
    }
}
