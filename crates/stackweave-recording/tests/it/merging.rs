//! A merged file has the content of its parts, process by process.

use std::io::{self, Write};
use std::path::Path;

use stackweave_files::output::Existing;
use stackweave_recording::{MergeError, Recording, merge, merge_to};
use stackweave_testkit::folder::Folder;

use crate::recording_builder::{Steps, busy, open_bytes, steps_of, visited};

/// Returns the process id and the events of each process.
fn contents(recording: &Recording) -> Vec<(u32, Steps)> {
    recording.processes().iter().map(|process| (process.start().pid, visited(process).0)).collect()
}

#[test]
fn a_merged_file_has_the_content_of_its_parts() {
    let folder = Folder::new();
    for pid in 1..=5 {
        let built = busy(pid, pid.into(), 3, 12);
        let built = if pid == 3 { built } else { built.end() };
        folder.write(&format!("{pid}.swv"), &built.bytes);
    }
    let parts = Recording::open(folder.path()).unwrap();
    let target = folder.path().join("all.swv");
    let mut progress = vec![];
    let summary = merge_to(&parts, &target, Existing::Keep, &mut |bytes| progress.push(bytes)).unwrap();
    let merged = Recording::open(&target).unwrap();
    assert_eq!(contents(&merged), contents(&parts));
    for (a, b) in merged.processes().iter().zip(parts.processes()) {
        assert_eq!((a.start(), a.end(), a.missing()), (b.start(), b.end(), b.missing()));
        assert_eq!((a.time_range(), a.dictionary().frame_count()), (b.time_range(), b.dictionary().frame_count()));
    }
    assert_eq!((summary.processes, summary.bytes, summary.damaged_bytes), (5, parts.bytes(), 0));
    assert!(progress.is_sorted() && progress.last() == Some(&parts.bytes()));
    // Beside its parts it changes nothing, because each process is read once.
    let again = Recording::open(folder.path()).unwrap();
    let sorted = |recording: &Recording| {
        let mut contents = contents(recording);
        contents.sort_by_key(|process| process.0);
        contents
    };
    assert_eq!(sorted(&again), sorted(&parts));
    assert_eq!(again.report().iter().filter(|sentence| sentence.ends_with("it is read once.")).count(), 5);
}

#[test]
fn damaged_blocks_are_not_merged() {
    let built = busy(7, 1, 2, 20).end();
    let hit = built
        .blocks
        .iter()
        .rfind(|block| matches!(block.1, crate::recording_builder::BuiltBlock::Events(..)))
        .unwrap()
        .0
        .clone();
    let mut bytes = built.bytes.clone();
    bytes[hit.end - 1] ^= 1;
    let hole = built.blocks[5].0.clone();
    bytes[hole.clone()].fill(0);
    let damaged = open_bytes(&bytes).unwrap();
    let mut out = vec![];
    let summary = merge(&damaged, &mut out, &mut |_| ()).unwrap();
    assert_eq!((summary.damaged_bytes, out.len() as u64), ((hit.len() + hole.len()) as u64, summary.bytes));
    let merged = open_bytes(&out).unwrap();
    assert_eq!(contents(&merged), contents(&damaged));
    assert_eq!(merged.report(), Vec::<String>::new());
    assert_eq!(steps_of(&merged.processes()[0]), contents(&damaged)[0].1);
}

#[test]
fn an_input_is_never_overwritten() {
    let built = busy(7, 1, 2, 20).end();
    let folder = Folder::new();
    let path = folder.write("a.swv", &built.bytes);
    let link = folder.path().join("link.swv");
    std::fs::hard_link(&path, &link).unwrap();
    let recording = Recording::open(&path).unwrap();
    for target in [&path, &link] {
        let error = merge_to(&recording, target, Existing::Replace, &mut |_| ()).unwrap_err();
        assert!(matches!(error, MergeError::IsAnInput(_)));
        let sentence = "it is one of the recordings to merge, and would be overwritten";
        assert_eq!(error.to_string(), format!("{}: {sentence}", target.display()));
    }
    assert_eq!(std::fs::read(&path).unwrap(), built.bytes);
    assert_eq!(folder.names(), ["a.swv", "link.swv"]);
}

#[test]
fn a_failed_merge_leaves_no_files() {
    let built = busy(7, 1, 2, 20).end();
    let folder = Folder::new();
    let path = folder.write("a.swv", &built.bytes);
    let recording = Recording::open(&path).unwrap();
    let error = merge_to(&recording, &folder.file("no/such/folder.swv"), Existing::Replace, &mut |_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("folder.swv: it can't be written ("), "{error}");
    // A folder can't be replaced by a file, which is detected after everything is written.
    std::fs::create_dir(folder.path().join("taken.swv")).unwrap();
    let taken = folder.path().join("taken.swv");
    assert!(
        matches!(merge_to(&recording, &taken, Existing::Replace, &mut |_| ()), Err(MergeError::Write(Some(path), _)) if path == taken)
    );
    assert!(matches!(merge_to(&recording, Path::new("/"), Existing::Replace, &mut |_| ()), Err(MergeError::Write(..))));
    assert_eq!(folder.names(), ["a.swv", "taken.swv"]);
}

/// A disk with space for this many bytes.
struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.0);
        self.0 -= len;
        if len == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(len) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    let recording = open_bytes(&busy(7, 1, 2, 20).end().bytes).unwrap();
    let error = merge(&recording, &mut FullDisk(500), &mut |_| ()).unwrap_err();
    assert_eq!(error.to_string(), "the merged recording can't be written (no storage space)");
}
