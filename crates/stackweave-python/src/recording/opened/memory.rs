//! `memory()` and its kin: how much memory was used, as the files say.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_core::EventKind;
use stackweave_profile::memory::{
    DeviceUsage, Figures, MemoryMode, MemoryQuery, MemoryTimeline, MemoryUsage, Totals, UsageSource, add_figures,
    add_totals, lifetime, read_timeline, read_usage,
};
use stackweave_recording::ReadError;

use super::memory_stack::RecordedStack;
use super::named_process::NamedProcess;
use super::{OpenedRecording, Selection, seconds};
use crate::errors::Error;

/// What is asked for besides.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MemoryRequest {
    tag: Option<String>,
    device: Option<i64>,
    temporary: Option<u32>,
    /// Whether figures by place are wanted: there may be very many.
    #[pyo3(default = true)]
    rows: bool,
}

/// A process, what is asked about it, and how much later than the first one it began to record.
pub(super) struct Asked {
    pub(super) process: Arc<NamedProcess>,
    pub(super) query: MemoryQuery,
    pub(super) offset: u64,
    with_rows: bool,
}

/// What is asked about each process that was chosen.
pub(super) fn asked(opened: &OpenedRecording, selection: &Selection, request: &MemoryRequest) -> PyResult<Vec<Asked>> {
    let of = |process: Arc<NamedProcess>| {
        let offset = u64::try_from(opened.offset_of(&process.recording)).unwrap_or(0);
        let local = |ns: i64| u64::try_from(ns).unwrap_or(0).saturating_sub(offset);
        let query = MemoryQuery {
            range: selection.range().map(|Range { start, end }| local(start)..local(end)),
            threads: selection.thread.map(|tid| tid.to_string()).into_iter().collect(),
            tags: request.tag.clone().into_iter().collect(),
            devices: request.device.into_iter().collect(),
            temporary: request.temporary,
        };
        Asked { process, query, offset, with_rows: request.rows }
    };
    Ok(opened.chosen(selection)?.into_iter().map(of).collect())
}

/// Figures by place, in the shape that a recorder that runs gives them in.
pub(super) fn usage<'py>(py: Python<'py>, asked: &[Asked]) -> PyResult<Bound<'py, PyDict>> {
    let read = |asked: &Asked| read_usage(&asked.process.recording, &asked.query, &mut |_| {});
    let usages: Result<Vec<MemoryUsage>, ReadError> = py.detach(|| asked.iter().map(read).collect());
    let usages = usages.map_err(Error::from)?;
    let told = PyDict::new(py);
    let is_replayed = usages.iter().any(|usage| usage.source == UsageSource::Replayed);
    let source = if is_replayed { UsageSource::Replayed } else { UsageSource::Snapshot };
    told.set_item("source", source.as_str())?;
    told.set_item("mode", usages.iter().find_map(|usage| usage.header).map(|header| header.mode.as_str()))?;
    told.set_item("sample_every", usages.iter().find_map(MemoryUsage::sample_every))?;
    let missing = |usage: &MemoryUsage| [usage.remarks.clone(), usage.missing.sentences()].concat();
    told.set_item("remarks", usages.iter().flat_map(missing).collect::<Vec<_>>())?;
    let devices = PyList::empty(py);
    for device in devices_of(&usages) {
        devices.append(device_dict(py, device, asked, &usages)?)?;
    }
    told.set_item("devices", devices)?;
    Ok(told)
}

/// Every device that there is anything of, the processes' own memory first.
fn devices_of(usages: &[MemoryUsage]) -> Vec<i64> {
    let mut devices: Vec<i64> = usages.iter().flat_map(|usage| &usage.devices).map(|device| device.device).collect();
    devices.sort_unstable_by_key(|device| (*device != EventKind::OWN_DEVICE, *device));
    devices.dedup();
    devices
}

fn device_dict<'py>(
    py: Python<'py>,
    device: i64,
    asked: &[Asked],
    usages: &[MemoryUsage],
) -> PyResult<Bound<'py, PyDict>> {
    let (rows, processes) = (PyList::empty(py), PyList::empty(py));
    let mut totals = Totals::default();
    let mut sizes: Vec<(u64, Figures)> = Vec::new();
    let (mut leaked_blocks, mut leaked_bytes) = (0, 0);
    let mut highest: Option<(u64, f64)> = None;
    for (asked, usage) in asked.iter().zip(usages) {
        let Some(used) = usage.device(device) else { continue };
        if asked.with_rows {
            add_rows(py, &rows, asked, (usage, used))?;
        }
        add_totals(&mut totals, &used.totals);
        leaked_blocks += used.rows.iter().map(|row| row.leaked_blocks).sum::<u64>();
        leaked_bytes += used.rows.iter().map(|row| row.leaked_bytes).sum::<u64>();
        for (most, figures) in &used.sizes {
            match sizes.iter_mut().find(|(known, _)| known == most) {
                Some((_, sum)) => add_figures(sum, figures),
                None => sizes.push((*most, *figures)),
            }
        }
        let peak_time = peak_time(asked, used);
        let peak = used.totals.figures.peak_bytes;
        if highest.is_none_or(|(bytes, _)| peak > bytes) {
            highest = Some((peak, peak_time));
        }
        let process = PyDict::new(py);
        process.set_item("pid", asked.process.recording.start().pid)?;
        process.set_item("peak_bytes", peak)?;
        process.set_item("peak_time", peak_time)?;
        process.set_item("live_bytes", used.totals.figures.live_bytes)?;
        processes.append(process)?;
    }
    sizes.sort_unstable_by_key(|(most, _)| *most);
    let told = PyDict::new(py);
    told.set_item("device", device)?;
    let sums = totals_dict(py, &totals, highest.map_or(0.0, |(_, time)| time))?;
    sums.set_item("leaked_blocks", leaked_blocks)?;
    sums.set_item("leaked_bytes", leaked_bytes)?;
    told.set_item("totals", sums)?;
    told.set_item("rows", rows)?;
    let classes = PyList::empty(py);
    for (most, figures) in &sizes {
        let class = PyDict::new(py);
        class.set_item("most", most)?;
        set_figures(&class, figures)?;
        classes.append(class)?;
    }
    told.set_item("sizes", classes)?;
    told.set_item("processes", processes)?;
    Ok(told)
}

