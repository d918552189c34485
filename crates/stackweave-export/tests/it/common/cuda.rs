//! A caching allocator with two devices and every kind of event.

use stackweave_core::{EventKind, RawFrame};
use stackweave_recording::events;
use stackweave_tapes::{Tape, TapeTime, span, stack_word};

use super::examples::{MAIN_THREAD, WORKER};
use super::memory::memory_tape;

pub const MIB: u64 = 1 << 20;
/// The pool (3, 0), as `PyTorch` makes them for graphs.
pub const GRAPH: u64 = 1 << 63 | 3;
/// The free memory of a device when its allocator fails.
pub const DEVICE_FREE: u64 = 1 << 30;

/// The active bytes of a snapshot.
pub const SNAPSHOT_SIZE: u64 = 1_049_088;

/// The location of a block or a segment: device, stream, pool.
pub type DeviceLocation = (i64, u64, u64);

pub const FIRST: DeviceLocation = (0, 0, 0);
pub const OF_GRAPH: DeviceLocation = (0, 0, GRAPH);
pub const SECOND: DeviceLocation = (1, 7, 5);

/// The stacks of the tape.
pub struct Stacks {
    pub before: Vec<RawFrame>,
    pub step: Vec<RawFrame>,
    pub load: Vec<RawFrame>,
    pub main: Vec<RawFrame>,
}

pub struct CudaTape {
    pub memory: Tape,
    pub stacks: Stacks,
}

impl CudaTape {
    pub fn new() -> Self {
        let mut memory = memory_tape(&[("recorder", "memory")]);
        let functions =
            [("main", "/app/train.py", 1), ("Model.step", "/app/model.py", 10), ("load", "/app/load.py", 3)];
        let [main, step, load] =
            functions.map(|(name, filename, line)| Tape::at(memory.python(name, filename, line), line + 2));
        let stacks = Stacks {
            before: vec![span("allocated before the recording")],
            step: vec![step, main],
            load: vec![load, main],
            main: vec![main],
        };
        Self { memory, stacks }
    }

    pub fn event(
        &mut self,
        at: TapeTime,
        kind: &EventKind,
        (address, size): (u64, u64),
        (stack, of): (&[RawFrame], DeviceLocation),
    ) {
        let (device, stream, pool) = of;
        let words = [address, size, stack_word(stack), device.cast_unsigned(), stream, pool];
        self.memory.event(at, kind, &words);
    }

    /// Begins (1) or ends (2) an allocator state.
    pub fn state(&mut self, at: TapeTime, state: u64) {
        self.memory.event(at, &events::HOST_STATE, &[state, 0]);
    }

    pub fn segment(
        &mut self,
        at: TapeTime,
        (address, size): (u64, u64),
        (stack, of): (&[RawFrame], DeviceLocation),
        flags: u64,
    ) {
        let (device, stream, pool) = of;
        let words = [address, size, stack_word(stack), device.cast_unsigned(), stream, pool, flags];
        self.memory.event(at, &events::SEGMENT_STATE, &words);
    }

    /// Records a block with its real and its requested size.
    pub fn block(
        &mut self,
        at: TapeTime,
        block: (u64, u64, u64),
        (stack, of): (&[RawFrame], DeviceLocation),
        flags: u64,
    ) {
        let ((address, size, requested), (device, stream, pool)) = (block, of);
        let words = [address, size, stack_word(stack), device.cast_unsigned(), stream, pool, requested, flags];
        self.memory.event(at, &events::BLOCK_STATE, &words);
    }

    /// Records the state of the allocator after [`cuda_events`].
    pub fn record_state(&mut self, at: TapeTime) {
        self.state(at, 1);
        self.record_state_of_first(at);
        self.record_state_of_second(at);
        self.state(at, 2);
    }

    pub fn record_state_of_first(&mut self, at: TapeTime) {
        let stacks = self.stacks();
        let Stacks { before, load, .. } = &stacks;
        self.segment(at, (0x10_0000, 2 * MIB), (before, FIRST), 0);
        self.block(at, (0x10_0000, 512, 500), (&[], FIRST), 0);
        self.block(at, (0x10_0200, 512, 100), (load, FIRST), 3);
        self.block(at, (0x10_0400, 2 * MIB - 1024, 0), (&[], FIRST), 0);
        // Like the recorder, without a stack.
        self.segment(at, (0x100_0000, 20 * MIB), (&[], OF_GRAPH), 1);
        self.block(at, (0x100_0000, MIB, 1_000_000), (&[], OF_GRAPH), 2);
        self.block(at, (0x110_0000, 19 * MIB, 0), (&[], OF_GRAPH), 0);
    }

