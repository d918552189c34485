//! From code objects to their ids, and back to what they said.
//!
//! At first sight a code object is copied; from then on its address leads to the copy's id, until it dies
//! ([`death_watch`](crate::death_watch)). Ids are for good, and equal code objects have equal ids: code that is
//! executed again from the same source keeps its id.
//!
//! One table for the process, since code objects of all interpreters die in one place.
//!
//! Hot file: no allocation, no lock, async-signal-safe. The GIL is not needed: the frame that is walked keeps its code
//! object alive.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use stackweave_core::{CodeId, SourceStop};
use stackweave_store::AddressMap;

use crate::code::CodeParts;
use crate::code_blob::CodeBlobs;
use crate::interpreter::Interpreter;
use crate::walk::CodeIds;

/// All code objects seen so far.
pub(crate) static CODES: CodeTable = CodeTable::new();

#[derive(Debug)]
pub(crate) struct CodeTable {
    ids: AddressMap,
    blobs: CodeBlobs,
    /// How many code objects have died whose address had an id.
    deaths: AtomicU64,
}

/// What the table holds.
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

    /// The id of the code object that lives at this address, if it has been seen.
    #[inline(always)]
    pub(crate) fn id_at(&self, address: u64) -> Option<CodeId> {
        self.ids.get(address).and_then(CodeId::new)
    }

    /// The id of a code object with these contents, whether it is known by an address or not.
    pub(crate) fn intern(&self, code: &CodeParts<'_>) -> Option<CodeId> {
        self.blobs.intern(code)
    }

    /// From now on the address stands for this id. Whoever says so makes sure that the address is forgotten before the
    /// code object dies, or that it never does.
    pub(crate) fn enter(&self, address: u64, id: CodeId) -> Option<CodeId> {
        self.ids.insert(address, id.get()).and_then(CodeId::new)
    }

    /// The code object at this address dies.
    #[inline]
    pub(crate) fn forget(&self, address: u64) {
        if self.ids.remove(address).is_some() {
            // Release: whoever runs code at this address later, and sees this count, does not trust what it recorded.
            self.deaths.fetch_add(1, Ordering::Release);
        }
    }

    /// Changes with each death, so that what was recorded before is not trusted after.
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

/// Ids where the death of each code object is noticed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched(pub(crate) &'static Interpreter);

impl CodeIds for Watched {
    #[inline(always)]
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        match CODES.id_at(code) {
            Some(id) => Ok(id),
            None => self.first_sight(code),
        }
    }
}

impl Watched {
    #[cold]
    #[inline(never)]
    fn first_sight(self, code: u64) -> Result<CodeId, SourceStop> {
        // SAFETY: the frame that is being walked keeps the code object alive.
        let parts = unsafe { self.0.code_parts(code) }.ok_or(SourceStop::BadFrame)?;
        CODES.intern(&parts).and_then(|id| CODES.enter(code, id)).ok_or(SourceStop::NoMemory)
    }
}

/// Ids where deaths go unnoticed: an address gets one for good, by a reference that is never given up. Only who holds
/// the GIL may take one. Who doesn't compares the contents each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pinned {
    pub(crate) interpreter: &'static Interpreter,
    pub(crate) increment: unsafe extern "C" fn(*mut c_void),
    /// Whether this thread holds the GIL, outside a signal handler.
    pub(crate) may_pin: bool,
}

impl CodeIds for Pinned {
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        if let Some(id) = CODES.id_at(code) {
            return Ok(id);
        }
        // SAFETY: the frame that is being walked keeps the code object alive.
        let parts = unsafe { self.interpreter.code_parts(code) }.ok_or(SourceStop::BadFrame)?;
        let id = CODES.intern(&parts).ok_or(SourceStop::NoMemory)?;
        if self.may_pin {
            // SAFETY: the GIL is held, and the object is alive.
            unsafe { (self.increment)(code as usize as *mut c_void) };
            return CODES.enter(code, id).ok_or(SourceStop::NoMemory);
        }
        Ok(id)
    }
}
