//! Old recordings stay readable, by this crate and by a reader that was written from the document alone.

use std::fs;
use std::path::{Path, PathBuf};

use stackweave_core::{BlobId, Call, CodeId, NoNames};
use stackweave_recording::events;
use stackweave_recording::file::{BlockKind, Encoded, Encoder, VERSION, write_block};
use stackweave_testkit::symbols::tool::Tool;

use crate::common::fixed::{fixed_section, fixed_start};
use crate::common::lines::lines;
use crate::common::{random_section, stack_table};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Returns the output of the independent reader for this file, with this option.
pub fn read_by_python(python: &Tool, file: &[u8], (name, option): (&str, &str)) -> Vec<String> {
    let path = std::env::temp_dir().join(format!("stackweave-{name}-{}.swv", std::process::id()));
    fs::write(&path, file).unwrap();
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reader.py");
    let (reader, path) = (reader.to_string_lossy(), path.to_string_lossy());
    let arguments: Vec<&str> = [&*reader, option, &*path].into_iter().filter(|argument| !argument.is_empty()).collect();
    let printed = python.run(Path::new("/"), arguments);
    fs::remove_file(&*path).unwrap();
    printed.expect("the reader succeeds").lines().map(str::to_owned).collect()
}

pub fn assert_same(ours: &[String], by_python: &[String], name: &str) {
    for (line, (ours, by_python)) in ours.iter().zip(by_python).enumerate() {
        assert_eq!(ours, by_python, "{name}, line {line}");
    }
    assert_eq!(ours.len(), by_python.len(), "{name}");
}

#[test]
fn version_1_reads_as_before() {
    let file = fs::read(data("version-1.swv")).unwrap();
    let expected = fs::read_to_string(data("version-1.jsonl")).unwrap();
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    assert!(expected.len() > 80);
    assert_same(&lines(&file).unwrap(), &expected, "version 1");
}

/// Writes the files of a new version. Run it once, with `--ignored`. Existing files are never changed.
#[test]
#[ignore = "writes the files of a new version"]
fn write_this_version() {
    let file = fixed_section();
    for (ending, content) in [("swv", file.clone()), ("jsonl", (lines(&file).unwrap().join("\n") + "\n").into())] {
        let path = data(&format!("version-{VERSION}.{ending}"));
        assert!(!path.exists(), "{} exists already", path.display());
        fs::write(path, content).unwrap();
    }
}

/// Returns a section with calls of code objects and of labels, with and without callers.
fn calls() -> Vec<u8> {
    let (mut encoder, mut bytes, mut blocks) = (Encoder::new(stack_table()), Vec::new(), Encoded::default());
    encoder.start(&fixed_start(), &mut bytes);
    assert_eq!(encoder.kind(&events::RESUME), Some(1));
    let code = |number| CodeId::new(number).unwrap();
    let plain = Call::to_code(code(1)).unwrap();
    let label = Call::to_label(BlobId::new(3).unwrap()).unwrap();
    let words = [plain, plain.from(code(2), 9), label.from(code(2), 9), label].map(Call::to_bits);
    let events: Vec<u64> = (10..).zip(words).flat_map(|(ticks, call)| [ticks << 8 | 1, call, 64 * ticks]).collect();
    let consumed = encoder.events(1, &events, &NoNames, &mut blocks);
    assert_eq!((consumed.events, consumed.words), (4, events.len()));
    bytes.extend(blocks.definitions);
    bytes.extend(blocks.events);
    bytes
}

#[test]
fn an_independent_reader_reads_the_same() {
    let python = match Tool::find(&["python3"]) {
        Ok(python) => python,
        Err(missing) => return println!("skipped: {missing}"),
    };
    let mut unknown = fixed_section();
    write_block(BlockKind::Other(77), 1, b"from the future", &mut unknown).unwrap();
    unknown.extend(fixed_section());
    let files =
        [("version-1", fs::read(data("version-1.swv")).unwrap()), ("two-sections", unknown), ("calls", calls())];
    for (name, file) in files {
        assert_same(&lines(&file).unwrap(), &read_by_python(&python, &file, (name, "")), name);
    }
    for seed in 0..4 {
        let (file, _) = random_section(seed);
        let name = format!("seed-{seed}");
        assert_same(&lines(&file).unwrap(), &read_by_python(&python, &file, (&name, "")), &name);
    }
}
