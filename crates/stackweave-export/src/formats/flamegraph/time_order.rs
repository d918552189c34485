//! What happened, in its order, a part of the picture for each thread.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use serde_json::Value;
use stackweave_profile::{Frame, FrameKind, Measure};

use super::draw::write_flames;
use super::spans::{Lane, SEVERAL, SpanBox};
use super::{About, FlameBox, Flames, kind_legend};
use crate::activity::{NamedProcess, Span, What, visit};
use crate::error::ExportError;
use crate::source::Source;
use crate::svg::{Named, fit, one_line, percentage, plural, shade};
use crate::visible_frames::VisibleFrames;

/// Reasons are cut to so many times the size of a letter.
const LONGEST_REASON: f64 = 120.0;

pub(super) fn write(source: &Source<'_>, title: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let no_order = || ExportError::NotThis("only begins and ends have an order in time that can be drawn".to_owned());
    if source.options().part.measure.is_some_and(|measure| measure != Measure::WallTime) {
        return Err(no_order());
    }
    let processes = NamedProcess::all(source);
    let mut items = Items::new(source);
    let mut reasons = Reasons::default();
    let mut threads: BTreeMap<(usize, u32), Thread> = BTreeMap::new();
    visit(source, &mut |happening| {
        let thread = threads.entry((happening.process, happening.thread));
        match happening.what {
            What::Begin(span) => {
                let thread = thread.or_default();
                let place = (happening.process, span.frame, thread.is_library.last().copied().unwrap_or(false));
                let (chain, is_library) = items.of(&processes, place);
                thread.lane.begin(chain, happening.time);
                thread.is_library.push(*is_library);
            }
            What::End(span, _) => {
                let thread = thread.or_default();
                if span.has_failed() {
                    thread.lane.fail(happening.time, reasons.of(span));
                } else {
                    thread.lane.end(happening.time);
                }
                thread.is_library.pop();
            }
            _ => {}
        }
        Ok(())
    })?;
    if threads.is_empty() && source.processes().iter().any(|process| process.event_count() > 0) {
        return Err(no_order());
    }
    let mut lanes = threads.into_iter().map(|(key, thread)| (key, thread.lane)).collect();
    draw(&mut lanes, (&items, &reasons), &processes, title, out)
}

/// Why spans have failed, each once.
#[derive(Default)]
struct Reasons {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Reasons {
    /// The number of why a span has failed, if that was told.
    fn of(&mut self, span: &Span) -> Option<u32> {
        let Self { all, numbers } = self;
        let reason = span.at_end.object().get("error").and_then(Value::as_str).map(one_line);
        let number = |reason: &String| {
            all.push(reason.clone());
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        };
        reason.map(|reason| *numbers.entry(reason).or_insert_with_key(number))
    }
}

/// A thread, and for each of its open spans whether the nearest code around is a library's.
#[derive(Default)]
struct Thread {
    lane: Lane,
    is_library: Vec<bool>,
}

/// What boxes stand for, each once.
struct Items {
    /// By process.
    visible: Vec<VisibleFrames>,
    all: Vec<(FrameKind, Named)>,
    numbers: HashMap<(FrameKind, Named), u32>,
    chains: HashMap<FramePlace, (Vec<u32>, bool)>,
}

/// Process, number of the frame, and whether the nearest code around it is a library's.
type FramePlace = (usize, u32, bool);

impl Items {
    fn new(source: &Source<'_>) -> Self {
        let visible = source.processes().iter().map(|process| VisibleFrames::new(process, source.view()));
        Self { visible: visible.collect(), all: Vec::new(), numbers: HashMap::new(), chains: HashMap::new() }
    }

