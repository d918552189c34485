//! Complete, growing, truncated and malformed jitdumps.

use std::path::Path;

use stackweave_testkit::random::Random;

use super::*;
use crate::test_folder::TestFolder;

/// Builds a jitdump.
struct Dump(Vec<u8>);

impl Dump {
    fn new() -> Self {
        let mut dump = Self(Vec::new());
        for field in [0x4a69_5444_u32, 1, 40, 62, 0, 1] {
            dump.0.extend(field.to_ne_bytes());
        }
        dump.0.extend([0; 16]);
        dump
    }

    fn record(mut self, kind: u32, body: &[u8]) -> Self {
        let size = u32::try_from(body.len() + 16).unwrap();
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(size.to_ne_bytes());
        self.0.extend([0; 8]);
        self.0.extend(body);
        self
    }

    fn load(self, start: u64, name: &str, code: &[u8]) -> Self {
        let mut body = vec![0; 8];
        for field in [start, start, code.len() as u64, 0] {
            body.extend(field.to_ne_bytes());
        }
        body.extend(name.as_bytes());
        body.push(0);
        body.extend(code);
        self.record(0, &body)
    }

    fn moved(self, from: u64, to: u64, size: u64) -> Self {
        let mut body = vec![0; 8];
        for field in [to, from, to, size, 0] {
            body.extend(field.to_ne_bytes());
        }
        self.record(1, &body)
    }

    fn debug_info(self, start: u64, entries: &[(u64, u32, &[u8])]) -> Self {
        let mut body = start.to_ne_bytes().to_vec();
        body.extend((entries.len() as u64).to_ne_bytes());
        for (address, line, file) in entries {
            body.extend(address.to_ne_bytes());
            body.extend(line.to_ne_bytes());
            body.extend([0; 4]);
            body.extend(*file);
            body.push(0);
        }
        self.record(2, &body)
    }
}

fn whole() -> Dump {
    Dump::new()
        .debug_info(0x1000, &[(0x1004, 7, b"a.py"), (0x1008, 9, b"\xff"), (0x1000, 0, b""), (0x100c, 11, b"b.py")])
        .load(0x1000, "first", &[0x90; 16])
        .record(4, &[0; 24])
        .record(77, &[1, 2, 3])
        .load(0x2000, "second", &[0x90; 16])
        .moved(0x1000, 0x3000, 16)
}

fn read(path: &Path) -> JitDump {
    JitDump::at(vec![path.to_owned()], std::process::id())
}

fn read_bytes(folder: &TestFolder, bytes: &[u8]) -> JitDump {
    read(&folder.file("dump", bytes))
}

/// Returns `name file:line` at an address, with `?` for unknown parts.
fn location(dump: &JitDump, address: u64) -> Option<String> {
    let JitSymbol { name, file, line, .. } = dump.lookup(address)?;
    let line = line.map_or("?".to_owned(), |line| line.to_string());
    Some(format!("{name} {}:{line}", file.as_deref().unwrap_or("?")))
}

#[test]
fn names_and_lines_follow_moved_code() {
    let folder = TestFolder::new();
    let dump = read_bytes(&folder, &whole().0);
    assert_eq!((dump.fault(), dump.skipped_records(), dump.is_cut()), (None, 0, false));
    assert_eq!(location(&dump, 0x1000).as_deref(), None);
    assert_eq!(dump.lookup(0x3005).unwrap().start, 0x3000);
    assert_eq!(location(&dump, 0x3000).as_deref(), Some("first ?:?"));
    assert_eq!(location(&dump, 0x3007).as_deref(), Some("first a.py:7"));
    assert_eq!(location(&dump, 0x3008).as_deref(), Some("first a.py:9"));
    assert_eq!(location(&dump, 0x300f).as_deref(), Some("first b.py:11"));
    assert_eq!(location(&dump, 0x3010).as_deref(), None);
    assert_eq!(location(&dump, 0x200f).as_deref(), Some("second ?:?"));
}

