//! Builds profiles of recordings.

use std::ops::Range;

use stackweave_recording::{Missing, ProcessRecording, ReadError, TimeAxis};
use stackweave_symbolize::Symbolizer;

use crate::aggregate::build::ProfileBuilder;
use crate::aggregate::collector::{GroupCosts, MeasureSet, ProcessCosts, collect};
use crate::aggregate::measure::{DeviceMeasure, Measure};
use crate::aggregate::memory_costs::default_device;
use crate::aggregate::options::{AggregateOptions, Grouping};
use crate::aggregate::profile::Profile;
use crate::memory::{ForeignHooks, MemoryHeader};

/// A profile of a process, a thread, or several.
#[derive(Clone, Debug)]
pub struct PartProfile {
    /// The index of the process; `None` if several are merged.
    pub process: Option<usize>,
    /// The number of the thread in its process; `None` if several are merged.
    pub thread: Option<u32>,
    /// The profile.
    pub profile: Profile,
}

/// Profiles of recordings.
#[derive(Clone, Debug)]
pub struct Aggregated {
    /// One profile, or one for each process or thread, according to the grouping. Empty ones are included, but not
    /// threads without events.
    pub parts: Vec<PartProfile>,
    /// The data that could not be read, for each process.
    pub missing: Vec<Missing>,
    /// The device of a measure of memory.
    pub device: i64,
    /// The hooks that other tools held in each process, for measures of memory.
    pub hooks: Vec<Option<ForeignHooks>>,
}

/// Builds profiles of recordings of processes. Each event is read once, and none is kept.
///
/// `progress` is called with how many of all bytes ([`ProcessRecording::bytes`]) have been read. Native frames without
/// names in the recordings are resolved by `symbolizer`, once for each distinct frame of a process.
pub fn aggregate(
    processes: &[ProcessRecording],
    options: &AggregateOptions,
    symbolizer: Option<&Symbolizer>,
    progress: &mut dyn FnMut(u64),
) -> Result<Aggregated, ReadError> {
    let options =
        &AggregateOptions { measure: options.measure.or_else(|| memory_measure(processes)), ..options.clone() };
    let collected = collect_all(processes, options, MeasureSet::Requested, progress)?;
    let measure = options.measure.unwrap_or_else(|| default_measure(&collected));
    let device = options.device.unwrap_or_else(|| default_device(&collected));
    let counted = DeviceMeasure { measure, device };
    let mut builder = ProfileBuilder::new(options.shown());
    for (process, collected) in processes.iter().zip(&collected) {
        let costs = collected.groups.iter().map(|group| (group, counted));
        builder.add_process(process, costs, (symbolizer, options.lines));
    }
    let parts = match options.grouping {
        Grouping::Merged => vec![together(&mut builder, &collected, counted)],
        grouping => {
            (0..).zip(&collected).flat_map(|(index, of)| apart(&mut builder, (index, of), counted, grouping)).collect()
        }
    };
    let (missing, hooks) = collected.into_iter().map(|of| (of.missing, of.figures.hooks)).unzip();
    Ok(Aggregated { parts, missing, device, hooks })
}

/// Builds the profile of all processes.
fn together(builder: &mut ProfileBuilder<'_>, collected: &[ProcessCosts], counted: DeviceMeasure) -> PartProfile {
    let groups: Vec<(usize, &GroupCosts)> =
        (0..).zip(collected).flat_map(|(index, of)| of.groups.iter().map(move |group| (index, group))).collect();
    let mut profile = builder.profile(&groups, counted);
    for of in collected {
        profile.counts.add(of.block_counts(counted.device));
    }
    PartProfile { process: (collected.len() == 1).then_some(0), thread: None, profile }
}

/// Builds the profile of each group of a process.
fn apart(
    builder: &mut ProfileBuilder<'_>,
    (index, collected): (usize, &ProcessCosts),
    counted: DeviceMeasure,
    grouping: Grouping,
) -> Vec<PartProfile> {
    let part = |thread, profile| PartProfile { process: Some(index), thread, profile };
    let groups = collected.groups.iter();
    let mut parts: Vec<PartProfile> =
        groups.map(|group| part(group.thread, builder.profile(&[(index, group)], counted))).collect();
    if parts.is_empty() && grouping != Grouping::Threads {
        parts.push(part(None, Profile::empty(counted.measure)));
    }
    // These belong to the process, not to a thread.
    if let Some(first) = parts.first_mut() {
        first.profile.counts.add(collected.block_counts(counted.device));
    }
    parts
}

impl Aggregated {
    /// Merges all profiles.
    pub fn merged(self) -> Profile {
        let mut parts = self.parts.into_iter().map(|part| part.profile);
        let mut profile = parts.next().unwrap_or_else(|| Profile::empty(Measure::WallTime));
        for other in parts {
            let same = profile.merge(&other);
            debug_assert_eq!(same, Ok(()));
        }
        profile
    }
}

/// Returns the costs of each process.
pub(crate) fn collect_all(
    processes: &[ProcessRecording],
    options: &AggregateOptions,
    wants: MeasureSet,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<ProcessCosts>, ReadError> {
    let (mut collected, mut done) = (Vec::with_capacity(processes.len()), 0);
    for (process, range) in processes.iter().zip(ranges(processes, options.range.as_ref())) {
        let mut progress = |bytes| progress(done + bytes);
        collected.push(collect(process, options, range, wants, (None, &mut progress))?);
        done += process.bytes();
    }
    Ok(collected)
}

/// Returns how much later than the first one each process began to record, in nanoseconds.
pub(crate) fn offsets(processes: &[ProcessRecording]) -> Vec<u64> {
    let axis = if processes.len() > 1 { TimeAxis::common(processes) } else { TimeAxis::SinceBase };
    let bases: Vec<i64> = processes.iter().map(|process| axis.time_ns(process, 0)).collect();
    let first = bases.iter().copied().min().unwrap_or(0);
    bases.into_iter().map(|base| base.abs_diff(first)).collect()
}

/// Returns the selected time, on the clock of each process.
pub(crate) fn ranges(processes: &[ProcessRecording], range: Option<&Range<u64>>) -> Vec<Range<u64>> {
    let local = |later: u64| match range {
        Some(range) => range.start.saturating_sub(later)..range.end.saturating_sub(later),
        None => 0..u64::MAX,
    };
    offsets(processes).into_iter().map(local).collect()
}

/// Returns the default measure of memory recordings: time if calls were recorded, too.
fn memory_measure(processes: &[ProcessRecording]) -> Option<Measure> {
    let headers: Option<Vec<_>> = processes.iter().map(|process| MemoryHeader::of(process.start())).collect();
    let has_calls = |headers: &[MemoryHeader]| headers.iter().any(|header| header.beside_calls);
    match headers {
        Some(headers) if has_calls(&headers) => Some(Measure::WallTime),
        Some(headers) if !headers.is_empty() => Some(Measure::PeakBytes),
        _ => None,
    }
}

fn default_measure(collected: &[ProcessCosts]) -> Measure {
    let any = |has: fn(&GroupCosts) -> bool| collected.iter().flat_map(|process| &process.groups).any(has);
    if any(|group| group.has_spans) {
        Measure::WallTime
    } else if any(|group| !group.samples.is_empty()) {
        Measure::Samples
    } else if any(|group| group.memory.iter().any(|known| !known.allocated.is_empty())) {
        Measure::AllocatedBytes
    } else {
        Measure::WallTime
    }
}
