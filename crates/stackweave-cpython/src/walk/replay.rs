//! The walk along the last stack: frames that are what they were are not looked into again.
//!
//! A frame whose address, code, instruction and caller are those of its entry gets what was written for it the last
//! time ([`run`](super::run)). A frame that has changed is looked at in the ordinary way, and the walk goes on along
//! the record where the chain comes back to it.
//!
//! Hot file: no allocation, no lock, no GIL. Not for signal handlers, which may find frames half made.

use stackweave_core::{SourceStop, SourceWalked, StackPointer};

use super::MOST_HIDDEN;
use super::entry::Written;
use super::form::{Form, Step, What};
use super::plain::Output;
use super::record::Record;
use super::run::{Run, copy_renewed, run};
use super::source_frames::{CodeIds, Room, SourceFrames, is_entered};
use crate::memory::is_plausible;

/// One walk.
struct Replay<'a, F, C, const CAPACITY: usize> {
    form: F,
    record: Record<'a, CAPACITY>,
    output: SourceFrames<'a, C>,
    /// The next frame.
    frame: u64,
    /// The entry that it may have.
    position: usize,
    /// Since which entry the stack is that of the record, and how many frames were written before.
    on_record: Option<(usize, usize)>,
    /// How many frames had an entry that was of no use.
    misled: usize,
}

/// After so many, the stack is taken to be another one.
const PATIENCE: usize = 4;

/// Walks from `frame` on, and leaves the stack in the record.
///
/// # Safety `frame` is the top of a chain of frames of this form, which stays as it is. The code ids in the record are
/// still those of the code objects.
#[inline(always)]
pub(super) unsafe fn walk<F: Form, C: CodeIds, const CAPACITY: usize>(
    mut form: F,
    frame: u64,
    mut record: Record<'_, CAPACITY>,
    mut room: Room<'_>,
    codes: &C,
) -> SourceWalked {
    let start = record.start();
    let mut on_record = None;
    let mut same = Run { position: start, ..Run::default() };
    if frame != 0 && record.address(start) == frame {
        on_record = Some((start, 0));
        // SAFETY: the entry has the address of the first frame.
        same = unsafe { run(&mut form, record.entries(0), same, &mut room) };
        record.count_replayed(same.position - start);
        if same.position == CAPACITY && record.address(CAPACITY) == 0 {
            // Without shims the eval loops of the frames may be others than before.
            let is_unchanged = F::HAS_SHIMS;
            return SourceWalked { len: same.len, stop: SourceStop::EndOfStack, inside: None, is_unchanged };
        }
    }
    let frame = if on_record.is_some() { record.address(same.position) } else { frame };
    record.begin();
    let output = SourceFrames::after(room, codes, same.len, same.activation_start);
    let mut replay = Replay { form, record, output, frame, position: same.position, on_record, misled: 0 };
    // SAFETY: passed on to the caller.
    let stop = unsafe { replay.walk() };
    let Replay { form, record, output, frame, on_record, .. } = replay;
    if matches!(stop, SourceStop::EndOfStack | SourceStop::DepthLimit) {
        let (place, written) = on_record.unwrap_or((CAPACITY, output.len));
        record.close(place, output.written(written), (frame, form.c_frame()));
    }
    SourceWalked { len: output.len, stop, ..SourceWalked::default() }
}

