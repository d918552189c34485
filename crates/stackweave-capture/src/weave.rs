//! Weaves two stacks of one thread into one, by the addresses of their frames on the C stack.
//!
//! A native frame owns the stack from its stack pointer up to its caller's. An interpreter's frame has an address
//! on the C stack that belongs to the native frame which runs it, so its place is just inside that frame. This
//! needs neither symbols nor knowledge of the interpreter's code.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use stackweave_core::{CodeAddress, CodeId, RawFrame, RawFrameKind, StackPointer};

/// A native stack, innermost first.
#[derive(Clone, Copy, Debug)]
pub struct NativeStack<'a> {
    /// The address of each frame.
    pub addresses: &'a [CodeAddress],
    /// The stack pointer of each frame.
    pub stack_pointers: &'a [StackPointer],
    /// Whether the stack is complete up to its outermost frame.
    pub is_complete: bool,
}

impl NativeStack<'_> {
    /// Returns the stack without the innermost `count` frames.
    #[must_use]
    #[inline(always)]
    pub fn from(&self, count: usize) -> Self {
        Self { addresses: &self.addresses[count..], stack_pointers: &self.stack_pointers[count..], ..*self }
    }

    /// Returns the native frame, beginning at `from`, whose part of the stack contains `activation`.
    #[inline(always)]
    pub fn runner_of(&self, activation: StackPointer, from: usize) -> Option<usize> {
        let mut inner = from;
        let mut start = *self.stack_pointers.get(inner)?;
        for (index, end) in self.stack_pointers.iter().enumerate().skip(from + 1) {
            if start <= activation && activation < *end {
                return Some(inner);
            }
            (inner, start) = (index, *end);
        }
        // The end of the outermost frame is not known. If the stack is incomplete, the memory above may belong to
        // other frames.
        (self.is_complete && start <= activation).then_some(inner)
    }

    /// Returns how many frames are inside an `activation` that none of them runs: all of them, if the stack was
    /// cut before it; none, if the stack is complete, because the activation is on another stack.
    #[cold]
    pub fn inside(&self, activation: StackPointer) -> usize {
        match self.stack_pointers.last() {
            Some(outermost) if !self.is_complete && *outermost <= activation => self.stack_pointers.len(),
            _ => 0,
        }
    }
}

/// Frames of interpreters, innermost first, and their activations.
#[derive(Clone, Copy, Debug)]
pub struct InterpretedFrames<'a> {
    /// The frames.
    pub frames: &'a [RawFrame],
    /// An address on the C stack for each, which belongs to the native frame that runs it; 0 if it is not known.
    pub activations: &'a [StackPointer],
}

/// Writes both stacks as one to `woven`, which has room for both, and returns the number of frames.
///
/// Frames without a native frame that runs them (the native stack was cut, or they are on another stack) are put
/// just inside the native frame that runs the next frames outward; at the outer end if there is none.
#[inline(always)]
pub fn weave(native: NativeStack<'_>, interpreted: InterpretedFrames<'_>, woven: &mut [RawFrame]) -> usize {
    let InterpretedFrames { frames, activations } = interpreted;
    let mut output = Output { woven, len: 0 };
    let (mut done, mut written) = (0, 0);
    while written < frames.len() {
        let activation = activations[written];
        let end = group_end(activations, written);
        if activation == StackPointer(0) {
            // The first frame, with an unknown activation: innermost of all.
            output.interpreted(&frames[written..end]);
            written = end;
        } else if let Some(runner) = native.runner_of(activation, done) {
            output.native(&native.addresses[done..runner]);
            output.interpreted(&frames[written..end]);
            (done, written) = (runner, end);
        } else {
            let rest = InterpretedFrames { frames: &frames[written..], activations: &activations[written..] };
            return weave_the_rest(native, rest, output, done);
        }
    }
    output.native(&native.addresses[done..]);
    output.len
}

