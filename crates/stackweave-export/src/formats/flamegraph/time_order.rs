//! A flame graph in the order of time, with a section for each thread.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::mem;

use serde_json::Value;
use stackweave_profile::{Frame, FrameKind, Measure};

use super::draw::write_flames;
use super::hidden_time::{OpenTimes, caption};
use super::spans::{SEVERAL_FUNCTIONS, SpanBox, ThreadBoxes};
use super::{BoxLabel, Flames, PictureBox, kind_legend};
use crate::activity::{EventContent, NamedProcess, Span, visit};
use crate::error::ExportError;
use crate::source::Source;
use crate::svg::{FunctionLabel, fit, one_line, percentage, plural, shade};
use crate::visible_frames::VisibleFrames;

/// Reasons are cut to this width, in font sizes.
const MAX_REASON_WIDTH: f64 = 120.0;

pub(super) fn write(source: &Source<'_>, title: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let no_order = || ExportError::Unsupported("only calls and spans can be drawn in the order of time".to_owned());
    if source.options().part.measure.is_some_and(|measure| measure != Measure::WallTime) {
        return Err(no_order());
    }
    let processes = NamedProcess::all(source);
    let mut items = BoxFunctions::new(source);
    let mut reasons = Reasons::default();
    let mut threads: BTreeMap<(usize, u32), DrawnThread> = BTreeMap::new();
    visit(source, &mut |event| {
        let thread = threads.entry((event.process, event.thread));
        match event.content {
            EventContent::Begin(span) => {
                let thread = thread.or_default();
                let index = (event.process, span.frame, thread.is_library.last().copied().unwrap_or(false));
                let FrameItems { functions, is_library, is_hidden } = items.of(&processes, index);
                thread.thread.begin(functions, event.time);
                thread.is_library.push(*is_library);
                thread.times.begin(event.time, *is_hidden);
            }
            EventContent::End(span, _) => {
                let thread = thread.or_default();
                if span.has_failed() {
                    thread.thread.fail(event.time, reasons.of(span));
                } else {
                    thread.thread.end(event.time);
                }
                thread.is_library.pop();
                thread.times.end(event.time);
            }
            _ => {}
        }
        Ok(())
    })?;
    if threads.is_empty() && source.processes().iter().any(|process| process.event_count() > 0) {
        return Err(no_order());
    }
    let notes = caption(threads.values_mut().map(|thread| mem::take(&mut thread.times))).into_iter().collect();
    let mut threads = threads.into_iter().map(|(key, thread)| (key, thread.thread)).collect();
    draw(&mut threads, (&items, &reasons), &processes, (title, notes), out)
}

/// The reasons of failures, without duplicates.
#[derive(Default)]
struct Reasons {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Reasons {
    /// Returns the index of the reason why a span failed, if it was recorded.
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

/// A thread, and for each of its open spans whether the nearest visible code around it is a library's.
#[derive(Default)]
struct DrawnThread {
    thread: ThreadBoxes,
    is_library: Vec<bool>,
    times: OpenTimes,
}

/// The functions of boxes, without duplicates.
struct BoxFunctions {
    /// By process.
    visible: Vec<VisibleFrames>,
    all: Vec<(FrameKind, FunctionLabel)>,
    numbers: HashMap<(FrameKind, FunctionLabel), u32>,
    chains: HashMap<FrameKey, FrameItems>,
}

/// The visible functions of a frame.
struct FrameItems {
    /// The visible functions, outermost first.
    functions: Vec<u32>,
    /// Whether the innermost one is a library's, visible or not.
    is_library: bool,
    /// Whether it is hidden because of its origin.
    is_hidden: bool,
}

/// A process, the number of a frame, and whether the nearest code around the frame is a library's.
type FrameKey = (usize, u32, bool);

impl BoxFunctions {
    fn new(source: &Source<'_>) -> Self {
        let visible = source.processes().iter().map(|process| VisibleFrames::new(process, source.view()));
        Self { visible: visible.collect(), all: Vec::new(), numbers: HashMap::new(), chains: HashMap::new() }
    }

