//! Reads the events of memory once, and determines the live memory at each moment.
//!
//! Only the live blocks and the rows are kept in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use stackweave_core::EventKind;
use stackweave_heap::Scale;
use stackweave_profile::memory::{MemoryHeader, RecordedMode};
use stackweave_recording::events::{Decoder, Event, Region};
use stackweave_recording::{ProcessRecording, TimedEvent};

use super::host::{HostDevices, HostReader};
use super::live::{EventContext, MemoryAtMoments};
use super::moments::Moments;
use super::rows::Rows;
use crate::error::ExportError;
use crate::source::Source;

/// The highest peak of a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    /// The index of the process with this peak.
    pub(super) process: usize,
    pub(super) ticks: u64,
    pub(super) bytes: u64,
}

/// The live memory of a device at each moment.
#[derive(Debug)]
pub(super) struct LiveHistory {
    pub(super) moments: Moments,
    pub(super) rows: Rows,
    /// The scale of the process that is being read.
    scale: Scale,
    peak: Option<Peak>,
    live: MemoryAtMoments,
}

impl LiveHistory {
    pub(super) fn new(moments: Moments, peak: Option<Peak>) -> Self {
        Self { moments, rows: Rows::default(), scale: Scale::default(), peak, live: MemoryAtMoments::default() }
    }

    fn context(&mut self, process: usize) -> (&mut MemoryAtMoments, EventContext<'_>) {
        let passed = u8::try_from(self.moments.passed()).unwrap_or(u8::MAX);
        let process = u32::try_from(process).unwrap_or(u32::MAX);
        (&mut self.live, EventContext { process, passed, scale: self.scale, rows: &mut self.rows })
    }

    /// Applies an event of the process with this index, by `apply`.
    fn event(
        &mut self,
        process: usize,
        (ticks, time): (u64, u64),
        apply: impl FnOnce(&mut MemoryAtMoments, &mut EventContext<'_>),
    ) {
        let peak = self.peak.filter(|peak| peak.process == process && peak.ticks <= ticks);
        let peak = peak.filter(|_| self.moments.waits_for_peak());
        if peak.is_some_and(|peak| peak.ticks < ticks || self.live_bytes() == peak.bytes) {
            self.moments.pass_peak();
        }
        self.moments.pass_before(time);
        let (live, mut context) = self.context(process);
        apply(live, &mut context);
        if peak.is_some_and(|peak| peak.ticks == ticks && self.live_bytes() == peak.bytes) {
            self.moments.pass_peak();
        }
        if self.rows.are_too_many() {
            self.halve();
        }
    }

    fn live_bytes(&self) -> u64 {
        self.scale.whole(self.live.bytes())
    }

    /// Halves the number of moments, again and again if no number of them would suffice. Returns whether there were
    /// enough of them.
    fn halve(&mut self) -> bool {
        let Some(mut indexes) = self.moments.halve() else { return false };
        if self.rows.have_too_many_stacks() {
            while let Some(fewer) = self.moments.halve() {
                indexes = indexes.into_iter().map(|index| fewer[index]).collect();
            }
        }
        let indexes: Vec<u8> = indexes.into_iter().map(|index| u8::try_from(index).unwrap_or(u8::MAX)).collect();
        self.rows.renumber(&indexes);
        self.live.renumber(&indexes);
        true
    }

    /// Finishes a process after its last event.
    fn finish(&mut self, process: usize) {
        self.moments.pass_all();
        let left = core::mem::take(&mut self.live);
        let (_, mut context) = self.context(process);
        left.finish(&mut context);
        while self.rows.are_too_many() && self.halve() {}
        self.moments.restart();
    }
}

/// The findings of one pass over the events.
#[derive(Debug, Default)]
pub(super) struct MemoryPass {
    /// Whether any process has a history.
    pub(super) has_history: bool,
    pub(super) hosts: HostDevices,
}

/// Reads the events of all processes that have a history, or memory of devices.
pub(super) fn read(source: &Source<'_>, devices: &mut BTreeMap<i64, LiveHistory>) -> Result<MemoryPass, ExportError> {
    let mut pass = MemoryPass::default();
    for (index, process) in source.processes().iter().enumerate() {
        let decoder = Decoder::of(process.dictionary());
        let header = MemoryHeader::of(process.start());
        let mut host = HostReader::new(source, index, &decoder);
        let has_history = decoder.has_memory() && header.is_none_or(|header| header.mode != RecordedMode::Aggregate);
        if !has_history && host.is_none() {
            continue;
        }
        pass.has_history |= has_history;
        let scale = MemoryHeader::scale_of(process.start());
        for device in devices.values_mut() {
            device.scale = scale;
        }
        let began = source.began(process);
        let until = source.options().part.range.as_ref().map(|range| 0..range.end.saturating_sub(began));
        let mut reader = LiveHistoryReader { source, index, process, began, selected: HashMap::new() };
        process.visit_in_time_order(until, &mut |_| {}, &mut |timed| {
            let event = decoder.decode(&timed.event);
            let at = (timed.thread, u64::try_from(timed.time_ns).unwrap_or(0));
            if let Some(host) = &mut host {
                host.event(at, &event);
            }
            if has_history {
                reader.event(&timed, &event, devices);
            }
            ControlFlow::Continue(())
        })?;
        if let Some(host) = host {
            host.finish(&mut pass.hosts);
        }
        if has_history {
            for device in devices.values_mut() {
                device.finish(index);
            }
        }
    }
    Ok(pass)
}

struct LiveHistoryReader<'s, 'a> {
    source: &'s Source<'a>,
    /// The index of the process.
    index: usize,
    process: &'s ProcessRecording,
    began: u64,
    /// Whether each thread is selected, by its number.
    selected: HashMap<u32, bool>,
}

impl LiveHistoryReader<'_, '_> {
    fn event(&mut self, timed: &TimedEvent<'_>, event: &Event<'_>, devices: &mut BTreeMap<i64, LiveHistory>) {
        let device = match event {
            Event::Allocate(memory) | Event::Free(memory) => match memory.region {
                Region::Segment(_) => return,
                region => region.device(),
            },
            Event::Keep { .. } => EventKind::OWN_DEVICE,
            _ => return,
        };
        let Some(device) = devices.get_mut(&device) else { return };
        let time = u64::try_from(timed.time_ns).unwrap_or(0).saturating_add(self.began);
        let thread = timed.thread;
        let is_selected = self.is_selected(thread);
        device.event(self.index, (timed.event.ticks, time), |live, context| match event {
            Event::Allocate(memory) if memory.region.is_range() => {
                live.map(memory.address, memory.size, context.origin(memory.stack, is_selected), context);
            }
            Event::Allocate(memory) => {
                live.allocate(memory.address, memory.size, context.origin(memory.stack, is_selected), context);
            }
            Event::Free(memory) if memory.region.is_range() => {
                live.unmap(thread, (memory.address, memory.size), context);
            }
            Event::Free(memory) => live.free(thread, memory.address, context),
            Event::Keep { address } => live.keep(thread, *address, context),
            _ => {}
        });
    }

