//! Reads the phases of one process.
//!
//! Open phases follow the rules of profiles: see `aggregate/collector.rs` and `aggregate/span_tree.rs`. Hot file:
//! memory grows with the number of frames, of runs, and of open phases, and not with the number of events.

use std::ops::{ControlFlow, Range};

use stackweave_recording::events::{Begin, Decoder, Ending, Event, InstantSubject};
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_recording::{ProcessRecording, ReadError};

use super::attributes;
use super::open_run::{OpenRun, PhaseTime, RunSums};
use super::phase_facts::PhaseFacts;
use crate::aggregate::AggregateOptions;
use crate::word_hash::WordMap;

/// The phases of a process, by the numbers of frames in its recording.
#[derive(Debug, Default)]
pub(super) struct ProcessPhases {
    pub(super) facts: WordMap<u32, PhaseFacts>,
    /// The runs in the order in which they were read. A run outside of the selected time has no duration.
    pub(super) runs: Vec<RecordedRun>,
    /// Pops without an open phase, by frame and stack: their number, and the time of the first one.
    pub(super) unmatched: WordMap<(u32, u32), (u64, u64)>,
}

#[derive(Debug)]
pub(super) struct RecordedRun {
    pub(super) thread: u32,
    pub(super) frame: u32,
    /// The index of the run around it.
    pub(super) parent: Option<usize>,
    /// The start, in nanoseconds since the base of the process.
    pub(super) began: u64,
    pub(super) ns: Option<u64>,
    /// Its outcome; `None` if its end is not in the recording.
    pub(super) ending: Option<Ending>,
    pub(super) begin_details: Box<[u8]>,
    pub(super) end_details: Box<[u8]>,
    pub(super) sums: RunSums,
}

/// Reads the phases of a process. `range` is in nanoseconds since its base.
pub(super) fn read_phases(
    process: &ProcessRecording,
    options: &AggregateOptions,
    range: Range<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<ProcessPhases, ReadError> {
    let decoder = Decoder::of(process.dictionary());
    let mut reader = PhaseReader::new(process, options, range);
    let until = (reader.range.end != u64::MAX).then_some(0..reader.range.end);
    process.visit(until, progress, &mut |block| {
        for event in block {
            let time = process.timeline().nanoseconds(event.ticks);
            reader.add(block.thread(), (event.ticks, time), &decoder.decode(&event));
        }
        ControlFlow::Continue(())
    })?;
    Ok(reader.finish())
}

/// Reads the phases of a process from its events: those of each thread in order.
#[derive(Debug)]
pub(super) struct PhaseReader<'a> {
    process: &'a ProcessRecording,
    options: &'a AggregateOptions,
    range: Range<u64>,
    threads: Vec<PhaseThread>,
    by_number: WordMap<u32, usize>,
    /// Whether phases of a frame are listed in runs: those without a file are.
    listed: WordMap<u32, bool>,
    phases: ProcessPhases,
}

#[derive(Debug, Default)]
struct PhaseThread {
    number: u32,
    is_selected: bool,
    open: OpenStack<OpenPhase>,
    /// The runs among the open phases.
    runs: Vec<OpenRun>,
    now: u64,
    /// The time of the last event that was not a record of an open span.
    last_event: u64,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct OpenPhase {
    frame: u32,
    began: u64,
    /// 1, or 0 for a phase that was open before it was recorded.
    calls: u64,
    is_run: bool,
    is_listed: bool,
    /// The time of listed phases inside it, without those nested in other listed ones.
    inner_ns: u64,
}

impl<'a> PhaseReader<'a> {
    /// Creates a reader. `range` is in nanoseconds since the base of the process.
    pub(super) fn new(process: &'a ProcessRecording, options: &'a AggregateOptions, range: Range<u64>) -> Self {
        let (threads, by_number, listed, phases) = Default::default();
        Self { process, options, range, threads, by_number, listed, phases }
    }

    /// Adds an event of the thread with this number, at these ticks and this time.
    pub(super) fn add(&mut self, number: u32, at: (u64, u64), event: &Event<'_>) {
        let index = self.index_of(number);
        if self.threads[index].is_selected {
            let mut threads = core::mem::take(&mut self.threads);
            self.event(&mut threads[index], at, event);
            self.threads = threads;
        }
    }

    fn event(&mut self, thread: &mut PhaseThread, (ticks, time): (u64, u64), event: &Event<'_>) {
        let is_open = matches!(event, Event::Open(_));
        if !is_open && thread.open.was_recorded_open() {
            self.end_beyond(thread);
        }
        while thread.losses.last().is_some_and(|lost| ticks > *lost) {
            if !is_open {
                self.cut(thread, None);
            }
            thread.losses.pop();
        }
        thread.now = thread.now.max(time);
        if !is_open {
            thread.last_event = thread.now;
        }
        match *event {
            Event::Begin(begin) => self.begin(thread, begin),
            Event::Open(open) => self.open(thread, open.frame, open.depth),
            Event::End(end) => {
                if let Ended::Known(phase) = thread.open.end() {
                    self.close(thread, phase, thread.now, (Some(end.ending), end.details));
                }
            }
            Event::Instant(instant) if instant.about == InstantSubject::UnmatchedPop => {
                self.unmatched(instant.frame, instant.stack, thread.now);
            }
            _ => {}
        }
    }

