//! Builds a profile of the selected part of recordings.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use stackweave_core::EventKind;
use stackweave_profile::memory;
use stackweave_profile::{AggregateOptions, Filter, Measure, Pattern, Profile, View, aggregate};
use stackweave_recording::{Missing, ProcessRecording, Recording};

use crate::arguments::{Filters, MeasureChoice, Scope, SelectionArguments};
use crate::failure::Failure;
use crate::open_recordings::{open, symbolizer};
use crate::progress::Progress;

/// A profile of the selection, with remarks about it.
pub(crate) struct Selected {
    pub(crate) profile: Profile,
    /// Sentences about missing data.
    pub(crate) remarks: Vec<String>,
    /// The reason why events are missing, if they are.
    pub(crate) incomplete: Option<String>,
    /// The number of threads in the profile.
    pub(crate) threads: usize,
}

impl SelectionArguments {
    /// Opens recordings and aggregates the selected part.
    pub(crate) fn profile(&self, paths: &[impl AsRef<Path>]) -> Result<Selected, Failure> {
        let recording = self.filters.scope.recording(paths)?;
        let processes = recording.processes();
        let symbolizer = symbolizer()?;
        let mut progress = Progress::new("Reading", processes.iter().map(ProcessRecording::bytes).sum());
        let done = aggregate(processes, &self.options()?, Some(symbolizer), &mut |bytes| progress.at(bytes));
        drop(progress);
        let aggregated = done.map_err(Failure::new)?;
        let mut remarks = recording.report();
        remarks.extend(aggregated.missing.iter().flat_map(Missing::sentences));
        let of_processes = processes.iter().map(ProcessRecording::missing);
        let missing = [recording.missing()].into_iter().chain(of_processes).chain(&aggregated.missing);
        let mut incomplete = missing.filter(|missing| !missing.is_complete()).flat_map(Missing::sentences).next();
        let device = aggregated.device;
        let hooks = aggregated.hooks.clone();
        let profile = aggregated.merged();
        if profile.measure().is_memory() {
            incomplete = incomplete.or_else(|| memory::why_unusable(&hooks));
            if self.device.is_none() && device != EventKind::OWN_DEVICE {
                remarks.push(memory::only_of_device(device));
            }
            let is_part = self.filters.scope.range()?.is_some();
            remarks.extend(memory::remarks((processes, &hooks), profile.measure(), is_part));
        }
        if !profile.has_frames() {
            self.check_measure(processes, profile.measure())?;
            remarks.push(format!("The selection has no {}.", profile.measure().describe()));
        }
        let threads = processes.iter().map(|process| self.threads(process)).sum::<Result<usize, Failure>>()?;
        Ok(Selected { profile, remarks, incomplete, threads })
    }

    /// Counts the selected threads of a process that have events.
    fn threads(&self, process: &ProcessRecording) -> Result<usize, Failure> {
        let options = self.options()?;
        let threads = process.dictionary().threads().filter(|thread| !thread.is_recorders());
        Ok(threads.filter(|thread| options.selects(Some(thread)) && process.events_of(thread.number) > 0).count())
    }

    /// Fails if the whole recording has nothing of the requested measure.
    fn check_measure(&self, processes: &[ProcessRecording], measure: Measure) -> Result<(), Failure> {
        let scope = &self.filters.scope;
        if self.measure.is_none() || !scope.thread.is_empty() || scope.range()?.is_some() || self.device.is_some() {
            return Ok(());
        }
        let options = AggregateOptions { measure: None, ..self.options()? };
        let other = aggregate(processes, &options, None, &mut |_| {}).map_err(Failure::new)?.merged();
        if !other.has_frames() {
            return Ok(());
        }
        let (requested, there) = (measure.describe(), other.measure());
        Err(Failure::new(format!(
            "the recording has no {requested}, but {}; --measure {there} shows it",
            there.describe()
        )))
    }

