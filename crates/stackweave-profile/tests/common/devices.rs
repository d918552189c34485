//! Recordings of devices' memory that are made up.

use std::borrow::Cow;

use stackweave_core::{EventKind, Field, FieldType, RawFrame, Role};
use stackweave_recording::ProcessRecording;

use super::memory::header;
use super::recording::{Tape, span, stack_word};

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

const fn number(name: &'static str) -> Field {
    Field::new(name, FieldType::Unsigned)
}

const SIX: [Field; 6] = [
    Field::new("address", FieldType::Address),
    number("size"),
    Field::new("stack", FieldType::Stack),
    Field::new("device", FieldType::Signed),
    number("stream"),
    number("pool"),
];

fn kind(name: &'static str, role: Role, more: &[Field]) -> EventKind {
    EventKind { name: Cow::Borrowed(name), role, fields: [&SIX[..], more].concat().into() }
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
            DeviceStep::Take { address, size, pool } => {
                (kind("host-allocate", Role::Allocate, &[]), six(*address, *size, &main, *pool))
            }
            DeviceStep::TakeAt { address, size, stack } => {
                (kind("host-allocate", Role::Allocate, &[]), six(*address, *size, stack, 0))
            }
            DeviceStep::Present { address, size } => {
                (kind("host-present", Role::Allocate, &[]), six(*address, *size, &before, 0))
            }
            DeviceStep::Free { address } => (kind("host-free", Role::Free, &[]), six(*address, 0, &[], 0)),
            DeviceStep::Request { address } => (kind("host-free-requested", Role::Free, &[]), six(*address, 0, &[], 0)),
            DeviceStep::Complete { address } => {
                (kind("host-free-completed", Role::Instant, &[]), six(*address, 0, &[], 0))
            }
            DeviceStep::Segment { address, size, pool } => {
                (kind("segment", Role::Map, &[]), six(*address, *size, &main, *pool))
            }
            DeviceStep::SegmentMap { address, size, pool } => {
                (kind("segment-map", Role::Map, &[]), six(*address, *size, &main, *pool))
            }
            DeviceStep::SegmentPresent { address, size, pool } => {
                (kind("segment-present", Role::Map, &[]), six(*address, *size, &before, *pool))
            }
            DeviceStep::SegmentFree { address, size } => {
                (kind("segment-free", Role::Unmap, &[]), six(*address, *size, &[], 0))
            }
            DeviceStep::SegmentUnmap { address, size } => {
                (kind("segment-unmap", Role::Unmap, &[]), six(*address, *size, &[], 0))
            }
            DeviceStep::OutOfMemory { size, free, stack } => {
                let frame = Field::new("frame", FieldType::Frame);
                let fields = [&[frame], &SIX[1..], &[number("free")]].concat().into();
                let kind = EventKind { name: "host-out-of-memory".into(), role: Role::Instant, fields };
                let frame = span("out of memory").to_bits();
                (kind, vec![frame, *size, stack_word(stack), device.cast_unsigned(), 7, 0, *free])
            }
            DeviceStep::Begin { reason } => (state(), vec![1, *reason]),
            DeviceStep::End => (state(), vec![2, 0]),
            DeviceStep::SegmentState { address, size, pool } => {
                let words = [six(*address, *size, &[], *pool), vec![1]].concat();
                (kind("segment-state", Role::Instant, &[number("flags")]), words)
            }
            DeviceStep::BlockState { address, size, asked, flags, pool } => {
                let words = [six(*address, *size, &[], *pool), vec![*asked, *flags]].concat();
                (kind("block-state", Role::Instant, &[number("asked"), number("flags")]), words)
            }
        };
        let kind = self.tape.kind(&kind);
        self.tape.event(thread, ticks, kind, &words);
    }

    pub fn process(self) -> ProcessRecording {
        self.tape.process()
    }
}

fn state() -> EventKind {
    let fields = vec![number("state"), number("reason")].into();
    EventKind { name: "host-state".into(), role: Role::Instant, fields }
}
