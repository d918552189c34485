//! `memory_devices()`: how much of the memory of devices was used, as the files say.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use stackweave_profile::memory::{
    DeviceHistory, DevicePoint, DeviceState, OutOfMemory, PoolHistory, pool_name, read_devices,
};
use stackweave_recording::ReadError;

use super::memory::{Asked, stack_of};
use super::seconds;
use crate::errors::Error;

/// A dict for each device of each process, by device.
pub(super) fn devices<'py>(py: Python<'py>, asked: &[Asked]) -> PyResult<Bound<'py, PyList>> {
    let read = |asked: &Asked| read_devices(&asked.process.recording, asked.query.range.clone(), &mut |_| {});
    let all: Result<Vec<Vec<DeviceHistory>>, ReadError> = py.detach(|| asked.iter().map(read).collect());
    let all = all.map_err(Error::from)?;
    let mut known: Vec<(&Asked, &DeviceHistory)> =
        asked.iter().zip(&all).flat_map(|(asked, of)| of.iter().map(move |history| (asked, history))).collect();
    known.sort_by_key(|(_, history)| history.device);
    let told = PyList::empty(py);
    for (asked, history) in known {
        told.append(device(py, asked, history)?)?;
    }
    Ok(told)
}

fn device<'py>(py: Python<'py>, asked: &Asked, of: &DeviceHistory) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("device", of.device)?;
    told.set_item("process", asked.process.recording.start().pid)?;
    told.set_item("name", &of.name)?;
    told.set_item("total", of.total)?;
    told.set_item("peak", moment(asked, &of.peak))?;
    told.set_item("reserved_peak", moment(asked, &of.reserved_peak))?;
    told.set_item("points", points(asked, &of.points))?;
    let pools = PyList::empty(py);
    for pool in &of.pools {
        pools.append(pool_dict(py, asked, pool)?)?;
    }
    told.set_item("pools", pools)?;
    told.set_item("state", of.state.as_ref().map(|state| state_dict(py, asked, state)).transpose()?)?;
    let (failures, mut stacks) = (PyList::empty(py), HashMap::new());
    for OutOfMemory { time_ns, size, free, stack, pool } in of.out_of_memory.iter().copied() {
        let failure = PyDict::new(py);
        failure.set_item("time", time(asked, time_ns))?;
        failure.set_item("size", size)?;
        failure.set_item("free", free)?;
        failure.set_item("pool", pool)?;
        failure.set_item("traceback", stack_of(py, &mut stacks, &asked.process, stack)?)?;
        failures.append(failure)?;
    }
    told.set_item("out_of_memory", failures)?;
    Ok(told)
}

fn pool_dict<'py>(py: Python<'py>, asked: &Asked, of: &PoolHistory) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("pool", of.pool)?;
    told.set_item("name", pool_name(of.pool))?;
    told.set_item("peak", moment(asked, &of.peak))?;
    told.set_item("points", points(asked, &of.points))?;
    Ok(told)
}

fn state_dict<'py>(py: Python<'py>, asked: &Asked, of: &DeviceState) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("time", time(asked, of.time_ns))?;
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
        told.set_item(name, value)?;
    }
    let pools = of.pools.iter().map(|of| (of.pool, of.reserved, of.allocated, of.free));
    told.set_item("pools", pools.collect::<Vec<_>>())?;
    Ok(told)
}

/// Seconds, and the bytes in use, waiting and reserved.
fn moment(asked: &Asked, of: &DevicePoint) -> (f64, u64, u64, u64) {
    (time(asked, of.time_ns), of.allocated, of.pending, of.reserved)
}

fn points(asked: &Asked, of: &[DevicePoint]) -> Vec<(f64, u64, u64)> {
    of.iter().map(|point| (time(asked, point.time_ns), point.allocated, point.reserved)).collect()
}

/// Since the first process began to record.
fn time(asked: &Asked, ns: u64) -> f64 {
    seconds(ns.saturating_add(asked.offset).cast_signed())
}
