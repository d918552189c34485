//! The worked example in the document matches the encoder, and decodes as the document shows.

use stackweave_core::{CodeId, EventKind, Field, FrameNames, ModuleList, Position, RawFrame, SourceLocation};
use stackweave_recording::events::fields::{self, DeclaredField};
use stackweave_recording::events::{self, DeclaredKind};
use stackweave_recording::file::{Encoded, Encoder, EndReason, ProcessStart, SectionEnd};

use crate::common::lines::lines;
use crate::common::stack_table;

/// A process with one function.
struct Process;

impl FrameNames for Process {
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

/// Returns a recording in which the function is called twice.
fn example() -> Vec<u8> {
    let frame = RawFrame::python(CodeId::new(1).unwrap(), 6, false).to_bits();
    let mut encoder = Encoder::new(stack_table());
    let mut file = Vec::new();
    encoder.start(
        &ProcessStart { pid: 7, thread: 1, stackweave_version: "0.1.0".into(), ..ProcessStart::default() },
        &mut file,
    );
    encoder.kind(&events::BEGIN).unwrap();
    encoder.kind(&events::END).unwrap();
    encoder.thread(1, 7, "main");
    let mut blocks = Encoded::default();
    encoder.events(1, &[100 << 8 | 1, frame, 350 << 8 | 2, 500 << 8 | 1, frame, 600 << 8 | 2], &Process, &mut blocks);
    file.extend([blocks.definitions, blocks.events].concat());
    encoder.end(&SectionEnd { events: 4, lost: 0, residual_ns: 0, reason: EndReason::Stopped }, &mut file);
    file
}

/// Returns the lines in the fence of this language.
fn fenced<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}");
    document.lines().skip_while(|line| *line != fence).skip(1).take_while(|line| *line != "```").collect()
}

#[test]
fn the_example_is_correct() {
    let document = include_str!("../../../../docs/reference/format-recording.md");
    let dump = fenced(document, "hex");
    let digits = dump.iter().flat_map(|line| line.split('|').next().unwrap_or_default().split_whitespace());
    let bytes: Vec<u8> = digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(bytes, example(), "the encoder writes {:02x?}", example());
    assert_eq!(lines(&bytes).unwrap(), fenced(document, "json"));
}

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/format-recording.md");

/// Returns the section of the page with all declared kinds and fields.
fn kinds() -> String {
    let mut section = String::from(
        "## Kinds\n\nA section declares its kinds, so a reader needs only their roles and fields. These are the kinds that Stackweave \
         writes;\nother programs may add more. A test compares this section with the declarations in `crates/stackweave-recording/src/events`.\n",
    );
    for family in events::families() {
        section += &format!("\n**{}.**\n\n| kind | role | fields | meaning |\n|---|---|---|---|\n", family.name);
        let row = |known: &DeclaredKind| (known.kind.role, fields_in_file(&known.kind), known.about.trim());
        for same in family.kinds.chunk_by(|one, other| row(one) == row(other)) {
            let names: Vec<_> = same.iter().map(|known| format!("`{}`", known.kind.name)).collect();
            let (role, fields, about) = row(&same[0]);
            section += &format!("| {} | {role} | {} | {about} |\n", names.join(", "), fields.join(", "));
        }
    }
    section += "\n**Fields.**\n\n| field | type | unit | meaning |\n|---|---|---|---|\n";
    for known in fields::ALL.iter().filter(|known| known.field != fields::CALL) {
        let DeclaredField { field, unit, about } = known;
        section += &format!("| `{}` | {} | {unit} | {} |\n", field.name, field.field_type.as_str(), about.trim());
    }
    section
}

/// Returns the names of a kind's fields in a file, where a call becomes two frames.
fn fields_in_file(kind: &EventKind) -> Vec<String> {
    let of =
        |field: &Field| if *field == fields::CALL { vec![fields::FRAME, fields::CALLER] } else { vec![field.clone()] };
    kind.fields.iter().flat_map(of).map(|field| format!("`{}`", field.name)).collect()
}

/// `STACKWEAVE_BLESS=1` rewrites the section.
#[test]
fn the_page_lists_exactly_the_declared_kinds_and_fields() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let begin = page.find("## Kinds\n").unwrap();
    let end = begin + page[begin..].find("\n## ").unwrap();
    if std::env::var_os("STACKWEAVE_BLESS").is_some() {
        std::fs::write(PAGE, format!("{}{}{}", &page[..begin], kinds(), &page[end..])).unwrap();
    } else {
        assert_eq!(&page[begin..end], kinds());
    }
    let named = page[..begin].split('`').skip(1).step_by(2);
    let is_declared =
        |name: &&str| events::families().iter().any(|of| of.kinds.iter().any(|known| known.kind.name == **name));
    let looks_like_a_kind = |name: &&str| {
        let starts = ["host-", "segment", "memory-", "begin", "end-", "block-state"];
        starts.iter().any(|start| name.starts_with(start))
            && name.chars().all(|of| of.is_ascii_lowercase() || of == '-')
    };
    let unknown: Vec<&str> = named.filter(looks_like_a_kind).filter(|name| !is_declared(name)).collect();
    assert_eq!(unknown, [""; 0], "kinds that are not declared");
}