/// When the peak was, in seconds since the first process began to record.
fn peak_time(asked: &Asked, used: &DeviceUsage) -> f64 {
    let ns = match &asked.query.range {
        Some(range) if used.is_peak_at_start => range.start,
        _ => asked.process.recording.timeline().nanoseconds(used.totals.peak_ticks),
    };
    seconds(ns.saturating_add(asked.offset).cast_signed())
}

fn add_rows(
    py: Python<'_>,
    rows: &Bound<'_, PyList>,
    asked: &Asked,
    (usage, used): (&MemoryUsage, &DeviceUsage),
) -> PyResult<()> {
    let recording = &asked.process.recording;
    let mut stacks: HashMap<u32, Py<RecordedStack>> = HashMap::new();
    for row in &used.rows {
        let told = PyDict::new(py);
        told.set_item("stack", stack_of(py, &mut stacks, &asked.process, row.stack)?)?;
        told.set_item("allocator", &*usage.allocators[row.allocator as usize])?;
        told.set_item("tag", (row.tag != 0).then(|| &*usage.tags[row.tag as usize]))?;
        let thread = recording.dictionary().thread(row.thread);
        told.set_item("thread", thread.map_or(0, |thread| thread.tid))?;
        told.set_item("thread_name", thread.map_or("", |thread| &thread.name))?;
        told.set_item("process", recording.start().pid)?;
        set_figures(&told, &row.figures)?;
        told.set_item("leaked_blocks", row.leaked_blocks)?;
        told.set_item("leaked_bytes", row.leaked_bytes)?;
        rows.append(told)?;
    }
    Ok(())
}

/// The object of a stack, the same for the same stack; `None` if none was recorded.
pub(super) fn stack_of<'py>(
    py: Python<'py>,
    known: &mut HashMap<u32, Py<RecordedStack>>,
    process: &Arc<NamedProcess>,
    number: u32,
) -> PyResult<Option<Bound<'py, RecordedStack>>> {
    if number == 0 {
        return Ok(None);
    }
    if let Some(known) = known.get(&number) {
        return Ok(Some(known.bind(py).clone()));
    }
    let made = Bound::new(py, RecordedStack::new(process, number))?;
    known.insert(number, made.clone().unbind());
    Ok(Some(made))
}

fn totals_dict<'py>(py: Python<'py>, totals: &Totals, peak_time: f64) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    set_figures(&told, &totals.figures)?;
    told.set_item("frees", totals.frees)?;
    told.set_item("unknown_frees", totals.unknown_frees)?;
    told.set_item("replaced", totals.replaced)?;
    told.set_item("peak_time", peak_time)?;
    Ok(told)
}

fn set_figures(told: &Bound<'_, PyDict>, of: &Figures) -> PyResult<()> {
    told.set_item("allocations", of.allocations)?;
    told.set_item("bytes", of.bytes)?;
    told.set_item("live_blocks", of.live_blocks)?;
    told.set_item("live_bytes", of.live_bytes)?;
    told.set_item("peak_blocks", of.peak_blocks)?;
    told.set_item("peak_bytes", of.peak_bytes)?;
    told.set_item("temporary", of.temporary)?;
    told.set_item("temporary_bytes", of.temporary_bytes)
}

/// When, the bytes in memory, the bytes that are live.
pub(super) type Moment = (f64, Option<u64>, Option<u64>);

/// The curve: times, the bytes in memory, the bytes that are live. Of several processes their sums.
pub(super) fn timeline(py: Python<'_>, asked: &[Asked]) -> PyResult<Vec<Moment>> {
    let read = |asked: &Asked| -> Result<(Range<u64>, MemoryTimeline), ReadError> {
        let timeline = read_timeline(&asked.process.recording, asked.query.range.clone(), &mut |_| {})?;
        Ok((lifetime(&asked.process.recording, asked.offset), timeline))
    };
    let all: Result<Vec<_>, ReadError> = py.detach(|| asked.iter().map(read).collect());
    let sum = MemoryTimeline::sum(&all.map_err(Error::from)?);
    let moment = |point: &stackweave_profile::memory::TimelinePoint| {
        (seconds(point.time_ns.cast_signed()), point.rss, point.heap)
    };
    Ok(sum.points.iter().map(moment).collect())
}

/// Whether a process has sums only.
pub(super) fn has_no_history(asked: &Asked) -> bool {
    let header = stackweave_profile::memory::MemoryHeader::of(asked.process.recording.start());
    header.is_some_and(|header| header.mode == MemoryMode::Aggregate)
}
