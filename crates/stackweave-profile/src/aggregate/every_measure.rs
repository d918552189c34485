//! The costs of all measures, devices and threads at once.

use stackweave_core::EventKind;
use stackweave_recording::{Missing, ProcessRecording, ReadError};
use stackweave_symbolize::Symbolizer;

use crate::aggregate::build::ProfileBuilder;
use crate::aggregate::collector::{GroupCosts, MeasureSet, ProcessCosts};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::profile::Profile;
use crate::aggregate::recordings::collect_all;
use crate::aggregate::view::View;

/// The costs of processes in all measures. Events are read once for all measures; and once more, in the order of time,
/// if a host recorded its allocations.
#[derive(Debug)]
pub struct EveryMeasure<'a> {
    processes: &'a [ProcessRecording],
    collected: Vec<ProcessCosts>,
    lines: bool,
    view: View,
    /// The only measure, if one was requested.
    only: Option<DeviceMeasure>,
}

/// A profile of one measure.
#[derive(Clone, Debug)]
pub struct MeasuredProfile {
    /// The index of the process.
    pub process: usize,
    /// The number of the thread in its process; `None` if threads are merged.
    pub thread: Option<u32>,
    /// The device of memory; [`EventKind::OWN_DEVICE`] for the heap, and for measures of time.
    pub device: i64,
    /// The profile.
    pub profile: Profile,
}

/// The measures of memory with separate figures, the most important one first.
const OF_MEMORY: [Measure; 4] =
    [Measure::PeakBytes, Measure::LiveBytes, Measure::AllocatedBytes, Measure::TemporaryBytes];

impl<'a> EveryMeasure<'a> {
    /// Reads the events of processes. If `options` have a measure, it is the only one. Processes are never merged,
    /// whatever the grouping.
    pub fn collect(
        processes: &'a [ProcessRecording],
        options: &AggregateOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let wants = if options.measure.is_some() { MeasureSet::Requested } else { MeasureSet::Everything };
        let collected = collect_all(processes, options, wants, progress)?;
        let device = || options.device.unwrap_or_else(|| default_device(&collected));
        let only = options.measure.map(|measure| DeviceMeasure { measure, device: device() });
        Ok(Self { processes, collected, lines: options.lines, view: options.shown().clone(), only })
    }

    /// Returns what could not be read, for each process.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.collected.iter().map(|process| &process.missing)
    }

    /// Builds the profiles of a process, one after another. Native frames without names in the recording are resolved
    /// by `symbolizer`, once each. A thread that allocated memory has a profile of each measure of memory, even if it
    /// is empty.
    pub fn profiles(
        &self,
        process: usize,
        symbolizer: Option<&Symbolizer>,
    ) -> impl Iterator<Item = MeasuredProfile> + use<'_> {
        let (recording, groups) = (&self.processes[process], &self.collected[process].groups);
        let all: Vec<(&GroupCosts, DeviceMeasure)> = groups
            .iter()
            .flat_map(|group| self.measures(group).into_iter().map(move |counted| (group, counted)))
            .collect();
        let mut builder = ProfileBuilder::new(&self.view);
        builder.add_process(recording, all.iter().copied(), (symbolizer, self.lines));
        all.into_iter().map(move |(group, counted)| MeasuredProfile {
            process,
            thread: group.thread,
            device: if counted.measure.is_memory() { counted.device } else { EventKind::OWN_DEVICE },
            profile: builder.profile(&[(0, group)], counted),
        })
    }

    fn measures(&self, group: &GroupCosts) -> Vec<DeviceMeasure> {
        if let Some(only) = self.only {
            return vec![only];
        }
        let device = EventKind::OWN_DEVICE;
        let not_memory = [Measure::WallTime, Measure::Samples].map(|measure| DeviceMeasure { measure, device });
        let not_memory = not_memory.into_iter().filter(|counted| group.has(*counted));
        let mut devices: Vec<i64> = group.memory.iter().map(|known| known.device).collect();
        devices.sort_by_key(|device| (*device != EventKind::OWN_DEVICE, *device));
        let of_memory = |device: i64| OF_MEMORY.map(|measure| DeviceMeasure { measure, device });
        not_memory.chain(devices.into_iter().flat_map(of_memory)).collect()
    }
}
