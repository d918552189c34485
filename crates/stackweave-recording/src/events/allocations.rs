//! Blocks that a program allocates and frees, and the tags of its threads.
//!
//! A block is freed by its address, whichever allocator it is of.

use stackweave_core::{EventKind, Role};

use super::declare::{DeclaredKind, Family, family};
use super::fields::{ADDRESS, SIZE, STACK};

family! { "Allocations" {
    /// A block is allocated. What was live at its address counts as freed.
    ALLOCATE = "allocate": Allocate(ADDRESS, SIZE, STACK);
    /// The block at this address is freed, on whichever thread it was allocated. Address 0: nothing.
    FREE = "free": Free(ADDRESS);
    /// The block at this address is freed, on this stack.
    FREE_AT = "free-at": Free(ADDRESS, STACK);
    /// What the thread freed last, at this address, is not freed after all: the call has failed.
    KEPT = "kept": Keep(ADDRESS);
    /// What the thread allocates from now on has the tag that the frame, a label, is called as; frame 0: none.
    MEMORY_TAG = "memory-tag": Tag(FRAME);
} }

/// A function that allocates memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is the function that it is called")]
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
    /// C++'s, where it does not come to `malloc`.
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
    /// Every allocator, in the order of their numbers.
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

    /// Returns its name, which is the name of its kind of events.
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

    /// Returns whether it maps a range of addresses, rather than allocating a block.
    pub const fn is_mapping(self) -> bool {
        matches!(self, Self::Mmap | Self::Mremap)
    }

    /// Returns the kind of its events.
    pub const fn kind(self) -> EventKind {
        let role = if self.is_mapping() { Role::Map } else { Role::Allocate };
        EventKind::new(self.as_str(), role, const { &[ADDRESS, SIZE, STACK] })
    }
}

/// Returns the kinds of allocators, which are called as their functions are.
pub(super) fn allocators() -> Family {
    let about = |allocator: Allocator| {
        if allocator.is_mapping() {
            "A range of addresses is mapped by the function of this name, in the place of what was mapped there."
        } else {
            "A block is allocated by the function of this name."
        }
    };
    let kinds = Allocator::ALL.map(|allocator| DeclaredKind { kind: allocator.kind(), about: about(allocator) });
    Family { name: "Allocators", kinds: kinds.into() }
}
