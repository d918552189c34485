//! speedscope's JSON: for each thread a profile of its calls and spans, and one of its samples or allocations.
//!
//! Frames come first, then events as they are read. The values of samples follow all of their stacks, so threads with
//! samples are read twice.

mod frames;

use std::collections::BTreeMap;
use std::io::{self, Write};

use stackweave_profile::{AggregateOptions, Grouping, Measure, RecordedCosts, RecordedStack};

use self::frames::SpeedscopeFrames;
use crate::activity::{EventContent, Span, ThreadEvent, visit_thread};
use crate::error::ExportError;
use crate::source::Source;
use stackweave_recording::events::Region;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let part = AggregateOptions { grouping: Grouping::Threads, ..source.options().part.clone() };
    let costs = source.recorded_costs(&part)?;
    let measures = match part.measure {
        Some(measure) => vec![measure],
        None => costs.measures().into_iter().filter(|measure| *measure != Measure::Allocations).collect(),
    };
    let mut frames = SpeedscopeFrames::of(source, &costs, &measures);
    write!(out, "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"stackweave@{}\",\"name\":", env!("CARGO_PKG_VERSION"))?;
    write_text(out, &source.title())?;
    out.write_all(b",\"shared\":{\"frames\":[")?;
    frames.write(out)?;
    out.write_all(b"\n]},\"profiles\":[")?;
    let mut is_first = true;
    for measure in measures {
        for (thread, stacks) in threads(&costs, measure) {
            out.write_all(if is_first { b"\n" } else { b",\n" })?;
            is_first = false;
            let mut profile = ThreadProfile { source, frames: &mut frames, thread, measure };
            match measure {
                Measure::WallTime | Measure::Calls => profile.write_evented(out)?,
                Measure::LiveBytes | Measure::PeakBytes | Measure::TemporaryBytes => {
                    profile.write_costs(&costs, &stacks, out)?;
                }
                Measure::Samples | Measure::AllocatedBytes | Measure::Allocations => profile.write_sampled(out)?,
            }
        }
    }
    Ok(out.write_all(b"\n]}\n")?)
}

/// A thread with its total cost.
#[derive(Clone, Copy, Debug)]
struct ThreadCost {
    process: usize,
    number: u32,
    total: i64,
}

impl ThreadCost {
    fn index(self) -> (usize, u32) {
        (self.process, self.number)
    }
}

/// The costs of a measure by stack, of a thread.
type ThreadCosts = Vec<(RecordedStack, i64)>;

/// Returns the threads with events of this measure; also their costs by stack, if these have no order of time.
fn threads(costs: &RecordedCosts<'_>, measure: Measure) -> Vec<(ThreadCost, ThreadCosts)> {
    let has_stacks = matches!(measure, Measure::LiveBytes | Measure::PeakBytes | Measure::TemporaryBytes);
    let mut threads: BTreeMap<(usize, u32), (i64, ThreadCosts)> = BTreeMap::new();
    costs.visit(measure, |cost| {
        let (total, stacks) = threads.entry((cost.process, cost.thread.unwrap_or(0))).or_default();
        *total = total.saturating_add(cost.self_cost);
        if has_stacks {
            stacks.push((cost.stack, cost.self_cost));
        }
    });
    let thread = |((process, number), (total, stacks))| (ThreadCost { process, number, total }, stacks);
    threads.into_iter().map(thread).collect()
}

/// A profile that is being written.
struct ThreadProfile<'s, 'a> {
    source: &'s Source<'a>,
    frames: &'s mut SpeedscopeFrames,
    thread: ThreadCost,
    measure: Measure,
}

impl ThreadProfile<'_, '_> {
    fn name(&self) -> String {
        let processes = self.source.processes();
        let process = &processes[self.thread.process];
        let thread = process.dictionary().thread(self.thread.number);
        let mut name = match thread {
            Some(thread) if thread.name.is_empty() => format!("thread {}", thread.tid),
            Some(thread) => thread.name.clone(),
            None => format!("thread {}", self.thread.number),
        };
        if processes.len() > 1 {
            name = format!("{} ({}): {name}", self.source.title_of(process), process.start().pid);
        }
        if self.measure == Measure::WallTime { name } else { format!("{name}: {}", self.measure.describe()) }
    }

