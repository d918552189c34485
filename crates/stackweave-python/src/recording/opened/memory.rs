//! `memory()` and `memory_timeline()`: the memory usage in recordings.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_core::EventKind;
use stackweave_profile::memory::{
    DeviceUsage, Figures, MemoryQuery, MemoryTimeline, MemoryUsage, RecordedMode, Totals, UsageSource, add_figures,
    add_totals, lifetime, read_timeline, read_usage,
};
use stackweave_recording::ReadError;

use super::named_process::OpenedProcess;
use super::recorded_stack::PyRecordedStack;
use super::{OpenedRecording, RecordingPart, seconds};
use crate::errors::Error;

/// Which part of the memory is requested.
#[derive(Clone, Debug, Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MemoryRequest {
    tag: Option<String>,
    device: Option<i64>,
    temporary: Option<u32>,
    /// Whether figures by location are requested, of which there may be very many.
    #[pyo3(default = true)]
    rows: bool,
}

/// A selected process, the query of its memory, and how much later than the first process it began to record.
pub(super) struct SelectedProcess {
    pub(super) process: Arc<OpenedProcess>,
    pub(super) query: MemoryQuery,
    pub(super) offset: u64,
    with_rows: bool,
}

/// Returns the selected processes.
pub(super) fn select(
    opened: &OpenedRecording,
    selection: &RecordingPart,
    request: &MemoryRequest,
) -> PyResult<Vec<SelectedProcess>> {
    let of = |process: Arc<OpenedProcess>| {
        let offset = u64::try_from(opened.offset_of(&process.recording)).unwrap_or(0);
        let local = |ns: i64| u64::try_from(ns).unwrap_or(0).saturating_sub(offset);
        let query = MemoryQuery {
            range: selection.range().map(|Range { start, end }| local(start)..local(end)),
            threads: selection.thread.map(|tid| tid.to_string()).into_iter().collect(),
            tags: request.tag.clone().into_iter().collect(),
            devices: request.device.into_iter().collect(),
            temporary: request.temporary,
            view: None,
        };
        SelectedProcess { process, query, offset, with_rows: request.rows }
    };
    Ok(opened.chosen(selection)?.into_iter().map(of).collect())
}

/// Returns the figures by location, in the format of a live recorder.
pub(super) fn usage<'py>(py: Python<'py>, selected: &[SelectedProcess]) -> PyResult<Bound<'py, PyDict>> {
    let read = |selected: &SelectedProcess| read_usage(&selected.process.recording, &selected.query, &mut |_| {});
    let usages: Result<Vec<MemoryUsage>, ReadError> = py.detach(|| selected.iter().map(read).collect());
    let usages = usages.map_err(Error::from)?;
    let dict = PyDict::new(py);
    let is_replayed = usages.iter().any(|usage| usage.source == UsageSource::Replayed);
    let source = if is_replayed { UsageSource::Replayed } else { UsageSource::Snapshot };
    dict.set_item("source", source.as_str())?;
    dict.set_item("mode", usages.iter().find_map(|usage| usage.header).map(|header| header.mode.as_str()))?;
    dict.set_item("sample_every", usages.iter().find_map(MemoryUsage::sample_every))?;
    let missing = |usage: &MemoryUsage| [usage.remarks.clone(), usage.missing.sentences()].concat();
    dict.set_item("remarks", usages.iter().flat_map(missing).collect::<Vec<_>>())?;
    let devices = PyList::empty(py);
    for device in devices_of(&usages) {
        devices.append(device_dict(py, device, selected, &usages)?)?;
    }
    dict.set_item("devices", devices)?;
    Ok(dict)
}

/// Returns all devices with figures, the processes' own memory first.
fn devices_of(usages: &[MemoryUsage]) -> Vec<i64> {
    let mut devices: Vec<i64> = usages.iter().flat_map(|usage| &usage.devices).map(|device| device.device).collect();
    devices.sort_unstable_by_key(|device| (*device != EventKind::OWN_DEVICE, *device));
    devices.dedup();
    devices
}

fn device_dict<'py>(
    py: Python<'py>,
    device: i64,
    selected: &[SelectedProcess],
    usages: &[MemoryUsage],
) -> PyResult<Bound<'py, PyDict>> {
    let (rows, processes) = (PyList::empty(py), PyList::empty(py));
    let mut totals = Totals::default();
    let mut sizes: Vec<(u64, Figures)> = Vec::new();
    let (mut leaked_blocks, mut leaked_bytes) = (0, 0);
    let mut highest: Option<(u64, f64)> = None;
    for (selected, usage) in selected.iter().zip(usages) {
        let Some(used) = usage.device(device) else { continue };
        if selected.with_rows {
            add_rows(py, &rows, selected, (usage, used))?;
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
        let peak_time = peak_time(selected, used);
        let peak = used.totals.figures.peak_bytes;
        if highest.is_none_or(|(bytes, _)| peak > bytes) {
            highest = Some((peak, peak_time));
        }
        let process = PyDict::new(py);
        process.set_item("pid", selected.process.recording.start().pid)?;
        process.set_item("peak_bytes", peak)?;
        process.set_item("peak_time", peak_time)?;
        process.set_item("live_bytes", used.totals.figures.live_bytes)?;
        processes.append(process)?;
    }
    sizes.sort_unstable_by_key(|(most, _)| *most);
    let dict = PyDict::new(py);
    dict.set_item("device", device)?;
    let sums = totals_dict(py, &totals, highest.map_or(0.0, |(_, time)| time))?;
    sums.set_item("leaked_blocks", leaked_blocks)?;
    sums.set_item("leaked_bytes", leaked_bytes)?;
    dict.set_item("totals", sums)?;
    dict.set_item("rows", rows)?;
    let classes = PyList::empty(py);
    for (most, figures) in &sizes {
        let class = PyDict::new(py);
        class.set_item("most", most)?;
        set_figures(&class, figures)?;
        classes.append(class)?;
    }
    dict.set_item("sizes", classes)?;
    dict.set_item("processes", processes)?;
    Ok(dict)
}

