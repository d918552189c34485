//! What an allocator's account of itself says, in figures and block by block.

use std::io;

use serde_json::{Value, json};
use stackweave_profile::memory::{DeviceState, PoolState, pool_name};

use super::accounts::{Account, Block, Segment};
use crate::formats::report::blocks::{Blocks, Columns};

/// More blocks than this are not in a picture: segments that do not fit are left out.
const MOST_BLOCKS: usize = 40_000;

/// What the head tells of it, but for whose it is and when it was.
pub(super) fn write(
    state: &DeviceState,
    account: Option<&Account>,
    node: &mut dyn FnMut(u32) -> u32,
    blocks: &mut Blocks<'_>,
) -> io::Result<Value> {
    let pools = state.pools.iter().map(|PoolState { pool, reserved, allocated, free }| {
        json!({"name": pool_name(*pool), "reserved": reserved, "allocated": allocated, "free": free})
    });
    let segments = account.map(|account| shown(&account.segments, state)).unwrap_or_default();
    let rows = if segments.is_empty() { None } else { Some(blocks.columns(&columns(&segments, state, node))?) };
    let all = account.map_or(0, |account| account.segments.len());
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
        "leftOut": all - segments.len(),
    }))
}

/// The largest segments, as many as fit; by pool, and the largest first.
fn shown<'a>(segments: &'a [Segment], state: &DeviceState) -> Vec<&'a Segment> {
    let mut all: Vec<&Segment> = segments.iter().collect();
    all.sort_by_key(|segment| (std::cmp::Reverse(segment.size), segment.address));
    let mut count = 0;
    all.retain(|segment| {
        let of_it = segment.blocks.len().max(1);
        let fits = count + of_it <= MOST_BLOCKS;
        count += if fits { of_it } else { 0 };
        fits
    });
    all.sort_by_key(|segment| pool_place(segment.pool, state));
    all
}

fn pool_place(pool: u64, state: &DeviceState) -> usize {
    state.pools.binary_search_by_key(&pool, |known| known.pool).unwrap_or(0)
}

fn columns(segments: &[&Segment], state: &DeviceState, node: &mut dyn FnMut(u32) -> u32) -> Columns {
    let mut columns = Columns::default();
    columns.plain(segments.iter().map(|segment| segment.address));
    columns.plain(segments.iter().map(|segment| segment.size));
    columns.plain(segments.iter().map(|segment| pool_place(segment.pool, state) as u64));
    columns.plain(segments.iter().map(|segment| segment.stream));
    columns.plain(segments.iter().map(|segment| segment.flags));
    columns.plain(segments.iter().map(|segment| segment.blocks.len() as u64));
    let gaps: Vec<u64> = segments.iter().flat_map(|segment| gaps(segment)).collect();
    columns.plain(gaps.into_iter());
    let blocks: Vec<&Block> = segments.iter().flat_map(|segment| &segment.blocks).collect();
    columns.plain(blocks.iter().map(|block| block.size));
    columns.plain(blocks.iter().map(|block| block.asked));
    columns.plain(blocks.iter().map(|block| block.flags));
    columns.plain(blocks.iter().map(|block| node(block.stack).into()));
    columns
}

/// How many bytes are between each block and what is before it.
fn gaps(segment: &Segment) -> impl Iterator<Item = u64> {
    let mut behind = segment.address;
    segment.blocks.iter().map(move |block| {
        let gap = block.address.saturating_sub(behind);
        behind = block.address.saturating_add(block.size);
        gap
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, size: u64, pool: u64, blocks: usize) -> Segment {
        let block = Block { address, size: 1, asked: 1, flags: 0, stack: 0 };
        Segment { address, size, stream: 0, pool, flags: 0, blocks: vec![block; blocks] }
    }

    #[test]
    fn the_largest_segments_are_shown_by_pool() {
        let state = DeviceState {
            pools: [0, 7].map(|pool| PoolState { pool, ..PoolState::default() }).into(),
            ..DeviceState::default()
        };
        let many = MOST_BLOCKS / 2;
        let segments = [segment(1, 10, 7, 1), segment(2, 20, 0, many), segment(3, 30, 7, 1), segment(4, 5, 0, many)];
        let addresses: Vec<u64> = shown(&segments, &state).iter().map(|segment| segment.address).collect();
        assert_eq!(addresses, [2, 3, 1]);
        let segments = [segment(1, 10, 7, 1), segment(2, 20, 0, MOST_BLOCKS + 1), segment(3, 5, 0, 0)];
        let addresses: Vec<u64> = shown(&segments, &state).iter().map(|segment| segment.address).collect();
        assert_eq!(addresses, [3, 1], "one that is too large leaves room for others");
    }
}
