//! Replay beside the plain walk, over chains that change in every way.

use stackweave_core::{CodeId, RawFrame, SourceStop, StackPointer};
use stackweave_testkit::random::Random;

use super::entry_flags::EntryFlags;
use super::form::Form;
use super::frame_objects::FrameObjects;
use super::plain;
use super::record::{Record, replayed};
use super::replay;
use super::shims::Shims;
use super::source_frames::{CodeIds, Room, SourceFrames};
use crate::version::{Chain, Layout};

const FRAMES: usize = 40;
const CODES: usize = 4;
const TRACEABLE_FROM: u32 = 4;
/// More than any frame, and than the code up to the last instruction.
type Words = [u64; 128];

/// What a frame is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Made {
    place: usize,
    code: usize,
    instruction: u64,
    owner: u64,
    /// Whether it ends its activation: a shim, or an entry frame.
    is_end: bool,
}

/// Memory of our own, laid out as that of an interpreter.
struct Memory {
    layout: &'static Layout,
    frames: Vec<Words>,
    codes: Vec<Words>,
    c_frames: Vec<[u64; 4]>,
    none: Box<Words>,
}

struct Addresses<'a>(&'a [Words]);

impl CodeIds for Addresses<'_> {
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        let index = self.0.iter().position(|words| words.as_ptr() as u64 == code).ok_or(SourceStop::BadFrame)?;
        CodeId::new(index as u32 + 1).ok_or(SourceStop::BadFrame)
    }
}

impl Memory {
    fn new(minor: u8) -> Self {
        let layout = Layout::of_minor(minor).unwrap();
        let mut codes = vec![[0; 128]; CODES];
        for code in &mut codes {
            code[layout.code.first_traceable / 8] = TRACEABLE_FROM.into();
        }
        Self {
            layout,
            frames: vec![[0; 128]; FRAMES],
            codes,
            c_frames: vec![[0; 4]; FRAMES + 1],
            none: Box::new([0; 128]),
        }
    }

    /// Writes the chain. Returns its top, and the `_PyCFrame` of its top.
    fn write(&mut self, stack: &[Made], first_c_frame: usize) -> (u64, u64) {
        let offsets = self.layout.frame;
        let addresses: Vec<u64> = self.frames.iter().map(|frame| frame.as_ptr() as u64).collect();
        for (index, made) in stack.iter().enumerate() {
            let code = self.codes[made.code].as_ptr() as u64;
            let next = stack.get(index + 1).map_or(0, |next| addresses[next.place]);
            let frame = &mut self.frames[made.place];
            frame[offsets.code / 8] = code;
            frame[offsets.previous / 8] = next;
            frame[offsets.instruction / 8] = match self.layout.minor {
                10 => made.instruction / 2,
                _ => (code + self.layout.code.units as u64).wrapping_add(made.instruction),
            };
            let byte = |value: u64, at: usize| value << (8 * (at % 8));
            match self.layout.thread.chain {
                Chain::FrameObjects { .. } => {}
                Chain::EntryFlags { is_entry, .. } => {
                    frame[8] = byte(made.is_end.into(), is_entry) | byte(made.owner, offsets.owner);
                }
                _ if made.is_end => {
                    // What a shim runs is no code object.
                    frame[offsets.code / 8] = self.none.as_ptr() as u64;
                    frame[offsets.instruction / 8] = self.none.as_ptr() as u64 + made.instruction % 8;
                    frame[offsets.owner / 8] = byte(3, offsets.owner);
                }
                _ => frame[offsets.owner / 8] = byte(made.owner, offsets.owner),
            }
        }
        self.link_c_frames();
        (stack.first().map_or(0, |made| addresses[made.place]), self.c_frames[first_c_frame].as_ptr() as u64)
    }

    fn link_c_frames(&mut self) {
        let (Chain::FrameObjects { previous_c_frame, .. } | Chain::EntryFlags { previous_c_frame, .. }) =
            self.layout.thread.chain
        else {
            return;
        };
        let addresses: Vec<u64> = self.c_frames.iter().map(|c_frame| c_frame.as_ptr() as u64).collect();
        for (index, c_frame) in self.c_frames.iter_mut().enumerate() {
            c_frame[previous_c_frame / 8] = addresses.get(index + 1).copied().unwrap_or(0);
        }
    }

    fn last_c_frame(&self) -> u64 {
        self.c_frames[FRAMES].as_ptr() as u64
    }
}

fn any_frame(random: &mut Random, place: usize) -> Made {
    let owner = [0, 0, 0, 1, 2][random.below(5)];
    let instruction = [6, 8, 200, 202, 400, 2_u64.wrapping_neg()][random.below(6)];
    Made { place, code: random.below(CODES), instruction, owner, is_end: random.below(4) == 0 }
}