/// Returns the time of the peak, in seconds since the first process began to record.
fn peak_time(selected: &SelectedProcess, used: &DeviceUsage) -> f64 {
    let ns = match &selected.query.range {
        Some(range) if used.is_peak_at_start => range.start,
        _ => selected.process.recording.timeline().nanoseconds(used.totals.peak_ticks),
    };
    seconds(ns.saturating_add(selected.offset).cast_signed())
}

fn add_rows(
    py: Python<'_>,
    rows: &Bound<'_, PyList>,
    selected: &SelectedProcess,
    (usage, used): (&MemoryUsage, &DeviceUsage),
) -> PyResult<()> {
    let recording = &selected.process.recording;
    let mut stacks: HashMap<u32, Py<PyRecordedStack>> = HashMap::new();
    for row in &used.rows {
        let dict = PyDict::new(py);
        dict.set_item("stack", stack_of(py, &mut stacks, &selected.process, row.stack)?)?;
        dict.set_item("allocator", &*usage.allocators[row.allocator as usize])?;
        dict.set_item("tag", (row.tag != 0).then(|| &*usage.tags[row.tag as usize]))?;
        let thread = recording.dictionary().thread(row.thread);
        dict.set_item("thread", thread.map_or(0, |thread| thread.tid))?;
        dict.set_item("thread_name", thread.map_or("", |thread| &thread.name))?;
        dict.set_item("process", recording.start().pid)?;
        set_figures(&dict, &row.figures)?;
        dict.set_item("leaked_blocks", row.leaked_blocks)?;
        dict.set_item("leaked_bytes", row.leaked_bytes)?;
        rows.append(dict)?;
    }
    Ok(())
}

/// Returns the object of a stack, one for each stack; `None` if no stack was recorded.
pub(super) fn stack_of<'py>(
    py: Python<'py>,
    known: &mut HashMap<u32, Py<PyRecordedStack>>,
    process: &Arc<OpenedProcess>,
    number: u32,
) -> PyResult<Option<Bound<'py, PyRecordedStack>>> {
    if number == 0 {
        return Ok(None);
    }
    if let Some(known) = known.get(&number) {
        return Ok(Some(known.bind(py).clone()));
    }
    let stack = Bound::new(py, PyRecordedStack::new(process, number))?;
    known.insert(number, stack.clone().unbind());
    Ok(Some(stack))
}

fn totals_dict<'py>(py: Python<'py>, totals: &Totals, peak_time: f64) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    set_figures(&dict, &totals.figures)?;
    dict.set_item("frees", totals.frees)?;
    dict.set_item("unknown_frees", totals.unknown_frees)?;
    dict.set_item("replaced", totals.replaced)?;
    dict.set_item("peak_time", peak_time)?;
    Ok(dict)
}

fn set_figures(dict: &Bound<'_, PyDict>, of: &Figures) -> PyResult<()> {
    dict.set_item("allocations", of.allocations)?;
    dict.set_item("bytes", of.bytes)?;
    dict.set_item("live_blocks", of.live_blocks)?;
    dict.set_item("live_bytes", of.live_bytes)?;
    dict.set_item("peak_blocks", of.peak_blocks)?;
    dict.set_item("peak_bytes", of.peak_bytes)?;
    dict.set_item("temporary", of.temporary)?;
    dict.set_item("temporary_bytes", of.temporary_bytes)
}

/// A time, the resident bytes and the live bytes.
pub(super) type CurvePoint = (f64, Option<u64>, Option<u64>);

/// Returns the memory over time. For several processes, it is their sum.
pub(super) fn timeline(py: Python<'_>, selected: &[SelectedProcess]) -> PyResult<Vec<CurvePoint>> {
    let read = |selected: &SelectedProcess| -> Result<(Range<u64>, MemoryTimeline), ReadError> {
        let timeline = read_timeline(&selected.process.recording, selected.query.range.clone(), &mut |_| {})?;
        Ok((lifetime(&selected.process.recording, selected.offset), timeline))
    };
    let all: Result<Vec<_>, ReadError> = py.detach(|| selected.iter().map(read).collect());
    let sum = MemoryTimeline::sum(&all.map_err(Error::from)?);
    let curve_point = |point: &stackweave_profile::memory::TimelinePoint| {
        (seconds(point.time_ns.cast_signed()), point.rss, point.heap)
    };
    Ok(sum.points.iter().map(curve_point).collect())
}

/// Returns whether a process has recorded only sums.
pub(super) fn has_no_history(selected: &SelectedProcess) -> bool {
    let header = stackweave_profile::memory::MemoryHeader::of(selected.process.recording.start());
    header.is_some_and(|header| header.mode == RecordedMode::Aggregate)
}
