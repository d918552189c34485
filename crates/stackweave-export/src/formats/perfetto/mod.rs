//! Perfetto's traces: self-contained packets, with interned names and stacks.
//!
//! Each process is one sequence of packets, with its own numbers. A packet with a new name defines it.

mod annotations;
mod fields;
mod interned;
mod tracks;

use std::io::Write;

use serde_json::{Map, Value};
use stackweave_profile::Frame;
use stackweave_recording::ProcessRecording;

use crate::activity::{EventContent, NamedProcess, Span, SpanEnding, ThreadEvent, visit};
use crate::error::ExportError;
use crate::formats::perfetto::annotations::{annotate, annotate_interned};
use crate::formats::perfetto::fields::{clock_snapshot, event, interned as names, packet, perf_sample, trace, track};
use crate::formats::perfetto::interned::{Interned, InternedFunction};
use crate::formats::perfetto::tracks::{CounterName, Tracks};
use crate::memory_curve::{MemoryCurves, MemoryPoint};
use crate::protobuf::Message;
use crate::source::Source;

pub(crate) fn write(source: &Source<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let processes = NamedProcess::all(source);
    let first = processes.iter().min_by_key(|process| process.began);
    let mut writer = PerfettoWriter {
        sequences: processes.iter().map(Sequence::of).collect(),
        base: first.map_or(0, |process| process.recording.timeline().monotonic_ns(0)),
        processes: &processes,
        packet: Message::default(),
        trace: Message::default(),
        out,
    };
    if let Some(first) = first {
        writer.clocks(first.recording)?;
    }
    writer.tracks()?;
    visit(source, &mut |event| writer.add(event))?;
    writer.finish()
}

/// The state of a process's sequence.
struct Sequence {
    interned: Interned,
    tracks: Tracks,
    curves: MemoryCurves,
    has_begun: bool,
}

impl Sequence {
    fn of(process: &NamedProcess<'_>) -> Self {
        let curves = MemoryCurves::of(process.recording);
        Self { interned: Interned::default(), tracks: Tracks::of(process), curves, has_begun: false }
    }
}

struct PerfettoWriter<'a, 'o> {
    processes: &'a [NamedProcess<'a>],
    sequences: Vec<Sequence>,
    /// The monotonic clock when the first process began to record.
    base: u64,
    packet: Message,
    trace: Message,
    out: &'o mut dyn Write,
}

const FLUSH_AT: usize = 1 << 16;
/// The annotation with the line of a call.
const CALLED_FROM: &str = "called from";

