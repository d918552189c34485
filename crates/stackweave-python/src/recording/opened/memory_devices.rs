//! `memory_devices()`: the memory usage of devices in recordings.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_profile::memory::{
    DeviceHistory, DevicePoint, DeviceState, FailedRequest, PoolHistory, pool_name, read_devices,
};
use stackweave_recording::ReadError;

use super::memory::{SelectedProcess, stack_of};
use super::seconds;
use crate::errors::Error;

/// Returns a dict for each device of each process, by device.
pub(super) fn devices<'py>(py: Python<'py>, selected: &[SelectedProcess]) -> PyResult<Bound<'py, PyList>> {
    let read = |selected: &SelectedProcess| {
        read_devices(&selected.process.recording, selected.query.range.clone(), &mut |_| {})
    };
    let all: Result<Vec<Vec<DeviceHistory>>, ReadError> = py.detach(|| selected.iter().map(read).collect());
    let all = all.map_err(Error::from)?;
    let mut known: Vec<(&SelectedProcess, &DeviceHistory)> = selected
        .iter()
        .zip(&all)
        .flat_map(|(selected, of)| of.iter().map(move |history| (selected, history)))
        .collect();
    known.sort_by_key(|(_, history)| history.device);
    let list = PyList::empty(py);
    for (selected, history) in known {
        list.append(device(py, selected, history)?)?;
    }
    Ok(list)
}

fn device<'py>(py: Python<'py>, selected: &SelectedProcess, of: &DeviceHistory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("device", of.device)?;
    dict.set_item("process", selected.process.recording.start().pid)?;
    dict.set_item("name", &of.name)?;
    dict.set_item("total", of.total)?;
    dict.set_item("peak", moment(selected, &of.peak))?;
    dict.set_item("reserved_peak", moment(selected, &of.reserved_peak))?;
    dict.set_item("points", points(selected, &of.points))?;
    let pools = PyList::empty(py);
    for pool in &of.pools {
        pools.append(pool_dict(py, selected, pool)?)?;
    }
    dict.set_item("pools", pools)?;
    dict.set_item("state", of.state.as_ref().map(|state| state_dict(py, selected, state)).transpose()?)?;
    let (failures, mut stacks) = (PyList::empty(py), HashMap::new());
    for FailedRequest { time_ns, size, free, stack, pool } in of.out_of_memory.iter().copied() {
        let failure = PyDict::new(py);
        failure.set_item("time", time(selected, time_ns))?;
        failure.set_item("size", size)?;
        failure.set_item("free", free)?;
        failure.set_item("pool", pool)?;
        failure.set_item("traceback", stack_of(py, &mut stacks, &selected.process, stack)?)?;
        failures.append(failure)?;
    }
    dict.set_item("out_of_memory", failures)?;
    Ok(dict)
}

fn pool_dict<'py>(py: Python<'py>, selected: &SelectedProcess, of: &PoolHistory) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("pool", of.pool)?;
    dict.set_item("name", pool_name(of.pool))?;
    dict.set_item("peak", moment(selected, &of.peak))?;
    dict.set_item("points", points(selected, &of.points))?;
    Ok(dict)
}

fn state_dict<'py>(py: Python<'py>, selected: &SelectedProcess, of: &DeviceState) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("time", time(selected, of.time_ns))?;
    for (name, value) in [
        ("reason", of.reason),
        ("segments", of.segments),
        ("blocks", of.blocks),
        ("reserved", of.reserved),
        ("allocated", of.allocated),
        ("requested", of.requested),
        ("pending", of.pending),
        ("free", of.free),
        ("largest_free", of.largest_free),
    ] {
        dict.set_item(name, value)?;
    }
    let pools = of.pools.iter().map(|of| (of.pool, of.reserved, of.allocated, of.free));
    dict.set_item("pools", pools.collect::<Vec<_>>())?;
    Ok(dict)
}

/// Returns the time in seconds, and the allocated, pending and reserved bytes.
fn moment(selected: &SelectedProcess, of: &DevicePoint) -> (f64, u64, u64, u64) {
    (time(selected, of.time_ns), of.allocated, of.pending, of.reserved)
}

fn points(selected: &SelectedProcess, of: &[DevicePoint]) -> Vec<(f64, u64, u64)> {
    of.iter().map(|point| (time(selected, point.time_ns), point.allocated, point.reserved)).collect()
}

/// Returns a time in seconds since the first process began to record.
fn time(selected: &SelectedProcess, ns: u64) -> f64 {
    seconds(ns.saturating_add(selected.offset).cast_signed())
}
