//! Collects the memory of each process.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use stackweave_core::EventKind;
use stackweave_recording::events::{Usage, UsageSubject};
use stackweave_recording::file::RecordingMode;

use super::line::{CurvePoints, LinePoint};
use crate::activity::{EventContent, NamedProcess, ThreadEvent, visit};
use crate::error::ExportError;
use crate::memory_curve::{MemoryCurves, MemoryPoint};
use crate::source::Source;
use crate::svg::one_line;

/// Counters of the memory recorder.
const HEAP: &str = "memory.heap";
const RSS: &str = "memory.rss";

/// The memory of one process.
pub(super) struct Panel {
    pub(super) title: String,
    /// The live memory.
    pub(super) heap: CurvePoints,
    /// The resident memory, as the system counts it.
    pub(super) rss: CurvePoints,
    /// The memory of devices.
    pub(super) devices: BTreeMap<i64, CurvePoints>,
    /// The peak: more exact than the line, if the recorder knew it.
    pub(super) peak: Option<LinePoint>,
    pub(super) tags: Vec<TagBand>,
}

/// A time in which a thread had a tag.
#[derive(Debug)]
pub(super) struct TagBand {
    pub(super) name: String,
    pub(super) thread: u32,
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Panel {
    pub(super) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.rss.is_empty() && self.devices.is_empty()
    }
}

pub(super) fn gather(source: &Source<'_>) -> Result<Vec<Panel>, ExportError> {
    let processes = NamedProcess::all(source);
    let mut gathered: Vec<PanelBuilder<'_>> =
        processes.iter().map(|process| PanelBuilder::new(source, process)).collect();
    visit(source, &mut |event| {
        gathered[event.process].add(event);
        Ok(())
    })?;
    Ok(gathered.into_iter().map(PanelBuilder::finish).collect())
}

struct PanelBuilder<'a> {
    process: &'a NamedProcess<'a>,
    panel: Panel,
    curves: MemoryCurves,
    /// The live memory according to the recorder, for recordings without all events.
    recorded_heap: CurvePoints,
    /// The current tags of threads, with the time of their beginning.
    open: HashMap<u32, (u32, u64)>,
    range: Range<u64>,
}

impl<'a> PanelBuilder<'a> {
    fn new(source: &Source<'_>, process: &'a NamedProcess<'a>) -> Self {
        let range = source.time_range();
        let line = || CurvePoints::new(range.clone());
        let panel = Panel {
            title: format!("{} ({})", process.title, process.pid),
            heap: line(),
            rss: line(),
            devices: BTreeMap::new(),
            peak: None,
            tags: Vec::new(),
        };
        let (curves, recorded_heap) = (MemoryCurves::of(process.recording), line());
        Self { process, panel, curves, recorded_heap, open: HashMap::new(), range }
    }

    fn add(&mut self, event: &ThreadEvent<'_>) {
        let time = event.time;
        match &event.content {
            EventContent::Counter { frame, value } => {
                let name = self.process.chain(*frame).next_back().map(|frame| &*frame.name);
                match name {
                    Some(HEAP) => self.recorded_heap.push(time, whole(*value)),
                    Some(RSS) => self.panel.rss.push(time, whole(*value)),
                    _ => {}
                }
            }
            EventContent::Tag { frame } => self.tag(event.thread, *frame, time),
            EventContent::Usage { usage, .. } => self.usage(time, usage),
            _ => {
                let points = self.curves.add(event);
                points.into_iter().flatten().for_each(|point| self.point(point));
            }
        }
    }

    fn point(&mut self, point: MemoryPoint) {
        let line = match point.device {
            EventKind::OWN_DEVICE => &mut self.panel.heap,
            device => self.panel.devices.entry(device).or_insert_with(|| CurvePoints::new(self.range.clone())),
        };
        line.push(point.time, point.bytes);
    }

    fn tag(&mut self, thread: u32, frame: u32, time: u64) {
        if let Some((frame, from)) = self.open.remove(&thread) {
            let name = self.process.chain(frame).next_back().map_or_else(String::new, |frame| one_line(&frame.name));
            self.panel.tags.push(TagBand { name, thread, from, to: time });
        }
        if frame != 0 {
            self.open.insert(thread, (frame, time));
        }
    }

    /// Reads the figures of a snapshot: the last one counts.
    fn usage(&mut self, time: u64, usage: &Usage) {
        if let (UsageSubject::Total { peak_ago, .. }, EventKind::OWN_DEVICE) = (usage.row, usage.device) {
            let ago = self.process.recording.timeline().nanoseconds(peak_ago);
            self.panel.peak = Some(LinePoint { time: time.saturating_sub(ago), bytes: usage.figures.peak_bytes });
        }
    }

    fn finish(mut self) -> Panel {
        for point in self.curves.rest() {
            self.point(point);
        }
        let threads: Vec<u32> = self.open.keys().copied().collect();
        for thread in threads {
            self.tag(thread, 0, self.range.end);
        }
        self.panel.tags.sort_by_key(|tag| (tag.thread, tag.from));
        let is_partial = self.process.recording.start().mode != RecordingMode::default();
        if self.panel.heap.is_empty() || is_partial && !self.recorded_heap.is_empty() {
            self.panel.heap = self.recorded_heap;
        }
        // The peak of a time range is that of the curve.
        let range = self.range.clone();
        let highest = self.panel.heap.highest;
        let is_exact =
            |peak: &LinePoint| range.contains(&peak.time) && highest.is_none_or(|seen| seen.bytes <= peak.bytes);
        self.panel.peak = self.panel.peak.filter(is_exact).or(highest);
        self.panel
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes are whole and not negative")]
fn whole(value: f64) -> u64 {
    value as u64
}
