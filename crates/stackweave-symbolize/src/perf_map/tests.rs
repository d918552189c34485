//! Perf maps: which lines are read, and changes while a process runs.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use super::*;
use crate::test_folder::TestFolder;

fn map_at(path: &Path) -> PerfMap {
    PerfMap::at(vec![path.to_owned()], std::process::id(), MAX_BYTES)
}

fn append(path: &Path, bytes: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(bytes.as_bytes()).unwrap();
}

fn name_at(map: &PerfMap, address: u64) -> Option<String> {
    map.lookup(address).map(|symbol| symbol.name.to_string())
}

#[test]
fn names_may_contain_spaces() {
    let folder = TestFolder::new();
    let map = map_at(&folder.file("map", "7f0000001000 20 py::f:/a b/c.py\r\n0x2000 0x10 g\n"));
    let symbol = map.lookup(0x7f00_0000_101f).unwrap();
    assert_eq!((&*symbol.name, symbol.start), ("py::f:/a b/c.py", 0x7f00_0000_1000));
    assert_eq!(map.lookup(0x7f00_0000_1020), None);
    assert_eq!(name_at(&map, 0x2000).as_deref(), Some("g"));
    assert_eq!((map.skipped_lines(), map.is_cut()), (0, false));
}

#[test]
fn malformed_lines_are_counted_and_skipped() {
    let folder = TestFolder::new();
    let lines =
        "1000 10 a\nzz 10 b\n1000\n1000 10\n1000 10 \n\nffffffffffffffff 10 wraps\n1000 0 empty\n+10 10 c\n2000 10 d\n";
    let map = map_at(&folder.file("map", lines));
    assert_eq!(map.skipped_lines(), 7);
    assert_eq!((name_at(&map, 0x1000).as_deref(), name_at(&map, 0x2000).as_deref()), (Some("a"), Some("d")));
}

#[test]
fn bytes_that_are_not_text_are_harmless() {
    let folder = TestFolder::new();
    let mut random = 1_u32;
    let mut noise: Vec<u8> = Vec::new();
    for _ in 0..100_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.push(random.to_le_bytes()[3]);
    }
    noise.extend_from_slice(b"\n1000 10 f\xff\n");
    let map = map_at(&folder.file("map", noise));
    assert_eq!(name_at(&map, 0x1000).as_deref(), Some("f\u{fffd}"));
}

#[test]
fn reused_code_has_its_new_name() {
    let folder = TestFolder::new();
    let map = map_at(&folder.file("map", "1000 100 old\n1080 100 new\n"));
    assert_eq!(name_at(&map, 0x107f).as_deref(), Some("old"));
    assert_eq!(map.lookup(0x1080).unwrap(), PerfSymbol { name: "new".into(), start: 0x1080 });
}

#[test]
fn appended_lines_are_read_once_they_are_complete() {
    let folder = TestFolder::new();
    let path = folder.file("map", "1000 10 first\n2000 10 hal");
    let mut map = map_at(&path);
    assert_eq!(name_at(&map, 0x2000), None);
    append(&path, "f\n3000 10 third\n");
    map.refresh();
    assert_eq!(name_at(&map, 0x1000).as_deref(), Some("first"));
    assert_eq!(name_at(&map, 0x2000).as_deref(), Some("half"));
    assert_eq!(name_at(&map, 0x3000).as_deref(), Some("third"));
}

#[test]
fn a_different_or_shorter_file_is_read_from_its_start() {
    let folder = TestFolder::new();
    let path = folder.file("map", "1000 10 first\n2000 10 second\n");
    let mut map = map_at(&path);
    folder.file("map", "3000 10 third\n");
    map.refresh();
    assert_eq!((name_at(&map, 0x1000), name_at(&map, 0x3000).as_deref()), (None, Some("third")));
    std::fs::rename(folder.file("new", "4000 10 fourth\n5000 10 fifth\n"), &path).unwrap();
    map.refresh();
    assert_eq!((name_at(&map, 0x3000), name_at(&map, 0x4000).as_deref()), (None, Some("fourth")));
}

#[test]
fn an_endless_line_is_skipped_completely() {
    let folder = TestFolder::new();
    let long = "x".repeat(3 * CHUNK);
    let map = map_at(&folder.file("map", format!("1000 10 a\n2000 10 {long} \n3000 10 b\n")));
    assert_eq!((map.skipped_lines(), name_at(&map, 0x2000)), (1, None));
    assert_eq!(name_at(&map, 0x3000).as_deref(), Some("b"));
}

#[test]
fn a_too_large_map_is_cut_and_reported_as_such() {
    let folder = TestFolder::new();
    let lines = "1000 10 a\n".repeat(CHUNK / 5);
    let path = folder.file("map", lines + "2000 10 b\n");
    let map = PerfMap::at(vec![path], std::process::id(), CHUNK as u64);
    assert!(map.is_cut());
    assert_eq!((name_at(&map, 0x1000).as_deref(), name_at(&map, 0x2000)), (Some("a"), None));
}

#[test]
fn a_process_without_a_map_has_no_names() {
    assert_eq!(PerfMap::of_process(u32::MAX).lookup(0x1000), None);
}

#[test]
fn the_map_of_a_process_is_found_by_its_pid() {
    let pid = std::process::id();
    let path = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    std::fs::write(&path, "1000 10 mine\n").unwrap();
    let map = PerfMap::of_process(pid);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(name_at(&map, 0x1000).as_deref(), Some("mine"));
}
