//! Stacks and registers that make no sense: a clean stop with its reason, never a fault.

use std::ffi::c_void;

use stackweave_testkit::coroutine_stack::MappedStack;
use stackweave_testkit::fixtures::sw_asm_frame_pointer;
use stackweave_testkit::ledger::Ledger;
use stackweave_testkit::modules;
use stackweave_testkit::oracles::SIGNAL_SAFE;
use stackweave_testkit::random::Random;
use stackweave_testkit::signals::{SignalStack, in_handler};
use stackweave_testkit::stack::describe;
use stackweave_testkit::subject;
use stackweave_testkit::tree::{FramePointers, walk};
use stackweave_unwind::{Captured, CodeAddress, StopReason};

const RIP: usize = libc::REG_RIP as usize;
const RSP: usize = libc::REG_RSP as usize;
const RBP: usize = libc::REG_RBP as usize;
/// The registers that a compiler's tables may build a frame on.
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

/// Registers for a fabricated context.
struct Registers<'a>(&'a mut libc::ucontext_t);

impl Registers<'_> {
    fn set(&mut self, register: usize, value: u64) {
        self.0.uc_mcontext.gregs[register] = value.cast_signed();
    }

    fn get(&self, register: usize) -> u64 {
        self.0.uc_mcontext.gregs[register].cast_unsigned()
    }

    /// Captures from these registers, and checks what must hold whatever they are.
    fn capture(&self, frames: &mut [CodeAddress; LIMIT]) -> Captured {
        // SAFETY: it is a context of this thread's running handler, but for values that must not matter.
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

/// Runs `with` in a signal handler, with a copy of its context to be spoiled. libgcc would not survive these
/// tests, so it never stands in.
fn with_registers(with: &mut dyn FnMut(Registers<'_>)) {
    if subject::is_libgcc() {
        return;
    }
    in_handler(SignalStack::Normal, &mut |context: *mut c_void| {
        // SAFETY: the handler's context is a whole `ucontext_t`.
        let mut copy = unsafe { context.cast::<libc::ucontext_t>().read() };
        with(Registers(&mut copy));
    });
    let mut ledger = Ledger::new(4096);
    ledger.check_here("after a corrupted stack", SIGNAL_SAFE);
    ledger.expect_right(2);
}

fn show(captured: Captured, frames: &[CodeAddress]) -> String {
    let lines: Vec<_> = frames[..captured.len].iter().map(|&frame| describe(frame)).collect();
    format!("{captured:?}\n{}", lines.join("\n"))
}

#[test]
fn stack_pointer_into_forbidden_memory_stops_at_bad_memory() {
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
fn misaligned_stack_pointer_stops_cleanly() {
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
fn instruction_pointer_that_is_no_code_stops_cleanly() {
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

/// A return address in code whose frames are found by rbp, by its tables.
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
                // SAFETY: both places have room for 64 words.
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

/// Words of every kind that a ruined stack may hold.
struct Rubble {
    random: Random,
    code: Vec<std::ops::Range<u64>>,
    known: Vec<u64>,
    stack: std::ops::Range<u64>,
}

impl Rubble {
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

    /// Wild, or near one of the values where address arithmetic breaks.
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

fn survive_rubble(seeds: std::ops::Range<u64>, words: &mut [u64]) {
    let range = words.as_ptr_range();
    let stack = range.start as u64..range.end as u64;
    let mut rubble = Rubble::new(0, stack.clone());
    with_registers(&mut |mut registers| {
        let mut frames = [CodeAddress::default(); LIMIT];
        for seed in seeds.clone() {
            rubble.random = Random::new(seed);
            for word in words.iter_mut() {
                *word = rubble.word();
            }
            for _ in 0..16 {
                registers.set(RIP, rubble.code());
                let rsp = if rubble.random.below(4) == 0 { rubble.word() } else { rubble.within(&stack) & !7 };
                registers.set(RSP, rsp);
                registers.set(RBP, rubble.word());
                for register in OTHERS {
                    registers.set(register, rubble.word());
                }
                registers.capture(&mut frames);
            }
        }
    });
}

#[test]
fn random_words_on_the_threads_own_stack_stop_cleanly() {
    let mut words = [0_u64; 512];
    survive_rubble(0..6000, &mut words);
}

#[test]
fn random_words_on_a_foreign_stack_stop_cleanly() {
    let pages = MappedStack::new(1, None);
    // SAFETY: the pages are mapped, and nobody else uses them.
    let words = unsafe { std::slice::from_raw_parts_mut(pages.start().cast::<u64>(), pages.size() / 8) };
    survive_rubble(10_000..16_000, words);
}
