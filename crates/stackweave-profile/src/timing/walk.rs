//! The phases of one process, while its events stream by.
//!
//! What is open follows the rules of profiles: see `aggregate/collector.rs` and `aggregate/span_tree.rs`. Hot file: what is kept
//! grows with the number of frames, of runs, and of phases that are open, and not with the number of events.

use std::ops::{ControlFlow, Range};

use stackweave_recording::events::{About, Begin, Decoder, Ending, Event};
use stackweave_recording::file::RawEvent;
use stackweave_recording::read::{Ended, OpenStack};
use stackweave_recording::{ProcessRecording, ReadError};

use super::attributes;
use super::open_run::{OpenRun, RunSums, Spent};
use super::phase_facts::PhaseFacts;
use crate::aggregate::AggregateOptions;
use crate::word_hash::WordMap;

/// What the phases of a process are like, by the numbers of frames in its recording.
#[derive(Debug, Default)]
pub(super) struct Walked {
    pub(super) facts: WordMap<u32, PhaseFacts>,
    /// In the order in which they were read. One that lies outside of the time asked for has no time.
    pub(super) runs: Vec<WalkedRun>,
    /// Ends where nothing was open, by frame and stack: how often, and when first.
    pub(super) unmatched: WordMap<(u32, u32), (u64, u64)>,
}

#[derive(Debug)]
pub(super) struct WalkedRun {
    pub(super) thread: u32,
    pub(super) frame: u32,
    /// The place of the run around it.
    pub(super) parent: Option<usize>,
    /// In nanoseconds since the base of the process.
    pub(super) began: u64,
    pub(super) ns: Option<u64>,
    /// `None`: the recording has no end of it.
    pub(super) how: Option<Ending>,
    pub(super) begin_details: Box<[u8]>,
    pub(super) end_details: Box<[u8]>,
    pub(super) sums: RunSums,
}

/// Reads the phases of a process. `range` is in nanoseconds since its base.
pub(super) fn walk(
    process: &ProcessRecording,
    options: &AggregateOptions,
    range: Range<u64>,
    progress: &mut dyn FnMut(u64),
) -> Result<Walked, ReadError> {
    let mut walk = Walk {
        process,
        options,
        decoder: Decoder::of(process.dictionary()),
        range,
        threads: Vec::new(),
        by_number: WordMap::default(),
        are_told_apart: WordMap::default(),
        walked: Walked::default(),
    };
    let until = (walk.range.end != u64::MAX).then_some(0..walk.range.end);
    process.visit(until, progress, &mut |block| {
        let place = walk.place_of(block.thread());
        let mut thread = core::mem::take(&mut walk.threads[place]);
        if thread.is_asked_for {
            block.into_iter().for_each(|event| walk.event(&mut thread, &event));
        }
        walk.threads[place] = thread;
        ControlFlow::Continue(())
    })?;
    Ok(walk.finish())
}

struct Walk<'a> {
    process: &'a ProcessRecording,
    options: &'a AggregateOptions,
    range: Range<u64>,
    decoder: Decoder,
    threads: Vec<Thread>,
    by_number: WordMap<u32, usize>,
    /// Whether runs have sums of a frame: it has no file.
    are_told_apart: WordMap<u32, bool>,
    walked: Walked,
}

#[derive(Debug, Default)]
struct Thread {
    number: u32,
    is_asked_for: bool,
    open: OpenStack<Phase>,
    /// The runs among what is open.
    runs: Vec<OpenRun>,
    now: u64,
    /// When something else than an open was told last.
    seen: u64,
    /// The ticks at which events of this thread are missing, the next one last.
    losses: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Phase {
    frame: u32,
    began: u64,
    /// 1, or 0 if it was open when it was first heard of.
    calls: u64,
    is_run: bool,
    is_told_apart: bool,
    /// What phases inside took that are told apart, without those inside of these.
    inner_ns: u64,
}

impl Walk<'_> {
    fn event(&mut self, thread: &mut Thread, event: &RawEvent<'_>) {
        let ticks = event.ticks;
        let event = self.decoder.decode(event);
        let is_open = matches!(event, Event::Open(_));
        if !is_open && thread.open.was_told() {
            self.end_beyond(thread);
        }
        while thread.losses.last().is_some_and(|lost| ticks > *lost) {
            if !is_open {
                self.cut(thread, None);
            }
            thread.losses.pop();
        }
        thread.now = thread.now.max(self.process.timeline().nanoseconds(ticks));
        if !is_open {
            thread.seen = thread.now;
        }
        match event {
            Event::Begin(begin) => self.begin(thread, begin),
            Event::Open(open) => self.open(thread, open.frame, open.depth),
            Event::End(end) => {
                if let Ended::Known(phase) = thread.open.end() {
                    self.close(thread, phase, thread.now, (Some(end.ending), end.details));
                }
            }
            Event::Instant(instant) if instant.about == About::UnmatchedPop => {
                self.unmatched(instant.frame, instant.stack, thread.now);
            }
            _ => {}
        }
    }

