//! The life of the hooks.

use core::sync::atomic::{AtomicBool, Ordering};

use super::api::Api;
use super::error::AllocatorError;
use super::{AllocatorObserver, Domain, arena, chain};

static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// What makes Python's allocators tell, until it is removed. There is one at a time in a process.
#[derive(Debug)]
pub struct AllocatorHooks {
    api: &'static Api,
    remove: unsafe fn(&Api),
    is_installed: bool,
    put_back_before: u64,
}

impl AllocatorHooks {
    /// Has the interpreter's allocators tell `O`. Blocks that were taken before may be given back later.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn install<O: AllocatorObserver>() -> Result<Self, AllocatorError> {
        let api = Api::find()?;
        if !api.holds_gil() {
            return Err(AllocatorError::NoGil);
        }
        if IS_INSTALLED.swap(true, Ordering::AcqRel) {
            return Err(AllocatorError::AlreadyInstalled);
        }
        // SAFETY: the GIL is held, and this is not inside an allocator.
        unsafe {
            api.alone(|| {
                arena::install::<O>(api);
                for domain in [Domain::Mem, Domain::Object] {
                    chain::install::<O>(api, domain);
                }
            });
        }
        Ok(Self { api, remove: remove::<O>, is_installed: true, put_back_before: arena::put_back() })
    }

    /// Nothing more is told. What was there before is put back; where somebody has come after us, our functions stay and
    /// forward.
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

    /// How often they were put in again since they were installed, because somebody had put back what was there before them.
    /// What was taken and given back in between was not told.
    pub fn put_back(&self) -> u64 {
        arena::put_back() - self.put_back_before
    }
}

/// # Safety
/// As for [`chain::remove`].
unsafe fn remove<O: AllocatorObserver>(api: &Api) {
    // SAFETY: passed on to the caller.
    unsafe {
        arena::remove::<O>(api);
        for domain in [Domain::Mem, Domain::Object] {
            chain::remove::<O>(api, domain);
        }
    }
}