    fn is_selected(&mut self, thread: u32) -> bool {
        let part = &self.source.options().part;
        let is_selected = || part.selects(self.process.dictionary().thread(thread));
        part.threads.is_empty() || *self.selected.entry(thread).or_insert_with(is_selected)
    }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::random::Random;

    use super::*;

    const STEPS: usize = 1_000;

    /// Adds blocks that are live for some steps. Returns the live bytes of each of 5 stacks at each step.
    fn add_blocks(device: &mut LiveHistory, random: &mut Random) -> Vec<[u64; 5]> {
        let mut live = vec![[0; 5]; STEPS + 1];
        let mut ends: Vec<Vec<u64>> = vec![Vec::new(); STEPS + 1];
        for step in 1..=STEPS {
            let time = step as u64;
            for address in core::mem::take(&mut ends[step]) {
                device.event(0, (time, time), |live, context| live.free(1, address, context));
            }
            for number in 0..20 {
                let (stack, end) = (random.below(5), step + 1 + random.below(STEPS));
                let address = time << 16 | number << 4 | 1;
                device.event(0, (time, time), |live, context| {
                    let stack = u32::try_from(stack).unwrap_or(0);
                    live.allocate(address, 8, context.origin(stack, true), context);
                });
                if let Some(ends) = ends.get_mut(end) {
                    ends.push(address);
                }
                live[step..end.min(STEPS + 1)].iter_mut().for_each(|live| live[stack] += 8);
            }
        }
        live
    }

    #[test]
    fn with_too_many_rows_there_are_fewer_correct_moments() {
        let seed = 7;
        let mut device = LiveHistory::new(Moments::new(0, STEPS as u64, Some(434), &[]), None);
        device.rows = Rows::at_most(3_000);
        let expected = add_blocks(&mut device, &mut Random::new(seed));
        device.finish(0);
        let times = device.moments.times().to_vec();
        assert!((2..=60).contains(&times.len()), "{times:?}");
        assert!(times.contains(&434) && times.last() == Some(&(STEPS as u64)), "{times:?}");
        for (index, time) in times.iter().enumerate() {
            let mut live = [0; 5];
            for (interval, weight) in device.rows.iter() {
                if (usize::from(interval.first)..usize::from(interval.end)).contains(&index) {
                    live[interval.stack as usize] += weight.bytes;
                }
            }
            assert_eq!(live, expected[usize::try_from(*time).unwrap_or(0)], "at {time}, seed {seed}");
        }
    }
}