/// Continues `weave` when a group of frames has no runner: it is written before the next group that has one.
#[cold]
#[inline(never)]
fn weave_the_rest(
    native: NativeStack<'_>,
    rest: InterpretedFrames<'_>,
    mut output: Output<'_>,
    mut done: usize,
) -> usize {
    let InterpretedFrames { frames, activations } = rest;
    let mut written = 0;
    let mut next = 0;
    while next < frames.len() {
        let end = group_end(activations, next);
        if let Some(runner) = native.runner_of(activations[next], done) {
            output.native(&native.addresses[done..runner]);
            output.interpreted(&frames[written..end]);
            (done, written) = (runner, end);
        }
        next = end;
    }
    output.native(&native.addresses[done..]);
    output.interpreted(&frames[written..]);
    output.len
}

/// Returns the end of the group of frames that have the same place as the one at `start`.
#[inline(always)]
fn group_end(activations: &[StackPointer], start: usize) -> usize {
    let activation = activations[start];
    let mut end = start + 1;
    while end < activations.len() && (activations[end] == activation || activations[end] == StackPointer(0)) {
        end += 1;
    }
    end
}

struct Output<'a> {
    woven: &'a mut [RawFrame],
    len: usize,
}

impl Output<'_> {
    #[inline(always)]
    fn native(&mut self, addresses: &[CodeAddress]) {
        for (slot, address) in self.woven[self.len..][..addresses.len()].iter_mut().zip(addresses) {
            *slot = RawFrame::native(*address);
        }
        self.len += addresses.len();
    }

    #[inline(always)]
    fn interpreted(&mut self, frames: &[RawFrame]) {
        for (slot, frame) in self.woven[self.len..][..frames.len()].iter_mut().zip(frames) {
            *slot = *frame;
        }
        self.len += frames.len();
    }
}