    fn write_head(&self, kind: &str, unit: &str, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"type\":\"{kind}\",\"name\":")?;
        write_text(out, &self.name())?;
        write!(out, ",\"unit\":\"{unit}\"")
    }

    fn write_evented(&mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        let range = self.source.time_range();
        self.write_head("evented", "nanoseconds", out)?;
        write!(out, ",\"startValue\":{},\"endValue\":{},\"events\":[", range.start, range.end)?;
        let mut path = self.frames.path(self.thread.process);
        let mut separator = "";
        visit_thread(self.source, self.thread.index(), &mut |event| {
            let (kind, frames) = match &event.content {
                EventContent::Begin(span) => ("O", path.push(span.frame)),
                EventContent::End(..) => ("C", path.pop()),
                _ => return Ok(()),
            };
            for frame in frames {
                write!(out, "{separator}\n{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{}}}", event.time)?;
                separator = ",";
            }
            Ok(())
        })?;
        Ok(out.write_all(b"]}")?)
    }

    fn write_sampled(&mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        self.write_sampled_head(out)?;
        let dictionary = self.source.processes()[self.thread.process].dictionary();
        let mut separator = "";
        let mut outermost_first = Vec::new();
        self.visit_values(&mut |frames, around, stack, _| {
            outermost_first.clear();
            if stack == 0 {
                outermost_first.extend(around.iter().map(|span| span.frame));
            } else {
                outermost_first.extend(dictionary.frames_of(stack));
                outermost_first.reverse();
            }
            writeln!(out, "{separator}")?;
            separator = ",";
            write_stack(frames, &outermost_first, out)
        })?;
        out.write_all(b"],\"weights\":[")?;
        separator = "";
        self.visit_values(&mut |_, _, _, value| {
            write!(out, "{separator}{value}")?;
            separator = ",";
            Ok(())
        })?;
        Ok(out.write_all(b"]}")?)
    }

    /// Writes costs that are known only at the end, without an order of time.
    fn write_costs(
        &mut self,
        costs: &RecordedCosts<'_>,
        rows: &[(RecordedStack, i64)],
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        self.write_sampled_head(out)?;
        let mut outermost_first = Vec::new();
        for (index, (stack, _)) in rows.iter().enumerate() {
            out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
            outermost_first.clear();
            outermost_first.extend(costs.frames_of(*stack));
            outermost_first.reverse();
            write_stack(&mut self.frames.path(self.thread.process), &outermost_first, out)?;
        }
        out.write_all(b"],\"weights\":[")?;
        for (index, (_, own)) in rows.iter().enumerate() {
            write!(out, "{}{own}", if index == 0 { "" } else { "," })?;
        }
        Ok(out.write_all(b"]}")?)
    }

    fn write_sampled_head(&self, out: &mut dyn Write) -> io::Result<()> {
        let unit = match self.measure {
            Measure::AllocatedBytes | Measure::LiveBytes | Measure::PeakBytes | Measure::TemporaryBytes => "bytes",
            Measure::WallTime | Measure::Calls | Measure::Samples | Measure::Allocations => "none",
        };
        self.write_head("sampled", unit, out)?;
        write!(out, ",\"startValue\":0,\"endValue\":{},\"samples\":[", self.thread.total)
    }

    /// Visits the values of the measure in the order of time, with the spans around, the stack (0 if there is none) and
    /// the value.
    fn visit_values(&mut self, value: &mut ShowValue<'_>) -> Result<(), ExportError> {
        let mut path = self.frames.path(self.thread.process);
        let measure = self.measure;
        visit_thread(self.source, self.thread.index(), &mut |event| match value_of(event, measure) {
            Some((stack, number)) => value(&mut path, event.around, stack, number),
            None => Ok(()),
        })
    }
}

type ShowValue<'v> = dyn FnMut(&mut frames::FramePath<'_>, &[Span], u32, i64) -> Result<(), ExportError> + 'v;

/// Returns the stack and the value of an event.
fn value_of(event: &ThreadEvent<'_>, measure: Measure) -> Option<(u32, i64)> {
    match (&event.content, measure) {
        (EventContent::Sample { stack, weight, .. }, Measure::Samples) => Some((*stack, *weight)),
        (EventContent::Allocate { memory, .. }, _) if matches!(memory.region, Region::Segment(_)) => None,
        (EventContent::Allocate { memory, .. }, Measure::AllocatedBytes) => {
            Some((memory.stack, i64::try_from(memory.size).unwrap_or(i64::MAX)))
        }
        (EventContent::Allocate { memory, .. }, Measure::Allocations) => Some((memory.stack, 1)),
        _ => None,
    }
}

fn write_stack(
    path: &mut frames::FramePath<'_>,
    outermost_first: &[u32],
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    out.write_all(b"[")?;
    let mut separator = "";
    for frame in outermost_first {
        for index in path.push(*frame) {
            write!(out, "{separator}{index}")?;
            separator = ",";
        }
    }
    path.clear();
    Ok(out.write_all(b"]")?)
}

fn write_text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}
