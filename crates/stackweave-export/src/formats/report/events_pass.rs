//! One pass over the events of a recording, for the costs and for everything else that needs each event.

use stackweave_profile::timing::{TimingReader, TimingReport};
use stackweave_profile::{EveryMeasure, TraceNotes};

use super::blocks::PageBlocks;
use super::head::Threads;
use super::memory::FailureTimes;
use super::names::Names;
use super::runs;
use super::timeline::{Timeline, TimelineEntries};
use crate::error::ExportError;
use crate::source::Source;

/// The findings of one pass over the events.
pub(super) struct EventsPass<'a> {
    pub(super) costs: EveryMeasure<'a>,
    pub(super) timeline: TimelineEntries,
    /// Those of each process.
    pub(super) notes: Vec<TraceNotes>,
    pub(super) timing: Option<TimingReport>,
    pub(super) failures: FailureTimes,
}

/// Reads all events once, and writes the timeline.
pub(super) fn read<'a>(
    source: &Source<'a>,
    threads: &Threads<'_>,
    names: &mut Names,
    blocks: &mut PageBlocks<'_>,
) -> Result<EventsPass<'a>, ExportError> {
    let processes = source.processes();
    let may_have_notes: Vec<bool> = processes.iter().map(TraceNotes::may_have).collect();
    let mut notes = vec![TraceNotes::default(); processes.len()];
    let mut phases = runs::may_exist(source).then(|| TimingReader::new(processes, &source.options().part));
    let mut failures = FailureTimes::default();
    let mut timeline = Timeline::new(source, threads, names);
    let selected = source.time_range();
    let costs = source.every_measure(&mut |process, timed, event| {
        if may_have_notes[process] {
            notes[process].note(event);
        }
        if let Some(phases) = &mut phases {
            phases.add(process, timed, event);
        }
        let time = u64::try_from(timed.time_ns).unwrap_or(0);
        if time >= selected.start {
            failures.add(time, event);
        }
        timeline.event(source, process, (timed, event), blocks)
    })?;
    let timing = phases.map(|phases| source.timing(phases, &costs));
    // Counters and instants beside memory only are not shown.
    let is_only_memory = costs.has_memory() && !costs.has_time();
    let timeline = if is_only_memory { TimelineEntries::default() } else { timeline.finish(source, blocks)? };
    Ok(EventsPass { costs, timeline, notes, timing, failures })
}