    fn record_state_of_second(&mut self, at: TapeTime) {
        let stacks = self.stacks();
        let Stacks { step, load, .. } = &stacks;
        self.segment(at, (0x200_0000, 38 * MIB), (step, SECOND), 3);
        self.block(at, (0x200_0000, 30 * MIB, 30_000_000), (step, SECOND), 3);
        self.block(at, (0x3e0_0000, 4096, 4000), (load, SECOND), 3);
        self.block(at, (0x3e0_1000, 8 * MIB - 4096, 0), (&[], SECOND), 0);
    }

    fn stacks(&self) -> Stacks {
        let Stacks { before, step, load, main } = &self.stacks;
        Stacks { before: before.clone(), step: step.clone(), load: load.clone(), main: main.clone() }
    }
}

/// Records every kind of host event, one per microsecond, without an allocator state.
pub fn cuda_events() -> CudaTape {
    let mut tape = CudaTape::new();
    let stacks = tape.stacks();
    let Stacks { before, step, load, main } = &stacks;
    let on = |ticks| (MAIN_THREAD, ticks);
    tape.event(on(1000), &events::SEGMENT_PRESENT, (0x10_0000, 2 * MIB), (before, FIRST));
    tape.event(on(2000), &events::HOST_PRESENT, (0x10_0000, 500), (before, FIRST));
    tape.event(on(3000), &events::SEGMENT, (0x100_0000, 20 * MIB), (step, OF_GRAPH));
    tape.event(on(4000), &events::HOST_ALLOCATE, (0x100_0000, 1_000_000), (step, OF_GRAPH));
    tape.memory.tag(on(5000), Some("forward"));
    tape.event(on(6000), &events::HOST_ALLOCATE, (0x10_0200, 100), (load, FIRST));
    tape.event(on(7000), &events::HOST_FREE_REQUESTED, (0x10_0000, 500), (&[], FIRST));
    tape.event(on(8000), &events::HOST_FREE_COMPLETED, (0x10_0000, 500), (&[], FIRST));
    tape.event(on(9000), &events::HOST_FREE_REQUESTED, (0x100_0000, 1_000_000), (main, OF_GRAPH));
    tape.memory.tag(on(10_000), None);
    tape.event(on(11_000), &events::SEGMENT_MAP, (0x200_0000, 20 * MIB), (step, SECOND));
    tape.event(on(12_000), &events::SEGMENT_MAP, (0x340_0000, 20 * MIB), (load, SECOND));
    tape.event((WORKER, 13_000), &events::HOST_ALLOCATE, (0x200_0000, 30_000_000), (step, SECOND));
    tape.event(on(14_000), &events::HOST_ALLOCATE, (0x3e0_0000, 4000), (load, SECOND));
    // Frees of blocks whose allocation was not recorded.
    tape.event(on(15_000), &events::HOST_FREE_REQUESTED, (0x10_1000, 512), (&[], FIRST));
    tape.event(on(16_000), &events::HOST_FREE_COMPLETED, (0x10_1000, 512), (main, FIRST));
    tape.event(on(17_000), &events::HOST_FREE, (0x10_2000, 256), (main, FIRST));
    tape.memory.event(
        on(18_000),
        &events::HOST_OUT_OF_MEMORY,
        &[span("out of memory").to_bits(), 80 << 30, stack_word(load), 1, 7, 5, DEVICE_FREE],
    );
    let annotate = [span("weights").to_bits(), 0x3e0_0000, stack_word(main), 1];
    tape.memory.event(on(19_000), &events::HOST_ANNOTATE, &annotate);
    let snapshot = [span("snapshot").to_bits(), SNAPSHOT_SIZE, 0, 0];
    tape.memory.event(on(20_000), &events::HOST_SNAPSHOT, &snapshot);
    tape.event(on(21_000), &events::SEGMENT_UNMAP, (0x460_0000, 2 * MIB), (&[], SECOND));
    tape.event(on(22_000), &events::SEGMENT, (0x900_0000, 2 * MIB), (main, FIRST));
    tape.event(on(23_000), &events::SEGMENT_FREE, (0x900_0000, 2 * MIB), (&[], FIRST));
    tape
}
