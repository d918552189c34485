//! The input of a format: profiles, named frames, and events in order.

use core::fmt;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use stackweave_profile::memory::MemoryUsage;
use stackweave_profile::timing::{TimingReader, TimingReport};
use stackweave_profile::{
    AggregateOptions, EveryMeasure, Grouping, Measure, MeasuredProfile, PartProfile, ProcessObserver, Profile,
    RecordedCosts, RecordedNames, View, aggregate,
};
use stackweave_recording::events::Event;
use stackweave_recording::{Missing, ProcessRecording, ReadError, Recording, TimedEvent};
use stackweave_symbolize::Symbolizer;

use crate::budget::Budget;
use crate::error::ExportError;
use crate::included_sources::IncludedSources;
use crate::options::ExportOptions;

/// A recording that is being exported.
pub struct Source<'a> {
    recording: &'a Recording,
    symbolizer: Option<&'a Symbolizer>,
    options: &'a ExportOptions<'a>,
    /// The view if the options have none.
    default_view: View,
    missing: RefCell<Missing>,
    sources: RefCell<IncludedSources>,
    remarks: RefCell<Vec<String>>,
    was_read: Cell<bool>,
    progress: RefCell<&'a mut dyn FnMut(u64)>,
    budget: Budget,
    /// The number of events that were visited.
    events: Cell<u64>,
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("recording", self.recording)
            .field("options", self.options)
            .finish_non_exhaustive()
    }
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        symbolizer: Option<&'a Symbolizer>,
        options: &'a ExportOptions<'a>,
        default_view: View,
        (progress, budget): (&'a mut dyn FnMut(u64), Budget),
    ) -> Self {
        let missing = RefCell::new(recording.missing().clone());
        Self {
            recording,
            symbolizer,
            options,
            default_view,
            missing,
            was_read: Cell::new(false),
            sources: RefCell::default(),
            remarks: RefCell::default(),
            progress: RefCell::new(progress),
            budget,
            events: Cell::new(0),
        }
    }

    /// Returns the processes.
    pub fn processes(&self) -> &'a [ProcessRecording] {
        self.recording.processes()
    }

    /// Returns the index of the process that an event was visited with.
    pub(crate) fn index_of(&self, process: &ProcessRecording) -> usize {
        // Copies of a process share their data.
        let is_it = |known: &ProcessRecording| core::ptr::eq(known.start(), process.start());
        self.processes().iter().position(is_it).unwrap_or(0)
    }

    /// Returns the budget of the export.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns the share of the recording that was visited, from 0 to 1. `None` if it is unknown: if only a part is
    /// exported, or the recording was not read event by event, or more than once.
    #[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
    pub(crate) fn share(&self) -> Option<f64> {
        let events: u64 = self.processes().iter().map(ProcessRecording::event_count).sum();
        let share = self.events.get() as f64 / events as f64;
        (self.options.part.range.is_none() && share > 0.0 && share < 1.0).then_some(share)
    }

    /// Returns the options.
    pub fn options(&self) -> &ExportOptions<'a> {
        self.options
    }

    /// Returns the title of the export.
    pub fn title(&self) -> String {
        let main = || main_process(self.processes()).map(|process| self.title_of(process)).unwrap_or_default();
        self.options.title.clone().unwrap_or_else(main)
    }

    /// Returns the title of a process: its command line, or the file that it runs.
    pub fn title_of(&self, process: &ProcessRecording) -> String {
        match process.start().command_line.as_slice() {
            [] => process.start().executable.clone(),
            words => words.join(" "),
        }
    }

    /// Returns the view.
    pub fn view(&self) -> &View {
        self.options.view.as_ref().unwrap_or(&self.default_view)
    }

    /// Returns the time when the first process began to record, on the axis of the recording.
    fn begin(&self) -> i64 {
        begin_of(self.recording)
    }

    /// Returns the selected time range, in nanoseconds since the first process began to record.
    pub fn time_range(&self) -> Range<u64> {
        let begin = self.begin();
        let since = |time: i64| u64::try_from(time.saturating_sub(begin)).unwrap_or(0);
        let whole = self.recording.time_range().map_or(0..0, |range| since(range.start)..since(range.end));
        match &self.options.part.range {
            Some(selected) => {
                let start = selected.start.clamp(whole.start, whole.end);
                start..selected.end.clamp(start, whole.end)
            }
            None => whole,
        }
    }

    /// Returns the wall clock at a time since the first process began to record.
    pub fn wall_ns(&self, time_ns: u64) -> i64 {
        wall_ns_of(self.recording, time_ns)
    }

    /// Returns the recording before a change, if there is one: its main process, its start by the wall clock, and its
    /// length.
    pub(crate) fn before_change(&self) -> Option<(Option<&ProcessRecording>, i64, u64)> {
        let before = self.options.before?;
        let end = before.time_range().map_or(0, |range| range.end.saturating_sub(begin_of(before)));
        Some((main_process(before.processes()), wall_ns_of(before, 0), u64::try_from(end).unwrap_or(0)))
    }

    /// Returns the profile of the selection, in the selected view.
    pub fn profile(&self) -> Result<Profile, ExportError> {
        let profiles = self.parts(Grouping::Merged)?;
        let mut profiles = profiles.into_iter().map(|part| part.profile);
        Ok(profiles.next().unwrap_or_else(|| Profile::empty(self.options.part.measure.unwrap_or_default())))
    }

    /// Returns the profiles of processes or threads.
    pub fn parts(&self, grouping: Grouping) -> Result<Vec<PartProfile>, ExportError> {
        self.parts_of(self.recording, grouping)
    }

    /// Returns the profile of the recording before a change, if there is one.
    pub fn before(&self) -> Result<Option<Profile>, ExportError> {
        let Some(before) = self.options.before else { return Ok(None) };
        let parts = self.parts_of(before, Grouping::Merged)?;
        Ok(parts.into_iter().next().map(|part| part.profile))
    }

    fn parts_of(&self, recording: &Recording, grouping: Grouping) -> Result<Vec<PartProfile>, ExportError> {
        let view = Some(self.view().clone());
        let options = AggregateOptions { grouping, view, ..self.options.part.clone() };
        let mut progress = self.progress.borrow_mut();
        let done = aggregate(recording.processes(), &options, self.symbolizer, &mut **progress)?;
        let is_before = !core::ptr::eq(recording, self.recording);
        self.record_missing(done.missing.iter(), is_before);
        Ok(done.parts)
    }

    /// Returns the costs in all measures, with threads and lines separate. `observer` gets all events too, with the
    /// index of their process. Their times are in nanoseconds since the first process began to record.
    pub(crate) fn every_measure(
        &self,
        observer: &mut dyn FnMut(usize, &TimedEvent<'_>, &Event<'_>) -> Result<(), ExportError>,
    ) -> Result<EveryMeasure<'a>, ExportError> {
        let began: Vec<u64> = self.processes().iter().map(|process| self.began(process)).collect();
        let (mut failed, mut events) = (None, 0);
        let all = self.every_measure_of(
            self.recording,
            Grouping::Threads,
            Some(&mut |process, timed, event| {
                events += 1;
                let shifted = TimedEvent { time_ns: timed.time_ns.saturating_add_unsigned(began[process]), ..*timed };
                failed = observer(process, &shifted, event).err();
                if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }),
        );
        self.events.set(self.events.get() + events);
        failed.map_or(all, Err)
    }

    /// Returns the same for the recording before a change, if there is one, with the number of its processes. The
    /// threads of a process are merged.
    pub(crate) fn every_measure_before(&self) -> Result<Option<(EveryMeasure<'a>, usize)>, ExportError> {
        let Some(before) = self.options.before else { return Ok(None) };
        Ok(Some((self.every_measure_of(before, Grouping::Processes, None)?, before.processes().len())))
    }

    fn every_measure_of(
        &self,
        recording: &'a Recording,
        grouping: Grouping,
        observer: Option<&mut ProcessObserver<'_>>,
    ) -> Result<EveryMeasure<'a>, ExportError> {
        let part = &self.options.part;
        // Allocations are included in bytes, as their calls.
        let measure = part.measure.map(|measure| match measure {
            Measure::Allocations => Measure::AllocatedBytes,
            other => other,
        });
        let view = Some(self.view().clone());
        let options = AggregateOptions { grouping, measure, lines: true, view, ..part.clone() };
        let mut progress = self.progress.borrow_mut();
        let all = EveryMeasure::collect(recording.processes(), &options, observer, &mut **progress)?;
        self.record_missing(all.missing(), !core::ptr::eq(recording, self.recording));
        Ok(all)
    }

    /// Returns the report of phases that were read with these costs.
    pub(crate) fn timing(&self, phases: TimingReader<'_>, costs: &EveryMeasure<'_>) -> TimingReport {
        let view = View { show_all: true, ..View::default() };
        phases.finish(costs, &view, self.symbolizer)
    }

    /// Returns the profiles of a process, in the selected view.
    pub(crate) fn visible_profiles<'m>(
        &self,
        all: &'m EveryMeasure<'_>,
        process: usize,
    ) -> impl Iterator<Item = MeasuredProfile> + use<'m, '_, 'a> {
        all.profiles(process, self.symbolizer)
    }

    /// Returns the costs of stacks, before frames are named.
    pub fn recorded_costs(&self, part: &AggregateOptions) -> Result<RecordedCosts<'a>, ExportError> {
        let mut progress = self.progress.borrow_mut();
        let costs = RecordedCosts::collect(self.recording.processes(), part, &mut **progress)?;
        self.record_missing(costs.missing(), false);
        Ok(costs)
    }

    /// Visits the events of a thread of the process with this index, in order, up to the end of the selected time.
    /// Parts that can't be read are not reported: callers that read thread after thread have read the whole process
    /// before.
    pub(crate) fn visit_thread(
        &self,
        index: usize,
        thread: u32,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let Some(process) = self.processes().get(index) else { return Ok(()) };
        let (began, range) = self.range_until_end(process);
        let mut order = process.in_time_order(range, Some(&[thread]));
        while let Some(timed) = order.next_event()? {
            self.events.set(self.events.get() + 1);
            event(TimedEvent { time_ns: timed.time_ns.saturating_add_unsigned(began), ..timed })?;
        }
        Ok(())
    }

    /// Returns when a process began to record, and its time up to the end of the selection.
    fn range_until_end(&self, process: &ProcessRecording) -> (u64, Option<Range<u64>>) {
        let began = self.began(process);
        (began, self.options.part.range.as_ref().map(|range| 0..range.end.saturating_sub(began)))
    }

    /// Converts a time range since the first process began to record to one since this process did.
    pub(crate) fn time_of_process(&self, process: &ProcessRecording, range: &Range<u64>) -> Range<u64> {
        let began = self.began(process);
        range.start.saturating_sub(began)..range.end.saturating_sub(began)
    }

    /// Returns the memory usage of the process with this index, which `read` computes.
    pub(crate) fn usage(
        &self,
        index: usize,
        read: impl FnOnce(&mut dyn FnMut(u64)) -> Result<MemoryUsage, ReadError>,
    ) -> Result<MemoryUsage, ExportError> {
        let done: u64 = self.processes()[..index].iter().map(ProcessRecording::bytes).sum();
        let mut progress = self.progress.borrow_mut();
        let usage = read(&mut |bytes| progress(done + bytes))?;
        self.missing.borrow_mut().add_all(&usage.missing);
        Ok(usage)
    }

    /// Returns the names of a process's frames, by their numbers in its recording.
    pub fn names(&self, process: &ProcessRecording, frames: &[u32]) -> RecordedNames {
        RecordedNames::resolve(process, frames, self.symbolizer)
    }

    /// Returns when a process began to record, in nanoseconds since the first one did.
    pub fn began(&self, process: &ProcessRecording) -> u64 {
        let axis = self.recording.time_axis();
        u64::try_from(axis.time_ns(process, 0).saturating_sub(self.begin())).unwrap_or(0)
    }

    /// Visits every selected event in the order of time. Times are in nanoseconds since the first process began to
    /// record.
    pub fn visit_events(
        &self,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let begin = self.begin();
        let range =
            self.options.part.range.as_ref().map(|range| on_axis(begin, range.start)..on_axis(begin, range.end));
        self.visit_range(range, event)
    }

    /// Visits the events before the selected time too, whose effects may extend into it.
    pub fn visit_events_from_start(
        &self,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let begin = self.begin();
        let range = self.options.part.range.as_ref().map(|range| begin..on_axis(begin, range.end));
        self.visit_range(range, event)
    }

    /// Visits the same events of the process with this index only.
    pub fn visit_process_from_start(
        &self,
        index: usize,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let missing = self.visit_process(index, event)?;
        // Callers that read process after process read each once.
        self.missing.borrow_mut().add_all(&missing);
        Ok(())
    }

    /// Visits the same events again: parts that can't be read are not reported a second time.
    pub(crate) fn visit_process_again(
        &self,
        index: usize,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        self.visit_process(index, event).map(drop)
    }

    fn visit_process(
        &self,
        index: usize,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<Missing, ExportError> {
        let Some(process) = self.processes().get(index) else { return Ok(Missing::default()) };
        let done: u64 = self.processes()[..index].iter().map(ProcessRecording::bytes).sum();
        let (began, range) = self.range_until_end(process);
        let mut failed = None;
        let mut progress = self.progress.borrow_mut();
        let missing = process.visit_in_time_order(range, &mut |bytes| progress(done + bytes), &mut |timed| {
            let shifted = TimedEvent { time_ns: timed.time_ns.saturating_add_unsigned(began), ..timed };
            self.visit_if_selected(shifted, event, &mut failed)
        })?;
        failed.map_or(Ok(missing), Err)
    }

    fn visit_range(
        &self,
        range: Option<Range<i64>>,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let begin = self.begin();
        let mut failed = None;
        let mut progress = self.progress.borrow_mut();
        let missing = self.recording.visit_in_time_order(range, &mut **progress, &mut |timed| {
            let shifted = TimedEvent { time_ns: timed.time_ns.saturating_sub(begin), ..timed };
            self.visit_if_selected(shifted, event, &mut failed)
        })?;
        self.record_missing([&missing].into_iter(), false);
        failed.map_or(Ok(()), Err)
    }

    /// Visits an event if it is selected, and returns whether to continue.
    fn visit_if_selected(
        &self,
        timed: TimedEvent<'_>,
        event: &mut dyn FnMut(TimedEvent<'_>) -> Result<(), ExportError>,
        failed: &mut Option<ExportError>,
    ) -> ControlFlow<()> {
        self.events.set(self.events.get() + 1);
        if !self.is_selected(timed.process, timed.thread) {
            return ControlFlow::Continue(());
        }
        *failed = event(timed).err();
        if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_selected(&self, process: &ProcessRecording, number: u32) -> bool {
        let part = &self.options.part;
        part.threads.is_empty() || part.selects(process.dictionary().thread(number))
    }

    /// Records which source files are in the export.
    pub(crate) fn set_included_sources(&self, sources: IncludedSources) {
        *self.sources.borrow_mut() = sources;
    }

    /// Returns which source files are in the export.
    pub(crate) fn sources(&self) -> IncludedSources {
        self.sources.borrow().clone()
    }

    /// Adds a sentence about what the format leaves out, and how to include it.
    pub(crate) fn add_remark(&self, sentence: String) {
        self.remarks.borrow_mut().push(sentence);
    }

    /// Returns the sentences that were added.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        self.remarks.take()
    }

    /// Returns what could not be read so far, one sentence each.
    pub(crate) fn report(&self) -> Vec<String> {
        let mut sentences = self.missing.borrow().sentences();
        sentences.extend(self.recording.processes().iter().flat_map(|process| process.missing().sentences()));
        sentences
    }

    /// Records what could not be read. It is counted once, even if the recording is read again.
    fn record_missing<'m>(&self, missing: impl Iterator<Item = &'m Missing>, is_before: bool) {
        if is_before || !self.was_read.replace(true) {
            missing.for_each(|missing| self.missing.borrow_mut().add_all(missing));
        }
    }
}

