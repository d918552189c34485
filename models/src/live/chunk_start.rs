//! The beginning of a chunk. No model has a hook that writes there.

use super::lane::Lane;

pub(super) type ChunkHook = fn(&mut ChunkStart<'_>);

pub(super) struct ChunkStart<'a>(&'a Lane);

impl<'a> ChunkStart<'a> {
    pub(super) fn new(lane: &'a Lane, _ticks: u64, _words: usize) -> Self {
        Self(lane)
    }
}