    fn begin(&mut self, thread: &mut PhaseThread, begin: Begin<'_>) {
        let (bytecode_count, inline_depth) = match begin.code {
            Some((count, depth)) => (Some(count), Some(depth)),
            None => attributes::code_facts(begin.details),
        };
        if bytecode_count.is_some() || inline_depth.is_some() {
            self.facts(begin.frame).has_code(bytecode_count, inline_depth);
        }
        let phase = self.phase(thread, begin.frame, 1);
        if let Some(run) = thread.runs.last_mut()
            && phase.is_listed
        {
            run.begin(phase.frame);
        }
        thread.open.begin(OpenPhase { is_run: begin.is_run, ..phase });
        if begin.is_run {
            let parent = thread.runs.last().map(|run| run.row);
            thread.runs.push(OpenRun::new(self.phases.runs.len(), thread.open.len()));
            self.phases.runs.push(RecordedRun {
                thread: thread.number,
                frame: begin.frame,
                parent,
                began: thread.now,
                ns: None,
                ending: None,
                begin_details: begin.details.into(),
                end_details: Box::default(),
                sums: RunSums::default(),
            });
        }
    }

    fn open(&mut self, thread: &mut PhaseThread, frame: u32, depth: u64) {
        if !thread.open.goes_on(depth) {
            self.end_beyond(thread);
        }
        if frame == 0 {
            thread.open.open_nothing(depth);
            return self.end_beyond(thread);
        }
        if thread.open.open(depth, |open| open.frame == frame) {
            self.end_beyond(thread);
            let phase = self.phase(thread, frame, 0);
            if let Some(run) = thread.runs.last_mut()
                && phase.is_listed
            {
                run.begin(frame);
            }
            thread.open.begin_open(depth, phase);
        }
    }

    fn phase(&mut self, thread: &PhaseThread, frame: u32, calls: u64) -> OpenPhase {
        let is_listed = *self.listed.entry(frame).or_insert_with(|| has_no_file(self.process, frame));
        OpenPhase { frame, began: thread.now, calls, is_run: false, is_listed, inner_ns: 0 }
    }

    fn end_beyond(&mut self, thread: &mut PhaseThread) {
        while let Some(phase) = thread.open.take_beyond() {
            self.close(thread, phase, thread.last_event.max(phase.began), (None, &[]));
        }
    }

    /// Ends all open phases, at the time of the thread's last event, or at `until` if that is later.
    fn cut(&mut self, thread: &mut PhaseThread, until: Option<u64>) {
        let ended = until.map_or(thread.now, |until| until.max(thread.now));
        // A phase that continues after the selected time has not ended in it, but its end is not missing either.
        let ending = until.map(|_| Ending::Done);
        while let Some(phase) = thread.open.take_innermost() {
            self.close(thread, phase, ended, (ending, &[]));
        }
    }

    /// Ends a phase that was removed from the open ones.
    fn close(
        &mut self,
        thread: &mut PhaseThread,
        phase: OpenPhase,
        ended: u64,
        (ending, details): (Option<Ending>, &[u8]),
    ) {
        let Range { start, end } = self.range;
        let is_inside = phase.began < end && (ended > start || phase.began >= start);
        let time = is_inside.then(|| {
            let ns = ended.min(end) - phase.began.max(start);
            PhaseTime { calls: phase.calls, ns, self_ns: ns.saturating_sub(phase.inner_ns) }
        });
        if let Some(around) = thread.open.last_mut() {
            let of_itself = time.filter(|_| phase.is_listed).map(|time| time.ns);
            around.inner_ns = around.inner_ns.saturating_add(of_itself.unwrap_or(phase.inner_ns));
        }
        if is_inside && ending != Some(Ending::Done) {
            let facts = self.facts(phase.frame);
            match ending {
                Some(Ending::Failed) => facts.failed += 1,
                Some(Ending::LeftOpen) => facts.left_open += 1,
                Some(Ending::Done) => {}
                None => facts.unfinished += 1,
            }
        }
        let depth = thread.open.len();
        if phase.is_run
            && let Some(run) = thread.runs.pop()
        {
            if let Some(around) = thread.runs.last_mut() {
                around.add_inner(depth, &run.sums);
            }
            let row = &mut self.phases.runs[run.row];
            row.ns = time.map(|time| time.ns);
            row.ending = ending;
            row.end_details = details.into();
            row.sums = run.sums;
        }
        if let Some(run) = thread.runs.last_mut() {
            if phase.is_listed {
                run.end(phase.frame, time);
            }
            if is_inside {
                run.count(depth, phase.calls);
            }
        }
    }

    fn unmatched(&mut self, frame: u32, stack: u32, time: u64) {
        if self.range.contains(&time) {
            let (times, first) = self.phases.unmatched.entry((frame, stack)).or_insert((0, time));
            *times += 1;
            *first = (*first).min(time);
        }
    }

    fn facts(&mut self, frame: u32) -> &mut PhaseFacts {
        self.phases.facts.entry(frame).or_default()
    }

    fn index_of(&mut self, number: u32) -> usize {
        if let Some(index) = self.by_number.get(&number) {
            return *index;
        }
        let is_selected = self.options.selects(self.process.dictionary().thread(number));
        let losses = self.process.loss_ticks(number);
        self.threads.push(PhaseThread { number, is_selected, losses, ..PhaseThread::default() });
        self.by_number.insert(number, self.threads.len() - 1);
        self.threads.len() - 1
    }

    pub(super) fn finish(mut self) -> ProcessPhases {
        for mut thread in core::mem::take(&mut self.threads) {
            let last = self.process.last_ticks(thread.number).map(|ticks| self.process.timeline().nanoseconds(ticks));
            let goes_on = last.is_some_and(|last| last >= self.range.end);
            let until = goes_on.then_some(self.range.end);
            self.cut(&mut thread, until);
        }
        self.phases
    }
}

fn has_no_file(process: &ProcessRecording, frame: u32) -> bool {
    let dictionary = process.dictionary();
    let file = dictionary.names(frame).first().and_then(|name| name.filename);
    file.and_then(|file| dictionary.string(file)).is_none_or(str::is_empty)
}
