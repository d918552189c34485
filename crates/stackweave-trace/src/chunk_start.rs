//! Repeats the open calls of a thread at the start of each of its buffers.
//!
//! Hot file: neither allocates nor locks.

use stackweave_recording::live::ChunkStart;

use crate::session;
use crate::shadow_entry::ShadowEntry;
use crate::sink::TraceEvent;
use crate::traced_threads;

/// Writes the open calls of the calling thread.
pub(crate) fn write(chunk: &mut ChunkStart<'_>) {
    // SAFETY: buffers of a traced recording are begun by threads that hold the GIL, or have released it in the middle
    // of an event, for which a trace waits before it ends.
    let Some(session) = (unsafe { session::current() }) else { return };
    let Some(thread) = traced_threads::current().filter(|thread| thread.stack.shadow.is_followed()) else { return };
    let shadow = &thread.stack.shadow;
    let (kind, ticks, written) = (session.kinds.of(TraceEvent::Open), chunk.ticks(), shadow.written());
    if written == 0 {
        chunk.record_at(ticks, kind, &[0, 0]);
        return;
    }
    let room = chunk.capacity_for(kind) as u64;
    let entries = (1..=shadow.len()).map(|index| shadow.at(index)).filter(ShadowEntry::is_written);
    for (depth, entry) in (0..).zip(entries) {
        if depth + room >= written && !chunk.record_at(ticks, kind, &[entry.call, depth]) {
            return;
        }
    }
}
