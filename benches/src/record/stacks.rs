//! Generated stacks, the same in every run.

use std::array;

use stackweave_core::{CodeAddress, RawFrame};

pub(super) type Stack = Box<[RawFrame]>;

pub(super) const DEEPEST: usize = 100;
/// The number of frames that are in no other stack.
const OWN_FRAMES: usize = 2;

/// A generator of stacks, each different from all before.
#[derive(Debug)]
pub(super) struct Stacks {
    callers: Vec<RawFrame>,
    state: u64,
}

impl Stacks {
    /// Creates a generator of stacks with `depth` frames.
    pub(super) fn new(depth: usize) -> Self {
        let mut stacks = Self { callers: Vec::new(), state: depth as u64 };
        stacks.callers = (OWN_FRAMES..depth.min(DEEPEST)).map(|_| stacks.frame()).collect();
        stacks
    }

    pub(super) fn take(&mut self, count: usize) -> Vec<Stack> {
        (0..count).map(|_| self.one()).collect()
    }

    fn one(&mut self) -> Stack {
        let own: [RawFrame; OWN_FRAMES] = array::from_fn(|_| self.frame());
        own.into_iter().chain(self.callers.iter().copied()).collect()
    }

    /// Returns a return address in one of a few libraries.
    fn frame(&mut self) -> RawFrame {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let (library, offset) = (self.state >> 61, (self.state >> 33) & 0xff_ffff);
        RawFrame::native(CodeAddress::return_address(0x7f3a_0000_0000 + (library << 28) + offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_differ_inside_and_share_their_callers() {
        let mut stacks = Stacks::new(20);
        let (first, more) = (stacks.take(100), stacks.take(100));
        let mut all: Vec<&Stack> = first.iter().chain(&more).collect();
        assert!(all.iter().all(|stack| stack.len() == 20 && stack[OWN_FRAMES..] == first[0][OWN_FRAMES..]));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 200);
    }
}
