//! The cost of events in a file: bytes, and nanoseconds to write and to read, for three streams like those of real programs.
//! Run it with `cargo run --release --example file_figures`, on an idle machine.
#![expect(clippy::print_stdout, reason = "the figures are printed")]
#![expect(clippy::expect_used, reason = "it reads what it has just written")]
#![expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of figures")]

use std::time::Instant;

use stackweave_core::{CodeId, FrameNames, ModuleList, Position, RawFrame, SourceLocation, StackId};
use stackweave_recording::events;
use stackweave_recording::file::{BlockHeader, BlockKind, Dictionary, Encoded, Encoder, EventBuffer};
use stackweave_store::StackTable;
use stackweave_testkit::random::Random;

static STACKS: StackTable = StackTable::new();
const EVENTS: usize = 1_000_000;
/// The number of words in a chunk.
const CHUNK: usize = 8192;
const BEGIN: u64 = 1;
const END: u64 = 2;
const ALLOCATE: u64 = 3;
const FREE: u64 = 4;
const COUNTER: u64 = 5;

/// Returns an exponentially distributed duration.
fn skewed(random: &mut Random, mean: u64) -> u64 {
    let even = (random.number_below(1 << 20) + 1) as f64 / f64::from(1 << 20);
    (-even.ln() * mean as f64) as u64
}

/// The events of a thread, in chunks.
#[derive(Default)]
struct Stream {
    chunks: Vec<Vec<u64>>,
    ticks: u64,
    events: usize,
}

impl Stream {
    fn push(&mut self, kind: u64, step: u64, fields: &[u64]) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() + 4 > CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.ticks += step;
        self.events += 1;
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(self.ticks << 8 | kind);
            chunk.extend_from_slice(fields);
        }
    }
}

fn python(code: u64, instruction: u64) -> RawFrame {
    RawFrame::python(CodeId::new(code as u32 + 1).expect("not 0"), instruction as u32, false)
}

/// Returns calls and returns of a program with 400 functions, each of which calls the same few others in loops and branches.
fn calls(random: &mut Random) -> Stream {
    let sites: Vec<Vec<(u64, u64)>> = (0..400_u64)
        .map(|function| {
            let callees = random.number_below(5);
            (0..callees).map(|_| (function + 1 + random.number_below(60), 1 + skewed(random, 3))).collect()
        })
        .collect();
    let mut stream = Stream::default();
    while stream.events < EVENTS {
        call(random.number_below(20), &sites, random, &mut stream);
    }
    stream
}

fn call(function: u64, sites: &[Vec<(u64, u64)>], random: &mut Random, stream: &mut Stream) {
    if stream.events >= EVENTS {
        return;
    }
    // A Python call takes at least about 40 ns, at 2.4 GHz.
    let step = 90 + skewed(random, 150);
    stream.push(BEGIN, step, &[python(function, 0).to_bits()]);
    for (callee, times) in sites.get(function as usize).into_iter().flatten() {
        for _ in 0..*times {
            if random.number_below(8) != 0 {
                call(*callee, sites, random, stream);
            }
        }
    }
    stream.push(END, 60 + skewed(random, 120), &[]);
}

/// Returns allocations of common sizes from 3000 stacks, most of them freed soon, by an allocator with free lists.
fn allocations(random: &mut Random) -> Stream {
    let stacks: Vec<u64> = (0..3000_u64)
        .map(|number| {
            let frames: Vec<RawFrame> =
                (0..20_u64).map(|depth| python(number >> (depth / 2), depth * 2 + number % 7)).collect();
            STACKS.intern(&frames).unwrap_or(StackId::EMPTY).get().into()
        })
        .collect();
    let mut stream = Stream::default();
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut free: Vec<Vec<u64>> = vec![Vec::new(); 4096];
    let mut top = 0x7f12_3400_0000;
    while stream.events < EVENTS {
        let size = (skewed(random, 12) + 1) * 8 + if random.number_below(20) == 0 { skewed(random, 3000) } else { 0 };
        if random.number_below(100) < 52 || live.is_empty() {
            let class = size.div_ceil(16).min(4095);
            let address = free[class as usize].pop().unwrap_or_else(|| {
                top += class * 16;
                top - class * 16
            });
            live.push((address, class));
            let stack = stacks[skewed(random, 300).min(2999) as usize];
            stream.push(ALLOCATE, 50 + skewed(random, 200), &[address, size, stack]);
        } else {
            let young = (live.len() as u64 - 1).saturating_sub(skewed(random, 10));
            let index = if random.number_below(4) == 0 { random.number_below(live.len() as u64) } else { young };
            let (address, class) = live.remove(index as usize);
            free[class as usize].push(address);
            stream.push(FREE, 50 + skewed(random, 150), &[address]);
        }
    }
    stream
}