    /// Returns what a frame shows.
    fn of(&mut self, processes: &[NamedProcess<'_>], key: FrameKey) -> &FrameItems {
        let Self { visible, all, numbers, chains } = self;
        chains.entry(key).or_insert_with(|| {
            let (process, number, mut is_library) = key;
            let frames: Vec<Frame> = processes[process].chain(number).rev().cloned().collect();
            let visible = &mut visible[process];
            let is_hidden = visible.hides_innermost(number, &frames, is_library);
            let bits = visible.visible_bits(number, &frames, &mut is_library);
            let functions = visible.functions(number, &frames).iter().enumerate().rev();
            let bits = functions.filter(|(index, _)| bits >> index & 1 == 1);
            let item = |(_, function): (usize, &stackweave_profile::Function)| {
                let item = (function.kind, FunctionLabel::of(function, None));
                *numbers.entry(item.clone()).or_insert_with(|| {
                    all.push(item);
                    u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
                })
            };
            FrameItems { functions: bits.map(item).collect(), is_library, is_hidden }
        })
    }
}

/// The content of a box in the picture, before its width is known.
enum BoxContent {
    Thread { name: String, began: u64, ended: u64 },
    Span(SpanBox),
}

fn draw(
    threads: &mut BTreeMap<(usize, u32), ThreadBoxes>,
    (items, reasons): (&BoxFunctions, &Reasons),
    processes: &[NamedProcess<'_>],
    (title, notes): (&str, Vec<String>),
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let start = threads.values().map(|thread| thread.range().0).min().unwrap_or(0);
    let whole = threads.values().map(|thread| thread.range().1).max().unwrap_or(0) - start;
    let (mut boxes, mut drawn, mut rows, mut narrow) = (Vec::new(), Vec::new(), 0, 0);
    for (key, thread) in threads.iter_mut() {
        thread.finish(whole);
        narrow += thread.narrow;
        let (began, ended) = thread.range();
        let deepest = thread.boxes.iter().map(|of| of.depth + 2).max().unwrap_or(1);
        let heading = BoxContent::Thread { name: thread_name(processes, *key), began, ended };
        let spans = mem::take(&mut thread.boxes).into_iter().map(BoxContent::Span);
        for of in core::iter::once(heading).chain(spans) {
            boxes.push(flame_box(&of, (start, whole), rows, boxes.len()));
            drawn.push(of);
        }
        rows += deepest;
    }
    let flames = Flames {
        title: format!("In the order of time: {title}"),
        subtitle: format!("{} on {}", time(whole), plural(threads.len() as u64, "thread")),
        legend: kind_legend(&items.all.iter().map(|(kind, _)| *kind)),
        notes,
        boxes,
        narrow,
    };
    let label = |of: &PictureBox| label(&drawn[of.item as usize], (items, reasons), (start, whole));
    write_flames(&flames, &label, out)
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
fn flame_box(of: &BoxContent, (start, whole): (u64, u64), row: u32, item: usize) -> PictureBox {
    let (began, ended, depth, is_first) = match of {
        BoxContent::Thread { began, ended, .. } => (*began, *ended, 0, true),
        BoxContent::Span(span) => (span.began, span.ended, span.depth + 1, false),
    };
    let share = |time: u64| if whole == 0 { 0.0 } else { time as f64 / whole as f64 };
    let item = u32::try_from(item).unwrap_or(u32::MAX);
    PictureBox { left: share(began - start), width: share(ended - began), row: row + depth, item, is_first }
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn time(ns: u64) -> String {
    Measure::WallTime.text(ns as f64)
}

#[expect(clippy::cast_precision_loss, reason = "rounded to a few digits for display")]
fn label(of: &BoxContent, (items, reasons): (&BoxFunctions, &Reasons), (start, whole): (u64, u64)) -> BoxLabel {
    let at = |ns: u64| time(ns - start);
    match of {
        BoxContent::Thread { name, began, ended } => BoxLabel {
            function: FunctionLabel { name: name.clone(), location: String::new() },
            costs: format!("from {} to {}", at(*began), at(*ended)),
            class: "thread".to_owned(),
        },
        BoxContent::Span(span) => {
            let share = percentage(span.busy as f64 / whole.max(1) as f64);
            let calls = if span.calls > 1 { format!(", {}", plural(span.calls, "call")) } else { String::new() };
            let failed = failed(span, reasons);
            let costs = format!("{} ({share}) from {}{calls}{failed}", time(span.busy), at(span.began));
            if span.item == SEVERAL_FUNCTIONS {
                let function = FunctionLabel { name: "(short calls)".to_owned(), location: String::new() };
                return BoxLabel { function, costs, class: "same".to_owned() };
            }
            let (kind, function) = &items.all[span.item as usize];
            let mut class = shade(*kind, &function.name, &function.location);
            class.push_str(if span.failed > 0 { " failed" } else { "" });
            BoxLabel { function: function.clone(), costs, class }
        }
    }
}

/// Returns `, failed: reason`, or how many calls failed.
fn failed(span: &SpanBox, reasons: &Reasons) -> String {
    let why = span.reason.and_then(|reason| reasons.all.get(reason as usize));
    let why = why.map(|why| format!(": {}", fit(why, MAX_REASON_WIDTH, 1.0))).unwrap_or_default();
    match span.failed {
        0 => String::new(),
        _ if span.calls == 1 => format!(", failed{why}"),
        failed => format!(", {failed} failed{why}"),
    }
}
