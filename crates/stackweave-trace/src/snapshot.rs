//! What is open on a thread, said again at the beginning of each of its buffers.
//!
//! Hot file: neither allocates nor locks.

use stackweave_recording::live::ChunkStart;

use crate::blocks;
use crate::entry::Entry;
use crate::session;
use crate::sink::What;

/// Writes what is open on the calling thread.
pub(crate) fn write(chunk: &mut ChunkStart<'_>) {
    // SAFETY: buffers of a recording that is traced are begun by threads that hold the GIL, or have given it away in the
    // middle of an event, which a trace waits for before it ends.
    let Some(session) = (unsafe { session::current() }) else { return };
    let Some(block) = blocks::of_this_thread().filter(|block| block.thread.shadow.is_followed()) else { return };
    let shadow = &block.thread.shadow;
    let (kind, ticks, written) = (session.kinds.of(What::Open), chunk.ticks(), shadow.written());
    if written == 0 {
        chunk.record_at(ticks, kind, &[0, 0]);
        return;
    }
    let room = chunk.room_for(kind) as u64;
    let entries = (1..=shadow.len()).map(|place| shadow.at(place)).filter(Entry::is_written);
    for (depth, entry) in (0..).zip(entries) {
        if depth + room >= written && !chunk.record_at(ticks, kind, &[entry.call, depth]) {
            return;
        }
    }
}
