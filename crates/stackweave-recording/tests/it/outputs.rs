//! Files of recordings: an old file stays until there is a new one, and files of other programs are not touched.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;

use stackweave_core::NoNames;
use stackweave_recording::live::{Recorder, RecorderOptions, RingLimits};
use stackweave_recording::read::first_start;
use stackweave_testkit::folder::Folder;

use crate::recorded::{ReadBack, STACKS, mark, start};

fn later(path: &Path) -> RecorderOptions {
    RecorderOptions { overwrite: true, named_later: true, ..RecorderOptions::new(path) }
}

fn ring(path: &Path) -> RecorderOptions {
    let limits = RingLimits { bytes: Some(1 << 20), seconds: None };
    RecorderOptions { ring: Some(limits), dump_at_exit: true, ..RecorderOptions::new(path) }
}

fn marks_in(path: &Path) -> Vec<u64> {
    ReadBack::whole(path).marks().into_keys().collect()
}

#[test]
fn the_old_recording_stays_until_the_new_one_is_published() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let of_run = |recorder: &Recorder, producer: u64| recorder.record(mark(recorder), &[producer, 0]);
    let first = start(RecorderOptions::new(&path));
    of_run(&first, 1);
    first.stop();
    let second = start(later(&path));
    of_run(&second, 2);
    second.flush().unwrap();
    assert_eq!(marks_in(&path), [1]);
    assert!(second.discard().path.as_os_str().is_empty());
    assert_eq!((marks_in(&path), folder.paths().len()), (vec![1], 1));
    let third = start(later(&path));
    of_run(&third, 3);
    third.publish().unwrap();
    third.publish().unwrap();
    of_run(&third, 3);
    assert_eq!(third.stop().path, path);
    assert_eq!((marks_in(&path), folder.paths().len()), (vec![3], 1));
    assert_eq!(ReadBack::whole(&path).count(), 2);
}

#[test]
fn a_failed_start_keeps_the_old_recording() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("kept"), "").unwrap();
    let options = RecorderOptions { overwrite: true, ..RecorderOptions::new(&path) };
    let error = Recorder::start(options, &STACKS, Arc::new(NoNames)).unwrap_err().to_string();
    assert!(error.contains("it is a folder"), "{error}");
    assert!(path.join("kept").exists());
}

#[test]
fn a_name_that_was_taken_meanwhile_is_not_replaced() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let recorder = start(RecorderOptions { overwrite: false, ..later(&path) });
    fs::write(&path, "foreign").unwrap();
    let error = recorder.publish().unwrap_err().to_string();
    assert!(error.contains("the file exists already"), "{error}");
    recorder.discard();
    assert_eq!(fs::read(&path).unwrap(), b"foreign");
}

#[test]
fn only_its_own_file_is_discarded() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let recorder = start(RecorderOptions::new(&path));
    fs::rename(&path, folder.file("kept.swv")).unwrap();
    fs::write(&path, "foreign").unwrap();
    recorder.discard();
    assert_eq!(fs::read(&path).unwrap(), b"foreign");
    assert!(folder.file("kept.swv").exists());
    let recorder = start(RecorderOptions { overwrite: true, ..RecorderOptions::new(&path) });
    recorder.record(mark(&recorder), &[1, 0]);
    recorder.discard();
    assert!(!path.exists());
    start(ring(&path)).discard();
    assert_eq!(folder.paths(), [folder.file("kept.swv")]);
}

#[test]
fn two_rings_with_one_path_have_separate_files() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    let rings = [start(ring(&path)), start(ring(&path))];
    for (producer, ring) in (1..).zip(&rings) {
        ring.record(mark(ring), &[producer, 0]);
    }
    let second = folder.file("out-2.swv");
    for _ in 0..2 {
        // A ring may replace its own earlier dump.
        assert_eq!(rings[0].dump(None).unwrap(), path);
        assert_eq!(rings[1].dump(None).unwrap(), second);
    }
    assert_eq!((marks_in(&path), marks_in(&second)), (vec![1], vec![2]));
    let other = folder.file("other.swv");
    fs::write(&other, "foreign").unwrap();
    assert_eq!(rings[0].dump(Some(&other)).unwrap(), folder.file("other-2.swv"));
    assert_eq!(fs::read(&other).unwrap(), b"foreign");
    assert_eq!((rings[0].stop().path, rings[1].stop().path), (path.clone(), second.clone()));
    assert_eq!((marks_in(&path), marks_in(&second)), (vec![1], vec![2]));
    assert_eq!(folder.paths().len(), 4);
}

#[test]
fn a_ring_that_may_overwrite_replaces_the_old_file() {
    let folder = Folder::new();
    let path = folder.file("out.swv");
    fs::write(&path, "old").unwrap();
    let recorder = start(RecorderOptions { overwrite: true, ..ring(&path) });
    recorder.record(mark(&recorder), &[1, 0]);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(recorder.stop().path, path);
    assert_eq!((marks_in(&path), folder.paths().len()), (vec![1], 1));
}

#[test]
fn recordings_are_private_and_keep_the_permissions_of_the_file_that_they_replace() {
    let folder = Folder::new();
    let (path, link) = (folder.file("out.swv"), folder.file("link.swv"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    start(RecorderOptions::new(&path)).stop();
    assert_eq!(mode(&path), 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("out.swv", &link).unwrap();
    let before = first_start(&path).unwrap().run().unwrap().to_owned();
    start(RecorderOptions { overwrite: true, ..RecorderOptions::new(&link) }).stop();
    assert_eq!((mode(&path), fs::read_link(&link).unwrap().as_path()), (0o640, Path::new("out.swv")));
    assert_ne!(first_start(&path).unwrap().run().unwrap(), before, "each run has a distinct number");
    let dumped = folder.file("ring.swv");
    start(ring(&dumped)).stop();
    assert_eq!(mode(&dumped), 0o600);
}