#[test]
fn reused_code_loses_its_name_and_its_lines() {
    let folder = TestFolder::new();
    let bytes = Dump::new().debug_info(0x1000, &[(0x1000, 5, b"old.py")]).load(0x1000, "old", &[0; 16]);
    let dump = read_bytes(&folder, &bytes.load(0x1000, "new", &[0; 8]).0);
    assert_eq!(location(&dump, 0x1000).as_deref(), Some("new ?:?"));
}

#[test]
fn appended_records_are_read() {
    let folder = TestFolder::new();
    let bytes = whole().0;
    let path = folder.file("dump", []);
    let mut dump = read(&path);
    for length in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        dump.refresh();
    }
    assert_eq!((dump.fault(), dump.skipped_records()), (None, 0));
    assert_eq!(location(&dump, 0x3007).as_deref(), Some("first a.py:7"));
    std::fs::write(&path, Dump::new().load(0x1000, "newest", &[0; 4]).0).unwrap();
    dump.refresh();
    assert_eq!((location(&dump, 0x1000).as_deref(), location(&dump, 0x3007)), (Some("newest ?:?"), None));
}

#[test]
fn nothing_is_read_after_the_end_mark() {
    let folder = TestFolder::new();
    let dump = read_bytes(&folder, &Dump::new().record(3, &[]).load(0x1000, "late", &[0; 4]).0);
    assert_eq!((location(&dump, 0x1000), dump.fault()), (None, None));
}

#[test]
fn files_that_are_not_jitdumps_are_refused_with_a_reason() {
    let folder = TestFolder::new();
    let mut other_order = Dump::new().0;
    other_order[..4].reverse();
    assert_eq!(read_bytes(&folder, &other_order).fault(), Some(JitDumpFault::OtherByteOrder));
    assert_eq!(read_bytes(&folder, &[b'x'; 64]).fault(), Some(JitDumpFault::NotJitDump));
    let mut version = Dump::new().0;
    version[4] = 9;
    let fault = read_bytes(&folder, &version).fault().unwrap();
    assert_eq!(fault.to_string(), "unknown version 9 of jitdump");
    let mut small = Dump::new().load(0x1000, "f", &[0; 4]).0;
    small[44..48].copy_from_slice(&15_u32.to_ne_bytes());
    assert_eq!(read_bytes(&folder, &small).fault(), Some(JitDumpFault::BadRecord));
}

#[test]
fn malformed_records_are_counted_and_skipped() {
    let folder = TestFolder::new();
    let bytes = Dump::new()
        .record(0, &[1, 2, 3])
        .load(0x1000, "empty", &[])
        .load(u64::MAX, "wraps", &[0; 4])
        .moved(0x5000, 0x6000, 16)
        .debug_info(0x1000, &[(0x1000, 1, b"\xff")])
        .load(0x1000, "good", &[0; 4]);
    let dump = read_bytes(&folder, &bytes.0);
    assert_eq!((dump.fault(), dump.skipped_records()), (None, 5));
    assert_eq!(location(&dump, 0x1000).as_deref(), Some("good ?:?"));
}

#[test]
fn truncated_changed_and_random_bytes_are_harmless() {
    let folder = TestFolder::new();
    let bytes = whole().0;
    for length in 0..bytes.len() {
        read_bytes(&folder, &bytes[..length]).lookup(0x3000);
    }
    let mut random = Random::new(1);
    for _ in 0..1000 {
        let mut changed = bytes.clone();
        for _ in 0..=random.below(4) {
            let at = random.below(changed.len());
            changed[at] = random.bits().to_le_bytes()[0];
        }
        let dump = read_bytes(&folder, &changed);
        for address in [0, 0x1000, 0x2000, 0x3000, u64::MAX] {
            dump.lookup(address);
        }
        let noise = (0..64).flat_map(|_| random.bits().to_ne_bytes());
        read_bytes(&folder, &bytes[..40].iter().copied().chain(noise).collect::<Vec<u8>>()).lookup(0x1000);
    }
}

#[test]
fn a_process_without_a_dump_has_no_names() {
    let mut dump = JitDump::of_process(u32::MAX);
    dump.refresh();
    assert_eq!((dump.lookup(0x1000), dump.fault()), (None, None));
}
