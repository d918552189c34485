//! The memory of devices according to host allocators: curves, pools, failed requests.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use stackweave_profile::memory::{DeviceHistory, DevicePoint, DeviceReader, FailedRequest, lifetime, pool_name};
use stackweave_recording::ProcessRecording;
use stackweave_recording::events::{Decoder, Event};

use super::curve::{host_columns, sum};
use super::states;
use super::tree::StackTree;
use crate::error::ExportError;
use crate::formats::report::blocks::PageBlocks;
use crate::formats::report::frames::RecordedFrames;
use crate::formats::report::head::Threads;
use crate::source::Source;

/// The maximum number of failed requests that are listed: a program may retry very often.
const MAX_FAILURES: usize = 100;

/// The memory of one device in all processes.
#[derive(Debug, Default)]
pub(super) struct HostDevice {
    processes: Vec<ProcessDevice>,
}

/// The memory of a device in one process.
#[derive(Debug)]
pub(super) struct ProcessDevice {
    /// The index of the process.
    pub(super) process: usize,
    lifetime: Range<u64>,
    pub(super) history: DeviceHistory,
}

/// The curve of each process, with the lifetime of the process.
type Curves<'h> = Vec<(Range<u64>, &'h [DevicePoint])>;

/// The memory of all devices.
pub(super) type HostDevices = BTreeMap<i64, HostDevice>;

/// Reads the histories of the devices of one process.
#[derive(Debug)]
pub(super) struct HostReader<'p> {
    process: &'p ProcessRecording,
    index: usize,
    began: u64,
    reader: DeviceReader,
}

impl<'p> HostReader<'p> {
    /// Creates a reader for the process with this index; `None` if it has declared no events of devices.
    pub(super) fn new(source: &Source<'p>, index: usize, decoder: &Decoder) -> Option<Self> {
        let process = &source.processes()[index];
        let range = source.options().part.range.as_ref().map(|range| source.time_of_process(process, range));
        let reader = DeviceReader::new(process, decoder, range)?;
        Some(Self { process, index, began: source.began(process), reader })
    }

    /// Adds an event of the process, with its thread and its time.
    pub(super) fn event(&mut self, (thread, time_ns): (u32, u64), event: &Event<'_>) {
        self.reader.event(thread, time_ns, event);
    }

    /// Adds the histories to those of other processes.
    pub(super) fn finish(self, hosts: &mut HostDevices) {
        for history in self.reader.finish(self.process) {
            let lifetime = lifetime(self.process, self.began);
            let device = ProcessDevice { process: self.index, lifetime, history };
            hosts.entry(device.history.device).or_default().processes.push(device);
        }
    }
}

impl HostDevice {
    /// Returns the name of the device.
    pub(super) fn name(&self) -> Option<&str> {
        self.processes.iter().find_map(|part| part.history.name.as_deref())
    }

    /// Returns the memory over time; nothing if there never was any.
    pub(super) fn points(&self) -> Vec<DevicePoint> {
        let points = sum(&self.curves(|history| Some(&history.points)));
        let is_any = |point: &DevicePoint| point.allocated > 0 || point.pending > 0 || point.reserved > 0;
        if points.iter().any(is_any) { points } else { Vec::new() }
    }

    /// Returns whether nothing is known of the device.
    pub(super) fn is_empty(&self) -> bool {
        let has_history = |part: &ProcessDevice| part.history.state.is_some() || !part.history.out_of_memory.is_empty();
        !self.processes.iter().any(has_history) && self.points().is_empty()
    }

    fn curves<'h>(&'h self, of: impl Fn(&'h DeviceHistory) -> Option<&'h Vec<DevicePoint>>) -> Curves<'h> {
        let curve = |part: &'h ProcessDevice| Some((part.lifetime.clone(), of(&part.history)?.as_slice()));
        self.processes.iter().filter_map(curve).collect()
    }

    /// Returns the failed requests in the order of time, with their times and the indexes of their processes.
    fn failures(&self) -> Vec<(u64, usize, &FailedRequest)> {
        let mut all = Vec::new();
        for ProcessDevice { process, lifetime, history } in &self.processes {
            let time = |failure: &FailedRequest| failure.time_ns.saturating_add(lifetime.start);
            all.extend(history.out_of_memory.iter().map(|failure| (time(failure), *process, failure)));
        }
        all.sort_by_key(|(time, ..)| *time);
        all
    }

    /// Writes the blocks of the device, and returns its entry for the head.
    pub(super) fn write(
        &self,
        (source, threads): (&Source<'_>, &Threads<'_>),
        frames: &mut RecordedFrames<'_>,
        blocks: &mut PageBlocks<'_>,
    ) -> Result<Value, ExportError> {
        let mut stacks = StackTree::new();
        let mut node = |process: usize, stack: u32| {
            let index = u32::try_from(process).unwrap_or(u32::MAX);
            stacks.node((index, stack), &source.processes()[process], frames, threads)
        };
        let failures = self.failures();
        let listed = failures.iter().take(MAX_FAILURES).map(|(time, process, failure)| {
            json!({
                "timeNs": time,
                "process": process,
                "size": failure.size,
                "free": failure.free,
                "pool": pool_name(failure.pool),
                "stack": node(*process, failure.stack),
            })
        });
        let listed: Vec<Value> = listed.collect();
        let mut states = Vec::new();
        for part in &self.processes {
            if let Some(state) = &part.history.state {
                let mut node = |stack: u32| node(part.process, stack);
                let mut value = states::write(state, &mut node, blocks)?;
                value["process"] = part.process.into();
                value["timeNs"] = state.time_ns.saturating_add(part.lifetime.start).into();
                states.push(value);
            }
        }
        let reserved_peak = self.points().into_iter().rev().max_by_key(|point| point.reserved).unwrap_or_default();
        Ok(json!({
            "total": self.processes.iter().find_map(|part| part.history.total),
            "reservedPeak": point_value(&reserved_peak),
            "pools": self.write_pools(blocks)?,
            "failures": listed,
            "failureCount": failures.len(),
            "states": states,
            "stacks": blocks.columns(&stacks.columns())?,
        }))
    }

    fn write_pools(&self, blocks: &mut PageBlocks<'_>) -> Result<Vec<Value>, ExportError> {
        let all = self.processes.iter().flat_map(|part| part.history.pools.iter().map(|pool| pool.pool));
        let mut numbers: Vec<u64> = all.collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut entries = Vec::new();
        for number in numbers {
            let of = |history: &'_ DeviceHistory| history.pools.binary_search_by_key(&number, |pool| pool.pool).ok();
            let points = sum(&self.curves(|history| Some(&history.pools[of(history)?].points)));
            let peak = points.iter().rev().max_by_key(|point| point.allocated).copied().unwrap_or_default();
            entries.push(json!({
                "name": pool_name(number),
                "curve": blocks.columns(&host_columns(&points))?,
                "peak": point_value(&peak),
            }));
        }
        Ok(entries)
    }
}

fn point_value(point: &DevicePoint) -> Value {
    json!({
        "timeNs": point.time_ns,
        "taken": point.allocated,
        "pending": point.pending,
        "reserved": point.reserved,
    })
}
