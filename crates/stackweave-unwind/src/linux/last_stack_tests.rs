//! Stacks in our own memory: what is found again, and which words matter.

use super::*;
use stackweave_core::CodeAddress;

const FRAMES: usize = 20;
/// The distance between the stack pointers of two frames, in words.
const SPACING: usize = 4;

/// A stack in memory, and what a walk of it finds.
struct TestStack {
    memory: Vec<u64>,
    frames: Vec<WalkedFrame>,
}

impl TestStack {
    /// Makes a stack with these addresses, whose frames all have this rule, except for the outermost one.
    fn new(memory: Vec<u64>, addresses: impl Fn(usize) -> u64, rule: Rule) -> Self {
        let mut made = Self { memory, frames: Vec::new() };
        made.memory.resize(SPACING * (FRAMES + 1), 0);
        for index in 0..FRAMES {
            let rule = if index + 1 == FRAMES { Rule::of(RuleKind::End) } else { rule };
            let (sp, fp) = (made.place(index) + 8, made.place(index + 1) - 8);
            made.frames.push(WalkedFrame { address: addresses(index), sp, fp, rule });
            made.memory[SPACING * index] = addresses(index);
            made.memory[SPACING * (index + 1) - 1] = made.place(index + 2) - 8;
        }
        made
    }

    /// Returns the slot of a frame. The word before that of the next frame is where it saves the frame pointer.
    fn place(&self, index: usize) -> u64 {
        self.memory.as_ptr().expose_provenance() as u64 + 8 * (SPACING * index) as u64
    }

    /// Lets a walk find this stack.
    fn walk(&self, last: &mut LastNativeStack) {
        last.prepare();
        last.walked_and_slots().0[..FRAMES].copy_from_slice(&self.frames);
        last.keep(CAPACITY, FRAMES);
        // Record it although the one before was not of use.
        last.doubt = 0;
        last.prepare();
    }

    fn find(&self, last: &mut LastNativeStack, limit: usize) -> Option<usize> {
        let WalkedFrame { address, sp, fp, .. } = self.frames[0];
        let first = WalkFrame { address: CodeAddress::from_bits(address), sp, fp };
        // SAFETY: the memory of this stack.
        unsafe { last.find(&first, limit, self.place(FRAMES + 1)) }
    }

    /// Returns whether the stack is found after this word has changed.
    fn is_found_without(&mut self, last: &mut LastNativeStack, word: usize) -> bool {
        let before = core::mem::replace(&mut self.memory[word], 1);
        let is_found = self.find(last, usize::MAX).is_some();
        self.memory[word] = before;
        assert!(self.find(last, usize::MAX).is_some());
        is_found
    }
}

fn empty() -> Box<LastNativeStack> {
    // SAFETY: zeros, followed by `clear`, make an empty record.
    let mut last = unsafe { Box::<LastNativeStack>::new_zeroed().assume_init() };
    last.clear();
    last
}

fn by_fp() -> Rule {
    Rule::frame_pointer()
}

fn by_sp() -> Rule {
    Rule::with_offsets(RuleKind::Sp, 8 * SPACING as i64, -16)
}

#[test]
fn a_stack_is_found_until_a_slot_changes() {
    let mut last = empty();
    let mut stack = TestStack::new(Vec::new(), |index| 0x1000 + index as u64, by_sp());
    assert_eq!(stack.find(&mut last, usize::MAX), None);
    stack.walk(&mut last);
    assert_eq!(stack.find(&mut last, usize::MAX), Some(FRAMES));
    for index in 1..FRAMES {
        assert!(!stack.is_found_without(&mut last, SPACING * index), "slot {index}");
    }
    // No frame is found by its frame pointer, so it does not matter what was saved.
    assert!((1..FRAMES).all(|index| stack.is_found_without(&mut last, SPACING * index - 1)));
}

#[test]
fn a_saved_word_matters_if_it_decides_where_a_frame_is() {
    let mut last = empty();
    let mut stack = TestStack::new(Vec::new(), |index| 0x1000 + index as u64, by_fp());
    stack.walk(&mut last);
    assert_eq!(stack.find(&mut last, usize::MAX), Some(FRAMES));
    // The last one is the frame pointer of the outermost frame, which has no caller.
    let matters = |index: usize| index + 1 < FRAMES;
    for index in 1..FRAMES {
        assert_eq!(stack.is_found_without(&mut last, SPACING * index - 1), !matters(index), "frame {index}");
    }
    stack.frames[0].fp += 8;
    assert_eq!(stack.find(&mut last, usize::MAX), None, "the first frame pointer");
}

#[test]
fn stacks_with_the_same_innermost_frame_are_distinguished() {
    let mut last = empty();
    let mut memory = Vec::with_capacity(SPACING * (FRAMES + 1));
    let mut numbers = Vec::new();
    let mut found = 0;
    for round in 0..3 {
        for which in 0..40_u64 {
            // They differ in one frame each, and some in two.
            let address = |index: usize| {
                let differs = index as u64 == 1 + which % 19 || (which > 19 && index == 10);
                0x1000 + index as u64 + if differs { 0x100 * (1 + which) } else { 0 }
            };
            let stack = TestStack::new(memory, address, if which % 2 == 0 { by_fp() } else { by_sp() });
            if round == 0 {
                assert_eq!(stack.find(&mut last, usize::MAX), None, "{which}");
                stack.walk(&mut last);
                numbers.push(last.recorded_number());
            }
            // One that is added later may hide another.
            if stack.find(&mut last, 7).is_some() {
                found += 1;
                assert_eq!(last.number(), numbers[which as usize], "{which} in round {round}");
                let mut copied = [0; FRAMES - 3];
                last.copy(3, FRAMES, &mut copied, |index, slot| assert_eq!(slot, stack.frames[index + 3].sp - 8));
                assert!(copied.iter().zip(&stack.frames[3..]).all(|(copied, frame)| *copied == frame.address));
            } else {
                stack.walk(&mut last);
            }
            memory = stack.memory;
        }
    }
    assert!(found >= 80, "{found} of 120");
    last.clear();
    let stack = TestStack::new(memory, |index| 0x1000 + index as u64, by_sp());
    assert_eq!(stack.find(&mut last, usize::MAX), None);
}

#[test]
fn a_stack_whose_step_must_be_taken_again_is_not_in_the_tree() {
    let mut last = empty();
    let mut stack = TestStack::new(Vec::new(), |index| 0x1000 + index as u64, by_sp());
    stack.frames[9].rule = Rule::of(RuleKind::General);
    stack.walk(&mut last);
    assert_eq!(stack.find(&mut last, usize::MAX), None);
}