/// Returns the process that a recording of several is named after: of those that were not started by another one, the
/// one that ran longest; of equal ones the first.
pub(crate) fn main_process(processes: &[ProcessRecording]) -> Option<&ProcessRecording> {
    let pids: HashSet<u32> = processes.iter().map(|process| process.start().pid).collect();
    let is_child = |process: &ProcessRecording| {
        let start = process.start();
        start.parent_pid != start.pid && pids.contains(&start.parent_pid)
    };
    let duration = |process: &ProcessRecording| process.time_range().map_or(0, |range| range.end - range.start);
    let longest = |is_wanted: &dyn Fn(&ProcessRecording) -> bool| {
        processes.iter().filter(|process| is_wanted(process)).min_by_key(|process| Reverse(duration(process)))
    };
    longest(&|process| !is_child(process)).or_else(|| longest(&|_| true))
}

/// Returns when the first process of a recording began to record, on the recording's axis.
fn begin_of(recording: &Recording) -> i64 {
    let axis = recording.time_axis();
    recording.processes().iter().map(|process| axis.time_ns(process, 0)).min().unwrap_or(0)
}

/// Returns the wall clock at a time since then.
fn wall_ns_of(recording: &Recording, time_ns: u64) -> i64 {
    let axis = recording.time_axis();
    let first = recording.processes().iter().min_by_key(|process| axis.time_ns(process, 0));
    first.map_or(0, |process| process.timeline().wall_ns(time_ns))
}

/// Converts a time since the start to the axis with this start.
fn on_axis(begin: i64, ns: u64) -> i64 {
    begin.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX))
}