    pub(crate) fn options(&self) -> Result<AggregateOptions, Failure> {
        Ok(AggregateOptions {
            measure: self.measure.map(Into::into),
            device: self.device.map(i64::from),
            threads: self.filters.scope.thread.clone(),
            range: self.filters.scope.range()?,
            view: Some(self.filters.view()),
            ..AggregateOptions::default()
        })
    }
}

impl Filters {
    /// Returns the view of the profile.
    pub(crate) fn view(&self) -> View {
        let patterns = |texts: &[String]| texts.iter().filter_map(|text| text.parse::<Pattern>().ok()).collect();
        let (include, exclude) = (patterns(&self.include), patterns(&self.exclude));
        let filter = Filter { include, exclude, kinds: self.kind.clone() };
        View { show_all: self.all, filter }
    }

    /// Returns whether the user chose which frames are shown.
    pub(crate) fn has_view(&self) -> bool {
        self.all || !self.view().filter.is_empty()
    }
}

impl Scope {
    /// Opens recordings, with the selected processes.
    pub(crate) fn recording(&self, paths: &[impl AsRef<Path>]) -> Result<Recording, Failure> {
        let mut recording = open(paths)?;
        self.check_processes(&recording)?;
        if !self.process.is_empty() {
            recording.retain(|process| self.process.contains(&process.start().pid));
        }
        self.check_threads(recording.processes())?;
        Ok(recording)
    }

    /// Returns the selected time range, in nanoseconds since the start of the recording.
    pub(crate) fn range(&self) -> Result<Option<Range<u64>>, Failure> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (start, end) = (self.start.map_or(0, nanoseconds), self.end.map_or(u64::MAX, nanoseconds));
        if start >= end {
            return Err(Failure::new("--start must be before --end"));
        }
        Ok((self.start.is_some() || self.end.is_some()).then_some(start..end))
    }

    fn check_processes(&self, recording: &Recording) -> Result<(), Failure> {
        let all = recording.processes();
        for pid in &self.process {
            if !all.iter().any(|process| process.start().pid == *pid) {
                let known: Vec<String> = all.iter().map(|process| process.start().pid.to_string()).collect();
                return Err(Failure::new(format!("there is no process {pid}; the recording has {}", known.join(", "))));
            }
        }
        Ok(())
    }

    fn check_threads(&self, processes: &[ProcessRecording]) -> Result<(), Failure> {
        for wanted in &self.thread {
            let only = AggregateOptions { threads: vec![wanted.clone()], ..AggregateOptions::default() };
            let mut threads = processes.iter().flat_map(|process| process.dictionary().threads());
            if !threads.any(|thread| only.selects(Some(thread))) {
                return Err(Failure::new(format!(
                    "there is no thread {wanted}; the recording has {}",
                    threads_of(processes)
                )));
            }
        }
        Ok(())
    }
}

/// The number of threads that are listed; the others are counted.
const THREADS: usize = 8;

/// Lists the threads, those with most events first.
fn threads_of(processes: &[ProcessRecording]) -> String {
    let mut threads: Vec<(u64, String)> = Vec::new();
    for process in processes {
        for thread in process.dictionary().threads() {
            let name = if thread.name.is_empty() { String::new() } else { format!("{} ", thread.name) };
            threads.push((process.events_of(thread.number), format!("{name}({})", thread.tid)));
        }
    }
    threads.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let names: Vec<&str> = threads.iter().take(THREADS).map(|(_, name)| name.as_str()).collect();
    match threads.len().saturating_sub(THREADS) {
        0 if names.is_empty() => "none".to_owned(),
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}

impl From<MeasureChoice> for Measure {
    fn from(counted: MeasureChoice) -> Self {
        match counted {
            MeasureChoice::Time => Self::WallTime,
            MeasureChoice::Calls => Self::Calls,
            MeasureChoice::Samples => Self::Samples,
            MeasureChoice::Bytes => Self::AllocatedBytes,
            MeasureChoice::Allocations => Self::Allocations,
            MeasureChoice::Live => Self::LiveBytes,
            MeasureChoice::Peak => Self::PeakBytes,
            MeasureChoice::Temporary => Self::TemporaryBytes,
        }
    }
}