impl<F: Form, C: CodeIds, const CAPACITY: usize> Replay<'_, F, C, CAPACITY> {
    /// # Safety
    /// As for [`walk`].
    #[inline(always)]
    unsafe fn walk(&mut self) -> SourceStop {
        let mut hidden = 0;
        loop {
            self.find_entry();
            // SAFETY: the entry at the position has the address of the frame, the next of the chain.
            if self.on_record.is_some() && unsafe { self.is_unchanged() } {
                // SAFETY: as above.
                unsafe { self.replay() };
            }
            if !is_plausible(self.frame) {
                self.form.loop_without_frame();
                return if self.frame == 0 { SourceStop::EndOfStack } else { SourceStop::BadFrame };
            }
            let before = self.form;
            // SAFETY: the frame is the next of the chain.
            let step = unsafe { self.form.step(self.frame) };
            match step.what {
                What::Frame(_) if self.output.is_full() => {
                    self.form = before;
                    // SAFETY: as above.
                    return unsafe { self.cut() };
                }
                What::Bad => return SourceStop::BadFrame,
                What::Frame(_) => {}
                What::Shim | What::Hidden => hidden += 1,
            }
            if hidden > MOST_HIDDEN {
                return SourceStop::BadFrame;
            }
            if let Err(stop) = self.take(&step) {
                return stop;
            }
            self.frame = step.previous;
        }
    }

    /// Leaves the record if the frame is not the one that it has next, and looks whether it has it elsewhere.
    #[inline(always)]
    fn find_entry(&mut self) {
        if self.position < CAPACITY && self.record.address(self.position) == self.frame {
            if self.on_record.is_none() {
                self.on_record = Some((self.position, self.output.len));
            }
            return;
        }
        self.leave_record();
        self.position = CAPACITY;
        if self.misled < PATIENCE
            && let Some(position) = self.record.find(self.frame)
        {
            self.position = position;
            self.on_record = Some((position, self.output.len));
        }
    }

    #[inline(always)]
    fn leave_record(&mut self) {
        if let Some((start, _)) = self.on_record.take() {
            if start == self.position {
                self.misled += 1;
            } else {
                self.record.push_entries(start, self.position);
                self.output.doubt();
            }
        }
    }

    /// Whether the frame is at the instruction that its entry has. If not, a run along the record would end where it
    /// begins, and cost more than to look.
    ///
    /// # Safety
    /// The entry at the position has the address of the next frame of the chain.
    #[inline(always)]
    unsafe fn is_unchanged(&self) -> bool {
        // SAFETY: passed on to the caller.
        let (word, recorded) = (unsafe { F::word(self.frame) }, self.record.word(self.position));
        word == recorded || (F::HAS_SHIMS && word == !recorded)
    }

    /// Goes along the record as far as it holds, and there is room.
    ///
    /// # Safety
    /// The entry at the position has the address of the next frame of the chain.
    #[inline(always)]
    unsafe fn replay(&mut self) {
        let start = self.position;
        let from = Run { position: start, len: self.output.len, ..Run::default() };
        // SAFETY: passed on to the caller.
        let ran = unsafe { run(&mut self.form, self.record.entries(0), from, &mut self.output.room(0)) };
        if let Some((shim, len)) = ran.first_shim {
            self.output.len = len;
            self.output.close(shim);
            self.output.begin_activation(ran.activation_start);
        }
        (self.output.len, self.position) = (ran.len, ran.position);
        if !F::HAS_SHIMS {
            let room = self.output.room(ran.len);
            // SAFETY: the run led to the address of this entry.
            let renewed = unsafe { copy_renewed(&mut self.form, self.record.entries(ran.position), room) };
            self.output.len += renewed;
            self.position += renewed;
        }
        self.record.count_replayed(self.position - start);
        self.frame = self.record.address(self.position);
    }

    /// Writes a frame that was looked at: in its entry if it has one and still leads to the next.
    #[inline(always)]
    fn take(&mut self, step: &Step) -> Result<(), SourceStop> {
        let entry = match self.on_record {
            Some(_) => self.record.update(self.position, step),
            None => None,
        };
        match (entry, step.what) {
            (Some(entry), What::Frame(mut frame)) => {
                if F::HAS_SHIMS {
                    // The chain is the same up to the shim, or the record is left before that.
                    frame.is_entry = is_entered(entry.written.frame);
                    frame.activation = entry.written.activation.0;
                }
                entry.written = Written { frame: self.output.raw(frame)?, activation: StackPointer(frame.activation) };
                self.output.write(entry.written);
                self.position += 1;
            }
            (Some(_), _) => self.position += 1,
            (None, _) => {
                self.leave_record();
                self.record.push(self.frame, step);
                if let What::Frame(frame) = step.what {
                    self.output.push(frame)?;
                }
            }
        }
        if let What::Shim = step.what {
            self.output.close(self.frame);
        }
        Ok(())
    }

    /// The output is full: what is written still gets its activation.
    ///
    /// # Safety
    /// The frame is the next of the chain.
    #[cold]
    unsafe fn cut(&mut self) -> SourceStop {
        // SAFETY: passed on to the caller.
        if let Some(shim) = unsafe { self.form.shim_beyond(self.frame) } {
            self.output.close_cut(shim);
        }
        if self.on_record.is_some() {
            // Nobody has seen whether the record leads to the same shim.
            self.record.drop_new();
        }
        SourceStop::DepthLimit
    }
}
