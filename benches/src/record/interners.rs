//! The interners, which turn stacks into integers: ours, and other ways.

use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;
use stackweave_core::{RawFrame, StackId};
use stackweave_store::StackTable;

use super::rounds::Entrant;
use super::stacks::{DEEPEST, Stack};

/// Turns stacks into integers. Threads share it.
pub(super) trait Interner: Sync {
    fn intern(&self, frames: &[RawFrame]) -> u32;

    /// Interns all stacks. The loop is in the trait so that it is compiled for each interner, without indirect calls.
    fn intern_all(&self, stacks: &[Stack]) {
        for stack in stacks {
            black_box(self.intern(black_box(stack)));
        }
    }
}

/// Returns one empty interner of each kind; ours first.
pub(super) fn all() -> Vec<Entrant<dyn Interner>> {
    vec![
        ("ours", Box::new(StackTable::new())),
        ("ours, compared", Box::new(Compared(StackTable::new()))),
        ("map", Box::new(Map::default())),
        ("call tree", Box::new(CallTree::default())),
        ("copy", Box::new(Copy)),
    ]
}

impl Interner for StackTable {
    fn intern(&self, frames: &[RawFrame]) -> u32 {
        self.intern(frames).map_or(0, StackId::get)
    }
}

/// Our interner with an extra check: instead of trusting the hash, it compares the frames along the tree.
struct Compared(StackTable);

impl Interner for Compared {
    fn intern(&self, frames: &[RawFrame]) -> u32 {
        let id = self.0.intern(frames);
        let is_equal = id.is_some_and(|id| self.0.frames(id).eq(frames.iter().copied()));
        if is_equal { id.map_or(0, StackId::get) } else { 0 }
    }
}

/// The obvious implementation: a map from whole stacks, behind a lock.
#[derive(Default)]
struct Map(Mutex<FxHashMap<Vec<u64>, u32>>);

impl Interner for Map {
    fn intern(&self, frames: &[RawFrame]) -> u32 {
        let mut words = [0; DEEPEST];
        for (word, frame) in words.iter_mut().zip(frames) {
            *word = frame.to_bits();
        }
        let words = &words[..frames.len()];
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = map.get(words) {
            return *id;
        }
        let id = u32::try_from(map.len()).unwrap_or(u32::MAX);
        map.insert(words.to_vec(), id);
        id
    }
}

/// The implementation of memory profilers: a tree that looks up each frame below its caller, behind a lock.
#[derive(Default)]
struct CallTree(Mutex<FxHashMap<(u32, u64), u32>>);

impl Interner for CallTree {
    fn intern(&self, frames: &[RawFrame]) -> u32 {
        let mut tree = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frames.iter().rev().fold(0, |caller, frame| {
            let next = u32::try_from(tree.len() + 1).unwrap_or(u32::MAX);
            *tree.entry((caller, frame.to_bits())).or_insert(next)
        })
    }
}

/// The least work that reads a stack: a lower limit, not a peer.
struct Copy;

impl Interner for Copy {
    fn intern(&self, frames: &[RawFrame]) -> u32 {
        let mut copy = [MaybeUninit::<RawFrame>::uninit(); DEEPEST];
        for (place, frame) in copy.iter_mut().zip(frames) {
            place.write(*frame);
        }
        black_box(&copy);
        0
    }
}
