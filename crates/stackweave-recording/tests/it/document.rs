//! The worked example of the document is what is written, and reads as it says.

use stackweave_core::{CodeId, ModuleList, Names, Position, RawFrame, SourceLocation};
use stackweave_recording::events;
use stackweave_recording::file::{Encoded, Encoder, End, EndReason, Start};

use crate::common::lines::lines;
use crate::common::stack_table;

/// A process with one function.
struct Process;

impl Names for Process {
    fn locate(&self, _: RawFrame) -> Option<SourceLocation> {
        let position = Position { line: Some(4), ..Position::default() };
        Some(SourceLocation {
            name: "f".into(),
            qualname: None,
            filename: "a.py".into(),
            first_line: Some(3),
            position,
        })
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

/// The function is called twice.
fn example() -> Vec<u8> {
    let frame = RawFrame::python(CodeId::new(1).unwrap(), 6, false).to_bits();
    let mut encoder = Encoder::new(stack_table());
    let mut file = Vec::new();
    encoder.start(&Start { pid: 7, thread: 1, stackweave_version: "0.1.0".into(), ..Start::default() }, &mut file);
    encoder.kind(&events::BEGIN).unwrap();
    encoder.kind(&events::END).unwrap();
    encoder.thread(1, 7, "main");
    let mut blocks = Encoded::default();
    encoder.events(1, &[100 << 8 | 1, frame, 350 << 8 | 2, 500 << 8 | 1, frame, 600 << 8 | 2], &Process, &mut blocks);
    file.extend([blocks.definitions, blocks.events].concat());
    encoder.end(&End { events: 4, lost: 0, residual_ns: 0, reason: EndReason::Stopped }, &mut file);
    file
}

/// The lines between a fence of this language and its end.
fn fenced<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}");
    document.lines().skip_while(|line| *line != fence).skip(1).take_while(|line| *line != "```").collect()
}

#[test]
fn the_example_is_right() {
    let document = include_str!("../../../../docs/reference/format-recording.md");
    let dump = fenced(document, "hex");
    let digits = dump.iter().flat_map(|line| line.split('|').next().unwrap_or_default().split_whitespace());
    let bytes: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(bytes, example(), "what is written is {:02x?}", example());
    assert_eq!(lines(&bytes).unwrap(), fenced(document, "json"));
}
