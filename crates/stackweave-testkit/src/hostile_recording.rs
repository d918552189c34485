//! Recordings with a valid structure and right checksums, but with numbers and texts that no recorder writes.
//!
//! This is written from `docs/reference/format-recording.md` and uses none of the code that it tests.

use crate::event_kinds::{KINDS, PageKind, field_type};
use crate::random::Random;

/// Texts that terminals, spreadsheets, viewers and file systems may interpret as something other than text.
pub const HOSTILE_TEXTS: [&str; 16] = [
    "\u{1b}]0;title\u{7}",
    "\u{1b}[2J\u{1b}[31mred",
    "\u{1b}]52;c;cm0gLXJm\u{7}",
    "a\u{9b}31mb\u{9d}0;t\u{9c}",
    "abc\u{202e}txt.exe",
    "\u{2066}x\u{2069}\u{200e}\u{200f}\u{202a}",
    "line\nline\r\ttab\u{8}\u{7f}",
    "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd",
    "</script><script>alert(1)</script>",
    "\"';--<>&\\",
    "../../../../etc/passwd",
    "/proc/self/cwd/settings.py",
    "",
    "\u{0}nul\u{0}",
    "\u{feff}\u{2028}\u{2029}\u{85}",
];

/// The numbers that fit into 32 bits.
const SMALL: u64 = u32::MAX as u64;

/// Which parts of a recording are hostile.
#[derive(Clone, Debug)]
pub struct HostileOptions {
    /// Whether ids, times, sizes and counts may be arbitrary. Otherwise everything that events refer to is
    /// defined.
    pub numbers: bool,
    /// The texts from which names are made.
    pub texts: Vec<String>,
    /// Whether frames have names. Native frames without names are looked up in the modules.
    pub names: bool,
    /// The paths of modules.
    pub modules: Vec<String>,
    /// The depth of the nested calls at the end; 0 for none.
    pub nested: u32,
}

impl HostileOptions {
    /// Returns options for arbitrary numbers and unusual texts, with calls that are `nested` levels deep.
    pub fn hostile(nested: u32) -> Self {
        let texts =
            HOSTILE_TEXTS.iter().map(|text| (*text).to_owned()).chain(["a.py".to_owned(), "f".repeat(300)]).collect();
        let modules = ["/usr/lib/libc.so.6", "[vdso]", "/dev/zero", "", "relative.so"].map(str::to_owned).to_vec();
        Self { numbers: true, texts, names: true, modules, nested }
    }
}

/// Returns the bytes of a recording with arbitrary numbers and unusual texts, the same for the same seed.
pub fn hostile_recording(seed: u64) -> Vec<u8> {
    hostile_recording_with(seed, &HostileOptions::hostile(if seed % 16 == 5 { 400 } else { 0 }))
}

/// Returns the bytes of a recording with these options.
pub fn hostile_recording_with(seed: u64, options: &HostileOptions) -> Vec<u8> {
    hostile_recording_from(Random::new(seed), options)
}

/// Returns the bytes of a recording with these options and the choices that `random` makes.
pub fn hostile_recording_from(mut random: Random, options: &HostileOptions) -> Vec<u8> {
    let mut bytes = Vec::new();
    for section in 0..=random.below(2) {
        let mut writer = HostileWriter { random, options, section: 0, kinds: Vec::new(), ids: Ids::default() };
        writer.write_section(section, &mut bytes);
        random = writer.random;
    }
    bytes
}

/// The first id and the number of the definitions of each sort.
#[derive(Clone, Debug, Default)]
struct Ids {
    strings: (u32, u32),
    modules: (u32, u32),
    frames: (u32, u32),
    stacks: (u32, u32),
    threads: Vec<u32>,
}

struct HostileWriter<'o> {
    random: Random,
    options: &'o HostileOptions,
    section: u32,
    kinds: Vec<(u8, &'static PageKind)>,
    ids: Ids,
}

