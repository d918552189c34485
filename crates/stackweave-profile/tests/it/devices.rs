//! The memory of devices, compared with figures computed by hand.

use stackweave_profile::memory::{
    DeviceHistory, DevicePoint, DeviceState, FailedRequest, ListedSegment, PoolState, read_devices,
};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::Allocator;
use stackweave_tapes::devices::{DeviceStep, DeviceTape};
use stackweave_tapes::memory::{MemoryStep, MemoryTape};
use stackweave_tapes::span;

fn devices(process: &ProcessRecording) -> Vec<DeviceHistory> {
    read_devices(process, None, &mut |_| {}).unwrap()
}

fn point(time_ns: u64, allocated: u64, pending: u64, reserved: u64) -> DevicePoint {
    DevicePoint { time_ns, allocated, pending, reserved }
}

/// Records two pools of one device, and a block of another.
fn tape() -> DeviceTape {
    let mut tape = DeviceTape::new();
    for (thread, ticks, device, step) in [
        (1, 10, 0, DeviceStep::SegmentPresent { address: 0x1000, size: 0x1000, pool: 0 }),
        (1, 20, 0, DeviceStep::Present { address: 0x1000, size: 256 }),
        (2, 30, 0, DeviceStep::Allocate { address: 0x1100, size: 512, pool: 0 }),
        (1, 40, 0, DeviceStep::SegmentMap { address: 0x8000, size: 0x2000, pool: 9 }),
        (1, 50, 0, DeviceStep::Allocate { address: 0x8000, size: 4096, pool: 9 }),
        (2, 60, 0, DeviceStep::Request { address: 0x1100 }),
        (2, 70, 1, DeviceStep::Allocate { address: 0x1100, size: 3, pool: 0 }),
        (1, 80, 0, DeviceStep::Complete { address: 0x1100 }),
        (1, 90, 0, DeviceStep::Free { address: 0x8000 }),
        (1, 100, 0, DeviceStep::SegmentUnmap { address: 0x9000, size: 0x1000 }),
        (1, 110, 0, DeviceStep::SegmentFree { address: 0x1000, size: 0x1000 }),
    ] {
        tape.step(thread, ticks, device, &step);
    }
    tape
}

#[test]
fn blocks_are_pending_until_completed_and_segments_are_freed_in_parts() {
    let found = devices(&tape().process());
    assert_eq!(found.iter().map(|device| device.device).collect::<Vec<_>>(), [0, 1]);
    let device = &found[0];
    assert_eq!((device.name.as_deref(), device.total), (Some("Toy 9000"), Some(65536)));
    let expected = [
        point(10, 0, 0, 4096),
        point(20, 256, 0, 4096),
        point(30, 768, 0, 4096),
        point(40, 768, 0, 12288),
        point(50, 4864, 0, 12288),
        point(60, 4352, 512, 12288),
        point(80, 4352, 0, 12288),
        point(90, 256, 0, 12288),
        point(100, 256, 0, 8192),
        point(110, 256, 0, 4096),
    ];
    assert_eq!(device.points, expected);
    assert_eq!((device.peak, device.reserved_peak), (expected[4], expected[3]));
    assert_eq!(device.pools.iter().map(|pool| pool.pool).collect::<Vec<_>>(), [0, 9]);
    assert_eq!((device.pools[0].peak, device.pools[1].peak), (point(30, 768, 0, 4096), point(50, 4096, 0, 8192)));
    let expected = [
        point(10, 0, 0, 0),
        point(40, 0, 0, 8192),
        point(50, 4096, 0, 8192),
        point(90, 0, 0, 8192),
        point(100, 0, 0, 4096),
        point(110, 0, 0, 4096),
    ];
    assert_eq!(device.pools[1].points, expected);
    let other = &found[1];
    assert_eq!((other.name.as_deref(), other.total), (None, None));
    assert_eq!(other.points, [point(10, 0, 0, 0), point(70, 3, 0, 0), point(110, 3, 0, 0)]);
}

