//! The summary: totals, and the most important views.

use std::io;

use stackweave_core::EventKind;
use stackweave_profile::Measure;
use stackweave_profile::memory::{FromBefore, ProcessMemory, RecordedMode};

use super::groups::{bytes, number, ratio};
use super::{BlockSet, HeapText, chart};
use crate::text::values::percentage;

/// The number of processes that are listed.
const PROCESSES: usize = 8;

impl HeapText<'_> {
    pub(super) fn summary(&mut self) -> io::Result<()> {
        self.totals()?;
        let is_own = self.report.device == EventKind::OWN_DEVICE;
        let has_device = self.report.device_memory.iter().any(|memory| memory.history.device == self.report.device);
        if has_device {
            writeln!(self.out)?;
            self.devices(true, self.options.limit)?;
        }
        if (is_own || has_device) && !self.report.timeline.points.is_empty() {
            writeln!(self.out)?;
            self.time(chart::SHORT)?;
        }
        writeln!(self.out)?;
        self.stacks(BlockSet::Peak, self.options.limit)?;
        writeln!(self.out)?;
        self.stacks(BlockSet::Leaks, self.options.limit.div_ceil(2))?;
        if self.report.totals.figures.temporary > 0 {
            writeln!(self.out)?;
            self.stacks(BlockSet::Temporary, self.options.limit.div_ceil(3))?;
        }
        if !self.report.sizes.is_empty() {
            writeln!(self.out)?;
            self.sizes()?;
        }
        if self.report.tags.iter().any(|tag| !tag.name.is_empty()) {
            writeln!(self.out)?;
            self.tags(self.options.limit)?;
        }
        if self.report.threads.len() > 1 {
            writeln!(self.out)?;
            self.threads(self.options.limit)?;
        }
        if is_own && !self.report.device_memory.is_empty() {
            writeln!(self.out)?;
            self.devices(false, self.options.limit)?;
        }
        Ok(())
    }

    fn totals(&mut self) -> io::Result<()> {
        let (report, totals) = (self.report, &self.report.totals);
        let of = &totals.figures;
        let about = if self.estimated().is_empty() { "" } else { "about " };
        let has_several = report.processes.len() > 1;
        let whose = match report.device {
            EventKind::OWN_DEVICE if has_several => format!("Memory of {} processes", report.processes.len()),
            EventKind::OWN_DEVICE => "Memory".to_owned(),
            device => format!("Memory of device {device}"),
        };
        let lasted = time(report.time.end.saturating_sub(report.time.start));
        self.head(&whose, &format!("over {lasted}{}", self.how()))?;
        let when = report.peak_ns().filter(|_| !has_several).map(|ns| format!(", after {}", time(ns)));
        let blocks = |blocks| counted(blocks, "block", "blocks");
        let peak = format!("{about}{} in {}{}", bytes(of.peak_bytes), blocks(of.peak_blocks), when.unwrap_or_default());
        self.row(if has_several { "peaks" } else { "peak" }, &peak)?;
        if has_several {
            self.row("", "the sum of the processes' peaks, which were at different times")?;
        }
        let left = if report.is_part { "live at end" } else { "not freed" };
        let before = if report.is_part { FromBefore::default() } else { report.from_before };
        let live = (of.live_blocks.saturating_sub(before.blocks), of.live_bytes.saturating_sub(before.bytes));
        self.row(left, &format!("{about}{} in {}", bytes(live.1), blocks(live.0)))?;
        if before.blocks > 0 {
            let text =
                format!("{about}{} in {}, allocated before the recording", bytes(before.bytes), blocks(before.blocks));
            self.row("from before", &text)?;
        }
        let allocations = |allocations| counted(allocations, "allocation", "allocations");
        let allocated = format!("{about}{} in {}", bytes(of.bytes), allocations(of.allocations));
        // Frees are only recorded for sampled blocks.
        let freed = if about.is_empty() { format!(", {} freed", number(totals.frees)) } else { String::new() };
        self.row("allocated", &format!("{allocated}{freed}"))?;
        let share = percentage(ratio(of.temporary, of.allocations));
        let temporary = format!("{about}{} in {}", bytes(of.temporary_bytes), allocations(of.temporary));
        self.row("temporary", &format!("{temporary}, {share} of all"))?;
        if totals.unknown_frees > 0 {
            let unknown = counted(totals.unknown_frees, "free", "frees");
            self.row("unknown", &format!("{unknown} of blocks from before the recording"))?;
        }
        if has_several {
            self.processes()?;
        }
        let others: Vec<String> = report
            .devices
            .iter()
            .filter(|device| **device != report.device && **device != EventKind::OWN_DEVICE)
            .map(ToString::to_string)
            .collect();
        if !others.is_empty() {
            self.row("devices", &format!("{} have memory too: --device shows it", others.join(", ")))?;
        }
        Ok(())
    }

    /// Returns how the memory was recorded, if that affects the figures.
    fn how(&self) -> String {
        let modes = self.report.processes.iter().filter_map(|process| process.header).map(|header| header.mode);
        match (self.report.sample_every(), modes.max_by_key(|mode| *mode as u8)) {
            (Some(every), _) => format!("; estimated from a sample of one allocation in {}", bytes(every)),
            (None, Some(RecordedMode::Aggregate)) => "; totals without history".to_owned(),
            _ => String::new(),
        }
    }

    fn processes(&mut self) -> io::Result<()> {
        let mut processes: Vec<&ProcessMemory> = self.report.processes.iter().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.totals.figures.peak_bytes));
        for process in processes.iter().take(PROCESSES) {
            let of = &process.totals.figures;
            let when = process.peak_ns.map(|ns| format!(" after {}", time(ns))).unwrap_or_default();
            let text =
                format!("{}: peak {}{when}, {} not freed", process.pid, bytes(of.peak_bytes), bytes(of.live_bytes));
            self.row("process", &text)?;
        }
        match processes.len().saturating_sub(PROCESSES) {
            0 => Ok(()),
            hidden => self.row("", &format!("and {hidden} more processes")),
        }
    }

    pub(super) fn row(&mut self, name: &str, text: &str) -> io::Result<()> {
        writeln!(self.out, "  {name:<12}{text}")
    }
}

pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", self::number(number), if number == 1 { one } else { many })
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
pub(super) fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}
