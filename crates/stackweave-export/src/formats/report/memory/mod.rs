//! The memory in a report: figures, curves, and the live memory at some moments.

mod curve;
mod failures;
mod figures;
mod history;
mod host;
mod live;
mod moments;
mod rows;
mod states;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use stackweave_core::EventKind;
use stackweave_profile::EveryMeasure;
use stackweave_profile::memory::{MemoryHeader, MemoryQuery, MemoryReport};
use stackweave_recording::ReadError;

pub(super) use self::failures::FailureTimes;
use self::history::{LiveHistory, MemoryPass, Peak};
use self::host::HostDevice;
use self::moments::Moments;
use self::tree::StackTree;
use super::blocks::{Columns, PageBlocks};
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// Writes the memory with these costs, and returns its entry for the head; `null` if there is none.
pub(super) fn write(
    source: &Source<'_>,
    (costs, failures): (&EveryMeasure<'_>, &FailureTimes),
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut PageBlocks<'_>,
) -> Result<Value, ExportError> {
    let part = &source.options().part;
    let query = MemoryQuery { range: part.range.clone(), threads: part.threads.clone(), ..MemoryQuery::default() };
    let report = |device: i64| costs.memory_report(&query, device);
    let new_history = |report: &MemoryReport| {
        let (failures, time) = (failures.of(report.device), &report.time);
        LiveHistory::new(Moments::new(time.start, time.end, report.peak_ns(), failures), peak(report))
    };
    let own = report(EventKind::OWN_DEVICE)?;
    let others: BTreeSet<i64> = own.devices.iter().copied().filter(|device| *device != own.device).collect();
    let others: Result<Vec<MemoryReport>, ReadError> = others.into_iter().map(report).collect();
    let mut reports: BTreeMap<i64, MemoryReport> =
        [own].into_iter().chain(others?).map(|report| (report.device, report)).collect();
    let mut devices: BTreeMap<i64, LiveHistory> =
        reports.values().map(|report| (report.device, new_history(report))).collect();
    let MemoryPass { has_history, hosts } = history::read(source, &mut devices)?;
    // Only now it is known which devices have memory that is not allocated.
    for device in hosts.keys().filter(|device| !devices.contains_key(device)).copied().collect::<Vec<i64>>() {
        let report = report(device)?;
        devices.insert(device, new_history(&report));
        reports.insert(device, report);
    }
    let has_host = |device: i64| hosts.get(&device).is_some_and(|host| !host.is_empty());
    reports.retain(|device, report| !report.is_empty() || has_host(*device));
    let Some(sample_every) = reports.values().next().map(MemoryReport::sample_every) else { return Ok(Value::Null) };
    let mut frames = RecordedFrames::new(source, names);
    let mut entries = Vec::new();
    for report in reports.values() {
        let host = hosts.get(&report.device);
        let mut fields = figures::fields(report);
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("device", report.device.into());
        put("label", label(report.device, host).into());
        put("peakNs", report.peak_ns().into());
        let curve = match host.map(HostDevice::points) {
            Some(points) => Some(curve::host_columns(&points)).filter(|_| !points.is_empty()),
            None => curve::columns(&report.timeline),
        };
        put("curve", curve.map(|columns| blocks.columns(&columns)).transpose()?.into());
        let history = devices.remove(&report.device).filter(|_| has_history);
        let moments = match history {
            Some(history) => write_moments(source, threads, &history, &mut frames, blocks)?,
            None => Value::Null,
        };
        put("moments", moments);
        let host = host.map(|host| host.write((source, threads), &mut frames, blocks));
        put("host", host.transpose()?.unwrap_or_default());
        entries.push(Value::Object(fields));
    }
    Ok(json!({"devices": entries, "sampleEvery": sample_every}))
}

/// Returns the highest peak of the processes.
fn peak(report: &MemoryReport) -> Option<Peak> {
    let highest = report.processes.iter().enumerate().max_by_key(|(_, process)| process.totals.figures.peak_bytes);
    let peak = |(index, process): (usize, &stackweave_profile::memory::ProcessMemory)| Peak {
        process: index,
        ticks: process.totals.peak_ticks,
        bytes: process.totals.figures.peak_bytes,
    };
    highest.map(peak).filter(|peak| peak.bytes > 0)
}

fn label(device: i64, host: Option<&HostDevice>) -> String {
    match host.and_then(HostDevice::name) {
        _ if device == EventKind::OWN_DEVICE => "Process memory".to_owned(),
        Some(name) => format!("{name} (device {device})"),
        None => format!("Device {device}"),
    }
}

fn write_moments(
    source: &Source<'_>,
    threads: &Threads<'_>,
    history: &LiveHistory,
    frames: &mut RecordedFrames<'_>,
    blocks: &mut PageBlocks<'_>,
) -> Result<Value, ExportError> {
    let mut tree = StackTree::new();
    let mut rows = Vec::with_capacity(history.rows.len());
    let mut intervals: Vec<_> = history.rows.iter().collect();
    intervals.sort_unstable_by_key(|(interval, _)| (interval.process, interval.stack, interval.first, interval.end));
    for (interval, weight) in intervals {
        let process = &source.processes()[interval.process as usize];
        let node = tree.node((interval.process, interval.stack), process, frames, threads);
        let scale = MemoryHeader::scale_of(process.start());
        let sum = (scale.whole(weight.bytes), scale.whole(weight.blocks));
        rows.push(((interval.first, interval.end - interval.first, node), sum));
    }
    rows.sort_unstable_by_key(|(key, _)| *key);
    rows.dedup_by(|(key, (bytes, blocks)), (same, sum)| {
        if key == same {
            *sum = (sum.0 + *bytes, sum.1 + *blocks);
        }
        key == same
    });
    let mut columns = Columns::default();
    columns.plain(rows.iter().map(|((_, _, node), _)| (*node).into()));
    columns.plain(rows.iter().map(|((first, ..), _)| (*first).into()));
    columns.plain(rows.iter().map(|((_, count, _), _)| (*count).into()));
    columns.plain(rows.iter().map(|(_, (bytes, _))| *bytes));
    columns.plain(rows.iter().map(|(_, (_, blocks))| *blocks));
    Ok(json!({
        "times": history.moments.times(),
        "nodes": tree.nodes(),
        "tree": blocks.columns(&tree.columns())?,
        "rows": blocks.columns(&columns)?,
    }))
}
