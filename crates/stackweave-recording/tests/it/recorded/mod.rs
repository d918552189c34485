//! The content of a recording, read block by block: any byte outside of a complete block is a failure, except in a truncated tail,
//! which is counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::{EventKind, Field, FieldType, NoNames, Role};
use stackweave_recording::clock::{ClockPoint, ClockTimeline};
use stackweave_recording::file::{
    BlockHeader, BlockKind, Dictionary, EventBuffer, LossReason, Lost, ProcessStart, SectionEnd,
};
use stackweave_recording::live::{KindNumber, Recorder, RecorderOptions};
use stackweave_store::StackTable;

pub(crate) static STACKS: StackTable = StackTable::new();

pub(crate) fn start(options: RecorderOptions) -> Recorder {
    Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap()
}

/// Registers an event with two numbers of the test's choice.
pub(crate) fn mark(recorder: &Recorder) -> KindNumber {
    let fields = vec![Field::new("producer", FieldType::Unsigned), Field::new("index", FieldType::Unsigned)];
    recorder.register(EventKind { name: "mark".into(), role: Role::Instant, fields: fields.into() }).unwrap()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventReadBack {
    pub(crate) ticks: u64,
    pub(crate) kind: String,
    pub(crate) words: Vec<u64>,
    pub(crate) bytes: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    pub(crate) start: ProcessStart,
    pub(crate) dictionary: Dictionary,
    /// By thread number.
    pub(crate) events: BTreeMap<u32, Vec<EventReadBack>>,
    pub(crate) points: Vec<ClockPoint>,
    pub(crate) lost: Vec<Lost>,
    pub(crate) end: Option<SectionEnd>,
    /// The number of bytes of an incomplete block at the end.
    pub(crate) torn: usize,
}

impl ReadBack {
    /// Reads a recording that was closed, or whose process was killed between two writes.
    pub(crate) fn whole(path: &Path) -> Self {
        let read = Self::bytes(&fs::read(path).unwrap());
        assert_eq!(read.torn, 0, "{}", path.display());
        read
    }

    pub(crate) fn bytes(bytes: &[u8]) -> Self {
        let mut read = Self::default();
        let (mut rest, mut buffer, mut scratch) = (bytes, EventBuffer::new(), Vec::new());
        let mut is_first = true;
        while let Some((header, behind)) = rest.split_first_chunk::<{ BlockHeader::LEN }>() {
            let header = BlockHeader::parse(header).expect("a block begins where the previous one ends");
            let Some((stored, behind)) = behind.split_at_checked(header.stored_len as usize) else { break };
            let payload = header.payload(stored, &mut scratch).expect("a complete block is valid");
            assert!(read.end.is_none(), "no block follows the end");
            assert_eq!(header.kind == BlockKind::Start, is_first);
            is_first = false;
            match header.kind {
                BlockKind::Start => read.start = ProcessStart::parse(payload).unwrap(),
                BlockKind::Definitions => read.dictionary.add(payload).unwrap(),
                BlockKind::Clock => read.points.push(ClockPoint::parse(payload).unwrap()),
                BlockKind::Lost => read.lost.push(Lost::parse(payload).unwrap()),
                BlockKind::End => read.end = Some(SectionEnd::parse(payload).unwrap()),
                BlockKind::Events => {
                    buffer.decode(payload, &read.dictionary).unwrap();
                    read.take(&buffer);
                }
                BlockKind::Other(number) => panic!("no block of kind {number} is written"),
            }
            rest = behind;
        }
        assert!(!is_first, "there is a start");
        read.torn = rest.len();
        read
    }

    fn take(&mut self, buffer: &EventBuffer) {
        assert!(self.points.len() >= 2 || self.start.ticks_per_second > 0);
        let events = self.events.entry(buffer.thread()).or_default();
        for event in buffer {
            let kind = self.dictionary.kind(event.kind).expect("the kind is defined before its first event");
            events.push(EventReadBack {
                ticks: event.ticks,
                kind: kind.name.clone().into_owned(),
                words: event.words.to_vec(),
                bytes: event.bytes.map(<[u8]>::to_vec),
            });
        }
        assert!(self.dictionary.thread(buffer.thread()).is_some(), "the thread is defined before its first event");
    }

    pub(crate) fn count(&self) -> u64 {
        self.events.values().map(|events| events.len() as u64).sum()
    }

    pub(crate) fn lost(&self, reason: LossReason) -> u64 {
        self.lost.iter().filter(|lost| lost.reason == reason).map(|lost| lost.count).sum()
    }

    pub(crate) fn timeline(&self) -> ClockTimeline {
        ClockTimeline::new(&self.points, self.start.ticks_per_second, self.start.started_wall_ns)
    }

    /// Returns the indices of the marks of each producer, in their order. All marks of a producer must be of one thread, and in time
    /// order.
    pub(crate) fn marks(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut marks: BTreeMap<u64, (u32, Vec<u64>)> = BTreeMap::new();
        for (thread, events) in &self.events {
            assert!(events.is_sorted_by_key(|event| event.ticks), "thread {thread}");
            for event in events.iter().filter(|event| event.kind == "mark") {
                let [producer, index] = event.words[..] else { panic!("a mark has two words") };
                let entry = marks.entry(producer).or_insert((*thread, Vec::new()));
                assert_eq!(entry.0, *thread, "producer {producer}");
                entry.1.push(index);
            }
        }
        marks.into_iter().map(|(producer, (_, index))| (producer, index)).collect()
    }
}
