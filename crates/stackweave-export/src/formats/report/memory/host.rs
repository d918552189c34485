//! What hosts' allocators told of the memory of devices: curves, pools, requests that could not be met.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};
use stackweave_profile::memory::{DeviceHistory, DevicePoint, OutOfMemory, lifetime, pool_name, read_devices};

use super::accounts::Accounts;
use super::curve::{host_columns, sum};
use super::states;
use super::tree::StackTree;
use crate::error::ExportError;
use crate::formats::report::blocks::Blocks;
use crate::formats::report::frames::RecordedFrames;
use crate::formats::report::head::Threads;
use crate::source::Source;

/// So many requests that could not be met are told one by one: a program may try again and again.
const MOST_FAILURES: usize = 100;
/// So many of them are moments at which it is told what was live.
const MOMENTS: usize = 8;

/// What all processes had of one device.
#[derive(Debug, Default)]
pub(super) struct Host {
    parts: Vec<Part>,
}

/// What one process had of it.
#[derive(Debug)]
pub(super) struct Part {
    /// The place of the process.
    pub(super) process: usize,
    life: Range<u64>,
    pub(super) history: DeviceHistory,
}

/// A curve of each process, with its life.
type Curves<'h> = Vec<(Range<u64>, &'h [DevicePoint])>;

/// Reads what is told of each device.
pub(super) fn read(source: &Source<'_>) -> Result<BTreeMap<i64, Host>, ExportError> {
    let mut hosts: BTreeMap<i64, Host> = BTreeMap::new();
    for (place, process) in source.processes().iter().enumerate() {
        let began = source.began(process);
        let range = source.options().part.range.as_ref();
        let range = range.map(|range| range.start.saturating_sub(began)..range.end.saturating_sub(began));
        for history in read_devices(process, range, &mut |_| {})? {
            let part = Part { process: place, life: lifetime(process, began), history };
            hosts.entry(part.history.device).or_default().parts.push(part);
        }
    }
    Ok(hosts)
}

impl Host {
    /// What the device is called.
    pub(super) fn name(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| part.history.name.as_deref())
    }

    /// How much there was over time. Empty if there was never anything.
    pub(super) fn points(&self) -> Vec<DevicePoint> {
        let points = sum(&self.curves(|history| Some(&history.points)));
        let is_any = |point: &DevicePoint| point.allocated > 0 || point.pending > 0 || point.reserved > 0;
        if points.iter().any(is_any) { points } else { Vec::new() }
    }

    /// Whether there is anything to tell.
    pub(super) fn is_empty(&self) -> bool {
        let says = |part: &Part| part.history.state.is_some() || !part.history.out_of_memory.is_empty();
        !self.parts.iter().any(says) && self.points().is_empty()
    }

    /// The times of the first requests that could not be met.
    pub(super) fn failure_times(&self) -> Vec<u64> {
        self.failures().iter().take(MOMENTS).map(|(time, ..)| *time).collect()
    }

    fn curves<'h>(&'h self, of: impl Fn(&'h DeviceHistory) -> Option<&'h Vec<DevicePoint>>) -> Curves<'h> {
        let curve = |part: &'h Part| Some((part.life.clone(), of(&part.history)?.as_slice()));
        self.parts.iter().filter_map(curve).collect()
    }

    /// In the order of time, with the places of their processes.
    fn failures(&self) -> Vec<(u64, usize, &OutOfMemory)> {
        let of = |part: &'_ Part| (part.life.start, part.process);
        let all =
            self.parts.iter().flat_map(|part| part.history.out_of_memory.iter().map(move |of_it| (of(part), of_it)));
        let mut all: Vec<_> =
            all.map(|((began, process), failure)| (failure.time_ns.saturating_add(began), process, failure)).collect();
        all.sort_by_key(|(time, ..)| *time);
        all
    }

    /// Writes its blocks: what the head tells of it.
    pub(super) fn write(
        &self,
        (source, threads): (&Source<'_>, &Threads<'_>),
        accounts: &Accounts,
        frames: &mut RecordedFrames<'_>,
        blocks: &mut Blocks<'_>,
    ) -> Result<Value, ExportError> {
        let mut stacks = StackTree::new();
        let mut node = |process: usize, stack: u32| {
            let place = u32::try_from(process).unwrap_or(u32::MAX);
            stacks.node((place, stack), &source.processes()[process], frames, threads)
        };
        let failures = self.failures();
        let told = failures.iter().take(MOST_FAILURES).map(|(time, process, failure)| {
            json!({
                "timeNs": time,
                "process": process,
                "size": failure.size,
                "free": failure.free,
                "pool": pool_name(failure.pool),
                "stack": node(*process, failure.stack),
            })
        });
        let told: Vec<Value> = told.collect();
        let mut states = Vec::new();
        for part in &self.parts {
            if let Some(state) = &part.history.state {
                let account = accounts.of(part.process, part.history.device, state.time_ns);
                let mut node = |stack: u32| node(part.process, stack);
                let mut value = states::write(state, account, &mut node, blocks)?;
                value["process"] = part.process.into();
                value["timeNs"] = state.time_ns.saturating_add(part.life.start).into();
                states.push(value);
            }
        }
        let reserved_peak = self.points().into_iter().rev().max_by_key(|point| point.reserved).unwrap_or_default();
        Ok(json!({
            "total": self.parts.iter().find_map(|part| part.history.total),
            "reservedPeak": told_point(&reserved_peak),
            "pools": self.write_pools(blocks)?,
            "failures": told,
            "failureCount": failures.len(),
            "states": states,
            "stacks": blocks.columns(&stacks.columns())?,
        }))
    }

    fn write_pools(&self, blocks: &mut Blocks<'_>) -> Result<Vec<Value>, ExportError> {
        let all = self.parts.iter().flat_map(|part| part.history.pools.iter().map(|pool| pool.pool));
        let mut numbers: Vec<u64> = all.collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut told = Vec::new();
        for number in numbers {
            let of = |history: &'_ DeviceHistory| history.pools.binary_search_by_key(&number, |pool| pool.pool).ok();
            let points = sum(&self.curves(|history| Some(&history.pools[of(history)?].points)));
            let peak = points.iter().rev().max_by_key(|point| point.allocated).copied().unwrap_or_default();
            told.push(json!({
                "name": pool_name(number),
                "curve": blocks.columns(&host_columns(&points))?,
                "peak": told_point(&peak),
            }));
        }
        Ok(told)
    }
}

fn told_point(point: &DevicePoint) -> Value {
    json!({
        "timeNs": point.time_ns,
        "taken": point.allocated,
        "pending": point.pending,
        "reserved": point.reserved,
    })
}
