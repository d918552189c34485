//! Recordings of devices' memory that are made up.

use stackweave_core::RawFrame;
use stackweave_recording::ProcessRecording;
use stackweave_recording::events;
use stackweave_tapes::{Tape, span, stack_word};

use super::memory::header;

/// What the allocator of a host does.
#[derive(Clone, Debug)]
pub enum DeviceStep {
    Take { address: u64, size: u64, pool: u64 },
    TakeAt { address: u64, size: u64, stack: Vec<RawFrame> },
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
    BlockState { address: u64, size: u64, asked: u64, flags: u64, pool: u64 },
    End,
}

/// Records devices, and no memory of the process's own.
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
            DeviceStep::Take { address, size, pool } => (events::HOST_ALLOCATE, six(*address, *size, &main, *pool)),
            DeviceStep::TakeAt { address, size, stack } => (events::HOST_ALLOCATE, six(*address, *size, stack, 0)),
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
            DeviceStep::BlockState { address, size, asked, flags, pool } => {
                (events::BLOCK_STATE, [six(*address, *size, &[], *pool), vec![*asked, *flags]].concat())
            }
        };
        self.tape.event((thread, ticks), &kind, &words);
    }

    pub fn process(self) -> ProcessRecording {
        self.tape.process()
    }
}
