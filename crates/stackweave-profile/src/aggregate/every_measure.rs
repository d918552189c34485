//! All that was recorded, of every measure, device and thread at once.

use stackweave_core::EventKind;
use stackweave_recording::{Missing, ProcessRecording, ReadError};
use stackweave_symbolize::Symbolizer;

use crate::aggregate::collector::{Collected, GroupCosts, Wanted};
use crate::aggregate::measure::{Counted, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::AggregateOptions;
use crate::aggregate::profile::Profile;
use crate::aggregate::recorded_names::RecordedNames;
use crate::aggregate::recordings::collect_all;

/// What processes have recorded, of every measure. The events are read once for all of them; once more, in the order of
/// time, where a program has told of its allocations itself.
#[derive(Debug)]
pub struct EveryMeasure<'a> {
    processes: &'a [ProcessRecording],
    collected: Vec<Collected>,
    lines: bool,
    /// If only one was asked for.
    only: Option<Counted>,
}

/// A profile of one measure, and what it is a profile of.
#[derive(Clone, Debug)]
pub struct MeasuredProfile {
    /// The place of the process among those that were asked for.
    pub process: usize,
    /// The number of the thread in its process; `None` if those of a process are merged.
    pub thread: Option<u32>,
    /// Whose memory it is; [`EventKind::OWN_DEVICE`] for the process's own, and for what is not memory.
    pub device: i64,
    /// The profile.
    pub profile: Profile,
}

/// Those of memory that have figures of their own, the one that is asked for most first.
const OF_MEMORY: [Measure; 4] =
    [Measure::PeakBytes, Measure::LiveBytes, Measure::AllocatedBytes, Measure::TemporaryBytes];

impl<'a> EveryMeasure<'a> {
    /// Reads the events of processes. If `options` name a measure, that is the only one. Whatever the grouping, no two
    /// processes are merged.
    pub fn collect(
        processes: &'a [ProcessRecording],
        options: &AggregateOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, ReadError> {
        let wants = if options.measure.is_some() { Wanted::Asked } else { Wanted::Everything };
        let collected = collect_all(processes, options, wants, progress)?;
        let device = || options.device.unwrap_or_else(|| default_device(&collected));
        let only = options.measure.map(|measure| Counted { measure, device: device() });
        Ok(Self { processes, collected, lines: options.lines, only })
    }

    /// What could not be read, for each process.
    pub fn missing(&self) -> impl Iterator<Item = &Missing> {
        self.collected.iter().map(|process| &process.missing)
    }

    /// Makes the profiles of a process, one after the other. Native frames that have no names in the recording are
    /// resolved by `symbolizer`, each once. Where a thread has taken memory, it has a profile of each measure of memory,
    /// even if nothing counts as that.
    pub fn profiles(
        &self,
        process: usize,
        symbolizer: Option<&Symbolizer>,
    ) -> impl Iterator<Item = MeasuredProfile> + use<'_> {
        let (recording, groups) = (&self.processes[process], &self.collected[process].groups);
        let all: Vec<(&GroupCosts, Counted)> = groups
            .iter()
            .flat_map(|group| self.measures(group).into_iter().map(move |counted| (group, counted)))
            .collect();
        let frames = all.iter().flat_map(|(group, counted)| group.frames(*counted, recording.dictionary()));
        let names = RecordedNames::resolve(recording, &frames.collect::<Vec<_>>(), symbolizer);
        all.into_iter().map(move |(group, counted)| MeasuredProfile {
            process,
            thread: group.thread,
            device: if counted.measure.is_memory() { counted.device } else { EventKind::OWN_DEVICE },
            profile: group.profile(counted, recording, &names, self.lines),
        })
    }

    fn measures(&self, group: &GroupCosts) -> Vec<Counted> {
        if let Some(only) = self.only {
            return vec![only];
        }
        let device = EventKind::OWN_DEVICE;
        let not_memory = [Measure::WallTime, Measure::Samples].map(|measure| Counted { measure, device });
        let not_memory = not_memory.into_iter().filter(|counted| group.has(*counted));
        let mut devices: Vec<i64> = group.memory.iter().map(|known| known.device).collect();
        devices.sort_by_key(|device| (*device != EventKind::OWN_DEVICE, *device));
        let of_memory = |device: i64| OF_MEMORY.map(|measure| Counted { measure, device });
        not_memory.chain(devices.into_iter().flat_map(of_memory)).collect()
    }
}
