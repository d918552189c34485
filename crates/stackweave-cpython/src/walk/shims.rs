//! Frames of 3.12 and later: each activation of the eval loop ends with a shim on the C stack.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use super::cached_frame::{CachedFrame, WrittenFrame};
use super::code_position::{CodePosition, code_position};
use super::frame_chain::{ChainStep, CodeFrame, FrameChain, StepKind};
use super::{LONGEST_CHAIN, SHIM, TAG};
use crate::memory::{is_plausible, load, word};
use crate::version::VersionLayout;

/// Frames are walked before the shim that ends their activation, so they get its address when the walk reaches it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shims<const MINOR: u8>;

impl<const MINOR: u8> Shims<MINOR> {
    const LAYOUT: VersionLayout = VersionLayout::must_have(MINOR);
}

impl<const MINOR: u8> FrameChain for Shims<MINOR> {
    const HAS_SHIMS: bool = true;

    #[inline(always)]
    unsafe fn step(&mut self, frame: u64) -> ChainStep {
        let offsets = const { Self::LAYOUT.frame };
        // SAFETY: the frame belongs to a chain that does not change.
        let (previous, code, word, owner) = unsafe {
            let code = word(frame, offsets.code) & !TAG;
            (Self::previous(frame), code, Self::word(frame), load::<u8>(frame, offsets.owner))
        };
        let visible = |instruction, is_replayable| {
            StepKind::Frame(CodeFrame { code, instruction, is_entry: false, activation: 0, is_replayable })
        };
        let kind = match owner {
            // SAFETY: as above.
            0..SHIM => match unsafe { code_position(const { &Self::LAYOUT }, code, word, owner) } {
                CodePosition::At(instruction) => visible(instruction, true),
                CodePosition::InGenerator(instruction) => visible(instruction, false),
                CodePosition::NotBegun => StepKind::Hidden,
                CodePosition::Invalid => StepKind::Bad,
            },
            SHIM => StepKind::Shim,
            _ => StepKind::Hidden,
        };
        ChainStep { previous, word, kind }
    }

    /// Returns a pointer into the code: it can't be the same for another code object while this one lives. That of a
    /// shim points to where no frame that runs Python can be.
    #[inline(always)]
    unsafe fn word(frame: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { word(frame, const { Self::LAYOUT.frame.instruction }) }
    }

    #[inline(always)]
    unsafe fn previous(frame: u64) -> u64 {
        // SAFETY: passed on to the caller.
        unsafe { word(frame, const { Self::LAYOUT.frame.previous }) }
    }

    /// Shims are in the chain.
    #[inline(always)]
    unsafe fn loop_holds(&self, _: &CachedFrame, _: &CachedFrame) -> bool {
        true
    }

    #[inline(always)]
    unsafe fn pass(&mut self, _: &CachedFrame, _: u64) {}

    #[inline(always)]
    unsafe fn renew_loop(&mut self, _: &mut CachedFrame) -> bool {
        false
    }

    #[inline(always)]
    fn replayed(&self, entry: &CachedFrame) -> WrittenFrame {
        entry.written
    }

    #[inline(always)]
    fn c_frame(&self) -> u64 {
        0
    }

    unsafe fn shim_beyond(&self, mut frame: u64) -> Option<u64> {
        let offsets = const { Self::LAYOUT.frame };
        for _ in 0..LONGEST_CHAIN {
            if !is_plausible(frame) {
                return None;
            }
            // SAFETY: the frame belongs to a chain that does not change.
            let (previous, owner) = unsafe { (word(frame, offsets.previous), load::<u8>(frame, offsets.owner)) };
            if owner == SHIM {
                return Some(frame);
            }
            frame = previous;
        }
        None
    }

    #[inline(always)]
    fn loop_without_frame(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use stackweave_core::SourceStop;

    use super::*;
    use crate::frame::PythonFrame;
    use crate::walk::frame_by_frame::{self, PythonFrames};

    const MINOR: u8 = 14;
    const TRACEABLE_FROM: u32 = 4;
    type Words = [u64; 32];

    /// Code objects and frames in our own memory, with the layout of 3.14.
    struct FakeChain {
        code: Box<Words>,
        frames: Box<[Words]>,
    }

    impl FakeChain {
        fn new(count: usize) -> Self {
            let layout = VersionLayout::must_have(MINOR);
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

        /// Sets a frame's owner and instruction, and the frame `previous` that follows it; after the last there is
        /// none.
        fn set(&mut self, index: usize, owner: u64, instruction: u64, previous: usize) {
            let layout = VersionLayout::must_have(MINOR);
            let (code, previous) = (self.code.as_ptr() as u64, self.address(previous));
            let frame = &mut self.frames[index];
            frame[layout.frame.code / 8] = code | 1;
            frame[layout.frame.previous / 8] = previous;
            frame[layout.frame.instruction / 8] = (code + layout.code.units as u64).wrapping_add(instruction);
            frame[layout.frame.owner / 8] = owner << (8 * (layout.frame.owner % 8));
        }

        fn walk(&self, capacity: usize) -> (Vec<PythonFrame>, SourceStop) {
            let mut frames = vec![PythonFrame::default(); capacity];
            let mut output = PythonFrames::new(&mut frames);
            // SAFETY: the chain consists of frames of this layout.
            let stop = unsafe { frame_by_frame::walk(Shims::<MINOR>, self.address(0), &mut output) };
            let len = output.len;
            frames.truncate(len);
            (frames, stop)
        }
    }

    #[test]
    fn shims_end_activations_and_are_not_written() {
        let mut made = FakeChain::new(5);
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
    fn frames_that_have_not_begun_are_not_written() {
        let mut made = FakeChain::new(5);
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
        let mut circle = FakeChain::new(3);
        circle.set(2, 0, 200, 0);
        assert_eq!((circle.walk(50).0.len(), circle.walk(50).1), (50, SourceStop::DepthLimit));
        circle.set(1, 3, 0, 1);
        assert_eq!((circle.walk(50).0.len(), circle.walk(50).1), (1, SourceStop::BadFrame));
        let layout = VersionLayout::must_have(MINOR);
        for wild in [1, 4, 0x7fff_0000_0001, 1 << 50, u64::MAX - 7] {
            let mut made = FakeChain::new(2);
            made.frames[0][layout.frame.previous / 8] = wild;
            assert_eq!((made.walk(8).0.len(), made.walk(8).1), (1, SourceStop::BadFrame), "{wild:#x}");
            made.frames[0][layout.frame.code / 8] = wild;
            assert_eq!((made.walk(8).0.len(), made.walk(8).1), (0, SourceStop::BadFrame), "{wild:#x}");
        }
    }
}
