//! Corrupted stacks and registers lead to a stop with a reason, never to a fault.

use std::ffi::c_void;

use stackweave_testkit::coroutine_stack::MappedStack;
use stackweave_testkit::fixtures::sw_asm_frame_pointer;
use stackweave_testkit::modules;
use stackweave_testkit::oracles::SIGNAL_SAFE;
use stackweave_testkit::random::Random;
use stackweave_testkit::signals::{SignalStack, in_handler};
use stackweave_testkit::stack::describe;
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::subject;
use stackweave_testkit::tree::{FramePointers, walk};
use stackweave_unwind::{Captured, CodeAddress, StopReason};

const RIP: usize = libc::REG_RIP as usize;
const RSP: usize = libc::REG_RSP as usize;
const RBP: usize = libc::REG_RBP as usize;
/// The registers on which a compiler's tables may base a frame.
const OTHERS: [usize; 8] = [
    libc::REG_RBX as usize,
    libc::REG_R12 as usize,
    libc::REG_R13 as usize,
    libc::REG_R14 as usize,
    libc::REG_R15 as usize,
    libc::REG_R10 as usize,
    libc::REG_RDI as usize,
    libc::REG_RAX as usize,
];
const LIMIT: usize = 256;

/// The registers of a modified context.
struct Registers<'a>(&'a mut libc::ucontext_t);

impl Registers<'_> {
    fn set(&mut self, register: usize, value: u64) {
        self.0.uc_mcontext.gregs[register] = value.cast_signed();
    }

    fn get(&self, register: usize) -> u64 {
        self.0.uc_mcontext.gregs[register].cast_unsigned()
    }

    /// Captures from these registers, and checks what must hold for any values.
    fn capture(&self, frames: &mut [CodeAddress; LIMIT]) -> Captured {
        // SAFETY: a context of this thread's running handler, except for values that must not matter.
        let captured = unsafe { subject::capture_from_context((&raw const *self.0).cast(), frames, 0) };
        assert!(captured.len <= LIMIT);
        assert_ne!(captured.stop, StopReason::UnsupportedPlatform);
        if let Some((first, others)) = frames[..captured.len].split_first() {
            assert_eq!(*first, CodeAddress::instruction_pointer(self.get(RIP)));
            let null = others.iter().any(|frame| frame.address() == 0);
            assert!(!null, "a null frame: {}", show(captured, frames));
        }
        captured
    }
}

/// Calls `with` in a signal handler, with a modifiable copy of its context. libgcc would crash in these tests, so
/// it is never the subject.
fn with_registers(with: &mut dyn FnMut(Registers<'_>)) {
    if subject::is_libgcc() {
        return;
    }
    in_handler(SignalStack::Normal, &mut |context: *mut c_void| {
        // SAFETY: the handler's context is a complete `ucontext_t`.
        let mut copy = unsafe { context.cast::<libc::ucontext_t>().read() };
        with(Registers(&mut copy));
    });
    let mut checker = StackChecker::new(4096);
    checker.check_here("after a corrupted stack", SIGNAL_SAFE);
    checker.expect_agreement(2);
}

fn show(captured: Captured, frames: &[CodeAddress]) -> String {
    let lines: Vec<_> = frames[..captured.len].iter().map(|&frame| describe(frame)).collect();
    format!("{captured:?}\n{}", lines.join("\n"))
}

#[test]
fn a_stack_pointer_to_inaccessible_memory_stops_with_bad_memory() {
    let pages = MappedStack::new(4, None);
    let guard = pages.start() as u64 + pages.size() as u64;
    let unmapped = 0x1000;
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        let end_of_pages = guard - 8;
        for rsp in [guard, guard + 64, end_of_pages, unmapped, 8, 0, u64::MAX - 7, 0xffff_8000_0000_0000, 1 << 47] {
            registers.set(RSP, rsp);
            let captured = registers.capture(&mut frames);
            assert_eq!(captured.stop, StopReason::BadMemory, "rsp {rsp:#x}: {}", show(captured, &frames));
        }
    });
}

#[test]
fn a_misaligned_stack_pointer_stops_cleanly() {
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        let rsp = registers.get(RSP);
        for shift in 1..64 {
            registers.set(RSP, rsp + shift);
            registers.capture(&mut frames);
            registers.set(RSP, rsp - shift);
            registers.capture(&mut frames);
        }
    });
}

#[test]
fn an_instruction_pointer_outside_of_code_stops_cleanly() {
    let data = [0_u64; 4];
    let heap = Box::new(0_u64);
    let places = [1, 8, 0x1000, &raw const data as u64, &raw const *heap as u64, 1 << 47, u64::MAX, 0xdead_beef_cafe];
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        for rip in places {
            for rbp in [0, 1, 8, &raw const data as u64, u64::MAX, registers.get(RSP)] {
                registers.set(RIP, rip);
                registers.set(RBP, rbp);
                let captured = registers.capture(&mut frames);
                let whole = captured.stop == StopReason::EndOfStack && captured.len < 3;
                assert!(!whole, "rip {rip:#x} rbp {rbp:#x}: {}", show(captured, &frames));
            }
        }
        registers.set(RIP, 0);
        registers.set(RBP, 0);
        registers.capture(&mut frames);
    });
}

