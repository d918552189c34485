//! The memory of devices over time, from the events of a host's allocator.
//!
//! Reads the events once in the order of time: memory grows with the live blocks and segments.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use stackweave_core::EventKind;
use stackweave_heap::Scale;
use stackweave_recording::events::{
    self, Decoder, Event, HostAction, HostState, HostStateRow, InstantSubject, MemoryEvent, Region,
};
use stackweave_recording::file::ProcessStart;
use stackweave_recording::{ProcessRecording, ReadError};

use super::device_account::{DeviceAccount, DeviceBlockOrigin};
use super::device_curve::{Axis, DevicePoint};
use super::device_state::{CompleteState, DeviceState, OpenStates};
use super::header::MemoryHeader;
use super::live_devices::{LiveChanges, LiveDevices};

/// The memory of a device over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceHistory {
    /// The device.
    pub device: i64,
    /// The name, if it was recorded.
    pub name: Option<String>,
    /// The total memory in bytes.
    pub total: Option<u64>,
    /// The curve: the highest values of each of some thousand intervals. A point lasts until the next one.
    pub points: Vec<DevicePoint>,
    /// The pools, by number; 0 is the default pool.
    pub pools: Vec<PoolHistory>,
    /// The peak of the allocated bytes.
    pub peak: DevicePoint,
    /// The peak of the reserved bytes.
    pub reserved_peak: DevicePoint,
    /// The last state that the allocator reported.
    pub state: Option<DeviceState>,
    /// The requests that failed.
    pub out_of_memory: Vec<FailedRequest>,
}

/// The memory of a pool over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolHistory {
    /// The number of the pool.
    pub pool: u64,
    /// As in [`DeviceHistory::points`].
    pub points: Vec<DevicePoint>,
    /// The peak of the allocated bytes.
    pub peak: DevicePoint,
}

/// A request that failed for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// The time, in nanoseconds since the process began to record.
    pub time_ns: u64,
    /// The requested bytes.
    pub size: u64,
    /// The free bytes of the device.
    pub free: u64,
    /// The number of the stack in the recording; 0 if none was recorded.
    pub stack: u32,
    /// The pool of the request.
    pub pool: u64,
}

/// Reads the memory of each device in the selected time, in nanoseconds since the process began to record. `progress`
/// is called with the bytes that have been read.
pub fn read_devices(
    process: &ProcessRecording,
    range: Option<Range<u64>>,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<DeviceHistory>, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let Some(mut reader) = DeviceReader::new(process, &decoder, range) else {
        progress(process.bytes());
        return Ok(Vec::new());
    };
    process.visit_in_time_order(Some(0..reader.axis.range.end), progress, &mut |timed| {
        reader.event(timed.thread, u64::try_from(timed.time_ns).unwrap_or(0), &decoder.decode(&timed.event));
        ControlFlow::Continue(())
    })?;
    Ok(reader.finish(process))
}

/// Reads the memory of devices from the events of a process, in the order of time.
#[derive(Debug)]
pub struct DeviceReader {
    axis: Axis,
    scale: Scale,
    states: OpenStates,
    live: LiveDevices<DeviceBlockOrigin>,
    changes: LiveChanges<DeviceBlockOrigin>,
    devices: BTreeMap<i64, DeviceHistoryBuilder>,
}

#[derive(Debug, Default)]
struct DeviceHistoryBuilder {
    account: DeviceAccount,
    state: Option<DeviceState>,
    out_of_memory: Vec<FailedRequest>,
}

impl DeviceReader {
    /// Creates a reader for the selected time; `None` if the process has declared no events of devices.
    pub fn new(process: &ProcessRecording, decoder: &Decoder, range: Option<Range<u64>>) -> Option<Self> {
        let whole = process.time_range().filter(|_| decoder.has_devices())?;
        let range = range.map_or(whole.clone(), |range| range.start.max(whole.start)..range.end.min(whole.end));
        let (states, live, changes, devices) = Default::default();
        let scale = MemoryHeader::scale_of(process.start());
        Some(Self { axis: Axis::new(range), scale, states, live, changes, devices })
    }