#[test]
fn a_range_begins_with_the_current_state() {
    let found = read_devices(&tape().process(), Some(55..85), &mut |_| {}).unwrap();
    let expected = [point(55, 4864, 0, 12288), point(60, 4352, 512, 12288), point(80, 4352, 0, 12288)];
    assert_eq!(found[0].points, [&expected[..], &[point(84, 4352, 0, 12288)]].concat());
    assert_eq!((found[0].peak, found[0].reserved_peak), (expected[0], expected[0]));
}

#[test]
fn the_heap_is_not_a_device() {
    let mut tape = MemoryTape::new();
    let stack = vec![span("main")];
    tape.step(1, 10, &MemoryStep::Allocate { address: 0x1000, size: 60, stack: stack.clone(), by: Allocator::Malloc });
    tape.step(1, 20, &MemoryStep::Allocate { address: 0x10000, size: 4096, stack: stack.clone(), by: Allocator::Mmap });
    tape.step(1, 30, &MemoryStep::HostAllocate { device: -1, address: 0x3000, size: 5, stack });
    assert_eq!(devices(&tape.process()), []);
}

/// Records the allocator state of a segment that is divided into three blocks.
fn allocator_state(tape: &mut DeviceTape, ticks: u64, reason: u64, is_ended: bool) {
    let block = |at: u64, size, requested, flags| DeviceStep::BlockState {
        address: 0x1000 + at,
        size,
        requested,
        flags,
        pool: 0,
    };
    let mut steps = vec![
        DeviceStep::Begin { reason },
        DeviceStep::SegmentState { address: 0x1000, size: 4096, pool: 0 },
        block(0, 512, 500, 3),
        block(512, 1024, 0, 0),
        block(1536, 512, 300, 2),
        block(2048, 2048, 0, 0),
        DeviceStep::SegmentState { address: 0x8000, size: 1024, pool: 9 },
        DeviceStep::BlockState { address: 0x8000, size: 1024, requested: 1000, flags: 3, pool: 9 },
    ];
    steps.extend(is_ended.then_some(DeviceStep::End));
    for step in steps {
        tape.step(5, ticks, 0, &step);
    }
}

