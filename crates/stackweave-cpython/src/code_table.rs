//! Maps code objects to ids, and ids back to their contents.
//!
//! A code object is copied when it is first seen; from then on its address maps to the copy's id, until it dies
//! ([`death_watch`](crate::death_watch)). Ids are permanent, and equal code objects have equal ids: code that is
//! executed again from the same source keeps its id.
//!
//! There is one table for the process, because code objects of all interpreters die in one function.
//!
//! Hot file: no allocation, no lock, async-signal-safe. The GIL is not needed: the frame that is walked keeps its code
//! object alive.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{CodeId, SourceStop};
use stackweave_store::AddressMap;

use crate::code::CodeContents;
use crate::code_blob::CodeBlobs;
use crate::interpreter::Interpreter;
use crate::walk::CodeIds;

/// All code objects seen so far.
pub(crate) static CODES: CodeTable = CodeTable::new();

#[derive(Debug)]
pub(crate) struct CodeTable {
    ids: AddressMap,
    blobs: CodeBlobs,
    /// The number of code objects that have died whose address had an id.
    deaths: AtomicU64,
}

/// Statistics of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CodeTableStats {
    pub(crate) codes: u32,
    pub(crate) live: u64,
    pub(crate) deaths: u64,
    pub(crate) bytes: usize,
}

impl CodeTable {
    const fn new() -> Self {
        Self { ids: AddressMap::new(), blobs: CodeBlobs::new(), deaths: AtomicU64::new(0) }
    }

    /// Returns the id of the live code object at this address, if it was seen before.
    #[inline(always)]
    pub(crate) fn id_at(&self, address: u64) -> Option<CodeId> {
        self.ids.get(address).and_then(CodeId::new)
    }

    /// Returns the id of a code object with these contents, whether its address is known or not.
    pub(crate) fn intern(&self, code: &CodeContents<'_>) -> Option<CodeId> {
        self.blobs.intern(code)
    }

    /// Maps the address to this id. The caller ensures that the address is removed before the code object dies, or that
    /// it never dies.
    pub(crate) fn insert(&self, address: u64, id: CodeId) -> Option<CodeId> {
        self.ids.insert(address, id.get()).and_then(CodeId::new)
    }

    /// Removes the address of a code object that dies.
    #[inline]
    pub(crate) fn remove(&self, address: u64) {
        if self.ids.remove(address).is_some() {
            // Release: a thread that later runs code at this address and sees this count does not trust earlier
            // records.
            self.deaths.fetch_add(1, Ordering::Release);
        }
    }

    /// Returns a count that changes with each death, so that earlier records are not trusted after it.
    #[inline(always)]
    pub(crate) fn deaths(&self) -> u64 {
        self.deaths.load(Ordering::Acquire)
    }

    pub(crate) fn blobs(&self) -> &CodeBlobs {
        &self.blobs
    }

    pub(crate) fn stats(&self) -> CodeTableStats {
        let (codes, files, ids) = (self.blobs.codes.stats(), self.blobs.files.stats(), self.ids.stats());
        CodeTableStats {
            codes: codes.blobs,
            live: ids.live,
            deaths: self.deaths(),
            bytes: (codes.used_bytes + files.used_bytes) as usize,
        }
    }
}

/// Ids for an interpreter in which the death of each code object is detected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedCodeIds(pub(crate) &'static Interpreter);

impl CodeIds for WatchedCodeIds {
    #[inline(always)]
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        match CODES.id_at(code) {
            Some(id) => Ok(id),
            None => self.intern_new(code),
        }
    }
}

impl WatchedCodeIds {
    #[cold]
    #[inline(never)]
    fn intern_new(self, code: u64) -> Result<CodeId, SourceStop> {
        // SAFETY: the frame that is being walked keeps the code object alive.
        let parts = unsafe { self.0.code_contents(code) }.ok_or(SourceStop::BadFrame)?;
        CODES.intern(&parts).and_then(|id| CODES.insert(code, id)).ok_or(SourceStop::NoMemory)
    }
}

/// Ids for an interpreter in which deaths are not detected: an address keeps its id forever, because a reference to
/// the code object is never released. Only a thread that holds the GIL may create one; others compare the contents each
/// time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PinnedCodeIds {
    pub(crate) interpreter: &'static Interpreter,
    pub(crate) increment: unsafe extern "C" fn(*mut c_void),
    /// Whether this thread holds the GIL, outside a signal handler.
    pub(crate) may_pin: bool,
}

impl CodeIds for PinnedCodeIds {
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        if let Some(id) = CODES.id_at(code) {
            return Ok(id);
        }
        // SAFETY: the frame that is being walked keeps the code object alive.
        let parts = unsafe { self.interpreter.code_contents(code) }.ok_or(SourceStop::BadFrame)?;
        let id = CODES.intern(&parts).ok_or(SourceStop::NoMemory)?;
        if self.may_pin {
            // SAFETY: the GIL is held, and the object is alive.
            unsafe { (self.increment)(code as usize as *mut c_void) };
            return CODES.insert(code, id).ok_or(SourceStop::NoMemory);
        }
        Ok(id)
    }
}
