//! Goes through the events about memory once, and finds out what was live at the moments.
//!
//! Kept are the blocks that are live, and the rows.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use stackweave_core::EventKind;
use stackweave_profile::memory::{MemoryHeader, MemoryMode};
use stackweave_recording::events::{Decoder, Event, MemoryEvent, Region};
use stackweave_recording::{ProcessRecording, TimedEvent};

use super::accounts::{AccountReader, Accounts};
use super::live::{Block, Live, Now};
use super::moments::Moments;
use super::rows::Rows;
use super::scale::Scale;
use crate::error::ExportError;
use crate::source::Source;

/// When the highest peak of a device was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peak {
    /// The place of the process that had it.
    pub(super) process: usize,
    pub(super) ticks: u64,
    pub(super) bytes: u64,
}

/// What is found out of a device.
#[derive(Debug)]
pub(super) struct DeviceHistory {
    pub(super) moments: Moments,
    pub(super) rows: Rows,
    /// How the process that is read counts.
    scale: Scale,
    peak: Option<Peak>,
    live: Live,
}

impl DeviceHistory {
    pub(super) fn new(moments: Moments, peak: Option<Peak>) -> Self {
        Self { moments, rows: Rows::default(), scale: Scale::default(), peak, live: Live::default() }
    }

    fn now(&mut self, process: usize) -> (&mut Live, Now<'_>) {
        let passed = u8::try_from(self.moments.passed()).unwrap_or(u8::MAX);
        let process = u32::try_from(process).unwrap_or(u32::MAX);
        (&mut self.live, Now { process, passed, scale: self.scale, rows: &mut self.rows })
    }

