//! Stand-in.
#![allow(missing_docs, dead_code, reason = "a stand-in")]
use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static CStr,
    pub(crate) hook: usize,
    pub(crate) original: &'static AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
pub struct InterposeError;
impl std::fmt::Display for InterposeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the system's functions can't be replaced")
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InterposeStats {
    pub(crate) modules: u64,
    pub(crate) slots: u64,
    pub(crate) foreign_slots: u64,
}

pub(crate) fn install(functions: &'static [Function]) -> Result<(), InterposeError> {
    for function in functions {
        // SAFETY: a C string.
        let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, function.name.as_ptr()) };
        function.original.store(address.addr(), Ordering::Release);
    }
    Ok(())
}

pub(crate) fn remove() {}

#[inline(always)]
pub(crate) fn refresh_if_needed() {}

pub(crate) fn stats() -> InterposeStats {
    InterposeStats::default()
}
