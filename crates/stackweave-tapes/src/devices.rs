//! Hand-made recordings of devices' memory.
#![expect(
    missing_docs,
    missing_debug_implementations,
    clippy::new_without_default,
    reason = "names and types describe the events"
)]

use stackweave_core::RawFrame;
use stackweave_recording::ProcessRecording;
use stackweave_recording::events;

use crate::memory::header;
use crate::{Tape, span, stack_word};

/// An event of a host's allocator.
#[derive(Clone, Debug)]
pub enum DeviceStep {
    Allocate { address: u64, size: u64, pool: u64 },
    AllocateAt { address: u64, size: u64, stack: Vec<RawFrame> },
    Present { address: u64, size: u64 },
    Free { address: u64 },
    Request { address: u64 },
    Complete { address: u64 },
    Segment { address: u64, size: u64, pool: u64 },
    SegmentMap { address: u64, size: u64, pool: u64 },
    SegmentPresent { address: u64, size: u64, pool: u64 },
    SegmentFree { address: u64, size: u64 },
    SegmentUnmap { address: u64, size: u64 },
    OutOfMemory { size: u64, free: u64, stack: Vec<RawFrame> },
    Begin { reason: u64 },
    SegmentState { address: u64, size: u64, pool: u64 },
    BlockState { address: u64, size: u64, requested: u64, flags: u64, pool: u64 },
    End,
}

/// A recording of devices' memory, without the process's own memory.
pub struct DeviceTape {
    pub tape: Tape,
}

impl DeviceTape {
    pub fn new() -> Self {
        Self::with(&[("device.0.name", "Toy 9000"), ("device.0.total", "65536")])
    }

    pub fn with(options: &[(&str, &str)]) -> Self {
        let recorder = [("recorder", "memory")];
        Self { tape: Tape::started(&header(&[&recorder, options].concat())) }
    }

    pub fn step(&mut self, thread: u32, ticks: u64, device: i64, step: &DeviceStep) {
        let before = [span("allocated before the recording")];
        let six = |address: u64, size: u64, stack: &[RawFrame], pool: u64| {
            vec![address, size, stack_word(stack), device.cast_unsigned(), 7, pool]
        };
        let main = [span("main")];
        let (kind, words) = match step {
            DeviceStep::Allocate { address, size, pool } => (events::HOST_ALLOCATE, six(*address, *size, &main, *pool)),
            DeviceStep::AllocateAt { address, size, stack } => (events::HOST_ALLOCATE, six(*address, *size, stack, 0)),
            DeviceStep::Present { address, size } => (events::HOST_PRESENT, six(*address, *size, &before, 0)),
            DeviceStep::Free { address } => (events::HOST_FREE, six(*address, 0, &[], 0)),
            DeviceStep::Request { address } => (events::HOST_FREE_REQUESTED, six(*address, 0, &[], 0)),
            DeviceStep::Complete { address } => (events::HOST_FREE_COMPLETED, six(*address, 0, &[], 0)),
            DeviceStep::Segment { address, size, pool } => (events::SEGMENT, six(*address, *size, &main, *pool)),
            DeviceStep::SegmentMap { address, size, pool } => (events::SEGMENT_MAP, six(*address, *size, &main, *pool)),
            DeviceStep::SegmentPresent { address, size, pool } => {
                (events::SEGMENT_PRESENT, six(*address, *size, &before, *pool))
            }
            DeviceStep::SegmentFree { address, size } => (events::SEGMENT_FREE, six(*address, *size, &[], 0)),
            DeviceStep::SegmentUnmap { address, size } => (events::SEGMENT_UNMAP, six(*address, *size, &[], 0)),
            DeviceStep::OutOfMemory { size, free, stack } => {
                let frame = span("out of memory").to_bits();
                let words = vec![frame, *size, stack_word(stack), device.cast_unsigned(), 7, 0, *free];
                (events::HOST_OUT_OF_MEMORY, words)
            }
            DeviceStep::Begin { reason } => (events::HOST_STATE, vec![1, *reason]),
            DeviceStep::End => (events::HOST_STATE, vec![2, 0]),
            DeviceStep::SegmentState { address, size, pool } => {
                (events::SEGMENT_STATE, [six(*address, *size, &[], *pool), vec![1]].concat())
            }
            DeviceStep::BlockState { address, size, requested, flags, pool } => {
                (events::BLOCK_STATE, [six(*address, *size, &[], *pool), vec![*requested, *flags]].concat())
            }
        };
        self.tape.event((thread, ticks), &kind, &words);
    }

    pub fn process(self) -> ProcessRecording {
        self.tape.process()
    }
}

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// Returns the recording of a training program: a block from before the recording, batches that are allocated and
/// freed, a graph's pool, and an allocation that fails.
pub fn training() -> ProcessRecording {
    let total = (64 * MIB).to_string();
    let mut tape = DeviceTape::with(&[("device.0.name", "Toy 9000"), ("device.0.total", &total)]);
    tape.tape.thread(1, 4711, "MainThread");
    let main = Tape::at(tape.tape.python("main", "/srv/app/main.py", 10), 12);
    let train = Tape::at(tape.tape.python("Trainer.train", "/srv/app/trainer.py", 33), 40);
    let step = Tape::at(tape.tape.python("Trainer.step", "/srv/app/trainer.py", 77), 80);
    let graph = 1 << 63 | 3;
    let allocate = |address, size| DeviceStep::AllocateAt { address, size, stack: vec![step, train, main] };
    let block = |address, size, requested, flags| DeviceStep::BlockState { address, size, requested, flags, pool: 0 };
    let mut steps = vec![
        (1, DeviceStep::SegmentPresent { address: 0x10_0000, size: 20 * MIB, pool: 0 }),
        (2, DeviceStep::Present { address: 0x10_0000, size: 2 * MIB }),
        (10, allocate(0x40_0000, 5 * MIB)),
        (20, DeviceStep::SegmentMap { address: 0x8000_0000, size: 8 * MIB, pool: graph }),
        (30, DeviceStep::Allocate { address: 0x8000_0000, size: 6 * MIB, pool: graph }),
        (40, allocate(0x90_0000, 3 * MIB)),
        (60, DeviceStep::Request { address: 0x90_0000 }),
        (70, DeviceStep::Request { address: 0x8000_0000 }),
        (75, DeviceStep::Complete { address: 0x8000_0000 }),
        (80, DeviceStep::SegmentUnmap { address: 0x8000_0000, size: 4 * MIB }),
        (90, DeviceStep::OutOfMemory { size: 60 * MIB, free: 36 * MIB, stack: vec![step, train, main] }),
    ];
    let rows = [
        DeviceStep::Begin { reason: 1 },
        DeviceStep::SegmentState { address: 0x10_0000, size: 20 * MIB, pool: 0 },
        block(0x10_0000, 2 * MIB, 2 * MIB, 3),
        block(0x30_0000, MIB, 0, 0),
        block(0x40_0000, 6 * MIB, 5 * MIB, 3),
        block(0x90_0000, 3 * MIB, 3 * MIB, 2),
        block(0xc0_0000, 8 * MIB, 0, 0),
        DeviceStep::SegmentState { address: 0x8040_0000, size: 4 * MIB, pool: graph },
        DeviceStep::BlockState { address: 0x8040_0000, size: 4 * MIB, requested: 0, flags: 0, pool: graph },
        DeviceStep::End,
    ];
    steps.extend(rows.map(|step| (91, step)));
    for (ms, step) in steps {
        tape.step(1, ms * MS, 0, &step);
    }
    tape.process()
}
