//! How much memory was used: figures, curves, and what was live at some moments.

mod accounts;
mod addresses;
mod curve;
mod figures;
mod history;
mod host;
mod live;
mod moments;
mod ranges;
mod rows;
mod scale;
mod states;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use stackweave_core::EventKind;
use stackweave_profile::memory::{MemoryQuery, MemoryReport, read_report};

use self::accounts::Accounts;
use self::history::{DeviceHistory, Peak};
use self::host::Host;
use self::moments::Moments;
use self::scale::Scale;
use self::tree::StackTree;
use super::blocks::{Blocks, Columns};
use super::frames::RecordedFrames;
use super::head::Threads;
use super::names::Names;
use crate::error::ExportError;
use crate::source::Source;

/// Writes what is known of memory: what the head tells of it, `null` if that is nothing.
pub(super) fn write(
    source: &Source<'_>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut Blocks<'_>,
) -> Result<Value, ExportError> {
    let hosts = host::read(source)?;
    let reports = reports(source, &hosts)?;
    let Some(sample_every) = reports.first().map(MemoryReport::sample_every) else { return Ok(Value::Null) };
    let device = |report: &MemoryReport| {
        let asked = hosts.get(&report.device).map(Host::failure_times).unwrap_or_default();
        let moments = Moments::new(report.time.start, report.time.end, report.peak_ns(), &asked);
        (report.device, DeviceHistory::new(moments, peak(report)))
    };
    let mut devices: BTreeMap<i64, DeviceHistory> = reports.iter().map(device).collect();
    let mut accounts = Accounts::default();
    let has_history = history::read(source, &mut devices, &mut accounts)?;
    let mut frames = RecordedFrames::new(source, names);
    let mut told = Vec::new();
    for report in &reports {
        let host = hosts.get(&report.device);
        let mut fields = figures::told(report);
        let mut tell = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        tell("device", report.device.into());
        tell("label", label(report.device, host).into());
        tell("peakNs", report.peak_ns().into());
        let curve = match host.map(Host::points) {
            Some(points) => Some(curve::host_columns(&points)).filter(|_| !points.is_empty()),
            None => curve::columns(&report.timeline),
        };
        tell("curve", curve.map(|columns| blocks.columns(&columns)).transpose()?.into());
        let history = devices.remove(&report.device).filter(|_| has_history);
        let moments = match history {
            Some(history) => write_moments(source, threads, &history, &mut frames, blocks)?,
            None => Value::Null,
        };
        tell("moments", moments);
        let host = host.map(|host| host.write((source, threads), &accounts, &mut frames, blocks));
        tell("host", host.transpose()?.unwrap_or_default());
        told.push(Value::Object(fields));
    }
    Ok(json!({"devices": told, "sampleEvery": sample_every}))
}

/// What `stackweave heap` tells of each device, the process's own memory first. Only of those that were used.
fn reports(source: &Source<'_>, hosts: &BTreeMap<i64, Host>) -> Result<Vec<MemoryReport>, ExportError> {
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
    let own = report(EventKind::OWN_DEVICE)?;
    let mut others: BTreeSet<i64> = own.devices.iter().chain(hosts.keys()).copied().collect();
    others.remove(&EventKind::OWN_DEVICE);
    let mut reports = vec![own];
    for device in others {
        reports.push(report(device)?);
    }
    let is_told = |device: i64| hosts.get(&device).is_some_and(|host| !host.is_empty());
    reports.retain(|report| !report.is_empty() || is_told(report.device));
    Ok(reports)
}

/// The highest of the processes' peaks.
fn peak(report: &MemoryReport) -> Option<Peak> {
    let highest = report.processes.iter().enumerate().max_by_key(|(_, process)| process.totals.figures.peak_bytes);
    let peak = |(place, process): (usize, &stackweave_profile::memory::ProcessMemory)| Peak {
        process: place,
        ticks: process.totals.peak_ticks,
        bytes: process.totals.figures.peak_bytes,
    };
    highest.map(peak).filter(|peak| peak.bytes > 0)
}

fn label(device: i64, host: Option<&Host>) -> String {
    match host.and_then(Host::name) {
        _ if device == EventKind::OWN_DEVICE => "Process memory".to_owned(),
        Some(name) => format!("{name} (device {device})"),
        None => format!("Device {device}"),
    }
}

fn write_moments(
    source: &Source<'_>,
    threads: &Threads<'_>,
    history: &DeviceHistory,
    frames: &mut RecordedFrames<'_>,
    blocks: &mut Blocks<'_>,
) -> Result<Value, ExportError> {
    let mut tree = StackTree::new();
    let mut rows: BTreeMap<(u8, u8, u32), (u64, u64)> = BTreeMap::new();
    let mut stays: Vec<_> = history.rows.iter().collect();
    stays.sort_unstable_by_key(|(stay, _)| (stay.process, stay.stack, stay.first, stay.behind));
    for (stay, weight) in stays {
        let process = &source.processes()[stay.process as usize];
        let node = tree.node((stay.process, stay.stack), process, frames, threads);
        let sum = rows.entry((stay.first, stay.behind - stay.first, node)).or_default();
        let scale = Scale::of(process);
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
