//! Blocks that a program allocates and frees, and the tags of its threads.
//!
//! A block is freed by its address, whichever allocator it came from.

use stackweave_core::{EventKind, Role};

use super::declare::{DeclaredKind, Family, family};
use super::fields::{ADDRESS, SIZE, STACK};

family! { "Allocations" {
    /// A block is allocated. A live block at its address counts as freed.
    ALLOCATE = "allocate": Allocate(ADDRESS, SIZE, STACK);
    /// The block at this address is freed; any thread may have allocated it. Address 0 has no effect.
    FREE = "free": Free(ADDRESS);
    /// The block at this address is freed, with the stack of the free.
    FREE_AT = "free-at": Free(ADDRESS, STACK);
    /// The thread's last free, of this address, is undone: the call failed.
    KEPT = "kept": Keep(ADDRESS);
    /// The thread's later allocations have this tag; the frame is a label with its name, 0 for none.
    MEMORY_TAG = "memory-tag": Tag(FRAME);
} }

/// A function that allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is named as its function")]
pub enum Allocator {
    Malloc,
    Calloc,
    Realloc,
    ReallocArray,
    PosixMemalign,
    AlignedAlloc,
    Memalign,
    Valloc,
    Pvalloc,
    /// C++'s operator, where it does not call `malloc`.
    OperatorNew,
    Mmap,
    Mremap,
    PyMemMalloc,
    PyMemCalloc,
    PyMemRealloc,
    PyObjectMalloc,
    PyObjectCalloc,
    PyObjectRealloc,
}

impl Allocator {
    /// All allocators, in the order of their numbers.
    pub const ALL: [Self; 18] = [
        Self::Malloc,
        Self::Calloc,
        Self::Realloc,
        Self::ReallocArray,
        Self::PosixMemalign,
        Self::AlignedAlloc,
        Self::Memalign,
        Self::Valloc,
        Self::Pvalloc,
        Self::OperatorNew,
        Self::Mmap,
        Self::Mremap,
        Self::PyMemMalloc,
        Self::PyMemCalloc,
        Self::PyMemRealloc,
        Self::PyObjectMalloc,
        Self::PyObjectCalloc,
        Self::PyObjectRealloc,
    ];

    /// Returns the name of the function, which is the name of the kind of its events.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malloc => "malloc",
            Self::Calloc => "calloc",
            Self::Realloc => "realloc",
            Self::ReallocArray => "reallocarray",
            Self::PosixMemalign => "posix_memalign",
            Self::AlignedAlloc => "aligned_alloc",
            Self::Memalign => "memalign",
            Self::Valloc => "valloc",
            Self::Pvalloc => "pvalloc",
            Self::OperatorNew => "operator new",
            Self::Mmap => "mmap",
            Self::Mremap => "mremap",
            Self::PyMemMalloc => "PyMem_Malloc",
            Self::PyMemCalloc => "PyMem_Calloc",
            Self::PyMemRealloc => "PyMem_Realloc",
            Self::PyObjectMalloc => "PyObject_Malloc",
            Self::PyObjectCalloc => "PyObject_Calloc",
            Self::PyObjectRealloc => "PyObject_Realloc",
        }
    }

    /// Returns whether it maps a range of addresses instead of allocating a block.
    pub const fn is_mapping(self) -> bool {
        matches!(self, Self::Mmap | Self::Mremap)
    }

    /// Returns the kind of its events.
    pub const fn kind(self) -> EventKind {
        let role = if self.is_mapping() { Role::Map } else { Role::Allocate };
        EventKind::new(self.as_str(), role, const { &[ADDRESS, SIZE, STACK] })
    }
}

/// Returns the kinds of allocators, which have the names of their functions.
pub(super) fn allocators() -> Family {
    let about = |allocator: Allocator| {
        if allocator.is_mapping() {
            "A range of addresses is mapped by the function of this name. It replaces earlier mappings there."
        } else {
            "A block is allocated by the function of this name."
        }
    };
    let kinds = Allocator::ALL.map(|allocator| DeclaredKind { kind: allocator.kind(), about: about(allocator) });
    Family { name: "Allocators", kinds: kinds.into() }
}
