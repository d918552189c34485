//! The twin of `linux/` for other platforms, without hooks. A recorder can't be started here, so the rest is never
//! called.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::ptr::NonNull;

/// The reason why functions can't be hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InterposeError {
    /// There are no hooks for this platform.
    UnsupportedPlatform,
}

impl fmt::Display for InterposeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not on this platform")
    }
}

#[derive(Debug, Default)]
pub(crate) struct InterposeStats {
    pub(crate) modules: u64,
    pub(crate) slots: u64,
    pub(crate) foreign_slots: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignSlots {
    pub(crate) slots: u64,
    pub(crate) foreign: u64,
}

pub(crate) fn foreign_slots() -> ForeignSlots {
    ForeignSlots::default()
}

pub(crate) const fn update_foreign_slots() {}

pub(crate) const fn reset_foreign_slots() {}

pub(crate) const fn foreign_module() -> Option<String> {
    None
}

pub(crate) const fn install(_: bool) -> Result<(), InterposeError> {
    Err(InterposeError::UnsupportedPlatform)
}

pub(crate) const fn remove(_: bool) {}

/// There are no hooks to keep.
#[derive(Debug)]
pub struct KeptHooks(());

impl KeptHooks {
    /// Creates a guard.
    pub const fn begin() -> Self {
        Self(())
    }
}

pub(crate) const fn recheck_slots() {}

pub(crate) const fn refresh_if_needed() {}

pub(crate) fn stats() -> InterposeStats {
    InterposeStats::default()
}

pub(crate) const fn clear_in_children(_: *const u8, _: usize) {}

pub(crate) const fn errno_pointer() -> *mut i32 {
    NonNull::dangling().as_ptr()
}

pub(crate) const fn kernel_thread_id() -> u32 {
    0
}

pub(crate) const fn is_gone(_: u32) -> bool {
    false
}

pub(crate) const fn is_on_signal_stack() -> bool {
    false
}

/// Returns `None`: no memory is ever mapped.
pub(crate) const fn map_zeros(_: usize) -> Option<NonNull<u8>> {
    None
}

pub(crate) const fn order_all_threads() {}

pub(crate) fn for_each_export(_: &CStr, _: usize, _: &mut dyn FnMut(usize)) {}

/// A signal at which a snapshot is written.
#[derive(Debug)]
pub struct DumpSignal(());

impl DumpSignal {
    /// Fails.
    pub fn install(_: i32) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

pub(crate) const fn take_dump_request() -> bool {
    false
}
