//! How much memory was used: figures, curves, and what was live at some moments.

mod addresses;
mod curve;
mod figures;
mod history;
mod live;
mod moments;
mod ranges;
mod rows;
mod scale;
mod tree;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stackweave_core::EventKind;
use stackweave_profile::memory::{MemoryQuery, MemoryReport, MemoryTimeline, read_report};

use self::history::{DeviceHistory, Peak};
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
    let reports = reports(source)?;
    let Some(sample_every) = reports.first().map(MemoryReport::sample_every) else { return Ok(Value::Null) };
    let duration = source.time_range().end;
    let device = |report: &MemoryReport| {
        let moments = Moments::new(report.time.start, report.time.end, report.peak_ns());
        (report.device, DeviceHistory::new(moments, peak(report), duration))
    };
    let mut devices: BTreeMap<i64, DeviceHistory> = reports.iter().map(device).collect();
    let has_history = history::read(source, &mut devices)?;
    let mut frames = RecordedFrames::new(source, names);
    let mut told = Vec::new();
    for report in &reports {
        let history = devices.remove(&report.device).filter(|_| has_history);
        let curve = match (report.device, &history) {
            (EventKind::OWN_DEVICE, _) => report.timeline.clone(),
            (_, history) => history.as_ref().map(|history| MemoryTimeline::sum(&history.curves)).unwrap_or_default(),
        };
        let mut fields = figures::told(report);
        fields.insert("device".to_owned(), report.device.into());
        fields.insert("label".to_owned(), label(report.device).into());
        fields.insert("peakNs".to_owned(), report.peak_ns().into());
        let curve = curve::columns(&curve).map(|columns| blocks.columns(&columns)).transpose()?;
        fields.insert("curve".to_owned(), curve.into());
        let moments = match history {
            Some(history) => write_moments(source, threads, &history, &mut frames, blocks)?,
            None => Value::Null,
        };
        fields.insert("moments".to_owned(), moments);
        told.push(Value::Object(fields));
    }
    Ok(json!({"devices": told, "sampleEvery": sample_every}))
}

/// What `stackweave heap` tells of each device, the process's own memory first. Only of those that were used.
fn reports(source: &Source<'_>) -> Result<Vec<MemoryReport>, ExportError> {
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
    let others: Vec<i64> = own.devices.iter().copied().filter(|device| *device != EventKind::OWN_DEVICE).collect();
    let mut reports = vec![own];
    for device in others {
        reports.push(report(device)?);
    }
    reports.retain(|report| !report.is_empty());
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

fn label(device: i64) -> String {
    if device == EventKind::OWN_DEVICE { "Process memory".to_owned() } else { format!("Device {device}") }
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
