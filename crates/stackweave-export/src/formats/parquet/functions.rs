//! The numbers of frames and functions in the tables of one process.

use std::collections::HashMap;
use std::sync::Arc;

use stackweave_profile::{Frame, FrameKind, WordMap};

use crate::activity::NamedProcess;

/// Numbers frames and functions. A frame of the recording may stand for several functions; each is a frame here.
#[derive(Debug, Default)]
pub(super) struct TableNumbers {
    /// By number in the recording: the first frame here, and the number of frames, outermost first.
    numbers: WordMap<u32, (u32, u32)>,
    /// The function of each frame, from 1.
    functions: Vec<u32>,
    by_key: HashMap<FunctionIdentity, u32>,
}

/// The identity of a function, as in a profile: see `stackweave_profile::Function`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FunctionIdentity {
    kind: FrameKind,
    name: Arc<str>,
    location: Option<Arc<str>>,
    first_line: Option<u32>,
}

impl TableNumbers {
    /// Returns the frames here for a frame of the recording, outermost first, and numbers new ones.
    pub(super) fn of(&mut self, process: &NamedProcess<'_>, number: u32) -> core::ops::Range<u32> {
        if let Some((first, count)) = self.numbers.get(&number) {
            return *first..first + count;
        }
        let first = self.next();
        for frame in process.chain(number) {
            let function = self.function(FunctionIdentity::of(frame));
            self.functions.push(function);
        }
        if self.next() == first {
            let key = FunctionIdentity {
                kind: FrameKind::Span,
                name: Frame::UNKNOWN.into(),
                location: None,
                first_line: None,
            };
            let function = self.function(key);
            self.functions.push(function);
        }
        let count = self.next() - first;
        self.numbers.insert(number, (first, count));
        first..first + count
    }

    /// Returns the function of a frame.
    pub(super) fn function_of(&self, frame: u32) -> u32 {
        self.functions.get(frame as usize - 1).copied().unwrap_or(0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many frames do not fit into memory")]
    fn next(&self) -> u32 {
        self.functions.len() as u32 + 1
    }

    #[expect(clippy::cast_possible_truncation, reason = "that many functions do not fit into memory")]
    fn function(&mut self, key: FunctionIdentity) -> u32 {
        let next = self.by_key.len() as u32 + 1;
        *self.by_key.entry(key).or_insert(next)
    }
}

impl FunctionIdentity {
    fn of(frame: &Frame) -> Self {
        let is_native = frame.kind == FrameKind::Native;
        Self {
            kind: frame.kind,
            name: Arc::clone(frame.qualname.as_ref().unwrap_or(&frame.name)),
            location: if is_native { frame.module.clone() } else { frame.filename.clone() },
            first_line: if is_native { None } else { frame.first_line },
        }
    }
}