    /// What is seen of a frame, outermost first, and whether it is a library's.
    fn of(&mut self, processes: &[NamedProcess<'_>], place: FramePlace) -> &(Vec<u32>, bool) {
        let Self { visible, all, numbers, chains } = self;
        chains.entry(place).or_insert_with(|| {
            let (process, number, mut is_library) = place;
            let frames: Vec<Frame> = processes[process].chain(number).rev().cloned().collect();
            let visible = &mut visible[process];
            let seen = visible.seen(number, &frames, &mut is_library);
            let functions = visible.functions(number, &frames).iter().enumerate().rev();
            let seen = functions.filter(|(place, _)| seen >> place & 1 == 1);
            let item = |(_, function): (usize, &stackweave_profile::Function)| {
                let item = (function.kind, Named::of(function, None));
                *numbers.entry(item.clone()).or_insert_with(|| {
                    all.push(item);
                    u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
                })
            };
            (seen.map(item).collect(), is_library)
        })
    }
}

/// A box of the picture before it has a width: a thread, or what it did.
enum Drawn {
    Thread { name: String, began: u64, ended: u64 },
    Span(SpanBox),
}

fn draw(
    lanes: &mut BTreeMap<(usize, u32), Lane>,
    (items, reasons): (&Items, &Reasons),
    processes: &[NamedProcess<'_>],
    title: &str,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let start = lanes.values().map(|lane| lane.range().0).min().unwrap_or(0);
    let whole = lanes.values().map(|lane| lane.range().1).max().unwrap_or(0) - start;
    let (mut boxes, mut drawn, mut rows, mut narrow) = (Vec::new(), Vec::new(), 0, 0);
    for (key, lane) in lanes.iter_mut() {
        lane.finish(whole);
        narrow += lane.narrow;
        let (began, ended) = lane.range();
        let deepest = lane.boxes.iter().map(|of| of.depth + 2).max().unwrap_or(1);
        let thread = Drawn::Thread { name: thread_name(processes, *key), began, ended };
        let spans = core::mem::take(&mut lane.boxes).into_iter().map(Drawn::Span);
        for of in core::iter::once(thread).chain(spans) {
            boxes.push(flame_box(&of, (start, whole), rows, boxes.len()));
            drawn.push(of);
        }
        rows += deepest;
    }
    let flames = Flames {
        title: format!("In the order of time: {title}"),
        subtitle: format!("{} on {}", time(whole), plural(lanes.len() as u64, "thread")),
        legend: kind_legend(&items.all.iter().map(|(kind, _)| *kind)),
        notes: Vec::new(),
        boxes,
        narrow,
    };
    let about = |of: &FlameBox| about(&drawn[of.item as usize], (items, reasons), (start, whole));
    write_flames(&flames, &about, out)
}

fn thread_name(processes: &[NamedProcess<'_>], (process, number): (usize, u32)) -> String {
    let of = &processes[process];
    let thread = match of.thread(number) {
        Some(thread) => format!("{} ({})", one_line(&thread.name), thread.tid),
        None => format!("thread {number}"),
    };
    if processes.len() > 1 { format!("{} {}: {thread}", of.pid, one_line(&of.title)) } else { thread }
}

#[expect(clippy::cast_precision_loss, reason = "a part of a picture's width")]
fn flame_box(of: &Drawn, (start, whole): (u64, u64), row: u32, item: usize) -> FlameBox {
    let (began, ended, depth, is_first) = match of {
        Drawn::Thread { began, ended, .. } => (*began, *ended, 0, true),
        Drawn::Span(span) => (span.began, span.ended, span.depth + 1, false),
    };
    let share = |time: u64| if whole == 0 { 0.0 } else { time as f64 / whole as f64 };
    let item = u32::try_from(item).unwrap_or(u32::MAX);
    FlameBox { left: share(began - start), width: share(ended - began), row: row + depth, item, is_first }
}

#[expect(clippy::cast_precision_loss, reason = "times are shown with few digits")]
fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}

#[expect(clippy::cast_precision_loss, reason = "shares are for people")]
fn about(of: &Drawn, (items, reasons): (&Items, &Reasons), (start, whole): (u64, u64)) -> About {
    let at = |ns: u64| time(ns - start);
    match of {
        Drawn::Thread { name, began, ended } => About {
            named: Named { name: name.clone(), place: String::new() },
            costs: format!("from {} to {}", at(*began), at(*ended)),
            class: "thread".to_owned(),
        },
        Drawn::Span(span) => {
            let share = percentage(span.busy as f64 / whole.max(1) as f64);
            let calls = if span.calls > 1 { format!(", {}", plural(span.calls, "call")) } else { String::new() };
            let failed = failed(span, reasons);
            let costs = format!("{} ({share}) from {}{calls}{failed}", time(span.busy), at(span.began));
            if span.item == SEVERAL {
                let named = Named { name: "(short calls)".to_owned(), place: String::new() };
                return About { named, costs, class: "same".to_owned() };
            }
            let (kind, named) = &items.all[span.item as usize];
            let mut class = shade(*kind, &named.name, &named.place);
            class.push_str(if span.failed > 0 { " failed" } else { "" });
            About { named: named.clone(), costs, class }
        }
    }
}

/// `, failed: why`, or how many did.
fn failed(span: &SpanBox, reasons: &Reasons) -> String {
    let why = span.reason.and_then(|reason| reasons.all.get(reason as usize));
    let why = why.map(|why| format!(": {}", fit(why, LONGEST_REASON, 1.0))).unwrap_or_default();
    match span.failed {
        0 => String::new(),
        _ if span.calls == 1 => format!(", failed{why}"),
        failed => format!(", {failed} failed{why}"),
    }
}