/// Returns a return address in code whose tables find frames by rbp.
fn frame_pointer_code() -> u64 {
    let mut found = 0;
    walk(FramePointers::Kept, &[0, 1, 2, 3], &mut |known| found = known[2]);
    found
}

#[test]
fn cyclic_frame_pointers_stop_cleanly() {
    let tabled = frame_pointer_code();
    let bare = sw_asm_frame_pointer as *const () as u64 + 8;
    let mapped = MappedStack::new(2, None);
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        let mut on_stack = [0_u64; 64];
        for rip in [tabled, bare] {
            for cells in [on_stack.as_mut_ptr(), mapped.start().cast::<u64>()] {
                let address = |index: usize| cells as u64 + 8 * index as u64;
                // SAFETY: both buffers have 64 words.
                let frame = |index: usize, next: u64| unsafe {
                    cells.add(index).write(next);
                    cells.add(index + 1).write(rip);
                };
                registers.set(RIP, rip);
                registers.set(RSP, address(0));
                registers.set(RBP, address(4));
                frame(4, address(4));
                let to_itself = registers.capture(&mut frames);
                assert_ne!(to_itself.stop, StopReason::DepthLimit, "{}", show(to_itself, &frames));
                frame(4, address(20));
                frame(20, address(4));
                let cycle_of_two = registers.capture(&mut frames);
                assert_ne!(cycle_of_two.stop, StopReason::DepthLimit, "{}", show(cycle_of_two, &frames));
                assert!(cycle_of_two.len <= 4, "{}", show(cycle_of_two, &frames));
            }
        }
    });
}

/// Generates words of every kind that a corrupted stack may contain.
struct RandomWords {
    random: Random,
    code: Vec<std::ops::Range<u64>>,
    known: Vec<u64>,
    stack: std::ops::Range<u64>,
}

impl RandomWords {
    fn new(seed: u64, stack: std::ops::Range<u64>) -> Self {
        let code = modules::loaded().into_iter().flat_map(|module| module.code).collect();
        let mut known = Vec::new();
        walk(FramePointers::Kept, &[0, 5, 11, 14, 9, 3], &mut |addresses| known.extend_from_slice(addresses));
        Self { random: Random::new(seed), code, known, stack }
    }

    fn within(&mut self, range: &std::ops::Range<u64>) -> u64 {
        range.start + self.random.bits() % (range.end - range.start)
    }

    fn code(&mut self) -> u64 {
        if self.random.below(2) == 0 {
            return self.known[self.random.below(self.known.len())];
        }
        let range = self.code[self.random.below(self.code.len())].clone();
        self.within(&range)
    }

    /// Returns a random word, or one near a value where address arithmetic overflows.
    fn extreme(&mut self) -> u64 {
        let near = self.random.bits() % 4096;
        match self.random.below(5) {
            0 => u64::MAX - near,
            1 => (1 << 63) - 2048 + near,
            2 => (1 << 47) - 2048 + near,
            3 => 0xffff_8000_0000_0000 + near,
            _ => self.random.bits(),
        }
    }

    fn word(&mut self) -> u64 {
        match self.random.below(8) {
            0 => self.random.bits() % 512,
            1 => self.extreme(),
            2..=4 => self.code(),
            5 => self.within(&self.stack.clone()),
            _ => self.within(&self.stack.clone()) & !7,
        }
    }
}

fn survive_random_words(seeds: std::ops::Range<u64>, words: &mut [u64]) {
    let range = words.as_ptr_range();
    let stack = range.start as u64..range.end as u64;
    let mut random_words = RandomWords::new(0, stack.clone());
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        for seed in seeds.clone() {
            random_words.random = Random::new(seed);
            for word in words.iter_mut() {
                *word = random_words.word();
            }
            for _ in 0..16 {
                registers.set(RIP, random_words.code());
                let rsp = if random_words.random.below(4) == 0 {
                    random_words.word()
                } else {
                    random_words.within(&stack) & !7
                };
                registers.set(RSP, rsp);
                registers.set(RBP, random_words.word());
                for register in OTHERS {
                    registers.set(register, random_words.word());
                }
                registers.capture(&mut frames);
            }
        }
    });
}

#[test]
fn random_words_on_the_threads_own_stack_stop_cleanly() {
    let mut words = [0_u64; 512];
    survive_random_words(0..6000, &mut words);
}

#[test]
fn random_words_on_a_foreign_stack_stop_cleanly() {
    let pages = MappedStack::new(1, None);
    // SAFETY: the pages are mapped, and have no other users.
    let words = unsafe { std::slice::from_raw_parts_mut(pages.start().cast::<u64>(), pages.size() / 8) };
    survive_random_words(10_000..16_000, words);
}
