//! The memory of devices in a report.

use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_heap::Figures;
use stackweave_recording::events;
use stackweave_recording::{ProcessRecording, ReadError};
use stackweave_symbolize::Symbolizer;

use super::device_curve::DevicePoint;
use super::devices::{DeviceHistory, FailedRequest, read_devices};
use super::query::MemoryQuery;
use super::report::MemoryReport;
use super::timeline::{MemoryTimeline, TimelinePoint, lifetime};
use super::usage::{MemoryUsage, UsageRow};
use crate::aggregate::{DeviceMeasure, GroupCosts, Measure, Profile, ProfileBuilder, View, offsets};

/// The memory of a device in a process.
#[derive(Clone, Debug)]
pub struct DeviceMemory {
    /// The process.
    pub pid: u32,
    /// The memory over time. Times are in nanoseconds since the first process began to record.
    pub history: DeviceHistory,
    /// The stacks of the failed requests, in order, up to a maximum number: a profile with one stack each.
    pub failed: Vec<Profile>,
}

/// The maximum number of requests with stacks.
const MAX_FAILED: usize = 100;

/// Returns the name of a pool.
pub fn pool_name(pool: u64) -> String {
    match pool {
        0 => "default".to_owned(),
        pool if pool & events::POOL_OF_GRAPH != 0 => format!("graph {}", pool & !events::POOL_OF_GRAPH),
        pool => format!("pool {pool}"),
    }
}

/// Returns the default device: the heap, unless only devices were recorded.
pub(crate) fn default_device<'u>(usages: impl Iterator<Item = &'u MemoryUsage>) -> i64 {
    let devices = usages.flat_map(|usage| &usage.devices);
    first_device(devices.filter(|device| device.is_used).map(|device| device.device))
}

/// Returns the same from the devices that are used.
pub(crate) fn first_device(used: impl Iterator<Item = i64>) -> i64 {
    used.min().unwrap_or(EventKind::OWN_DEVICE)
}

/// Returns the remark for a report whose device was chosen by default.
pub fn only_of_device(device: i64) -> String {
    format!("No heap memory was recorded: this is the memory of device {device}.")
}

impl MemoryReport {
    /// Returns whether there are figures of a device.
    pub fn has_device(&self, device: i64) -> bool {
        self.devices.contains(&device) || self.device_memory.iter().any(|memory| memory.history.device == device)
    }

    /// Reads the memory of devices. `query` is that of the report; if it selects no device and nothing else was
    /// recorded, the report is of the first device. Without allocations on devices, nothing is read.
    pub fn add_devices(
        &mut self,
        processes: &[ProcessRecording],
        query: &MemoryQuery,
        symbolizer: Option<&Symbolizer>,
    ) -> Result<(), ReadError> {
        let own = EventKind::OWN_DEVICE;
        if self.is_used && self.devices.iter().all(|device| *device == own) {
            return Ok(());
        }
        let mut timelines = Vec::new();
        for (process, offset) in processes.iter().zip(offsets(processes)) {
            let local = |range: &Range<u64>| range.start.saturating_sub(offset)..range.end.saturating_sub(offset);
            let range = query.range.as_ref().map(local);
            for history in read_devices(process, range, &mut |_| {})? {
                timelines.push((history.device, lifetime(process, offset), timeline(&history)));
                let failed = history.out_of_memory.iter().take(MAX_FAILED);
                let failed = requests(process, failed, (query.shown(), symbolizer));
                let history = moved(history, offset);
                self.device_memory.push(DeviceMemory { pid: process.start().pid, history, failed });
            }
        }
        self.device_memory.sort_by_key(|memory| memory.history.device);
        let first = self.device_memory.first().map_or(own, |memory| memory.history.device);
        if !self.is_used && query.devices.is_empty() {
            self.device = first;
        }
        if self.device != own {
            let of_device = timelines.into_iter().filter(|(device, ..)| *device == self.device);
            let all: Vec<_> = of_device.map(|(_, life, timeline)| (life, timeline)).collect();
            self.timeline = MemoryTimeline::sum(&all);
        }
        Ok(())
    }
}

/// Returns the allocated bytes and the bytes of segments over time.
fn timeline(history: &DeviceHistory) -> MemoryTimeline {
    let point = |point: &DevicePoint| TimelinePoint {
        time_ns: point.time_ns,
        heap: Some(point.allocated),
        rss: Some(point.reserved),
    };
    MemoryTimeline { points: history.points.iter().map(point).collect() }
}

/// Returns the stacks of failed requests, as profiles.
fn requests<'f>(
    process: &ProcessRecording,
    failed: impl Iterator<Item = &'f FailedRequest>,
    (view, symbolizer): (&View, Option<&Symbolizer>),
) -> Vec<Profile> {
    let measure = Measure::PeakBytes;
    let counted = DeviceMeasure { measure, device: EventKind::OWN_DEVICE };
    let costs = |failure: &FailedRequest| {
        let figures = Figures { peak_blocks: 1, peak_bytes: failure.size, ..Figures::default() };
        let (stack, leaked_blocks, leaked_bytes) = (failure.stack, 0, 0);
        let row = UsageRow { stack, thread: 0, allocator: 0, tag: 0, figures, leaked_blocks, leaked_bytes };
        GroupCosts::of_rows(&[row], measure)
    };
    let all: Vec<GroupCosts> = failed.map(costs).collect();
    let mut builder = ProfileBuilder::new(view);
    builder.add_process(process, all.iter().map(|group| (group, counted)), (symbolizer, true));
    all.iter().map(|group| builder.profile(&[(0, group)], counted)).collect()
}

/// Returns the same with times since an earlier start.
fn moved(mut history: DeviceHistory, offset: u64) -> DeviceHistory {
    let pools = history.pools.iter_mut().flat_map(|pool| pool.points.iter_mut().chain([&mut pool.peak]));
    let points = history.points.iter_mut().chain([&mut history.peak, &mut history.reserved_peak]);
    let times = points.chain(pools).map(|point| &mut point.time_ns);
    let failures = history.out_of_memory.iter_mut().map(|failure| &mut failure.time_ns);
    for time in times.chain(failures).chain(history.state.as_mut().map(|state| &mut state.time_ns)) {
        *time = time.saturating_add(offset);
    }
    history
}
