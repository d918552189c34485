//! The memory of devices.

use std::io;

use stackweave_profile::memory::{
    DeviceHistory, DeviceMemory, DevicePoint, DeviceState, PoolHistory, pool_name, top_stacks,
};

use super::HeapText;
use super::groups::{bytes, number, plain, ratio};
use super::stacks::one_line;
use super::summary::{counted, time};
use crate::text::rows::{TextRow, write_rows};
use crate::text::style::{Style, printable};
use crate::text::values::percentage;

/// The number of frames of a failed request that are named.
const FRAMES: usize = 5;

impl HeapText<'_> {
    /// Writes the figures of each device, or of the selected one.
    pub(super) fn devices(&mut self, is_one: bool, limit: usize) -> io::Result<()> {
        let report = self.report;
        let is_shown = |memory: &&DeviceMemory| !is_one || memory.history.device == report.device;
        let shown: Vec<&DeviceMemory> = report.device_memory.iter().filter(is_shown).collect();
        if shown.is_empty() {
            self.head("Devices", "")?;
            return writeln!(self.out, "  nothing");
        }
        for (location, memory) in shown.into_iter().enumerate() {
            if location > 0 {
                writeln!(self.out)?;
            }
            self.device(memory)?;
            self.pools(&memory.history, limit)?;
            self.failures(memory, limit)?;
        }
        Ok(())
    }

    fn device(&mut self, memory: &DeviceMemory) -> io::Result<()> {
        let of = &memory.history;
        let mut about: Vec<String> = of.name.iter().map(|name| printable(name)).collect();
        about.extend(of.total.map(bytes));
        if self.report.processes.len() > 1 {
            about.push(format!("process {}", memory.pid));
        }
        self.head(&format!("Device {}", of.device), &format!("{}{}", about.join(", "), self.estimated()))?;
        let share = |part: u64| {
            let share = of.total.filter(|total| *total > 0).map(|total| percentage(ratio(part, total)));
            share.map(|share| format!(", {share} of all")).unwrap_or_default()
        };
        let DevicePoint { time_ns, allocated, reserved, .. } = of.peak;
        let peak = format!("{} in use, {} reserved, after {}", bytes(allocated), bytes(reserved), time(time_ns));
        self.row("peak", &peak)?;
        let most = of.reserved_peak;
        let text = format!("up to {}{}, after {}", bytes(most.reserved), share(most.reserved), time(most.time_ns));
        self.row("reserved", &text)?;
        if let Some(last) = of.points.last() {
            let pending = if last.pending > 0 { format!("{} pending, ", bytes(last.pending)) } else { String::new() };
            let text = format!("{} in use, {pending}{} reserved", bytes(last.allocated), bytes(last.reserved));
            self.row("at the end", &text)?;
        }
        if let Some(state) = &of.state {
            self.state(state)?;
        }
        let failed = of.out_of_memory.len() as u64;
        if failed > 0 {
            self.row("failed", &format!("{}, out of memory", counted(failed, "request", "requests")))?;
        }
        Ok(())
    }

    /// Writes the last state of the allocator.
    fn state(&mut self, state: &DeviceState) -> io::Result<()> {
        let when = match state.reason {
            1 => "when a request failed, ",
            _ => "",
        };
        let segments = counted(state.segments, "segment", "segments");
        let free = format!(
            "{} of {} in {segments}, {when}after {}",
            bytes(state.free),
            bytes(state.reserved),
            time(state.time_ns)
        );
        self.row("free", &free)?;
        if state.free > 0 {
            let share = percentage(state.fragmentation());
            let text = format!("{share} of the free memory; the largest free block has {}", bytes(state.largest_free));
            self.row("fragmented", &text)?;
        }
        if state.pending > 0 {
            self.row("pending", &format!("{} freed, but not yet reusable", bytes(state.pending)))?;
        }
        if state.rounding() > 0 {
            self.row("rounding", &format!("{} more than requested", bytes(state.rounding())))?;
        }
        Ok(())
    }

    /// Writes the pools, if there are others than the default pool.
    fn pools(&mut self, of: &DeviceHistory, limit: usize) -> io::Result<()> {
        if of.pools.iter().all(|pool| pool.pool == 0) {
            return Ok(());
        }
        let mut pools: Vec<&PoolHistory> = of.pools.iter().collect();
        pools.sort_by_key(|pool| std::cmp::Reverse(pool.peak.allocated));
        let state = |pool: &PoolHistory| {
            let pools = of.state.iter().flat_map(|state| &state.pools);
            pools.into_iter().find(|of| of.pool == pool.pool).map_or(String::new(), |of| bytes(of.free))
        };
        let row = |pool: &&PoolHistory| {
            let last = pool.points.last().copied().unwrap_or_default();
            let share = ratio(pool.peak.allocated, of.peak.allocated);
            let numbers = [
                (bytes(pool.peak.allocated), Style::of_share(share)),
                plain(bytes(pool.peak.reserved)),
                plain(bytes(last.allocated)),
                plain(bytes(last.reserved)),
                plain(state(pool)),
            ];
            TextRow { numbers, guides: String::new(), name: plain(pool_name(pool.pool)), location: String::new() }
        };
        let rows: Vec<TextRow<5>> = pools.iter().take(limit).map(row).collect();
        let heads = ["at peak", "reserved at peak", "at end", "reserved", "free"];
        let layout = self.layout();
        write_rows(self.out, heads, "pool", &rows, layout)?;
        self.hidden(pools.len().saturating_sub(limit))
    }

    /// Writes the first requests that failed.
    fn failures(&mut self, memory: &DeviceMemory, limit: usize) -> io::Result<()> {
        let failures = &memory.history.out_of_memory;
        if failures.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::new();
        for (failure, profile) in failures.iter().zip(&memory.failed).take(limit) {
            let stack = top_stacks(profile).into_iter().next().map(|stack| stack.frames).unwrap_or_default();
            let mut frames = stack.iter().map(|frame| one_line(profile, *frame));
            let name = frames.next().unwrap_or_else(|| "no stack".to_owned());
            let numbers = [plain(time(failure.time_ns)), plain(bytes(failure.size)), plain(bytes(failure.free))];
            rows.push(TextRow { numbers, guides: String::new(), name: plain(name), location: String::new() });
            let callers: Vec<String> = frames.take(FRAMES - 1).collect();
            if !callers.is_empty() {
                let numbers = [(); 3].map(|()| plain(String::new()));
                let name = (callers.join(" ← "), Style::Dim);
                rows.push(TextRow { numbers, guides: "  ← ".to_owned(), name, location: String::new() });
            }
        }
        let layout = self.layout();
        write_rows(self.out, ["after", "requested", "free"], "out of memory", &rows, layout)?;
        self.hidden(failures.len().saturating_sub(limit.min(memory.failed.len())))
    }

    pub(super) fn hidden(&mut self, hidden: usize) -> io::Result<()> {
        if hidden > 0 { writeln!(self.out, "({} more)", number(hidden as u64)) } else { Ok(()) }
    }
}
