//! Recordings of a host with devices, with known figures.

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::events;
use stackweave_recording::file::ProcessStart;
use stackweave_tapes::{Tape, span, stack_word};

use super::examples::{MAIN_THREAD, PID, example_start};

pub const MIB: u64 = 1 << 20;
/// A pool with a number from the host.
pub const PRIVATE_POOL: u64 = 1 << 63 | 3;

/// The events of a host's allocator for one of its devices.
struct Host {
    tape: Tape,
    device: u64,
    /// The pool of the last segment in the allocator state.
    pool: u64,
}

impl Host {
    fn started(pid: u32, options: &[(&str, &str)]) -> Self {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut tape = Tape::started(&ProcessStart { pid, options: options.collect(), ..example_start() });
        tape.thread(MAIN_THREAD, PID, "main");
        Self { tape, device: 0, pool: 0 }
    }

    fn event(&mut self, ticks: u64, kind: &EventKind, words: &[u64]) {
        self.tape.event((MAIN_THREAD, ticks), kind, words);
    }

    /// Selects the device of the following events.
    fn device(&mut self, device: u64) {
        self.device = device;
    }

    /// Records a block or a segment: address, bytes, pool.
    fn record(&mut self, at: u64, kind: &EventKind, (address, size, pool): (u64, u64, u64), stack: &[RawFrame]) {
        self.event(at, kind, &[address, size, stack_word(stack), self.device, 7, pool]);
    }

    fn out_of_memory(&mut self, at: u64, (size, free, pool): (u64, u64, u64), stack: &[RawFrame]) {
        let frame = span("out of memory").to_bits();
        let words = [frame, size, stack_word(stack), self.device, 7, pool, free];
        self.event(at, &events::HOST_OUT_OF_MEMORY, &words);
    }

    /// Begins (1) or ends (2) an allocator state.
    fn state_event(&mut self, at: u64, state: u64, reason: u64) {
        self.event(at, &events::HOST_STATE, &[state, reason]);
    }

    fn segment_state(&mut self, at: u64, (address, size, pool): (u64, u64, u64), flags: u64) {
        self.pool = pool;
        self.event(at, &events::SEGMENT_STATE, &[address, size, 0, self.device, 7, pool, flags]);
    }

    fn block_state(&mut self, at: u64, (address, size, requested): (u64, u64, u64), flags: u64, stack: &[RawFrame]) {
        let words = [address, size, stack_word(stack), self.device, 7, self.pool, requested, flags];
        self.event(at, &events::BLOCK_STATE, &words);
    }
}

/// Records two devices of a host, and nothing else. On the first, of 64 MiB, 12 MiB existed before, a free is pending
/// for a while, a pool appears and disappears, and a request fails: the allocator then reports its state.
pub fn devices(pid: u32) -> Tape {
    let options = [("recorder", "memory"), ("device.0.name", "NVIDIA H200"), ("device.0.total", "67108864")];
    let mut host = Host::started(pid, &options);
    let main = Tape::at(host.tape.python("main", "/app/train.py", 1), 3);
    let step = Tape::at(host.tape.python("step", "/app/train.py", 10), 12);
    let load = Tape::at(host.tape.python("load", "/app/data.py", 5), 6);
    let before = [span("allocated before the recording")];
    let base = 0x7f00_0000_0000;
    host.record(10, &events::SEGMENT_PRESENT, (base, 20 * MIB, 0), &before);
    host.record(20, &events::HOST_PRESENT, (base, 12 * MIB, 0), &before);
    host.record(100, &events::SEGMENT, (base + 32 * MIB, 20 * MIB, 0), &[load, main]);
    host.record(110, &events::HOST_ALLOCATE, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    host.record(200, &events::SEGMENT_MAP, (base + 64 * MIB, 2 * MIB, PRIVATE_POOL), &[step, main]);
    host.record(210, &events::HOST_ALLOCATE, (base + 64 * MIB, MIB, PRIVATE_POOL), &[step, main]);
    host.record(300, &events::HOST_ALLOCATE, (base + 42 * MIB, 5 * MIB, 0), &[step, main]);
    host.record(400, &events::HOST_FREE_REQUESTED, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    host.out_of_memory(500, (30 * MIB, 4 * MIB, 0), &[step, main]);
    host.state_event(510, 1, 1);
    host.segment_state(510, (base, 20 * MIB, 0), 1);
    host.block_state(510, (base, 12 * MIB, 12 * MIB), 3, &before);
    host.block_state(510, (base + 12 * MIB, 8 * MIB, 0), 0, &[]);
    host.segment_state(510, (base + 32 * MIB, 20 * MIB, 0), 1);
    // The recorder has no stack for frees.
    host.block_state(510, (base + 32 * MIB, 10 * MIB, 10 * MIB - 100), 2, &[]);
    host.block_state(510, (base + 42 * MIB, 5 * MIB, 5 * MIB), 3, &[step, main]);
    host.block_state(510, (base + 47 * MIB, 5 * MIB, 0), 0, &[]);
    host.state_event(510, 2, 1);
    host.record(600, &events::HOST_FREE_COMPLETED, (base + 32 * MIB, 10 * MIB - 100, 0), &[load, main]);
    host.device(1);
    host.record(700, &events::HOST_ALLOCATE, (base, 512, 0), &[load, main]);
    host.record(800, &events::HOST_FREE, (base, 512, 0), &[]);
    host.tape
}
