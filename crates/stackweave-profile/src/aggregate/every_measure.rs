//! The costs of all measures, devices and threads at once.

use std::ops::ControlFlow;

use stackweave_core::EventKind;
use stackweave_recording::events::Event;
use stackweave_recording::{Missing, ProcessRecording, ReadError, TimedEvent};
use stackweave_symbolize::Symbolizer;

use crate::aggregate::build::ProfileBuilder;
use crate::aggregate::collector::{EventObserver, GroupCosts, MeasureSet, ProcessCosts, collect};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::profile::Profile;
use crate::aggregate::recordings::ranges;
use crate::aggregate::view::View;
use crate::memory::{ForeignHooks, MemoryQuery, MemoryReport, figures_report};

/// Another consumer of the events of processes while they are read: of one process after another, each in the order of
/// time. It may stop the reading of a process.
pub type ProcessObserver<'o> = dyn FnMut(usize, &TimedEvent<'_>, &Event<'_>) -> ControlFlow<()> + 'o;

/// The costs of processes in all measures. Events are read once for all measures.
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
    /// Reads the events of processes. If `options` have a measure, only its profiles are built. Processes are never
    /// merged, whatever the grouping. `observer` gets the events of the process with each index too.
    pub fn collect(
        processes: &'a [ProcessRecording],
        options: &AggregateOptions,
        mut observer: Option<&mut ProcessObserver<'_>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let (mut collected, mut done) = (Vec::with_capacity(processes.len()), 0);
        let ranges = ranges(processes, options.range.as_ref());
        for ((index, process), range) in processes.iter().enumerate().zip(ranges) {
            let mut progress = |bytes| progress(done + bytes);
            let mut of_process = observer
                .as_mut()
                .map(|observer| move |timed: &TimedEvent<'_>, event: &Event<'_>| observer(index, timed, event));
            let observer = of_process.as_mut().map(|observer| observer as &mut EventObserver<'_>);
            collected.push(collect(process, options, range, MeasureSet::Everything, (observer, &mut progress))?);
            done += process.bytes();
        }
        let device = || options.device.unwrap_or_else(|| default_device(&collected));
        let only = options.measure.map(|measure| DeviceMeasure { measure, device: device() });
        Ok(Self { processes, collected, lines: options.lines, view: options.shown().clone(), only })
    }

    /// Frees the costs of stacks, after the last profile was built. The figures of memory stay.
    pub fn free_stacks(&mut self) {
        for process in &mut self.collected {
            process.groups = Vec::new();
        }
    }

    /// Returns whether there are costs of memory.
    pub fn has_memory(&self) -> bool {
        self.all_measures().any(Measure::is_memory)
    }

    /// Returns whether there are times or samples.
    pub fn has_time(&self) -> bool {
        self.all_measures().any(|measure| matches!(measure, Measure::WallTime | Measure::Samples))
    }

    fn all_measures(&self) -> impl Iterator<Item = Measure> {
        let groups = self.collected.iter().flat_map(|process| &process.groups);
        groups.flat_map(|group| self.measures(group)).map(|counted| counted.measure)
    }

    /// Returns the figures of the memory of a device, or of the heap, without profiles and remarks. `query` selects the
    /// same time and threads as the options of the costs.
    pub fn memory_report(&self, query: &MemoryQuery, device: i64) -> Result<MemoryReport, ReadError> {
        figures_report(self.processes, self.collected.iter().map(|process| &process.figures), query, device)
    }

    /// Returns the hooks that other tools held in each process.
    pub fn hooks(&self) -> Vec<Option<ForeignHooks>> {
        self.collected.iter().map(|process| process.figures.hooks.clone()).collect()
    }

    /// Returns the time of all threads of all processes, without lines.
    pub(crate) fn time(&self, view: &View, symbolizer: Option<&Symbolizer>) -> Profile {
        let counted = DeviceMeasure { measure: Measure::WallTime, device: EventKind::OWN_DEVICE };
        let (mut builder, mut groups) = (ProfileBuilder::new(view), Vec::new());
        for (index, (process, collected)) in self.processes.iter().zip(&self.collected).enumerate() {
            let costs = collected.groups.iter().map(|group| (group, counted));
            builder.add_process(process, costs, (symbolizer, false));
            groups.extend(collected.groups.iter().map(|group| (index, group)));
        }
        builder.profile(&groups, counted)
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
