//! Writes the state of an allocator: its figures, and the blocks of its listing.

use std::io;

use serde_json::{Value, json};
use stackweave_profile::memory::{DeviceState, ListedSegment, PoolState, pool_name};
use stackweave_recording::events::HostStateRow;

use crate::formats::report::blocks::{Columns, PageBlocks};

/// The maximum number of blocks in a picture: segments that do not fit are left out.
const MAX_BLOCKS: usize = 40_000;

/// Writes the blocks of a state, and returns its entry for the head, without its process and its time.
pub(super) fn write(
    state: &DeviceState,
    node: &mut dyn FnMut(u32) -> u32,
    blocks: &mut PageBlocks<'_>,
) -> io::Result<Value> {
    let pools = state.pools.iter().map(|PoolState { pool, reserved, allocated, free }| {
        json!({"name": pool_name(*pool), "reserved": reserved, "allocated": allocated, "free": free})
    });
    let segments = largest_segments(state);
    let rows = if segments.is_empty() { None } else { Some(blocks.columns(&columns(&segments, state, node))?) };
    Ok(json!({
        "reason": match state.reason { 0 => "end", 1 => "failure", _ => "requested" },
        "segments": state.segments,
        "blocks": state.blocks,
        "reserved": state.reserved,
        "allocated": state.allocated,
        "requested": state.requested,
        "pending": state.pending,
        "free": state.free,
        "largestFree": state.largest_free,
        "pools": pools.collect::<Vec<_>>(),
        "rows": rows,
        "leftOut": state.listing.len() - segments.len(),
    }))
}

/// Returns the largest segments that fit, sorted by pool, the largest first.
fn largest_segments(state: &DeviceState) -> Vec<&ListedSegment> {
    let mut all: Vec<&ListedSegment> = state.listing.iter().collect();
    all.sort_by_key(|segment| (std::cmp::Reverse(segment.row.size), segment.row.address));
    let mut count = 0;
    all.retain(|segment| {
        let blocks = segment.blocks.len().max(1);
        let fits = count + blocks <= MAX_BLOCKS;
        count += if fits { blocks } else { 0 };
        fits
    });
    all.sort_by_key(|segment| pool_index(segment.row.pool, state));
    all
}

fn pool_index(pool: u64, state: &DeviceState) -> usize {
    state.pools.binary_search_by_key(&pool, |known| known.pool).unwrap_or(0)
}

fn columns(segments: &[&ListedSegment], state: &DeviceState, node: &mut dyn FnMut(u32) -> u32) -> Columns {
    let mut columns = Columns::default();
    columns.plain(segments.iter().map(|segment| segment.row.address));
    columns.plain(segments.iter().map(|segment| segment.row.size));
    columns.plain(segments.iter().map(|segment| pool_index(segment.row.pool, state) as u64));
    columns.plain(segments.iter().map(|segment| segment.row.stream));
    columns.plain(segments.iter().map(|segment| segment.row.flags));
    columns.plain(segments.iter().map(|segment| segment.blocks.len() as u64));
    let gaps: Vec<u64> = segments.iter().flat_map(|segment| gaps(segment)).collect();
    columns.plain(gaps.into_iter());
    let blocks: Vec<&HostStateRow> = segments.iter().flat_map(|segment| &segment.blocks).collect();
    columns.plain(blocks.iter().map(|block| block.size));
    columns.plain(blocks.iter().map(|block| block.requested));
    columns.plain(blocks.iter().map(|block| block.flags));
    columns.plain(blocks.iter().map(|block| node(block.stack).into()));
    columns
}

/// Returns the gap before each block, in bytes.
fn gaps(segment: &ListedSegment) -> impl Iterator<Item = u64> {
    let mut end = segment.row.address;
    segment.blocks.iter().map(move |block| {
        let gap = block.address.saturating_sub(end);
        end = block.address.saturating_add(block.size);
        gap
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, size: u64, pool: u64, blocks: usize) -> ListedSegment {
        let row = HostStateRow { device: 0, address, size, requested: 0, stack: 0, stream: 0, pool, flags: 0 };
        ListedSegment { row, blocks: vec![row; blocks] }
    }

    #[test]
    fn the_largest_segments_are_shown_by_pool() {
        let addresses = |segments: &[ListedSegment]| -> Vec<u64> {
            let pools = [0, 7].map(|pool| PoolState { pool, ..PoolState::default() }).into();
            let state = DeviceState { pools, listing: segments.to_vec(), ..DeviceState::default() };
            largest_segments(&state).iter().map(|segment| segment.row.address).collect()
        };
        let many = MAX_BLOCKS / 2;
        let segments = [segment(1, 10, 7, 1), segment(2, 20, 0, many), segment(3, 30, 7, 1), segment(4, 5, 0, many)];
        assert_eq!(addresses(&segments), [2, 3, 1]);
        let segments = [segment(1, 10, 7, 1), segment(2, 20, 0, MAX_BLOCKS + 1), segment(3, 5, 0, 0)];
        assert_eq!(addresses(&segments), [3, 1], "a segment that is too large does not prevent others");
    }
}
