//! Compares replay with the plain walk, over chains that change in every way.

use stackweave_core::{CodeId, RawFrame, SourceStop, StackPointer};
use stackweave_testkit::random::Random;

use super::entry_flags::EntryFlags;
use super::frame_by_frame;
use super::frame_chain::FrameChain;
use super::frame_objects::FrameObjects;
use super::replay;
use super::shims::Shims;
use super::source_frames::{CodeIds, FrameBuffers, SourceFrames};
use super::stack_cache::{StackCache, replayed};
use super::stack_caches;
use crate::version::{Chain, VersionLayout};

const FRAMES: usize = 40;
const CODES: usize = 4;
const TRACEABLE_FROM: u32 = 4;
/// More than any frame, and than the code up to the last instruction.
type Words = [u64; 128];

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FrameContents {
    place: usize,
    code: usize,
    instruction: u64,
    owner: u64,
    /// Whether it ends its activation: a shim, or an entry frame.
    is_end: bool,
}

/// Our own memory with the layout of an interpreter's.
struct FakeMemory {
    layout: &'static VersionLayout,
    frames: Vec<Words>,
    codes: Vec<Words>,
    c_frames: Vec<[u64; 4]>,
    none: Box<Words>,
}

struct CodeAddresses<'a>(&'a [Words]);

impl CodeIds for CodeAddresses<'_> {
    fn id_of(&self, code: u64) -> Result<CodeId, SourceStop> {
        let index = self.0.iter().position(|words| words.as_ptr() as u64 == code).ok_or(SourceStop::BadFrame)?;
        CodeId::new(index as u32 + 1).ok_or(SourceStop::BadFrame)
    }
}