    /// An event of the process at this place is told by `tell`.
    fn event(&mut self, process: usize, (ticks, time): (u64, u64), tell: impl FnOnce(&mut Live, &mut Now<'_>)) {
        let peak = self.peak.filter(|peak| peak.process == process && peak.ticks <= ticks);
        let peak = peak.filter(|_| self.moments.waits_for_peak());
        if peak.is_some_and(|peak| peak.ticks < ticks || self.live_bytes() == peak.bytes) {
            self.moments.pass_peak();
        }
        self.moments.pass_before(time);
        let (live, mut now) = self.now(process);
        tell(live, &mut now);
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

    /// Half as many moments, if there are more than few. Whether there were.
    fn halve(&mut self) -> bool {
        let Some(places) = self.moments.halve() else { return false };
        let places: Vec<u8> = places.into_iter().map(|place| u8::try_from(place).unwrap_or(u8::MAX)).collect();
        self.rows.move_to(&places);
        self.live.move_to(&places);
        true
    }

    /// The events of a process are over.
    fn finish(&mut self, process: usize) {
        self.moments.pass_all();
        let left = core::mem::take(&mut self.live);
        let (_, mut now) = self.now(process);
        left.finish(&mut now);
        while self.rows.are_too_many() && self.halve() {}
        self.moments.restart();
    }
}

/// Reads the events of all processes that have a history. Whether any has.
pub(super) fn read(
    source: &Source<'_>,
    devices: &mut BTreeMap<i64, DeviceHistory>,
    accounts: &mut Accounts,
) -> Result<bool, ExportError> {
    let mut has_any = false;
    for (place, process) in source.processes().iter().enumerate() {
        let decoder = Decoder::of(process.dictionary());
        let header = MemoryHeader::of(process.start());
        if !decoder.has_memory() || header.is_some_and(|header| header.mode == MemoryMode::Aggregate) {
            continue;
        }
        has_any = true;
        let scale = Scale::of(process);
        for device in devices.values_mut() {
            device.scale = scale;
        }
        let began = source.began(process);
        let until = source.options().part.range.as_ref().map(|range| 0..range.end.saturating_sub(began));
        let mut reading = Reading { source, place, process, began, wanted: HashMap::new() };
        let mut account = AccountReader::new(place);
        process.visit_in_time_order(until, &mut |_| {}, &mut |timed| {
            let event = decoder.decode(&timed.event);
            account.add((timed.thread, u64::try_from(timed.time_ns).unwrap_or(0)), &event, accounts);
            reading.event(&timed, &event, devices);
            ControlFlow::Continue(())
        })?;
        for device in devices.values_mut() {
            device.finish(place);
        }
    }
    Ok(has_any)
}

struct Reading<'s, 'a> {
    source: &'s Source<'a>,
    place: usize,
    process: &'s ProcessRecording,
    began: u64,
    /// Whether a thread is asked for.
    wanted: HashMap<u32, bool>,
}

impl Reading<'_, '_> {
    fn event(&mut self, timed: &TimedEvent<'_>, event: &Event<'_>, devices: &mut BTreeMap<i64, DeviceHistory>) {
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
        let is_wanted = self.is_wanted(thread);
        device.event(self.place, (timed.event.ticks, time), |live, now| match event {
            Event::Allocate(memory) if memory.region.is_range() => {
                live.map(memory.address, block(memory, is_wanted, now), now);
            }
            Event::Allocate(memory) => live.allocate(memory.address, block(memory, is_wanted, now), now),
            Event::Free(memory) if memory.region.is_range() => live.unmap(thread, (memory.address, memory.size), now),
            Event::Free(memory) => live.free(thread, memory.address, now),
            Event::Keep { address } => live.keep(thread, *address, now),
            _ => {}
        });
    }

    fn is_wanted(&mut self, thread: u32) -> bool {
        let part = &self.source.options().part;
        let takes = || part.selects(self.process.dictionary().thread(thread));
        part.threads.is_empty() || *self.wanted.entry(thread).or_insert_with(takes)
    }
}

fn block(memory: &MemoryEvent, is_wanted: bool, now: &Now<'_>) -> Block {
    Block { size: memory.size, stack: memory.stack, first: now.passed, is_wanted }
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::random::Random;

    use super::*;

    const STEPS: usize = 1_000;

    /// Tells of blocks that are there for some steps: what is live of each of 5 stacks at each step.
    fn tell(device: &mut DeviceHistory, random: &mut Random) -> Vec<[u64; 5]> {
        let mut live = vec![[0; 5]; STEPS + 1];
        let mut ends: Vec<Vec<u64>> = vec![Vec::new(); STEPS + 1];
        for step in 1..=STEPS {
            let time = step as u64;
            for address in core::mem::take(&mut ends[step]) {
                device.event(0, (time, time), |live, now| live.free(1, address, now));
            }
            for place in 0..20 {
                let (stack, end) = (random.below(5), step + 1 + random.below(STEPS));
                let address = time << 16 | place << 4 | 1;
                device.event(0, (time, time), |live, now| {
                    let stack = u32::try_from(stack).unwrap_or(0);
                    live.allocate(address, Block { size: 8, stack, first: now.passed, is_wanted: true }, now);
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
    fn too_many_rows_become_fewer_moments_that_are_as_true() {
        let seed = 7;
        let mut device = DeviceHistory::new(Moments::new(0, STEPS as u64, Some(434), &[]), None);
        device.rows = Rows::at_most(3_000);
        let expected = tell(&mut device, &mut Random::new(seed));
        device.finish(0);
        let times = device.moments.times().to_vec();
        assert!((2..=60).contains(&times.len()), "{times:?}");
        assert!(times.contains(&434) && times.last() == Some(&(STEPS as u64)), "{times:?}");
        for (place, time) in times.iter().enumerate() {
            let mut live = [0; 5];
            for (stay, weight) in device.rows.iter() {
                if (usize::from(stay.first)..usize::from(stay.behind)).contains(&place) {
                    live[stay.stack as usize] += weight.bytes;
                }
            }
            assert_eq!(live, expected[usize::try_from(*time).unwrap_or(0)], "at {time}, seed {seed}");
        }
    }
}
