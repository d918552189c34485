//! The lock that allows one dump at a time, and the memory of the dump.
//!
//! No thread waits: a dump fails if the lock is held. A lock whose thread no longer exists, as in a forked child,
//! is free.

use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::platform::mapped_modules::MappedModules;
use crate::platform::raw_files::SCRATCH;
use crate::platform::tasks;

/// The process and the thread that holds the lock; 0: none.
static HOLDER: AtomicU64 = AtomicU64::new(0);
static WORK: DumpCell = DumpCell(UnsafeCell::new(DumpMemory { scratch: [0; SCRATCH], modules: MappedModules::new() }));

/// The memory of a dump. It is static, because a handler's stack may be small.
#[derive(Debug)]
pub(crate) struct DumpMemory {
    pub(crate) scratch: [u8; SCRATCH],
    pub(crate) modules: MappedModules,
}

struct DumpCell(UnsafeCell<DumpMemory>);

// SAFETY: only the holder of the lock accesses it.
unsafe impl Sync for DumpCell {}

/// Permission to dump, until it is dropped.
#[derive(Debug)]
pub(crate) struct DumpLock {
    holder: u64,
    work: &'static mut DumpMemory,
}

impl DumpLock {
    pub(crate) fn try_lock() -> Option<Self> {
        // SAFETY: `getpid` has no preconditions.
        let process = unsafe { libc::getpid() };
        let me = u64::from(process.cast_unsigned()) << 32 | u64::from(tasks::own().cast_unsigned());
        let now = HOLDER.load(Ordering::Relaxed);
        if now != 0 && is_alive(process, now) {
            return None;
        }
        HOLDER.compare_exchange(now, me, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // SAFETY: there is one holder at a time, and this is it.
        Some(Self { holder: me, work: unsafe { &mut *WORK.0.get() } })
    }

    pub(crate) fn work(&mut self) -> &mut DumpMemory {
        self.work
    }
}

impl Drop for DumpLock {
    fn drop(&mut self) {
        let _ = HOLDER.compare_exchange(self.holder, 0, Ordering::Release, Ordering::Relaxed);
    }
}

fn is_alive(process: c_int, holder: u64) -> bool {
    let (owner, task) = ((holder >> 32) as u32, holder as u32);
    owner == process.cast_unsigned() && tasks::exists(process, task.cast_signed())
}
