//! The memory of devices, as JSON.

use serde_json::{Value, json};
use stackweave_profile::Profile;
use stackweave_profile::memory::{
    DeviceMemory, DevicePoint, DeviceState, FailedRequest, MemoryReport, PoolHistory, PoolState, pool_name, top_stacks,
};

use crate::heap_json::{frames, seconds};

/// Returns the figures of every device, whichever is selected.
pub(crate) fn devices(report: &MemoryReport) -> Value {
    report.device_memory.iter().map(device).collect()
}

fn device(memory: &DeviceMemory) -> Value {
    let of = &memory.history;
    let failed = |(index, failure): (usize, &FailedRequest)| failure_of(failure, memory.failed.get(index));
    json!({
        "device": of.device,
        "pid": memory.pid,
        "name": of.name,
        "total": of.total,
        "peak": point(&of.peak),
        "reserved_peak": point(&of.reserved_peak),
        "points": of.points.iter().map(point).collect::<Vec<_>>(),
        "pools": of.pools.iter().map(pool).collect::<Vec<_>>(),
        "state": of.state.as_ref().map(state),
        "out_of_memory": of.out_of_memory.iter().enumerate().map(failed).collect::<Vec<_>>(),
    })
}

fn point(of: &DevicePoint) -> Value {
    json!({
        "time": seconds(of.time_ns),
        "allocated": of.allocated,
        "pending": of.pending,
        "reserved": of.reserved,
    })
}

fn pool(of: &PoolHistory) -> Value {
    json!({
        "pool": of.pool,
        "name": pool_name(of.pool),
        "peak": point(&of.peak),
        "end": of.points.last().map(point),
    })
}

fn state(of: &DeviceState) -> Value {
    let pools = of.pools.iter().map(|PoolState { pool, reserved, allocated, free }| {
        json!({"pool": pool, "reserved": reserved, "allocated": allocated, "free": free})
    });
    json!({
        "time": seconds(of.time_ns),
        "reason": match of.reason {
            0 => "end",
            1 => "out of memory",
            _ => "requested",
        },
        "segments": of.segments,
        "blocks": of.blocks,
        "reserved": of.reserved,
        "allocated": of.allocated,
        "requested": of.requested,
        "pending": of.pending,
        "free": of.free,
        "largest_free": of.largest_free,
        "fragmentation": of.fragmentation(),
        "rounding": of.rounding(),
        "pools": pools.collect::<Vec<_>>(),
    })
}

fn failure_of(failure: &FailedRequest, profile: Option<&Profile>) -> Value {
    let stack = profile.map(|profile| top_stacks(profile).first().map(|stack| frames(profile, stack)));
    json!({
        "time": seconds(failure.time_ns),
        "size": failure.size,
        "free": failure.free,
        "pool": failure.pool,
        "stack": stack,
    })
}
