//! Ranges of addresses that a process maps. `mmap` and `mremap` are declared as [allocators](super::Allocator).

use super::declare::family;

family! { "Mappings" {
    /// A range of addresses is unmapped: a mapping, a part of one, or several.
    MUNMAP = "munmap": Unmap(ADDRESS, SIZE);
} }