#[test]
fn the_last_complete_allocator_state_counts() {
    let mut tape = tape();
    tape.step(5, 200, 0, &DeviceStep::Begin { reason: 2 });
    tape.step(5, 200, 0, &DeviceStep::SegmentState { address: 0x1000, size: 4096, pool: 0 });
    tape.step(5, 200, 0, &DeviceStep::End);
    allocator_state(&mut tape, 300, 1, true);
    allocator_state(&mut tape, 400, 0, false);
    let process = tape.process();
    let found = devices(&process);
    let state = found[0].state.clone().unwrap();
    let expected = DeviceState {
        time_ns: 300,
        reason: 1,
        segments: 2,
        blocks: 5,
        reserved: 5120,
        allocated: 1536,
        requested: 1500,
        pending: 512,
        free: 3072,
        largest_free: 2048,
        pools: vec![
            PoolState { pool: 0, reserved: 4096, allocated: 512, free: 3072 },
            PoolState { pool: 9, reserved: 1024, allocated: 1024, free: 0 },
        ],
        listing: state.listing.clone(),
    };
    assert_eq!(state, expected);
    let offsets = |segment: &ListedSegment| -> Vec<u64> {
        segment.blocks.iter().map(|block| block.address - segment.row.address).collect()
    };
    assert_eq!(state.listing.iter().map(offsets).collect::<Vec<_>>(), [vec![0, 512, 1536, 2048], vec![0]]);
    assert!((state.fragmentation() - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(state.rounding(), 36);
    // The other device has no segments, and is not in the state.
    assert_eq!(found[1].state, Some(DeviceState { time_ns: 300, reason: 1, ..DeviceState::default() }));
    let of =
        |range| read_devices(&process, Some(range), &mut |_| {}).unwrap()[0].state.as_ref().map(|state| state.time_ns);
    assert_eq!([of(0..250), of(0..150), of(250..500), of(350..500)], [Some(200), None, Some(300), None]);
}

#[test]
fn an_allocator_state_of_one_device_does_not_change_another() {
    let mut tape = tape();
    allocator_state(&mut tape, 200, 0, true);
    tape.step(1, 210, 1, &DeviceStep::Segment { address: 0x1000, size: 64, pool: 0 });
    allocator_state(&mut tape, 220, 2, true);
    let states: Vec<_> = devices(&tape.process()).into_iter().map(|device| device.state.unwrap().time_ns).collect();
    assert_eq!(states, [220, 200]);
}

#[test]
fn failed_requests_are_recorded() {
    let mut tape = tape();
    let stack = vec![span("step"), span("main")];
    tape.step(1, 120, 0, &DeviceStep::OutOfMemory { size: 1 << 30, free: 77, stack });
    let process = tape.process();
    let failures = devices(&process)[0].out_of_memory.clone();
    let [FailedRequest { stack, .. }] = failures[..] else { panic!("{failures:?}") };
    let (dictionary, frame) = (process.dictionary(), process.dictionary().stack(stack).unwrap().1);
    assert_eq!(dictionary.string(dictionary.names(frame)[0].name), Some("step"));
    assert_eq!(failures, [FailedRequest { time_ns: 120, size: 1 << 30, free: 77, stack, pool: 0 }]);
    let before = read_devices(&process, Some(0..120), &mut |_| {}).unwrap();
    assert_eq!(before[0].out_of_memory, []);
}

#[test]
fn a_lost_free_is_corrected_when_the_address_is_allocated_again() {
    let mut tape = DeviceTape::new();
    for (ticks, step) in [
        (10, DeviceStep::Complete { address: 0x1000 }),
        (20, DeviceStep::Free { address: 0x1000 }),
        (30, DeviceStep::Allocate { address: 0x1000, size: 10, pool: 0 }),
        (40, DeviceStep::Allocate { address: 0x1000, size: 7, pool: 1 }),
        (50, DeviceStep::Request { address: 0x1000 }),
        (60, DeviceStep::Allocate { address: 0x1000, size: 5, pool: 0 }),
        (70, DeviceStep::Segment { address: 0x1000, size: 100, pool: 0 }),
        (80, DeviceStep::Segment { address: 0x1010, size: 8, pool: 1 }),
        (90, DeviceStep::SegmentFree { address: 0x1010, size: 0 }),
    ] {
        tape.step(1, ticks, 0, &step);
    }
    let found = devices(&tape.process());
    let expected = [
        point(10, 0, 0, 0),
        point(30, 10, 0, 0),
        point(40, 7, 0, 0),
        point(50, 0, 7, 0),
        point(60, 5, 0, 0),
        point(70, 5, 0, 100),
        point(80, 5, 0, 100),
        point(90, 5, 0, 92),
    ];
    assert_eq!(found[0].points, expected);
    assert_eq!(found[0].pools[1].points.last(), Some(&point(90, 0, 0, 0)));
}

#[test]
fn a_sampled_block_is_scaled() {
    let mut tape = DeviceTape::with(&[("memory.mode", "sampled"), ("memory.sample_every", "1000")]);
    tape.step(1, 10, 0, &DeviceStep::Allocate { address: 1, size: 10, pool: 0 });
    let found = devices(&tape.process());
    assert_eq!(found[0].peak.allocated, 1005);
}

#[test]
fn sums_of_a_damaged_file_are_saturated() {
    let mut tape = DeviceTape::new();
    let size = u64::MAX;
    let steps = [
        DeviceStep::Begin { reason: 0 },
        DeviceStep::SegmentState { address: 0x1000, size, pool: 7 },
        DeviceStep::SegmentState { address: 0x2000, size, pool: 7 },
        DeviceStep::BlockState { address: 0x1000, size, requested: size, flags: 3, pool: 7 },
        DeviceStep::BlockState { address: 0x2000, size, requested: size, flags: 3, pool: 7 },
        DeviceStep::BlockState { address: 0x3000, size, requested: 0, flags: 0, pool: 7 },
        DeviceStep::BlockState { address: 0x4000, size, requested: 0, flags: 0, pool: 7 },
        DeviceStep::End,
    ];
    for step in &steps {
        tape.step(1, 10, 0, step);
    }
    let state = devices(&tape.process())[0].state.clone().unwrap();
    assert_eq!(state.pools, [PoolState { pool: 7, reserved: size, allocated: size, free: size }]);
}