impl HostileWriter<'_> {
    fn write_section(&mut self, place: usize, out: &mut Vec<u8>) {
        let start = self.start(place);
        self.section = crc32(&start);
        self.block(1, &start, out);
        let definitions = self.definitions();
        self.block(2, &definitions, out);
        for _ in 0..=self.random.below(6) {
            let events = self.events();
            self.block(3, &events, out);
            if self.random.below(3) == 0 {
                let points = [self.time(), self.time(), self.number(), self.number()];
                self.numbers_block(4, &points, out);
            }
            if self.options.numbers && self.random.below(4) == 0 {
                let lost = [self.random.bits() % 10, self.number(), self.thread().into(), self.time(), self.time()];
                self.numbers_block(5, &lost, out);
            }
        }
        if self.options.nested > 0 {
            let events = self.nested();
            self.block(3, &events, out);
        }
        if !self.options.numbers || self.random.below(3) > 0 {
            let end = [1, self.number(), if self.options.numbers { self.number() } else { 0 }, self.number()];
            self.numbers_block(6, &end, out);
        }
    }

    fn block(&self, kind: u8, payload: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        let length = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
        out.extend_from_slice(b"\xf5SWV\r\n\x1a\n");
        out.extend_from_slice(&[kind, 1, 0, 0]);
        out.extend_from_slice(&length);
        out.extend_from_slice(&length);
        out.extend_from_slice(&self.section.to_le_bytes());
        out.extend_from_slice(&crc32(payload).to_le_bytes());
        let own = crc32(&out[start..]);
        out.extend_from_slice(&own.to_le_bytes());
        out.extend_from_slice(payload);
    }

    fn numbers_block(&self, kind: u8, numbers: &[u64], out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        for number in numbers {
            put(&mut payload, *number);
        }
        self.block(kind, &payload, out);
    }

    fn start(&mut self, place: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut number = |tag: u64, number: u64| {
            let mut value = Vec::new();
            put(&mut value, number);
            put(&mut out, tag);
            put_bytes(&mut out, &value);
        };
        number(1, 1_000 + place as u64);
        number(2, self.random.bits() >> 34);
        number(9, self.number());
        number(10, self.number());
        number(11, 2);
        number(12, if self.options.numbers && self.random.below(3) == 0 { self.number() } else { 1_000_000_000 });
        number(13, self.random.bits() >> 34);
        number(15, 1 + self.random.bits() % 2);
        for tag in [3_u64, 4, 5, 6, 6, 7, 8] {
            let text = self.text();
            put(&mut out, tag);
            put_bytes(&mut out, text.as_bytes());
        }
        let (name, value) = (self.text(), self.text());
        for (name, value) in [("recorder", "memory"), ("timing", "1"), ("device.0.name", &value), (&name, &value)] {
            let mut option = Vec::new();
            put_bytes(&mut option, name.as_bytes());
            put_bytes(&mut option, value.as_bytes());
            put(&mut out, 16);
            put_bytes(&mut out, &option);
        }
        out
    }

    fn definitions(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.kinds = (1..).zip(KINDS).collect();
        let mut body = Vec::new();
        for (_, kind) in &self.kinds {
            put_bytes(&mut body, kind.name.as_bytes());
            body.push(kind.role);
            put(&mut body, kind.fields.len() as u64);
            for (of, name) in kind.fields {
                body.push(*of);
                put_bytes(&mut body, name.as_bytes());
            }
        }
        put_run(&mut out, 1, Some(1), KINDS.len() as u64, &body);
        let strings = self.options.texts.len() as u32 + 2;
        self.ids.strings = self.run(&mut out, 2, strings, |writer, _, body| put_bytes(body, writer.text().as_bytes()));
        let modules = self.options.modules.len() as u32;
        self.ids.modules = self.run(&mut out, 3, modules, Self::module);
        let frames = 2 + self.random.bits() as u32 % 12;
        self.ids.frames = self.run(&mut out, 4, frames, Self::frame);
        let stacks = 1 + self.random.bits() as u32 % 20;
        self.ids.stacks = self.run(&mut out, 6, stacks, Self::stack);
        if self.options.names {
            self.names(&mut out);
        }
        self.threads(&mut out);
        out
    }

    /// Writes definitions with consecutive ids, starting at an id that may be near the maximum.
    fn run(
        &mut self,
        out: &mut Vec<u8>,
        tag: u8,
        count: u32,
        mut item: impl FnMut(&mut Self, (u32, u32), &mut Vec<u8>),
    ) -> (u32, u32) {
        let first = match self.random.below(4) {
            0 if self.options.numbers => u32::MAX - count,
            1 if self.options.numbers => 1 + (self.random.bits() >> 34) as u32,
            _ => 1,
        };
        let mut body = Vec::new();
        (first..first + count).for_each(|number| item(self, (first, number), &mut body));
        put_run(out, tag, Some(first), count.into(), &body);
        (first, count)
    }

    fn module(&mut self, (first, number): (u32, u32), body: &mut Vec<u8>) {
        let path = &self.options.modules[(number - first) as usize];
        put_bytes(body, path.as_bytes());
        put_bytes(body, if self.random.below(2) == 0 { &[7; 20] } else { &[] });
        for tame in [0, 0, 1 << 40] {
            let number = if self.options.numbers { self.number() } else { tame };
            put(body, number);
        }
    }

    fn frame(&mut self, _: (u32, u32), body: &mut Vec<u8>) {
        let kind = 1 + self.random.byte_below(6);
        body.push(kind);
        match kind {
            1 | 2 => {
                let (address, module) = (self.number(), self.defined(self.ids.modules));
                put(body, address);
                put(body, module);
            }
            3 | 4 => {
                let (code, offset) = (self.number() & SMALL, self.random.bits() >> 33);
                put(body, code);
                put(body, offset);
            }
            5 => {
                body.push(self.random.byte_below(255));
                let word = self.number() & ((1 << 56) - 1);
                put(body, word);
            }
            _ => {
                let label = self.number() & SMALL;
                put(body, label);
            }
        }
    }

    fn stack(&mut self, (first, number): (u32, u32), body: &mut Vec<u8>) {
        let back = match self.random.below(3) {
            0 => 0,
            _ if number > first => 1 + self.random.below((number - first) as usize) as u64,
            _ if number > 1 && self.options.numbers => self.random.bits() % u64::from(number),
            _ => 0,
        };
        put(body, back);
        let frame = self.defined(self.ids.frames);
        put(body, frame);
    }

    fn names(&mut self, out: &mut Vec<u8>) {
        let (first, count) = self.ids.frames;
        let mut body = Vec::new();
        for frame in first..first + count {
            put(&mut body, frame.into());
            let locations = 1 + self.random.below(3);
            put(&mut body, locations as u64);
            for _ in 0..locations {
                body.push(1 + self.random.byte_below(5));
                let bits = self.random.byte_below(255);
                body.push(bits);
                let (name, file) = (self.defined(self.ids.strings), self.defined(self.ids.strings));
                put(&mut body, name);
                put(&mut body, file);
                for bit in (0..7).filter(|bit| bits >> bit & 1 == 1) {
                    let value = match bit {
                        0 => self.defined(self.ids.strings),
                        6 => self.defined(self.ids.modules),
                        _ => self.number() & SMALL,
                    };
                    put(&mut body, value);
                }
            }
        }
        put_run(out, 5, None, count.into(), &body);
    }

    fn threads(&mut self, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let count = 1 + self.random.below(4);
        self.ids.threads =
            (0..count).map(|place| if self.options.numbers { self.small() } else { 1 + place as u32 }).collect();
        for thread in self.ids.threads.clone() {
            put(&mut body, thread.into());
            put(&mut body, self.random.bits() >> 40);
            put_bytes(&mut body, self.text().as_bytes());
        }
        put_run(out, 7, None, count as u64, &body);
    }

    fn events(&mut self) -> Vec<u8> {
        let mut present: Vec<(u8, &'static PageKind)> = self.kinds.clone();
        while present.len() > 14 {
            present.remove(self.random.below(present.len()));
        }
        let count = 1 + self.random.below(60);
        let places: Vec<usize> = (0..count).map(|_| self.random.below(present.len())).collect();
        let mut out = self.head(count as u64);
        out.push(present.len() as u8);
        for (number, kind) in &present {
            let has_bytes = kind.fields.last().is_some_and(|(of, _)| *of == field_type::BYTES);
            out.push(*number);
            out.push((kind.fields.len() - usize::from(has_bytes)) as u8 | u8::from(has_bytes) << 7);
        }
        out.extend(places.chunks(2).map(|pair| pair[0] as u8 | (pair.get(1).copied().unwrap_or(0) as u8) << 4));
        let steps: Vec<u64> = places.iter().map(|_| self.step()).collect();
        put_raw(&mut out, &steps);
        for (place, (_, kind)) in present.iter().enumerate() {
            let rows = places.iter().filter(|of| **of == place).count();
            self.columns(kind, rows, &mut out);
        }
        out
    }

    fn columns(&mut self, kind: &PageKind, rows: usize, out: &mut Vec<u8>) {
        for (of, _) in kind.fields.iter().filter(|(of, _)| *of != field_type::BYTES) {
            let values: Vec<u64> = (0..rows).map(|_| self.value(*of)).collect();
            put_raw(out, &values);
        }
        if kind.fields.last().is_some_and(|(of, _)| *of == field_type::BYTES) {
            let texts: Vec<String> = (0..rows).map(|_| self.details()).collect();
            put_raw(out, &texts.iter().map(|text| text.len() as u64).collect::<Vec<_>>());
            for text in &texts {
                out.extend_from_slice(text.as_bytes());
            }
        }
    }

    /// Returns a block of nested calls, none of which ends.
    fn nested(&mut self) -> Vec<u8> {
        let count = u64::from(self.options.nested);
        let mut out = self.head(count);
        out.extend_from_slice(&[1, 1, 1]);
        let frame = self.id(self.ids.frames);
        for (coding, value) in [(1, None), (0, Some(frame))] {
            let mut body = Vec::new();
            match value {
                Some(value) => put(&mut body, value),
                None => (0..count).for_each(|_| put(&mut body, 1)),
            }
            out.push(coding);
            put_bytes(&mut out, &body);
        }
        out
    }

    fn head(&mut self, count: u64) -> Vec<u8> {
        let mut out = self.thread().to_le_bytes().to_vec();
        out.extend_from_slice(&(count as u32).to_le_bytes());
        let times = [self.time(), self.time()];
        out.extend_from_slice(&times[0].min(times[1]).to_le_bytes());
        out.extend_from_slice(&times[0].max(times[1]).to_le_bytes());
        out
    }

    fn value(&mut self, of: u8) -> u64 {
        match of {
            field_type::STACK => self.id(self.ids.stacks),
            field_type::FRAME => self.id(self.ids.frames),
            field_type::FLOAT if self.random.below(3) == 0 => {
                [f64::NAN, f64::INFINITY, -0.0, 1e308][self.random.below(4)].to_bits()
            }
            field_type::ADDRESS if self.random.below(2) == 0 => 0x1000 * (1 + self.random.bits() % 8),
            field_type::SIGNED if self.random.below(2) == 0 => [u64::MAX, 0, 1, 7][self.random.below(4)],
            _ => self.number(),
        }
    }

    fn details(&mut self) -> String {
        match self.random.below(4) {
            0 => String::new(),
            1 => "[".repeat(500),
            2 => format!("{{\"compile_id\": {:?}, \"n\": 1e999, \"x\": [1, null]}}", self.text()),
            _ => self.text(),
        }
    }

    fn id(&mut self, (first, count): (u32, u32)) -> u64 {
        match self.random.below(8) {
            0 if self.options.numbers => self.number(),
            1 if self.options.numbers => u64::from(u32::MAX),
            _ if count == 0 => 0,
            _ => u64::from(first) + self.random.bits() % u64::from(count),
        }
    }

    /// Returns an id in a definition, where ids have 32 bits.
    fn defined(&mut self, ids: (u32, u32)) -> u64 {
        self.id(ids) & SMALL
    }

    fn thread(&mut self) -> u32 {
        match self.random.below(6) {
            0 if self.options.numbers => self.small(),
            _ => self.ids.threads[self.random.below(self.ids.threads.len())],
        }
    }

    fn small(&mut self) -> u32 {
        [1, 2, 0xffff, 1 << 20, i32::MAX as u32, u32::MAX - 1, u32::MAX][self.random.below(7)]
    }

    fn step(&mut self) -> u64 {
        if self.options.numbers && self.random.below(12) == 0 { self.number() } else { self.random.bits() % 5_000 }
    }

    fn time(&mut self) -> u64 {
        if self.options.numbers && self.random.below(3) == 0 { self.number() } else { self.random.bits() % 1_000_000 }
    }

    fn number(&mut self) -> u64 {
        const EDGES: [u64; 16] = [
            0,
            1,
            2,
            255,
            4095,
            1 << 31,
            u32::MAX as u64 - 1,
            u32::MAX as u64,
            1 << 32,
            1 << 53,
            (1 << 56) - 1,
            1 << 56,
            i64::MAX as u64,
            1 << 63,
            u64::MAX - 1,
            u64::MAX,
        ];
        match self.random.below(3) {
            0 if self.options.numbers => EDGES[self.random.below(EDGES.len())],
            1 if self.options.numbers => self.random.bits() >> self.random.below(64),
            _ => self.random.bits() % 10_000,
        }
    }

    fn text(&mut self) -> String {
        let texts = &self.options.texts;
        texts[self.random.below(texts.len())].clone()
    }
}

fn put_run(out: &mut Vec<u8>, tag: u8, first: Option<u32>, count: u64, items: &[u8]) {
    let mut body = Vec::new();
    if let Some(first) = first {
        put(&mut body, first.into());
    }
    put(&mut body, count);
    body.extend_from_slice(items);
    out.push(tag);
    put_bytes(out, &body);
}

fn put_raw(out: &mut Vec<u8>, values: &[u64]) {
    out.push(5);
    let body: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    put_bytes(out, &body);
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Returns the checksum of zlib, computed bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ 0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
    })
}
