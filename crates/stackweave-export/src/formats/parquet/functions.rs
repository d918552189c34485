//! The numbers of frames and functions in the tables of one process.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_profile::{Frame, FrameKind};

use crate::activity::NamedProcess;

/// A frame of the recording may stand for several functions; each of these is a frame of its own here.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// By number in the recording: the first frame here, and how many there are, outermost first.
    places: HashMap<u32, (u32, u32)>,
    /// By frame here, from 1: the function.
    functions: Vec<u32>,
    by_key: HashMap<Key, u32>,
}

/// Functions are the same as in a profile: see `stackweave_profile::Function`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    kind: FrameKind,
    name: Arc<str>,
    place: Option<Arc<str>>,
    first_line: Option<u32>,
}

impl Frames {
    /// The frames that a frame of the recording stands for, outermost first; those behind it that are new get numbers.
    pub(super) fn of(&mut self, process: &NamedProcess<'_>, number: u32) -> core::ops::Range<u32> {
        if let Some((first, count)) = self.places.get(&number) {
            return *first..first + count;
        }
        let first = self.next();
        for frame in process.chain(number) {
            let function = self.function(Key::of(frame));
            self.functions.push(function);
        }
        if self.next() == first {
            let key = Key { kind: FrameKind::Label, name: Frame::UNKNOWN.into(), place: None, first_line: None };
            let function = self.function(key);
            self.functions.push(function);
        }
        let count = self.next() - first;
        self.places.insert(number, (first, count));
        first..first + count
    }

    /// The function of a frame.
    pub(super) fn function_of(&self, frame: u32) -> u32 {
        self.functions.get(frame as usize - 1).copied().unwrap_or(0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many frames do not fit into memory")]
    fn next(&self) -> u32 {
        self.functions.len() as u32 + 1
    }

    #[expect(clippy::cast_possible_truncation, reason = "as many functions do not fit into memory")]
    fn function(&mut self, key: Key) -> u32 {
        let next = self.by_key.len() as u32 + 1;
        *self.by_key.entry(key).or_insert(next)
    }
}

impl Key {
    fn of(frame: &Frame) -> Self {
        let is_native = frame.kind == FrameKind::Native;
        Self {
            kind: frame.kind,
            name: Arc::clone(frame.qualname.as_ref().unwrap_or(&frame.name)),
            place: if is_native { frame.module.clone() } else { frame.filename.clone() },
            first_line: if is_native { None } else { frame.first_line },
        }
    }
}