    /// Adds an event of a thread. The time is in nanoseconds since the process began to record; events after the
    /// selected time have no effect.
    pub fn event(&mut self, thread: u32, time_ns: u64, event: &Event<'_>) {
        if time_ns >= self.axis.range.end {
            return;
        }
        match event {
            Event::Allocate(memory) | Event::Free(memory) | Event::Complete(memory)
                if memory.region.device() != EventKind::OWN_DEVICE =>
            {
                self.change(thread, time_ns, event, memory);
            }
            Event::Instant(instant) => {
                if let InstantSubject::OutOfMemory(request) = instant.about {
                    self.out_of_memory(time_ns, instant.stack, request);
                }
            }
            Event::State(state) => {
                if let Some(whole) = self.states.add(thread, time_ns, &self.with_stack(*state)) {
                    self.apply_state(whole);
                }
            }
            _ => {}
        }
    }

    fn out_of_memory(&mut self, time_ns: u64, stack: u32, request: events::OutOfMemory) {
        let events::OutOfMemory { device, size, free, pool, .. } = request;
        if device == EventKind::OWN_DEVICE {
            return;
        }
        let device = self.devices.entry(device).or_default();
        if time_ns >= self.axis.range.start {
            device.out_of_memory.push(FailedRequest { time_ns, size, free, stack, pool });
        }
    }

    /// Changes the memory of a device.
    fn change(&mut self, thread: u32, time_ns: u64, event: &Event<'_>, memory: &MemoryEvent) {
        let Self { scale, live, changes, .. } = self;
        let account = &mut self.devices.entry(memory.region.device()).or_default().account;
        match event {
            Event::Allocate(_) => {
                let origin = DeviceBlockOrigin { pool: account.pool(memory.pool), stack: memory.stack };
                live.allocate(memory, origin, changes);
            }
            Event::Free(_) => live.free(thread, memory, changes),
            _ => {}
        }
        account.change(changes, *scale);
        let is_block = matches!(memory.region, Region::Block(_));
        if is_block && matches!(event, Event::Allocate(_) | Event::Complete(_)) {
            account.complete(memory.address, *scale);
        }
        if memory.host == Some(HostAction::FreeRequested) {
            changes.gone.iter().for_each(|block| account.wait(block, *scale));
        }
        changes.clear();
        account.draw(&self.axis, time_ns, *scale);
    }

    /// Returns a row of a block with the stack of its allocation, if the row has none.
    fn with_stack(&self, state: HostState) -> HostState {
        let HostState::Block(row) = state else { return state };
        if row.stack != 0 || !(row.is_allocated() || row.is_active()) {
            return state;
        }
        let live = self.live.block_at(row.device, row.address);
        let pending = || self.devices.get(&row.device)?.account.pending(row.address).copied();
        let stack = live.or_else(pending).map_or(0, |block| block.value.stack);
        HostState::Block(HostStateRow { stack, ..row })
    }

    /// Applies an allocator state. A device that is not in it has an empty state if it has no segments.
    fn apply_state(&mut self, mut whole: CompleteState) {
        if whole.time_ns < self.axis.range.start {
            return;
        }
        let (time_ns, reason) = (whole.time_ns, whole.reason);
        for (number, device) in &mut self.devices {
            let nothing = || DeviceState { time_ns, reason, ..DeviceState::default() };
            let reported = whole.devices.remove(number);
            device.state =
                reported.or_else(|| (device.account.reserved() == 0).then(nothing)).or_else(|| device.state.take());
        }
        for (number, state) in whole.devices {
            self.devices.entry(number).or_default().state = Some(state);
        }
    }

    /// Returns the memory of each device.
    pub fn finish(self, process: &ProcessRecording) -> Vec<DeviceHistory> {
        let (axis, start) = (&self.axis, process.start());
        self.devices.into_iter().map(|(number, device)| device.finish(number, start, axis)).collect()
    }
}

impl DeviceHistoryBuilder {
    fn finish(self, number: i64, start: &ProcessStart, axis: &Axis) -> DeviceHistory {
        let option = |what: &str| {
            let name = format!("device.{number}.{what}");
            start.options.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone())
        };
        let mut pools: Vec<PoolHistory> = self
            .account
            .pools
            .into_iter()
            .map(|pool| {
                let drawn = pool.curve.finish(axis);
                PoolHistory { pool: pool.number, points: drawn.points, peak: drawn.peak }
            })
            .collect();
        pools.sort_by_key(|pool| pool.pool);
        let drawn = self.account.curve.finish(axis);
        DeviceHistory {
            device: number,
            name: option("name"),
            total: option("total").and_then(|text| text.parse().ok()),
            points: drawn.points,
            pools,
            peak: drawn.peak,
            reserved_peak: drawn.reserved_peak,
            state: self.state,
            out_of_memory: self.out_of_memory,
        }
    }
}
