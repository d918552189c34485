//! From the arguments to a profile: which part of recordings is looked at, and how.

use std::io::{self, IsTerminal, Write};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use stackweave_profile::memory;
use stackweave_profile::{AggregateOptions, Filter, FrameKind, Measure, Pattern, Profile, View, aggregate};
use stackweave_recording::{Missing, ProcessRecording, Recording};
use stackweave_symbolize::{Options, Symbolizer};

use crate::arguments::{Counted, Extent, Kind, Part, Selection};
use crate::failure::Failure;
use crate::progress::Progress;

/// A profile of what was asked for, and what has to be said about it.
pub(crate) struct Selected {
    pub(crate) profile: Profile,
    /// What is missing, a sentence each.
    pub(crate) remarks: Vec<String>,
}

impl Selection {
    /// Opens recordings and makes a profile of the part that is asked for.
    pub(crate) fn profile(&self, paths: &[impl AsRef<Path>]) -> Result<Selected, Failure> {
        let recording = self.part.extent.recording(paths)?;
        let processes = recording.processes();
        let symbolizer = Symbolizer::new(Options::from_environment().map_err(Failure::new)?);
        let mut progress = Progress::new("Reading", processes.iter().map(ProcessRecording::bytes).sum());
        let done = aggregate(processes, &self.options()?, Some(&symbolizer), &mut |bytes| progress.at(bytes));
        drop(progress);
        let aggregated = done.map_err(Failure::new)?;
        let mut remarks = recording.report();
        remarks.extend(aggregated.missing.iter().flat_map(Missing::sentences));
        let profile = aggregated.merged();
        if profile.measure().is_memory() {
            remarks.extend(memory::remarks(processes, profile.measure(), self.part.extent.range()?.is_some()));
        }
        if profile.tree().nodes().len() == 1 {
            remarks.push(format!("Nothing here counts as {}.", profile.measure().describe()));
        }
        Ok(Selected { profile, remarks })
    }

    pub(crate) fn options(&self) -> Result<AggregateOptions, Failure> {
        Ok(AggregateOptions {
            measure: self.measure.map(Into::into),
            device: self.device.map(i64::from),
            threads: self.part.extent.thread.clone(),
            range: self.part.extent.range()?,
            ..AggregateOptions::default()
        })
    }
}

impl Part {
    /// How the profile is looked at.
    pub(crate) fn view(&self) -> View {
        let patterns = |texts: &[String]| texts.iter().filter_map(|text| text.parse::<Pattern>().ok()).collect();
        let kinds = self.kind.iter().map(|kind| (*kind).into()).collect();
        let filter = Filter { include: patterns(&self.only), exclude: patterns(&self.hide), kinds };
        View { show_all: self.all, filter }
    }

    /// Whether it is said which frames are shown.
    pub(crate) fn has_view(&self) -> bool {
        self.all || !self.view().filter.is_empty()
    }
}

impl Extent {
    /// Opens recordings, with the processes that are asked for.
    pub(crate) fn recording(&self, paths: &[impl AsRef<Path>]) -> Result<Recording, Failure> {
        let mut recording = Recording::open_all(paths).map_err(Failure::new)?;
        self.check_processes(&recording)?;
        if !self.process.is_empty() {
            recording.retain(|process| self.process.contains(&process.start().pid));
        }
        self.check_threads(recording.processes())?;
        Ok(recording)
    }

    /// The time that is asked for, in nanoseconds since the recording began.
    pub(crate) fn range(&self) -> Result<Option<Range<u64>>, Failure> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (from, to) = (self.from.map_or(0, nanoseconds), self.to.map_or(u64::MAX, nanoseconds));
        if from >= to {
            return Err(Failure::new("--from must be before --to"));
        }
        Ok((self.from.is_some() || self.to.is_some()).then_some(from..to))
    }

    fn check_processes(&self, recording: &Recording) -> Result<(), Failure> {
        let all = recording.processes();
        for pid in &self.process {
            if !all.iter().any(|process| process.start().pid == *pid) {
                let known: Vec<String> = all.iter().map(|process| process.start().pid.to_string()).collect();
                return Err(Failure::new(format!("there is no process {pid}, but {}", known.join(", "))));
            }
        }
        Ok(())
    }

    fn check_threads(&self, processes: &[ProcessRecording]) -> Result<(), Failure> {
        for wanted in &self.thread {
            let only = AggregateOptions { threads: vec![wanted.clone()], ..AggregateOptions::default() };
            let mut threads = processes.iter().flat_map(|process| process.dictionary().threads());
            if !threads.any(|thread| only.takes(Some(thread))) {
                return Err(Failure::new(format!("there is no thread {wanted}; stackweave info lists the threads")));
            }
        }
        Ok(())
    }
}

impl From<Counted> for Measure {
    fn from(counted: Counted) -> Self {
        match counted {
            Counted::Time => Self::WallTime,
            Counted::Samples => Self::Samples,
            Counted::Bytes => Self::AllocatedBytes,
            Counted::Allocations => Self::Allocations,
            Counted::Live => Self::LiveBytes,
            Counted::Peak => Self::PeakBytes,
            Counted::Temporary => Self::TemporaryBytes,
        }
    }
}

impl From<Kind> for FrameKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Python => Self::Python,
            Kind::Native => Self::Native,
            Kind::Script => Self::Script,
            Kind::Extra => Self::Extra,
            Kind::Label => Self::Label,
        }
    }
}

/// What standard output can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// How many columns a line may have: as many as it needs, where nobody looks.
    pub(crate) width: Option<usize>,
    pub(crate) colour: bool,
}

impl Screen {
    pub(crate) fn of_output() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let width = is_terminal.then(|| console::Term::stdout().size().1.into());
        let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { width, colour }
    }
}

/// Writes to standard output, and behind that what has to be said to standard error.
pub(crate) fn show(remarks: &[String], write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::output(&error))?;
    let mut error = io::stderr().lock();
    for remark in remarks {
        let _ = writeln!(error, "stackweave: {remark}");
    }
    Ok(())
}