impl FakeMemory {
    fn new(minor: u8) -> Self {
        let layout = VersionLayout::of_minor(minor).unwrap();
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
    fn write(&mut self, stack: &[FrameContents], first_c_frame: usize) -> (u64, u64) {
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
                    // A shim points to an object that is not a code object.
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

fn any_frame(random: &mut Random, place: usize) -> FrameContents {
    let owner = [0, 0, 0, 1, 2][random.below(5)];
    let instruction = [6, 8, 200, 202, 400, 2_u64.wrapping_neg()][random.below(6)];
    FrameContents { place, code: random.below(CODES), instruction, owner, is_end: random.below(4) == 0 }
}

/// Changes a stack between two walks: calls, returns, other instructions, other callers.
fn change(random: &mut Random, stack: &mut Vec<FrameContents>) {
    let unused = |stack: &[FrameContents], random: &mut Random| {
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

/// The output of a walk.
#[derive(Debug, PartialEq)]
struct WalkOutput(Vec<RawFrame>, Vec<StackPointer>);

impl WalkOutput {
    fn new(buffers: usize) -> Self {
        Self(vec![RawFrame::default(); buffers], vec![StackPointer(0); buffers])
    }

    fn buffers(&mut self) -> FrameBuffers<'_> {
        FrameBuffers { frames: &mut self.0, activations: &mut self.1 }
    }
}

fn check<F: FrameChain, const CAPACITY: usize>(minor: u8, seed: u64, chain: impl Fn(u64, u64) -> F) -> u64 {
    let mut random = Random::new(seed);
    let (mut memory, mut kept) = (FakeMemory::new(minor), vec![0_u64; StackCache::<CAPACITY>::WORDS]);
    let mut stack: Vec<FrameContents> = Vec::new();
    // `None` if there was not room for all frames.
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
        let buffers = if random.below(4) == 0 { random.below(FRAMES) } else { FRAMES };
        let codes = CodeAddresses(&memory.codes);
        let (mut plainly, mut replayed) = (WalkOutput::new(buffers), WalkOutput::new(buffers));
        let mut output = SourceFrames::new(plainly.buffers(), &codes);
        let chain = chain(c_frame, memory.last_c_frame());
        // SAFETY: the chain consists of frames of this layout.
        let expected = unsafe { frame_by_frame::walk(chain, top, &mut output) };
        let expected = (output.len, expected);
        let deaths = round / 1000;
        let cache = StackCache::<CAPACITY>::open(&mut kept, deaths).unwrap();
        // SAFETY: as above; the ids of the codes never change.
        let result = unsafe { replay::walk(chain, top, cache, replayed.buffers(), &codes) };
        assert_eq!((result.len, result.stop), expected, "round {round} of {seed}: {stack:#?}");
        assert_eq!(replayed, plainly, "round {round} of {seed}, buffers for {buffers}: {stack:#?}");
        assert!(!replayed.0[..result.len].contains(&RawFrame::default()));
        replayed.0.truncate(result.len);
        replayed.1.truncate(result.len);
        if let Some(last) = last.as_ref().filter(|last: &&WalkOutput| last.0.len() == result.len) {
            assert!(!result.is_unchanged || replayed == *last, "round {round} of {seed}: {stack:#?}");
        }
        unchanged += u64::from(result.is_unchanged);
        last = (result.stop == SourceStop::EndOfStack).then_some(replayed);
    }
    assert!(!F::HAS_SHIMS || CAPACITY < FRAMES || unchanged > 100, "{unchanged}");
    replayed(&kept)
}

#[test]
fn replay_writes_the_same_as_a_plain_walk() {
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

/// Alternates between stacks, which change now and then, and compares each walk with a plain one. Returns how many
/// walks had an unchanged stack.
fn alternate<F: FrameChain>(minor: u8, seed: u64, chain: impl Fn(u64, u64) -> F) -> u64 {
    let mut random = Random::new(seed);
    let (mut memory, mut kept) = (FakeMemory::new(minor), vec![0_u64; stack_caches::WORDS]);
    let mut stacks = vec![Vec::new(); 1 + seed as usize % 24];
    let (mut last, mut unchanged, mut which) = (None, 0, 0);
    for round in 0..3000_u64 {
        if random.below(4) != 0 {
            which = random.below(stacks.len());
        }
        let stack = &mut stacks[which];
        while stack.len() < 8 || random.below(6) == 0 {
            change(&mut random, stack);
        }
        if let Some(outermost) = stack.last_mut() {
            outermost.is_end = true;
        }
        let loops = if minor == 10 { stack.len() } else { stack.iter().filter(|made| made.is_end).count() };
        let (top, c_frame) = memory.write(stack, FRAMES - loops);
        let codes = CodeAddresses(&memory.codes);
        let buffers = if random.below(8) == 0 { random.below(FRAMES) } else { FRAMES };
        let (mut plainly, mut replayed) = (WalkOutput::new(buffers), WalkOutput::new(buffers));
        let mut output = SourceFrames::new(plainly.buffers(), &codes);
        let chain = chain(c_frame, memory.last_c_frame());
        // SAFETY: the chain consists of frames of this layout.
        let expected = unsafe { frame_by_frame::walk(chain, top, &mut output) };
        let expected = (output.len, expected);
        // SAFETY: as above; the ids of the codes never change.
        let result = unsafe {
            stack_caches::walk(chain, top, (kept.as_mut_slice(), round / 1000), replayed.buffers(), &codes).unwrap()
        };
        assert_eq!((result.len, result.stop), expected, "round {round} of {seed}: {stack:#?}");
        assert_eq!(replayed, plainly, "round {round} of {seed}: {stack:#?}");
        replayed.0.truncate(result.len);
        replayed.1.truncate(result.len);
        if let Some(last) = last.as_ref().filter(|last: &&WalkOutput| last.0.len() == result.len) {
            assert!(!result.is_unchanged || replayed == *last, "round {round} of {seed}: {stack:#?}");
        }
        unchanged += u64::from(result.is_unchanged);
        last = (result.stop == SourceStop::EndOfStack).then_some(replayed);
    }
    unchanged
}

#[test]
fn alternating_stacks_are_walked_as_by_a_plain_walk() {
    for seed in 0..30 {
        alternate(10, seed, |c_frame, last_c_frame| FrameObjects { c_frame, last_c_frame, is_interrupted: false });
        alternate(11, seed, |c_frame, _| EntryFlags { c_frame });
        let unchanged = alternate(12, seed, |_, _| Shims::<12>) + alternate(14, seed, |_, _| Shims::<14>);
        assert!(unchanged > 20, "{unchanged} of {seed}");
    }
}

/// Several stacks that do not change are replayed completely, however they alternate.
#[test]
fn each_of_several_stacks_is_replayed() {
    let (mut memory, mut kept) = (FakeMemory::new(14), vec![0_u64; stack_caches::WORDS]);
    let stack = |which: usize| -> Vec<FrameContents> {
        let frame = |index| FrameContents {
            place: (index * (1 + which)) % FRAMES,
            code: which % CODES,
            instruction: 200 + 2 * which as u64,
            owner: 0,
            is_end: false,
        };
        let mut frames: Vec<FrameContents> = (0..FRAMES / (1 + which)).take(9).map(frame).collect();
        frames.last_mut().unwrap().is_end = true;
        frames
    };
    let mut before = 0;
    for round in 0..10 {
        for which in 0..4 {
            let (top, _) = memory.write(&stack(which), 0);
            let codes = CodeAddresses(&memory.codes);
            let mut output = WalkOutput::new(FRAMES);
            // SAFETY: the chain consists of frames of this layout, and the ids never change.
            let result = unsafe {
                stack_caches::walk(Shims::<14>, top, (kept.as_mut_slice(), 0), output.buffers(), &codes).unwrap()
            };
            assert_eq!((result.len, result.stop), (stack(which).len() - 1, SourceStop::EndOfStack));
        }
        let now = stack_caches::replayed(&kept);
        let frames = (0..4).map(|which| stack(which).len() as u64).sum::<u64>();
        assert!(round == 0 || now == before + frames, "{now} after {before} in round {round}");
        before = now;
    }
}

#[test]
fn a_cache_too_small_for_the_stack_holds_its_outer_part() {
    for seed in 0..10 {
        assert!(check::<_, 8>(14, seed, |_, _| Shims::<14>) > 1000);
        assert!(check::<_, 8>(11, seed, |c_frame, _| EntryFlags { c_frame }) > 1000);
    }
}
