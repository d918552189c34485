//! Profiles of made-up recordings, and events that only these tests need.

use std::borrow::Cow;

use stackweave_core::{Call, EventKind, Field, FieldType, RawFrame, RawFrameKind, Role};
use stackweave_profile::{AggregateOptions, Profile, aggregate};
use stackweave_recording::ProcessRecording;
use stackweave_tapes::{Tape, TapeTime};

const FRAME: Field = Field::new("frame", FieldType::Frame);

/// A span resumes: `resume(frame, object)`.
const RESUME: EventKind = EventKind {
    name: Cow::Borrowed("resume"),
    role: Role::Resume,
    fields: Cow::Borrowed(const { &[FRAME, Field::new("object", FieldType::Address)] }),
};

/// A span is open: `open(call, depth)`.
const OPEN: EventKind = EventKind {
    name: Cow::Borrowed("open"),
    role: Role::Open,
    fields: Cow::Borrowed(const { &[Field::new("call", FieldType::Call), Field::new("depth", FieldType::Unsigned)] }),
};

/// Additional methods of tapes.
pub trait TapeExt {
    /// Records that a span resumes.
    fn resume(&mut self, at: TapeTime, frame: RawFrame);
    /// Records that a label is open at this depth; without a label, that no span is open.
    fn open(&mut self, at: TapeTime, name: Option<RawFrame>, depth: u64);
    fn profile(self, options: &AggregateOptions) -> Profile;
}

impl TapeExt for Tape {
    fn resume(&mut self, at: TapeTime, frame: RawFrame) {
        self.event(at, &RESUME, &[frame.to_bits(), 0x7000]);
    }

    fn open(&mut self, at: TapeTime, name: Option<RawFrame>, depth: u64) {
        let call = name.map(|name| match name.kind() {
            RawFrameKind::Label(label) => Call::to_label(label).unwrap(),
            RawFrameKind::Python { code, .. } => Call::to_code(code).unwrap(),
            other => panic!("{other:?} is never called"),
        });
        self.event(at, &OPEN, &[call.map_or(0, Call::to_bits), depth]);
    }

    fn profile(self, options: &AggregateOptions) -> Profile {
        profile(&[self.process()], options)
    }
}

pub fn profile(processes: &[ProcessRecording], options: &AggregateOptions) -> Profile {
    aggregate(processes, options, None, &mut |_| {}).unwrap().merged()
}

/// Returns each path of the tree, from the outermost name to the innermost, with calls, self and total cost, sorted.
pub fn paths(profile: &Profile) -> Vec<(String, u64, i64, i64)> {
    let tree = profile.tree();
    let mut names = vec![String::new(); tree.nodes().len()];
    let mut paths = Vec::new();
    for (id, node) in tree.iter() {
        let frame = profile.functions().frame(node.frame);
        let above = &names[node.parent.index()];
        let separator = if above.is_empty() { "" } else { ";" };
        let line = frame.line.map_or_else(String::new, |line| format!(":{line}"));
        names[id.index()] =
            format!("{above}{separator}{}{line}", profile.functions().function(frame.function).full_name());
        paths.push((names[id.index()].clone(), node.cost.calls, node.cost.self_cost, node.cost.total));
    }
    paths.sort();
    paths
}

/// Returns the same from `&str`, for comparisons.
pub fn path(path: &str, calls: u64, self_cost: i64, total: i64) -> (String, u64, i64, i64) {
    (path.to_owned(), calls, self_cost, total)
}
