//! Snapshots of a memory recorder: sums of events, whether these are in the recording or not.
//!
//! A snapshot is whole when its `memory-total` is there, for each device; a later one takes the place of an earlier one.

use super::declare::family;

family! { "Memory snapshots" {
    /// What one place, by stack, allocator, tag and thread, has used.
    MEMORY_USAGE = "memory-usage": Usage(STACK, ALLOCATOR, TAG, SNAPSHOT, THREAD, DEVICE, ALLOCATIONS, BYTES, LIVE_BLOCKS,
        LIVE_BYTES, PEAK_BLOCKS, PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES);
    /// What the blocks of one size class have used.
    MEMORY_SIZES = "memory-sizes": Usage(SNAPSHOT, DEVICE, MOST, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES);
    /// What a device, or the process, has used: the last event of its device in a snapshot.
    MEMORY_TOTAL = "memory-total": Usage(SNAPSHOT, DEVICE, PEAK_AGO, ALLOCATIONS, BYTES, LIVE_BLOCKS, LIVE_BYTES, PEAK_BLOCKS,
        PEAK_BYTES, TEMPORARY, TEMPORARY_BYTES, FREES, UNKNOWN_FREES, REPLACED);
} }
