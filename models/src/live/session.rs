//! The parts of a recording's session that lanes use.

use super::chunk::{Chunk, FullChunks};
use super::chunk_start::ChunkHook;
use super::futex::Doorbell;
use super::pool::{ChunkPool, PoolError};
use crate::clock::Clock;

#[derive(Debug)]
pub(super) struct RecordingSession {
    pub(super) pool: ChunkPool,
    pub(super) full: FullChunks,
    pub(super) doorbell: Doorbell,
    pub(super) clock: Clock,
}

impl RecordingSession {
    /// Creates a session with chunks of this many bytes, in addition to one for each lane.
    pub(super) fn new(bytes: usize) -> Self {
        Self { pool: ChunkPool::new(bytes), full: FullChunks::new(), doorbell: Doorbell::new(), clock: Clock }
    }

    pub(super) fn next_thread(&self) -> u32 {
        1
    }

    pub(super) fn tid_of_caller(&self) -> u32 {
        1
    }

    pub(super) fn is_of_another_process(&self) -> bool {
        false
    }

    pub(super) fn leave_to_parent(&self) {}

    pub(super) fn is_closed(&self) -> bool {
        false
    }

    pub(super) fn chunk_hook(&self) -> Option<ChunkHook> {
        None
    }

    pub(super) fn next_chunk(&self) -> Result<*mut Chunk, PoolError> {
        loop {
            if let Ok(chunk) = self.pool.wait() {
                return Ok(chunk);
            }
        }
    }
}
