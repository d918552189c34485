//! Converts the memory recorder's results to dicts.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_core::{RawFrame, StackId};
use stackweave_heap::{Figures, Totals};
use stackweave_memory::{BlockOrigin, DeviceSnapshot, LedgerStats, MemorySnapshot, MemoryStats, SnapshotRow};
use stackweave_profile::memory::ForeignHooks;
use stackweave_recording::ThreadInfo;
use stackweave_store::locate_label;

use crate::traceback_object;

/// Converts the results of one query.
pub(super) struct SnapshotDicts<'py> {
    py: Python<'py>,
    threads: HashMap<u32, ThreadInfo>,
}

impl<'py> SnapshotDicts<'py> {
    pub(super) fn new(py: Python<'py>, threads: Vec<ThreadInfo>) -> Self {
        Self { py, threads: threads.into_iter().map(|thread| (thread.number, thread)).collect() }
    }

    /// Converts a snapshot, which is empty if the writer has ended.
    pub(super) fn snapshot(&self, snapshot: Option<MemorySnapshot>) -> PyResult<Bound<'py, PyDict>> {
        let (dict, devices) = (PyDict::new(self.py), PyList::empty(self.py));
        for device in snapshot.iter().flat_map(|snapshot| &snapshot.devices) {
            devices.append(self.device(device)?)?;
        }
        dict.set_item("ticks", snapshot.map_or(0, |snapshot| snapshot.ticks))?;
        dict.set_item("devices", devices)?;
        Ok(dict)
    }

    fn device(&self, device: &DeviceSnapshot) -> PyResult<Bound<'py, PyDict>> {
        let (dict, rows, sizes) = (PyDict::new(self.py), PyList::empty(self.py), PyList::empty(self.py));
        for row in &device.rows {
            rows.append(self.row(row)?)?;
        }
        for (most, figures) in &device.sizes {
            let size = PyDict::new(self.py);
            size.set_item("most", most)?;
            add_figures(&size, figures)?;
            sizes.append(size)?;
        }
        let totals = self.totals(&device.totals)?;
        totals.set_item("peak_seconds_ago", device.peak_ago.as_secs_f64())?;
        dict.set_item("device", device.device)?;
        dict.set_item("totals", totals)?;
        dict.set_item("rows", rows)?;
        dict.set_item("sizes", sizes)?;
        Ok(dict)
    }

    fn totals(&self, totals: &Totals) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        add_figures(&dict, &totals.figures)?;
        dict.set_item("frees", totals.frees)?;
        dict.set_item("unknown_frees", totals.unknown_frees)?;
        dict.set_item("replaced", totals.replaced)?;
        Ok(dict)
    }

    fn row(&self, row: &SnapshotRow) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        dict.set_item("stack", self.stack(row.stack)?)?;
        dict.set_item("allocator", name_of(row.allocator).unwrap_or_default())?;
        dict.set_item("tag", name_of(row.tag))?;
        self.add_thread(&dict, row.thread)?;
        add_figures(&dict, &row.figures)?;
        Ok(dict)
    }

    pub(super) fn block(&self, block: &BlockOrigin) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        dict.set_item("address", block.address)?;
        dict.set_item("size", block.size)?;
        dict.set_item("stack", self.stack(block.stack)?)?;
        dict.set_item("allocator", name_of(block.allocator).unwrap_or_default())?;
        dict.set_item("tag", name_of(block.tag))?;
        self.add_thread(&dict, block.thread)?;
        Ok(dict)
    }

    /// Converts the statistics of the hooks and ledgers. The ledgers have none when the recording has ended.
    pub(super) fn stats(
        &self,
        hooks: &MemoryStats,
        ledgers: Option<LedgerStats>,
        reinstallations: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let ledgers = ledgers.unwrap_or_default();
        let dict = self.totals(&ledgers.totals)?;
        for (name, value) in [
            ("modules", hooks.modules),
            ("slots", hooks.slots),
            ("foreign_slots", hooks.foreign_slots),
            ("block_slots", hooks.block_slots),
            ("foreign_block_slots", hooks.foreign_block_slots),
            ("events", hooks.events),
            ("lost", hooks.lost),
            ("failed_allocations", hooks.failed_allocations),
            ("before_begun", hooks.before_begun),
            ("left_over", hooks.left_over),
            ("reinstallations", reinstallations),
            ("unknown_events", ledgers.unknown_events),
            ("places", ledgers.places as u64),
            ("bytes_used", ledgers.bytes_used as u64),
        ] {
            dict.set_item(name, value)?;
        }
        dict.set_item("is_incomplete", ledgers.is_incomplete)?;
        dict.set_item("peak_seconds_ago", ledgers.peak_ago.as_secs_f64())?;
        let foreign = foreign_hooks(hooks);
        dict.set_item("foreign_hooks", foreign.as_ref().map(ForeignHooks::sentence))?;
        dict.set_item("is_largely_foreign", foreign.is_some_and(|found| found.is_large_part()))?;
        Ok(dict)
    }

    fn stack(&self, stack: Option<StackId>) -> PyResult<Option<Bound<'py, PyAny>>> {
        stack.map(|stack| traceback_object::of_stack(self.py, Some(stack), None)).transpose()
    }

    fn add_thread(&self, dict: &Bound<'py, PyDict>, number: u32) -> PyResult<()> {
        let thread = self.threads.get(&number);
        dict.set_item("thread", thread.map_or(0, |thread| thread.tid))?;
        dict.set_item("thread_name", thread.map_or("", |thread| &thread.name))
    }
}

/// Returns the slots that another tool has replaced, if there are any.
pub(super) fn foreign_hooks(hooks: &MemoryStats) -> Option<ForeignHooks> {
    let (slots, foreign) = (hooks.block_slots, hooks.foreign_block_slots);
    (foreign != 0).then(|| ForeignHooks { slots, foreign, module: hooks.foreign_module.clone() })
}

/// Returns the text of a label.
fn name_of(label: Option<RawFrame>) -> Option<String> {
    Some(locate_label(label?)?.name.as_ref().to_owned())
}

fn add_figures(dict: &Bound<'_, PyDict>, figures: &Figures) -> PyResult<()> {
    for (name, value) in [
        ("allocations", figures.allocations),
        ("bytes", figures.bytes),
        ("live_blocks", figures.live_blocks),
        ("live_bytes", figures.live_bytes),
        ("peak_blocks", figures.peak_blocks),
        ("peak_bytes", figures.peak_bytes),
        ("temporary", figures.temporary),
        ("temporary_bytes", figures.temporary_bytes),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(())
}
