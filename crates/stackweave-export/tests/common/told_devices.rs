//! Recordings of a host that has devices, with figures that are known.

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::file::Start;

use super::examples::{MAIN_THREAD, PID, example_start};
use super::tape::{At, Tape, span, stack_word};

const KINDS: [EventKind; 14] = [
    EventKind::HOST_ALLOCATE,
    EventKind::HOST_PRESENT,
    EventKind::HOST_FREE,
    EventKind::HOST_FREE_REQUESTED,
    EventKind::HOST_FREE_COMPLETED,
    EventKind::SEGMENT,
    EventKind::SEGMENT_PRESENT,
    EventKind::SEGMENT_MAP,
    EventKind::SEGMENT_FREE,
    EventKind::SEGMENT_UNMAP,
    EventKind::HOST_OUT_OF_MEMORY,
    EventKind::HOST_STATE,
    EventKind::SEGMENT_STATE,
    EventKind::BLOCK_STATE,
];

pub const MIB: u64 = 1 << 20;
/// A pool that a host numbers by itself.
pub const PRIVATE_POOL: u64 = 1 << 63 | 3;

/// A process whose host tells of its devices.
pub struct DeviceTape {
    pub tape: Tape,
    device: u64,
    /// That of the segment which an account told of last.
    pool: u64,
}

impl DeviceTape {
    pub fn started(pid: u32, options: &[(&str, &str)]) -> Self {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut tape = Tape::started(&Start { pid, options: options.collect(), ..example_start() });
        tape.thread(MAIN_THREAD, PID, "main");
        for kind in &KINDS {
            tape.kind(kind);
        }
        Self { tape, device: 0, pool: 0 }
    }

    fn event(&mut self, ticks: u64, kind: &EventKind, words: &[u64]) {
        let place = KINDS.iter().position(|known| known == kind).unwrap();
        let at: At = (MAIN_THREAD, ticks);
        self.tape.event(at, (EventKind::BUILT_IN.len() + 1 + place) as u64, words);
    }

    /// What is told from now on is of this device.
    pub fn device(&mut self, device: u64) {
        self.device = device;
    }

    /// A block or a segment: address, bytes, pool.
    pub fn tell(&mut self, at: u64, kind: &EventKind, (address, size, pool): (u64, u64, u64), stack: &[RawFrame]) {
        self.event(at, kind, &[address, size, stack_word(stack), self.device, 7, pool]);
    }

    pub fn out_of_memory(&mut self, at: u64, (size, free, pool): (u64, u64, u64), stack: &[RawFrame]) {
        let frame = span("out of memory").to_bits();
        let words = [frame, size, stack_word(stack), self.device, 7, pool, free];
        self.event(at, &EventKind::HOST_OUT_OF_MEMORY, &words);
    }

    /// An account begins (1), or ends (2).
    pub fn account(&mut self, at: u64, state: u64, reason: u64) {
        self.event(at, &EventKind::HOST_STATE, &[state, reason]);
    }

    pub fn segment_state(&mut self, at: u64, (address, size, pool): (u64, u64, u64), flags: u64) {
        self.pool = pool;
        self.event(at, &EventKind::SEGMENT_STATE, &[address, size, 0, self.device, 7, pool, flags]);
    }

    pub fn block_state(&mut self, at: u64, (address, size, asked): (u64, u64, u64), flags: u64, stack: &[RawFrame]) {
        let words = [address, size, stack_word(stack), self.device, 7, self.pool, asked, flags];
        self.event(at, &EventKind::BLOCK_STATE, &words);
    }
}

/// Two devices of a host, and nothing else. On the first, of 64 MiB, 12 MiB were there before, a block waits until it is free,
/// a pool comes and goes, and a request can't be met: the allocator gives an account of itself then.
pub fn devices(pid: u32) -> DeviceTape {
    let options = [("recorder", "memory"), ("device.0.name", "NVIDIA H200"), ("device.0.total", "67108864")];
    let mut tape = DeviceTape::started(pid, &options);
    let main = Tape::at(tape.tape.python("main", "/app/train.py", 1), 3);
    let step = Tape::at(tape.tape.python("step", "/app/train.py", 10), 12);
    let load = Tape::at(tape.tape.python("load", "/app/data.py", 5), 6);
    let before = [span("allocated before the recording")];
    let base = 0x7f00_0000_0000;
    tape.tell(10, &EventKind::SEGMENT_PRESENT, (base, 20 * MIB, 0), &before);
    tape.tell(20, &EventKind::HOST_PRESENT, (base, 12 * MIB, 0), &before);
    tape.tell(100, &EventKind::SEGMENT, (base + 32 * MIB, 20 * MIB, 0), &[load, main]);
    tape.tell(110, &EventKind::HOST_ALLOCATE, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    tape.tell(200, &EventKind::SEGMENT_MAP, (base + 64 * MIB, 2 * MIB, PRIVATE_POOL), &[step, main]);
    tape.tell(210, &EventKind::HOST_ALLOCATE, (base + 64 * MIB, MIB, PRIVATE_POOL), &[step, main]);
    tape.tell(300, &EventKind::HOST_ALLOCATE, (base + 42 * MIB, 5 * MIB, 0), &[step, main]);
    tape.tell(400, &EventKind::HOST_FREE_REQUESTED, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    tape.out_of_memory(500, (30 * MIB, 4 * MIB, 0), &[step, main]);
    tape.account(510, 1, 1);
    tape.segment_state(510, (base, 20 * MIB, 0), 1);
    tape.block_state(510, (base, 12 * MIB, 12 * MIB), 3, &before);
    tape.block_state(510, (base + 12 * MIB, 8 * MIB, 0), 0, &[]);
    tape.segment_state(510, (base + 32 * MIB, 20 * MIB, 0), 1);
    // The recorder has no stack for what was given back.
    tape.block_state(510, (base + 32 * MIB, 10 * MIB, 10 * MIB - 100), 2, &[]);
    tape.block_state(510, (base + 42 * MIB, 5 * MIB, 5 * MIB), 3, &[step, main]);
    tape.block_state(510, (base + 47 * MIB, 5 * MIB, 0), 0, &[]);
    tape.account(510, 2, 1);
    tape.tell(600, &EventKind::HOST_FREE_COMPLETED, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    tape.device(1);
    tape.tell(700, &EventKind::HOST_ALLOCATE, (base, 512, 0), &[load, main]);
    tape.tell(800, &EventKind::HOST_FREE, (base, 512, 0), &[]);
    tape
}
