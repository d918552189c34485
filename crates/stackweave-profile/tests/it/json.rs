//! JSON, as Python reads it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use stackweave_core::Position;
use stackweave_profile::{Frame, FrameKind, write_json};
use stackweave_testkit::symbols::tool::Tool;

use crate::common::or_skip;

/// Reads JSON, and writes the texts of each frame as code points.
const READER: &str = r#"
import json, sys
def points(text):
    return ",".join(f"{ord(character):x}" for character in text)
with open(sys.argv[1], encoding="utf-8", errors="strict") as file:
    for stack in json.load(file):
        for frame in stack:
            print(points(frame["name"]), points(frame["filename"]), frame["line"], frame.get("module"), list(frame)[:4])
        print("end")
"#;

fn points(text: &str) -> String {
    text.chars().map(|character| format!("{:x}", u32::from(character))).collect::<Vec<_>>().join(",")
}

fn frame(name: &str, filename: &str, line: u32) -> Arc<Frame> {
    Arc::new(Frame {
        kind: FrameKind::Python,
        name: name.into(),
        qualname: Some(name.into()),
        filename: Some(filename.into()),
        first_line: None,
        position: Position { line: Some(line), ..Position::default() },
        module: None,
        is_inlined: false,
        address: Some(u64::MAX),
        is_own: false,
    })
}

#[test]
fn python_reads_back_every_character() {
    let python = or_skip!(Tool::find(&["python3"]));
    let every: String = (0..0x3000).chain([0xfffd, 0xffff, 0x1_f600, 0x10_ffff]).filter_map(char::from_u32).collect();
    let texts: Vec<String> =
        every.chars().map(String::from).chain([every.clone(), String::new(), "\\u0041\"}],".to_owned()]).collect();
    let all: Vec<Arc<Frame>> = texts.iter().map(|text| frame(text, &format!("{text}.py"), u32::MAX)).collect();
    let twice: Vec<Arc<Frame>> = vec![Arc::clone(&all[34]), Arc::clone(&all[34])];
    let stacks: Vec<Arc<[Arc<Frame>]>> = vec![all.into(), Arc::new([]), twice.into()];

    let path = std::env::temp_dir().join(format!("stackweave-profile-{}.json", std::process::id()));
    let mut out = std::fs::File::create(&path).unwrap();
    write_json(&mut out, &stacks).unwrap();
    let read = python.run(Path::new("/"), ["-c", READER, &path.to_string_lossy()]);
    std::fs::remove_file(&path).unwrap();

    let mut expected = String::new();
    for stack in &stacks {
        for frame in stack.iter() {
            let (name, filename) = (points(&frame.name), points(frame.filename.as_deref().unwrap()));
            let _ = writeln!(expected, "{name} {filename} {} None ['name', 'filename', 'line', 'kind']", u32::MAX);
        }
        expected.push_str("end\n");
    }
    let read = read.expect("Python reads it");
    let differs = read.lines().zip(expected.lines()).find(|(read, expected)| read != expected);
    assert_eq!(differs, None);
    assert_eq!(read.lines().count(), expected.lines().count());
}