impl PerfettoWriter<'_, '_> {
    /// Writes the clocks at the time when the first process began to record.
    fn clocks(&mut self, first: &ProcessRecording) -> Result<(), ExportError> {
        let wall = u64::try_from(first.timeline().wall_ns(0)).unwrap_or(0);
        let base = self.base;
        let readings =
            [(clock_snapshot::BOOTTIME, base), (clock_snapshot::MONOTONIC, base), (clock_snapshot::REALTIME, wall)];
        self.packet.unsigned(packet::SEQUENCE_ID, 1);
        self.packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
            for (clock, time) in readings {
                snapshot.message(clock_snapshot::CLOCKS, |message| {
                    message.unsigned(clock_snapshot::CLOCK_ID, clock);
                    message.unsigned(clock_snapshot::CLOCK_TIMESTAMP, time);
                });
            }
            snapshot.unsigned(clock_snapshot::PRIMARY, clock_snapshot::BOOTTIME);
        });
        self.put()
    }

    fn tracks(&mut self) -> Result<(), ExportError> {
        let processes = self.processes;
        for (index, process) in processes.iter().enumerate() {
            let write = |tracks: &Tracks, message: &mut Message| tracks.write_process(process, index, message);
            self.descriptor(index, write)?;
            for thread in 0..process.threads.len() {
                let write = |tracks: &Tracks, message: &mut Message| tracks.write_thread(process, thread, message);
                self.descriptor(index, write)?;
            }
        }
        Ok(())
    }

    fn descriptor(&mut self, process: usize, write: impl FnOnce(&Tracks, &mut Message)) -> Result<(), ExportError> {
        let sequence = &mut self.sequences[process];
        self.packet.unsigned(packet::SEQUENCE_ID, process as u64 + 1);
        if !sequence.has_begun {
            sequence.has_begun = true;
            self.packet.unsigned(packet::SEQUENCE_FLAGS, packet::STATE_CLEARED);
        }
        self.packet.message(packet::TRACK_DESCRIPTOR, |message| write(&sequence.tracks, message));
        self.put()
    }

    fn add(&mut self, event: &ThreadEvent<'_>) -> Result<(), ExportError> {
        let ThreadEvent { process, thread, time, .. } = *event;
        let named = &self.processes[process];
        let Sequence { interned, tracks, curves, .. } = &mut self.sequences[process];
        let track = tracks.thread(thread);
        match &event.content {
            EventContent::Begin(span) => self.begin(process, track, span),
            EventContent::End(span, ending) => self.end(event, track, span, *ending),
            EventContent::Instant { frame, stack, details } => {
                let function = interned.functions(named, *frame).last().copied();
                self.instant((process, track, time), function, *stack, &details.object())
            }
            EventContent::Sample { stack, weight, details } => {
                let iid = interned.text(names::EVENT_NAMES, b"sample");
                let category = interned.text(names::CATEGORIES, b"sample");
                let mut attributes = details.object();
                attributes.insert("weight".to_owned(), (*weight).into());
                let function = InternedFunction { iid, category, has_location: false };
                self.instant((process, track, time), Some(function), *stack, &attributes)?;
                if *stack == 0 { Ok(()) } else { self.sample(event, *stack) }
            }
            EventContent::Counter { frame, value } => self.counter(process, time, *frame, *value),
            EventContent::Allocate { .. } | EventContent::Free { .. } | EventContent::Keep { .. } => {
                let points = curves.add(event);
                points.into_iter().flatten().try_for_each(|point| self.memory(process, point))
            }
            EventContent::Tag { frame } if *frame != 0 => {
                let function = interned.functions(named, *frame).last().copied();
                self.instant((process, track, time), function, 0, &Map::new())
            }
            EventContent::Tag { .. } | EventContent::Usage { .. } => Ok(()),
        }
    }

    fn begin(&mut self, process: usize, track: u64, span: &Span) -> Result<(), ExportError> {
        let named = &self.processes[process];
        let functions = self.sequences[process].interned.functions(named, span.frame);
        let last = functions.len() - 1;
        let attributes = span.details.object();
        for (index, function) in functions.iter().copied().enumerate() {
            let (stack, attributes) = if index == last { (span.stack, &attributes) } else { (0, &Map::new()) };
            self.event((process, track, span.began), event::SLICE_BEGIN, |message, interned| {
                refer(message, function);
                if stack != 0 {
                    message.unsigned(event::CALLSTACK_IID, interned.stack(named, stack));
                }
                if let Some(object) = span.object.filter(|_| index == 0) {
                    message.fixed(event::FLOW_IDS, object.flow);
                }
                if let Some(iid) = interned.caller(named, span.caller).filter(|_| index == last) {
                    annotate_interned(message, CALLED_FROM, iid, interned);
                }
                annotate(message, attributes, interned);
            })?;
        }
        Ok(())
    }

    fn end(&mut self, event: &ThreadEvent<'_>, track: u64, span: &Span, ending: SpanEnding) -> Result<(), ExportError> {
        let (process, time) = (event.process, event.time);
        let count = self.sequences[process].interned.functions(&self.processes[process], span.frame).len();
        let mut attributes = span.at_end.object();
        if ending == SpanEnding::Unfinished {
            attributes.insert("unfinished".to_owned(), Value::Bool(true));
        }
        for index in 0..count {
            self.event((process, track, time), event::SLICE_END, |message, interned| {
                // The innermost function ends first, and has the attributes of the end.
                if index == 0 || ending == SpanEnding::Unfinished {
                    annotate(message, &attributes, interned);
                }
            })?;
        }
        Ok(())
    }

    fn instant(
        &mut self,
        (process, track, time): (usize, u64, u64),
        function: Option<InternedFunction>,
        stack: u32,
        attributes: &Map<String, Value>,
    ) -> Result<(), ExportError> {
        let named = &self.processes[process];
        self.event((process, track, time), event::INSTANT, |message, interned| {
            if let Some(function) = function {
                refer(message, function);
            }
            if stack != 0 {
                message.unsigned(event::CALLSTACK_IID, interned.stack(named, stack));
            }
            annotate(message, attributes, interned);
        })
    }

    fn counter(&mut self, process: usize, time: u64, frame: u32, value: f64) -> Result<(), ExportError> {
        let (uuid, is_new) = self.sequences[process].tracks.counter(CounterName::Frame(frame));
        if is_new {
            let last = self.processes[process].chain(frame).next_back();
            let name = last.map_or(Frame::UNKNOWN, |frame| frame.qualname.as_ref().unwrap_or(&frame.name));
            let unit = if name.starts_with("memory.") { track::UNIT_BYTES } else { track::UNIT_COUNT };
            self.descriptor(process, |tracks, message| tracks.write_counter(uuid, name, unit, message))?;
        }
        self.event((process, uuid, time), event::COUNTER, |message, _| {
            message.double(event::DOUBLE_COUNTER_VALUE, value);
        })
    }

    fn memory(&mut self, process: usize, point: MemoryPoint) -> Result<(), ExportError> {
        let counters = [
            (CounterName::AllocatedBytes(point.device), "bytes", track::UNIT_BYTES, point.bytes),
            (CounterName::AllocatedBlocks(point.device), "blocks", track::UNIT_COUNT, point.blocks),
        ];
        for (counter, of, unit, value) in counters {
            let (uuid, is_new) = self.sequences[process].tracks.counter(counter);
            if is_new {
                let name = point.track(of);
                self.descriptor(process, |tracks, message| tracks.write_counter(uuid, &name, unit, message))?;
            }
            self.event((process, uuid, point.time), event::COUNTER, |message, _| {
                message.unsigned(event::COUNTER_VALUE, value);
            })?;
        }
        Ok(())
    }

    /// Writes a sample beside its instant, as samplers do: viewers make flame graphs of samples.
    fn sample(&mut self, event: &ThreadEvent<'_>, stack: u32) -> Result<(), ExportError> {
        let ThreadEvent { process, thread, time, .. } = *event;
        let named = &self.processes[process];
        let tid = named.thread(thread).map_or(0, |thread| thread.tid);
        self.packet(process, time, packet::PERF_SAMPLE, |message, interned| {
            message.unsigned(perf_sample::PID, named.pid.into());
            message.unsigned(perf_sample::TID, tid.into());
            message.unsigned(perf_sample::CALLSTACK_IID, interned.stack(named, stack));
            message.unsigned(perf_sample::CPU_MODE, perf_sample::MODE_USER);
        })
    }

    fn event(
        &mut self,
        (process, track, time): (usize, u64, u64),
        of: u64,
        write: impl FnOnce(&mut Message, &mut Interned),
    ) -> Result<(), ExportError> {
        self.packet(process, time, packet::TRACK_EVENT, |message, interned| {
            message.unsigned(event::TYPE, of);
            message.unsigned(event::TRACK_UUID, track);
            write(message, interned);
        })
    }

    /// Writes a packet with one message, and with the interned data that it is the first to need.
    fn packet(
        &mut self,
        process: usize,
        time: u64,
        of: u32,
        write: impl FnOnce(&mut Message, &mut Interned),
    ) -> Result<(), ExportError> {
        let interned = &mut self.sequences[process].interned;
        self.packet.unsigned(packet::TIMESTAMP, self.base.saturating_add(time));
        self.packet.unsigned(packet::SEQUENCE_ID, process as u64 + 1);
        self.packet.unsigned(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        self.packet.message(of, |message| write(message, interned));
        if !interned.fresh.as_bytes().is_empty() {
            self.packet.bytes(packet::INTERNED_DATA, interned.fresh.as_bytes());
            interned.fresh.clear();
        }
        self.put()
    }

    /// Adds the packet to the trace.
    fn put(&mut self) -> Result<(), ExportError> {
        self.trace.bytes(trace::PACKET, self.packet.as_bytes());
        self.packet.clear();
        if self.trace.as_bytes().len() >= FLUSH_AT {
            self.out.write_all(self.trace.as_bytes())?;
            self.trace.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), ExportError> {
        for process in 0..self.processes.len() {
            for point in self.sequences[process].curves.rest() {
                self.memory(process, point)?;
            }
        }
        Ok(self.out.write_all(self.trace.as_bytes())?)
    }
}

/// Writes the name, category and location of an event.
fn refer(message: &mut Message, function: InternedFunction) {
    message.unsigned(event::NAME_IID, function.iid);
    message.unsigned(event::CATEGORY_IIDS, function.category);
    if function.has_location {
        message.unsigned(event::SOURCE_LOCATION_IID, function.iid);
    }
}
