//! The memory in a report: figures, curves, and the live memory at some moments.

mod curve;
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
use stackweave_profile::memory::{MemoryHeader, MemoryQuery, MemoryReport, read_report};

use self::history::{LiveHistory, Peak};
use self::host::HostDevice;
use self::moments::Moments;
use self::tree::StackTree;
use super::blocks::{Columns, PageBlocks};
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// Writes the memory, and returns its entry for the head; `null` if there is none.
pub(super) fn write(
    source: &Source<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut PageBlocks<'_>,
) -> Result<Value, ExportError> {
    let hosts = host::read(source)?;
    let reports = reports(source, &hosts)?;
    let Some(sample_every) = reports.first().map(MemoryReport::sample_every) else { return Ok(Value::Null) };
    let device = |report: &MemoryReport| {
        let failure_times = hosts.get(&report.device).map(HostDevice::failure_times).unwrap_or_default();
        let moments = Moments::new(report.time.start, report.time.end, report.peak_ns(), &failure_times);
        (report.device, LiveHistory::new(moments, peak(report)))
    };
    let mut devices: BTreeMap<i64, LiveHistory> = reports.iter().map(device).collect();
    let has_history = history::read(source, &mut devices)?;
    let mut frames = RecordedFrames::new(source, names);
    let mut entries = Vec::new();
    for report in &reports {
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

/// Returns the figures of `stackweave heap` for each device that was used, the memory of the process first.
fn reports(source: &Source<'_>, hosts: &BTreeMap<i64, HostDevice>) -> Result<Vec<MemoryReport>, ExportError> {
    let part = &source.options().part;
    let report = |device: i64| {
        let query = MemoryQuery {
            range: part.range.clone(),
            threads: part.threads.clone(),
            devices: vec![device],
            ..MemoryQuery::default()
        };
        read_report(source.processes(), &query, None, &mut |_| {})
    };
    let process_memory = report(EventKind::OWN_DEVICE)?;
    let mut others: BTreeSet<i64> = process_memory.devices.iter().chain(hosts.keys()).copied().collect();
    others.remove(&EventKind::OWN_DEVICE);
    let mut reports = vec![process_memory];
    for device in others {
        reports.push(report(device)?);
    }
    let has_host = |device: i64| hosts.get(&device).is_some_and(|host| !host.is_empty());
    reports.retain(|report| !report.is_empty() || has_host(report.device));
    Ok(reports)
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
    let mut rows: BTreeMap<(u8, u8, u32), (u64, u64)> = BTreeMap::new();
    let mut intervals: Vec<_> = history.rows.iter().collect();
    intervals.sort_unstable_by_key(|(interval, _)| (interval.process, interval.stack, interval.first, interval.end));
    for (interval, weight) in intervals {
        let process = &source.processes()[interval.process as usize];
        let node = tree.node((interval.process, interval.stack), process, frames, threads);
        let sum = rows.entry((interval.first, interval.end - interval.first, node)).or_default();
        let scale = MemoryHeader::scale_of(process.start());
        *sum = (sum.0 + scale.whole(weight.bytes), sum.1 + scale.whole(weight.blocks));
    }
    let mut columns = Columns::default();
    columns.plain(rows.keys().map(|(_, _, node)| (*node).into()));
    columns.plain(rows.keys().map(|(first, ..)| (*first).into()));
    columns.plain(rows.keys().map(|(_, count, _)| (*count).into()));
    columns.plain(rows.values().map(|(bytes, _)| *bytes));
    columns.plain(rows.values().map(|(_, blocks)| *blocks));
    Ok(json!({
        "times": history.moments.times(),
        "nodes": tree.nodes(),
        "tree": blocks.columns(&tree.columns())?,
        "rows": blocks.columns(&columns)?,
    }))
}