/// Returns eight counters: queue lengths, bytes in use, a decreasing loss.
fn counters(random: &mut Random) -> Stream {
    let labels: Vec<u64> =
        (0..8).filter_map(|n| stackweave_store::label(&format!("counter {n}"), "", 0)).map(RawFrame::to_bits).collect();
    let mut values = [0.0_f64; 8];
    let mut stream = Stream::default();
    while stream.events < EVENTS {
        let index = random.number_below(labels.len() as u64) as usize;
        values[index] = match index {
            0..=3 => (values[index] + random.number_below(5) as f64 - 2.0).max(0.0),
            4 | 5 => (values[index] + random.number_below(100) as f64 * 4096.0 - 190_000.0).max(0.0),
            _ => values[index] * 0.999 + random.number_below(1000) as f64 / 1e6,
        };
        stream.push(COUNTER, 1000 + skewed(random, 200_000), &[labels[index], values[index].to_bits()]);
    }
    stream
}

struct FixedNames;

impl FrameNames for FixedNames {
    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        let name = format!("{frame:?}").into();
        let position = Position { line: Some(10), end_line: Some(10), column: Some(4), end_column: Some(20) };
        Some(SourceLocation { name, qualname: None, filename: "program.py".into(), first_line: Some(3), position })
    }

    fn has_extra_frames(&self) -> bool {
        false
    }

    fn frames_behind(&self, _: &str, _: u32) -> Vec<SourceLocation> {
        Vec::new()
    }

    fn modules(&self) -> ModuleList {
        ModuleList::default()
    }
}

/// Encodes a stream to blocks of definitions and of events.
fn encode(stream: &Stream) -> Encoded {
    let mut encoder = Encoder::new(&STACKS);
    for kind in [events::BEGIN, events::END, events::ALLOCATE, events::FREE, events::COUNTER] {
        encoder.kind(&kind);
    }
    let mut out = Encoded::default();
    for chunk in &stream.chunks {
        encoder.events(1, chunk, &FixedNames, &mut out);
    }
    out
}

/// Reads all blocks, and adds up values of the events.
fn decode(encoded: &Encoded) -> u64 {
    let (mut dictionary, mut buffer, mut scratch) = (Dictionary::default(), EventBuffer::new(), Vec::new());
    let mut sum = 0_u64;
    for part in [&encoded.definitions, &encoded.events] {
        let mut rest = &part[..];
        while let Some((header, after)) = rest.split_first_chunk() {
            let header = BlockHeader::parse(header).expect("just written");
            let (stored, after) = after.split_at(header.stored_len as usize);
            let payload = header.payload(stored, &mut scratch).expect("just written");
            match header.kind {
                BlockKind::Definitions => dictionary.add(payload).expect("just written"),
                _ => buffer.decode(payload, &dictionary).expect("just written"),
            }
            if header.kind == BlockKind::Events {
                sum = buffer.iter().fold(sum, |sum, event| sum.wrapping_add(event.ticks + event.words.len() as u64));
            }
            rest = after;
        }
    }
    sum
}

fn main() {
    let mut random = Random::new(1);
    for (name, stream) in
        [("calls", calls(&mut random)), ("allocations", allocations(&mut random)), ("counters", counters(&mut random))]
    {
        let (mut writing, mut reading) = (f64::MAX, f64::MAX);
        let events = stream.events as f64;
        let mut encoded = Encoded::default();
        for _ in 0..7 {
            let begin = Instant::now();
            encoded = encode(&stream);
            writing = writing.min(begin.elapsed().as_nanos() as f64 / events);
            let begin = Instant::now();
            std::hint::black_box(decode(&encoded));
            reading = reading.min(begin.elapsed().as_nanos() as f64 / events);
        }
        let raw: usize = stream.chunks.iter().map(|chunk| chunk.len() * 8).sum();
        println!(
            "{name:12} {events:8} events: {:5.2} bytes each ({:5.2} raw, {:5.3} of definitions), {writing:5.1} ns to write, {reading:5.1} ns to read",
            encoded.events.len() as f64 / events,
            raw as f64 / events,
            encoded.definitions.len() as f64 / events,
        );
    }
}
