//! The run along the record: the loop in which a stack that has not changed is walked.
//!
//! The address of the next frame is known from its entry before the frame has been asked for it, and then compared: so
//! the loads do not wait for each other, as they do in a walk along the frames, and each is checked all the same.
//!
//! Hot file: no allocation, no lock, no GIL.

use super::entry::{Entry, Written};
use super::form::Form;
use super::source_frames::Room;
use crate::memory::opaque;

/// A run along the record: where it has come to, and how many frames are written by then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub(super) position: usize,
    pub(super) len: usize,
    /// Where the frames of the activation begin that the run has ended in.
    pub(super) activation_start: usize,
    /// The first shim, and how many frames were written before it.
    pub(super) first_shim: Option<(u64, usize)>,
}

/// Copies what was written for the entries, as long as they hold and there is room.
///
/// # Safety
/// The entry at the position has the address of the next frame of the chain.
#[inline(always)]
pub(super) unsafe fn run<F: Form>(form: &mut F, entries: &[Entry], mut run: Run, room: &mut Room<'_>) -> Run {
    loop {
        let (entries, room) = (&entries[run.position..], room.after(run.len));
        // SAFETY: passed on to the caller.
        let count = unsafe { copy_held(form, entries, room) };
        run.position += count;
        run.len += count;
        if !F::HAS_SHIMS {
            return run;
        }
        let [entry, next, ..] = &entries[count..] else { return run };
        // SAFETY: what was copied led to the address of this entry.
        if !unsafe { holds::<F>(entry.address, !entry.word, next) } {
            return run;
        }
        run.first_shim = run.first_shim.or(Some((entry.address, run.len)));
        run.activation_start = run.len;
        run.position += 1;
    }
}

/// Whether the frame at an address has this word, and leads to an entry.
///
/// # Safety
/// The address is that of the next frame of the chain.
#[inline(always)]
unsafe fn holds<F: Form>(address: u64, word: u64, next: &Entry) -> bool {
    // SAFETY: passed on to the caller.
    unsafe { F::previous(address) == next.address && F::word(address) == word }
}

/// The same within one activation. How many frames.
///
/// # Safety
/// The first entry has the address of the next frame of the chain.
#[inline(always)]
unsafe fn copy_held<F: Form>(form: &mut F, entries: &[Entry], room: Room<'_>) -> usize {
    let Room { frames, activations } = room;
    let most = frames.len().min(activations.len()).min(entries.len() - 1);
    let (entries, frames, activations) = (&entries[..=most], &mut frames[..most], &mut activations[..most]);
    let mut address = entries[0].address;
    for count in 0..most {
        let (entry, next) = (&entries[count], &entries[count + 1]);
        let (next_address, next_loop) = (opaque(next.address), opaque(next.written.activation.0));
        // SAFETY: the frame before led to this entry's address, or it is the first.
        if !unsafe { holds::<F>(address, entry.word, next) && form.loop_holds(entry, next) } {
            return count;
        }
        address = next_address;
        Written { frame: frames[count], activation: activations[count] } = form.replayed(entry);
        // SAFETY: the entry holds.
        unsafe { form.pass(entry, next_loop) };
    }
    most
}

/// The same, where the eval loops of the frames are others than before. The entries get those.
///
/// # Safety
/// As for [`copy_held`].
#[inline(always)]
pub(super) unsafe fn copy_renewed<F: Form>(form: &mut F, entries: &mut [Entry], room: Room<'_>) -> usize {
    let mut count = 0;
    for (frame, activation) in room.frames.iter_mut().zip(room.activations) {
        let Some([entry, next]) = entries.get_mut(count..count + 2) else { break };
        // SAFETY: as for `copy_held`.
        if !unsafe { holds::<F>(entry.address, entry.word, next) && form.renew_loop(entry) } {
            break;
        }
        Written { frame: *frame, activation: *activation } = entry.written;
        count += 1;
    }
    count
}