/// Calls, returns, other instructions, other callers: what happens to a stack between two walks.
fn change(random: &mut Random, stack: &mut Vec<Made>) {
    let unused = |stack: &[Made], random: &mut Random| {
        let free: Vec<usize> = (0..FRAMES).filter(|place| stack.iter().all(|made| made.place != *place)).collect();
        (!free.is_empty()).then(|| free[random.below(free.len().min(3))])
    };
    match random.below(8) {
        0 => {}
        1 | 2 => {
            for _ in 0..=random.below(4) {
                if let Some(place) = unused(stack, random) {
                    stack.insert(0, any_frame(random, place));
                }
            }
        }
        3 => _ = stack.drain(..random.below(stack.len() + 1)),
        4 if !stack.is_empty() => {
            let at = random.below(stack.len());
            stack[at] = any_frame(random, stack[at].place);
        }
        5 if !stack.is_empty() => _ = stack.remove(random.below(stack.len())),
        6 => {
            if let Some(place) = unused(stack, random) {
                let at = random.below(stack.len() + 1);
                stack.insert(at, any_frame(random, place));
            }
        }
        _ if stack.len() > 1 => stack[0].instruction = [200, 202, 204][random.below(3)],
        _ => {}
    }
}

/// What a walk wrote.
#[derive(Debug, PartialEq)]
struct Written(Vec<RawFrame>, Vec<StackPointer>);

impl Written {
    fn new(room: usize) -> Self {
        Self(vec![RawFrame::default(); room], vec![StackPointer(0); room])
    }

    fn room(&mut self) -> Room<'_> {
        Room { frames: &mut self.0, activations: &mut self.1 }
    }
}

fn check<F: Form, const CAPACITY: usize>(minor: u8, seed: u64, form: impl Fn(u64, u64) -> F) -> u64 {
    let mut random = Random::new(seed);
    let (mut memory, mut kept) = (Memory::new(minor), vec![0_u64; Record::<CAPACITY>::WORDS]);
    let mut stack: Vec<Made> = Vec::new();
    // `None` if there was no room for all of it.
    let (mut last, mut unchanged) = (None, 0);
    for round in 0..4000_u64 {
        change(&mut random, &mut stack);
        if let Some(outermost) = stack.last_mut() {
            outermost.is_end = true;
        }
        let loops = match minor {
            10 => stack.len(),
            _ => stack.iter().filter(|made| made.is_end).count(),
        };
        let (top, c_frame) = memory.write(&stack, FRAMES - loops);
        let room = if random.below(4) == 0 { random.below(FRAMES) } else { FRAMES };
        let codes = Addresses(&memory.codes);
        let (mut plainly, mut replayed) = (Written::new(room), Written::new(room));
        let mut output = SourceFrames::new(plainly.room(), &codes);
        let form = form(c_frame, memory.last_c_frame());
        // SAFETY: the chain is made of frames of this form.
        let expected = unsafe { plain::walk(form, top, &mut output) };
        let expected = (output.len, expected);
        let deaths = round / 1000;
        let record = Record::<CAPACITY>::open(&mut kept, deaths).unwrap();
        // SAFETY: as above; the ids of the codes never change.
        let found = unsafe { replay::walk(form, top, record, replayed.room(), &codes) };
        assert_eq!((found.len, found.stop), expected, "round {round} of {seed}: {stack:#?}");
        assert_eq!(replayed, plainly, "round {round} of {seed}, room for {room}: {stack:#?}");
        assert!(!replayed.0[..found.len].contains(&RawFrame::default()));
        replayed.0.truncate(found.len);
        replayed.1.truncate(found.len);
        if let Some(last) = last.as_ref().filter(|last: &&Written| last.0.len() == found.len) {
            assert!(!found.is_unchanged || replayed == *last, "round {round} of {seed}: {stack:#?}");
        }
        unchanged += u64::from(found.is_unchanged);
        last = (found.stop == SourceStop::EndOfStack).then_some(replayed);
    }
    assert!(!F::HAS_SHIMS || CAPACITY < FRAMES || unchanged > 100, "{unchanged}");
    replayed(&kept)
}

#[test]
fn replay_writes_what_a_plain_walk_writes() {
    for seed in 0..30 {
        let frame_objects = |c_frame, last_c_frame| FrameObjects { c_frame, last_c_frame, is_interrupted: false };
        let replayed = [
            check::<_, 128>(10, seed, frame_objects),
            check::<_, 128>(11, seed, |c_frame, _| EntryFlags { c_frame }),
            check::<_, 128>(12, seed, |_, _| Shims::<12>),
            check::<_, 128>(14, seed, |_, _| Shims::<14>),
        ];
        assert!(replayed.iter().all(|frames| *frames > 5000), "{replayed:?}");
    }
}

#[test]
fn a_record_too_small_for_the_stack_holds_its_outer_part() {
    for seed in 0..10 {
        assert!(check::<_, 8>(14, seed, |_, _| Shims::<14>) > 1000);
        assert!(check::<_, 8>(11, seed, |c_frame, _| EntryFlags { c_frame }) > 1000);
    }
}
