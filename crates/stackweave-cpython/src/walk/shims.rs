//! Frames of 3.12 and later: each activation of the eval loop ends with a shim on the C stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use stackweave_core::SourceStop;

use super::place::{Place, place_in_code};
use super::{MOST_HIDDEN, SHIM};
use crate::frame::{CodePointer, PythonFrame, Walked};
use crate::memory::{is_plausible, load, word};
use crate::version::Layout;

/// The shim that ends an activation comes after its frames, so they get its address when it is met.
///
/// # Safety
/// As for `Interpreter::walk_from`.
pub(super) unsafe fn walk<const MINOR: u8>(mut frame: u64, frames: &mut [PythonFrame]) -> Walked {
    let layout = const { &Layout::must_have(MINOR) };
    let (mut len, mut hidden, mut activation_start) = (0, 0, 0);
    let offsets = layout.frame;
    while is_plausible(frame) {
        // SAFETY: the frame is one of a chain that stays as it is.
        let (previous, owner) = unsafe { (word(frame, offsets.previous), load::<u8>(frame, offsets.owner)) };
        if owner >= SHIM {
            hidden += 1;
            if hidden > MOST_HIDDEN {
                return Walked { len, stop: SourceStop::BadFrame };
            }
            if owner == SHIM {
                close_activation(frames.get_mut(activation_start..len).unwrap_or_default(), frame);
                activation_start = len;
            }
        } else {
            // SAFETY: as above.
            let (code, place) = unsafe { place_in_code(layout, frame, owner) };
            match place {
                Place::At(instruction) => {
                    let Some(slot) = frames.get_mut(len) else { return Walked { len, stop: SourceStop::DepthLimit } };
                    *slot = PythonFrame { code: CodePointer::new(code), activation: 0, instruction, is_entry: false };
                    len += 1;
                }
                Place::NotBegun => hidden += 1,
                Place::Nowhere => return Walked { len, stop: SourceStop::BadFrame },
            }
        }
        frame = previous;
    }
    Walked { len, stop: if frame == 0 { SourceStop::EndOfStack } else { SourceStop::BadFrame } }
}

/// The last of them, the outermost, is the one that native code entered.
#[inline(always)]
fn close_activation(frames: &mut [PythonFrame], shim: u64) {
    for frame in &mut *frames {
        frame.activation = shim;
    }
    if let Some(entry) = frames.last_mut() {
        entry.is_entry = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINOR: u8 = 14;
    const TRACEABLE_FROM: u32 = 4;
    type Words = [u64; 32];

    /// Code objects and frames in memory of our own, as 3.14 lays them out.
    struct Made {
        code: Box<Words>,
        frames: Box<[Words]>,
    }

    impl Made {
        fn new(count: usize) -> Self {
            let layout = Layout::must_have(MINOR);
            let mut made = Self { code: Box::new([0; 32]), frames: vec![[0; 32]; count].into() };
            made.code[layout.code.first_traceable / 8] = TRACEABLE_FROM.into();
            for index in 0..count {
                made.set(index, 0, 200, index + 1);
            }
            made
        }

        fn address(&self, index: usize) -> u64 {
            self.frames.get(index).map_or(0, |frame| frame.as_ptr() as u64)
        }

        /// A frame with that owner, at that instruction, before the frame `previous`; after the last there is none.
        fn set(&mut self, index: usize, owner: u64, instruction: u64, previous: usize) {
            let layout = Layout::must_have(MINOR);
            let (code, previous) = (self.code.as_ptr() as u64, self.address(previous));
            let frame = &mut self.frames[index];
            frame[layout.frame.code / 8] = code | 1;
            frame[layout.frame.previous / 8] = previous;
            frame[layout.frame.instruction / 8] = (code + layout.code.units as u64).wrapping_add(instruction);
            frame[layout.frame.owner / 8] = owner << (8 * (layout.frame.owner % 8));
        }

        fn walk(&self, room: usize) -> (Vec<PythonFrame>, SourceStop) {
            let mut frames = vec![PythonFrame::default(); room];
            // SAFETY: the chain is made of frames of this layout.
            let walked = unsafe { walk::<MINOR>(self.address(0), &mut frames) };
            frames.truncate(walked.len);
            (frames, walked.stop)
        }
    }

    #[test]
    fn shims_end_activations_and_are_not_shown() {
        let mut made = Made::new(5);
        made.set(2, 3, 0, 3);
        made.set(4, 3, 0, 5);
        let (frames, stop) = made.walk(8);
        assert_eq!(stop, SourceStop::EndOfStack);
        assert_eq!(frames.iter().map(|frame| frame.is_entry).collect::<Vec<_>>(), [false, true, true]);
        let (inner, outer) = (made.address(2), made.address(4));
        assert_eq!(frames.iter().map(|frame| frame.activation).collect::<Vec<_>>(), [inner, inner, outer]);
        assert!(frames.iter().all(|frame| frame.code.address() == made.code.as_ptr() as u64));
    }

    #[test]
    fn frames_that_have_not_begun_are_not_shown() {
        let mut made = Made::new(5);
        made.set(0, 0, 2_u64.wrapping_neg(), 1);
        made.set(1, 0, 2 * u64::from(TRACEABLE_FROM) - 2, 2);
        made.set(2, 1, 2 * u64::from(TRACEABLE_FROM) - 2, 3);
        made.set(3, 0, 2 * u64::from(TRACEABLE_FROM), 4);
        let (frames, stop) = made.walk(8);
        assert_eq!(stop, SourceStop::EndOfStack);
        assert_eq!(frames.iter().map(|frame| frame.instruction).collect::<Vec<_>>(), [6, 8, 200]);
    }

    #[test]
    fn circles_and_wild_pointers_end_the_walk() {
        let mut circle = Made::new(3);
        circle.set(2, 0, 200, 0);
        assert_eq!((circle.walk(50).0.len(), circle.walk(50).1), (50, SourceStop::DepthLimit));
        circle.set(1, 3, 0, 1);
        assert_eq!((circle.walk(50).0.len(), circle.walk(50).1), (1, SourceStop::BadFrame));
        let layout = Layout::must_have(MINOR);
        for wild in [1, 4, 0x7fff_0000_0001, 1 << 50, u64::MAX - 7] {
            let mut made = Made::new(2);
            made.frames[0][layout.frame.previous / 8] = wild;
            assert_eq!((made.walk(8).0.len(), made.walk(8).1), (1, SourceStop::BadFrame), "{wild:#x}");
            made.frames[0][layout.frame.code / 8] = wild;
            assert_eq!((made.walk(8).0.len(), made.walk(8).1), (0, SourceStop::BadFrame), "{wild:#x}");
        }
    }
}