    fn begin(&mut self, thread: &mut Thread, begin: Begin<'_>) {
        let (bytecode_count, inline_depth) = match begin.code {
            Some((count, depth)) => (Some(count), Some(depth)),
            None => attributes::code(begin.details),
        };
        if bytecode_count.is_some() || inline_depth.is_some() {
            self.facts(begin.frame).has_code(bytecode_count, inline_depth);
        }
        let phase = self.phase(thread, begin.frame, 1);
        if let Some(run) = thread.runs.last_mut()
            && phase.is_told_apart
        {
            run.begin(phase.frame);
        }
        thread.open.begin(Phase { is_run: begin.is_run, ..phase });
        if begin.is_run {
            let parent = thread.runs.last().map(|run| run.row);
            thread.runs.push(OpenRun::new(self.walked.runs.len(), thread.open.len()));
            self.walked.runs.push(WalkedRun {
                thread: thread.number,
                frame: begin.frame,
                parent,
                began: thread.now,
                ns: None,
                how: None,
                begin_details: begin.details.into(),
                end_details: Box::default(),
                sums: RunSums::default(),
            });
        }
    }

    fn open(&mut self, thread: &mut Thread, frame: u32, depth: u64) {
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
                && phase.is_told_apart
            {
                run.begin(frame);
            }
            thread.open.begin_open(depth, phase);
        }
    }

    fn phase(&mut self, thread: &Thread, frame: u32, calls: u64) -> Phase {
        let is_told_apart = *self.are_told_apart.entry(frame).or_insert_with(|| has_no_file(self.process, frame));
        Phase { frame, began: thread.now, calls, is_run: false, is_told_apart, inner_ns: 0 }
    }

    fn end_beyond(&mut self, thread: &mut Thread) {
        while let Some(phase) = thread.open.take_beyond() {
            self.close(thread, phase, thread.seen.max(phase.began), (None, &[]));
        }
    }

    /// Ends what is open, at the time of the thread's last event, or at `until` if that is known to be later.
    fn cut(&mut self, thread: &mut Thread, until: Option<u64>) {
        let ended = until.map_or(thread.now, |until| until.max(thread.now));
        // What goes on behind the time asked for has not ended in it, but it is not missing either.
        let how = until.map(|_| Ending::Done);
        while let Some(phase) = thread.open.take_innermost() {
            self.close(thread, phase, ended, (how, &[]));
        }
    }

    /// A phase that was taken out of those that are open has ended.
    fn close(&mut self, thread: &mut Thread, phase: Phase, ended: u64, (how, details): (Option<Ending>, &[u8])) {
        let Range { start, end } = self.range;
        let is_inside = phase.began < end && (ended > start || phase.began >= start);
        let spent = is_inside.then(|| {
            let ns = ended.min(end) - phase.began.max(start);
            Spent { calls: phase.calls, ns, own_ns: ns.saturating_sub(phase.inner_ns) }
        });
        if let Some(around) = thread.open.last_mut() {
            let of_itself = spent.filter(|_| phase.is_told_apart).map(|spent| spent.ns);
            around.inner_ns = around.inner_ns.saturating_add(of_itself.unwrap_or(phase.inner_ns));
        }
        if is_inside && how != Some(Ending::Done) {
            let facts = self.facts(phase.frame);
            match how {
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
                around.take_in(depth, &run.sums);
            }
            let row = &mut self.walked.runs[run.row];
            row.ns = spent.map(|spent| spent.ns);
            row.how = how;
            row.end_details = details.into();
            row.sums = run.sums;
        }
        if let Some(run) = thread.runs.last_mut() {
            if phase.is_told_apart {
                run.end(phase.frame, spent);
            }
            if is_inside {
                run.had(depth, phase.calls);
            }
        }
    }

    fn unmatched(&mut self, frame: u32, stack: u32, time: u64) {
        if self.range.contains(&time) {
            let (times, first) = self.walked.unmatched.entry((frame, stack)).or_insert((0, time));
            *times += 1;
            *first = (*first).min(time);
        }
    }

    fn facts(&mut self, frame: u32) -> &mut PhaseFacts {
        self.walked.facts.entry(frame).or_default()
    }

    fn place_of(&mut self, number: u32) -> usize {
        if let Some(place) = self.by_number.get(&number) {
            return *place;
        }
        let is_asked_for = self.options.takes(self.process.dictionary().thread(number));
        let losses = self.process.loss_ticks(number);
        self.threads.push(Thread { number, is_asked_for, losses, ..Thread::default() });
        self.by_number.insert(number, self.threads.len() - 1);
        self.threads.len() - 1
    }

    fn finish(mut self) -> Walked {
        for mut thread in core::mem::take(&mut self.threads) {
            let last = self.process.last_ticks(thread.number).map(|ticks| self.process.timeline().nanoseconds(ticks));
            let goes_on = last.is_some_and(|last| last >= self.range.end);
            let until = goes_on.then_some(self.range.end);
            self.cut(&mut thread, until);
        }
        self.walked
    }
}

fn has_no_file(process: &ProcessRecording, frame: u32) -> bool {
    let dictionary = process.dictionary();
    let file = dictionary.names(frame).first().and_then(|name| name.filename);
    file.and_then(|file| dictionary.string(file)).is_none_or(str::is_empty)
}