/// Merges the frames of another source, which begin at `middle`, into those before. Keeps the order within each
/// source. Works in place, for few frames: other interpreters are rare.
#[cold]
#[inline(never)]
pub fn merge_sources(frames: &mut [RawFrame], activations: &mut [StackPointer], middle: usize, inside: Option<CodeId>) {
    let runs = |frame: &RawFrame, code| matches!(frame.kind(), RawFrameKind::Python { code: runs, .. } if runs == code);
    if let Some(code) = inside {
        let place = frames[..middle].iter().position(|frame| runs(frame, code));
        let activation = place.map_or(StackPointer(0), |place| activations[place]);
        activations[middle..].fill(activation);
        let (place, added) = (place.unwrap_or(0), frames.len() - middle);
        frames[place..].rotate_right(added);
        activations[place..].rotate_right(added);
        return;
    }
    let (mut place, mut middle) = (0, middle);
    while place < middle && middle < frames.len() {
        let end = group_end(activations, middle);
        if activations[middle] < activations[place] {
            frames[place..end].rotate_right(end - middle);
            activations[place..end].rotate_right(end - middle);
            (place, middle) = (place + end - middle, end);
        } else {
            place = group_end(&activations[..middle], place);
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "frames have names of one letter")]
mod tests {
    use super::*;

    /// Returns native frames `a`, `b`, ... at 0x100, 0x200, ...
    fn native(count: u64) -> (Vec<CodeAddress>, Vec<StackPointer>) {
        let addresses = (0..count).map(|index| CodeAddress::return_address(u64::from(b'a') + index)).collect();
        (addresses, (1..=count).map(|index| StackPointer(index * 0x100)).collect())
    }

    /// Returns interpreter frames `0`, `1`, ...
    fn frames(count: usize) -> Vec<RawFrame> {
        (0..count as u64).map(|index| RawFrame::script(1, u64::from(b'0') + index)).collect()
    }

    fn places(activations: &[u64]) -> Vec<StackPointer> {
        activations.iter().copied().map(StackPointer).collect()
    }

    fn weave_all(stack_pointers: &[StackPointer], is_complete: bool, activations: &[u64]) -> String {
        let addresses = native(stack_pointers.len() as u64).0;
        let native = NativeStack { addresses: &addresses, stack_pointers, is_complete };
        let (frames, activations) = (frames(activations.len()), places(activations));
        let mut output = vec![RawFrame::default(); 64];
        let len = weave(native, InterpretedFrames { frames: &frames, activations: &activations }, &mut output);
        letters(&output[..len])
    }

    fn letters(frames: &[RawFrame]) -> String {
        let letter = |frame: &RawFrame| match frame.kind() {
            RawFrameKind::Native(address) => address.address() as u8 as char,
            RawFrameKind::Script { word, .. } => word as u8 as char,
            RawFrameKind::Python { code, .. } => code.get() as u8 as char,
            RawFrameKind::Label(label) => label.get() as u8 as char,
        };
        frames.iter().map(letter).collect()
    }

    fn woven(native_count: u64, activations: &[u64]) -> String {
        weave_all(&native(native_count).1, true, activations)
    }

    #[test]
    fn frames_are_woven_just_inside_the_native_frame_that_runs_them() {
        assert_eq!(woven(4, &[0x210, 0x210, 0x3f8]), "a01b2cd");
        assert_eq!(woven(4, &[0x100, 0x200, 0x300]), "0a1b2cd");
        assert_eq!(woven(3, &[0x900]), "ab0c");
    }

    #[test]
    fn either_stack_may_be_empty() {
        assert_eq!(woven(3, &[]), "abc");
        assert_eq!(woven(0, &[0x210, 0x310]), "01");
        assert_eq!(woven(0, &[]), "");
    }

    #[test]
    fn frames_without_activation_follow_the_previous_one_or_come_first() {
        assert_eq!(woven(3, &[0, 0, 0]), "012abc");
        assert_eq!(woven(3, &[0x210, 0, 0]), "a012bc");
        assert_eq!(woven(3, &[0, 0x210, 0]), "0a12bc");
    }

    #[test]
    fn frames_without_runner_precede_the_next_frame_with_one() {
        assert_eq!(woven(3, &[0x50, 0x210]), "a01bc");
        assert_eq!(woven(3, &[0x210, 0x50, 0x60]), "a0bc12");
        assert_eq!(woven(3, &[0x50]), "abc0");
    }

    #[test]
    fn a_stack_switch_in_the_middle_does_not_swallow_frames() {
        let stack_pointers = [0x9000, 0x9100, 0x100, 0x200].map(StackPointer);
        assert_eq!(weave_all(&stack_pointers, true, &[0x110, 0x210]), "ab0c1d");
    }

    #[test]
    fn frames_beyond_a_cut_native_stack_follow_it() {
        assert_eq!(weave_all(&native(3).1, false, &[0x210, 0x310, 0x900]), "a0bc12");
    }

    /// Returns the merged frames of two sources: Python's, and another whose frames have digits from `5`.
    fn merged(first: &[u64], second: &[u64], inside: Option<u32>) -> String {
        let python =
            |index: usize| CodeId::new(u32::from(b'0') + index as u32).map(|code| RawFrame::python(code, 0, false));
        let mut all: Vec<RawFrame> = (0..first.len()).filter_map(python).collect();
        all.extend((0..second.len() as u64).map(|index| RawFrame::script(1, u64::from(b'5') + index)));
        let mut activations = places(&[first, second].concat());
        merge_sources(&mut all, &mut activations, first.len(), inside.and_then(CodeId::new));
        letters(&all)
    }

    #[test]
    fn two_sources_merge_by_their_activations() {
        assert_eq!(merged(&[0x210, 0x210, 0x410], &[0x110, 0x310, 0x310], None), "501672");
        assert_eq!(merged(&[0x210, 0x410], &[0x510], None), "015");
        assert_eq!(merged(&[0x210, 0x410], &[0, 0], None), "5601");
        assert_eq!(merged(&[], &[0x510, 0x610], None), "56");
    }

    #[test]
    fn frames_can_be_put_inside_a_python_frame() {
        assert_eq!(merged(&[0x210, 0x210, 0x410], &[0, 0], Some(u32::from(b'1'))), "05612");
        assert_eq!(merged(&[0x210, 0x210, 0x410], &[0, 0], Some(u32::from(b'2'))), "01562");
        assert_eq!(merged(&[0x210, 0x410], &[0, 0], Some(77)), "5601");
    }
}
