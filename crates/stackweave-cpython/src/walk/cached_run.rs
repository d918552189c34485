//! The run along the cache: the loop that walks an unchanged stack.
//!
//! The address of the next frame is known from its entry before the frame itself is read, and compared afterwards: so
//! the loads do not wait for each other, as in a plain walk, and each is checked nevertheless.
//!
//! Hot file: no allocation, no lock, no GIL.

use super::cached_frame::{CachedFrame, WrittenFrame};
use super::frame_chain::FrameChain;
use super::source_frames::FrameBuffers;
use crate::memory::opaque;

/// A run along the cache: its position, and how many frames were written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CachedRun {
    pub(super) position: usize,
    pub(super) len: usize,
    /// The first frame of the activation in which the run has ended.
    pub(super) activation_start: usize,
    /// The first shim, and how many frames were written before it.
    pub(super) first_shim: Option<(u64, usize)>,
}

/// Copies what was written for the entries, as long as they are valid and there is room.
///
/// # Safety
/// The entry at the position has the address of the next frame of the chain.
#[inline(always)]
pub(super) unsafe fn run<F: FrameChain>(
    chain: &mut F,
    entries: &[CachedFrame],
    mut run: CachedRun,
    buffers: &mut FrameBuffers<'_>,
) -> CachedRun {
    loop {
        let (entries, buffers) = (&entries[run.position..], buffers.after(run.len));
        // SAFETY: passed on to the caller.
        let count = unsafe { copy_valid(chain, entries, buffers) };
        run.position += count;
        run.len += count;
        if !F::HAS_SHIMS {
            return run;
        }
        let [entry, next, ..] = &entries[count..] else { return run };
        // SAFETY: what was copied has led to the address of this entry.
        if !unsafe { is_valid::<F>(entry.address, !entry.word, next) } {
            return run;
        }
        run.first_shim = run.first_shim.or(Some((entry.address, run.len)));
        run.activation_start = run.len;
        run.position += 1;
    }
}

/// Returns whether the frame at an address has this word, and leads to the next entry.
///
/// # Safety
/// The address is that of the next frame of the chain.
#[inline(always)]
unsafe fn is_valid<F: FrameChain>(address: u64, word: u64, next: &CachedFrame) -> bool {
    // SAFETY: passed on to the caller.
    unsafe { F::previous(address) == next.address && F::word(address) == word }
}

/// Copies within one activation. Returns how many frames were copied.
///
/// # Safety
/// The first entry has the address of the next frame of the chain.
#[inline(always)]
unsafe fn copy_valid<F: FrameChain>(chain: &mut F, entries: &[CachedFrame], buffers: FrameBuffers<'_>) -> usize {
    let FrameBuffers { frames, activations } = buffers;
    let most = frames.len().min(activations.len()).min(entries.len() - 1);
    let (entries, frames, activations) = (&entries[..=most], &mut frames[..most], &mut activations[..most]);
    let mut address = entries[0].address;
    for count in 0..most {
        let (entry, next) = (&entries[count], &entries[count + 1]);
        let (next_address, next_loop) = (opaque(next.address), opaque(next.written.activation.0));
        // SAFETY: the previous frame led to this entry's address, or it is the first.
        if !unsafe { is_valid::<F>(address, entry.word, next) && chain.loop_holds(entry, next) } {
            return count;
        }
        address = next_address;
        WrittenFrame { frame: frames[count], activation: activations[count] } = chain.replayed(entry);
        // SAFETY: the entry is valid.
        unsafe { chain.pass(entry, next_loop) };
    }
    most
}

/// Copies frames like [`copy_valid`] if their eval loops have changed, and updates the entries.
///
/// # Safety
/// As for [`copy_valid`].
#[inline(always)]
pub(super) unsafe fn copy_renewed<F: FrameChain>(
    chain: &mut F,
    entries: &mut [CachedFrame],
    buffers: FrameBuffers<'_>,
) -> usize {
    let mut count = 0;
    for (frame, activation) in buffers.frames.iter_mut().zip(buffers.activations) {
        let Some([entry, next]) = entries.get_mut(count..count + 2) else { break };
        // SAFETY: as for `copy_valid`.
        if !unsafe { is_valid::<F>(entry.address, entry.word, next) && chain.renew_loop(entry) } {
            break;
        }
        WrittenFrame { frame: *frame, activation: *activation } = entry.written;
        count += 1;
    }
    count
}
