//! Opening a file that is no recording fails with one clear sentence.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stackweave_recording::file::{BlockHeader, BlockKind, SYNC, write_block};
use stackweave_recording::{OpenError, Recording};
use stackweave_testkit::folder::Folder;

use crate::recording_builder::{busy, start};

/// Returns the error of opening `path`, without the path.
fn complaint(path: &Path) -> String {
    let error = Recording::open(path).unwrap_err();
    let sentence = error.to_string();
    assert_eq!(error.path(), Some(path));
    assert!(!sentence.contains('\n'), "{sentence}");
    let rest = sentence.strip_prefix(&format!("{}: ", path.display()));
    rest.unwrap_or_else(|| panic!("no path in front: {sentence}")).to_owned()
}

/// Returns the error of opening a file with these bytes.
fn complaint_about(bytes: &[u8]) -> String {
    let folder = Folder::new();
    complaint(&folder.write("file.swv", bytes))
}

#[test]
fn files_of_other_kinds_are_named() {
    let marshalled = b"{\xa9\x03\xfa\x08main.py\xe9\x01\0\0\0\xda\x04main";
    for (bytes, what) in [
        (&b"hello, world\n"[..], "text"),
        (b"{\"traceEvents\": []}", "JSON"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "gzip data; unpack it first"),
        (b"\x7fELF\x02\x01\x01\0\0\0", "an ELF program or library"),
        (marshalled, "marshal data, such as a .prof file of cProfile"),
        (b"\x80\x05\x95\x08\0\0\0", "pickled Python data"),
    ] {
        assert_eq!(complaint_about(bytes), format!("this is no recording of Stackweave: it looks like {what}"));
    }
    assert_eq!(complaint_about(&[0; 9_000]), "this is no recording of Stackweave");
    assert_eq!(complaint_about(b"\xff\x01\x02"), "this is no recording of Stackweave");
}

#[test]
fn an_empty_file_is_called_empty() {
    assert_eq!(complaint_about(b""), "the file is empty, so nothing was recorded to it");
}

#[test]
fn a_missing_file_is_reported_as_missing() {
    let folder = Folder::new();
    assert_eq!(complaint(&folder.file("nothing.swv")), "there is no such file or folder");
    assert_eq!(complaint(folder.path()), "the folder holds no recordings (files that end in .swv)");
    folder.write("readme.txt", b"x");
    folder.write("sub/readme.txt", b"x");
    assert_eq!(complaint(folder.path()), "the folder holds no recordings (files that end in .swv)");
    assert_eq!(complaint(Path::new("/dev/null")), "it is neither a file nor a folder");
    let nothing: [&Path; 0] = [];
    assert_eq!(Recording::open_all(&nothing).unwrap_err().to_string(), "no recording was named");
}

#[test]
fn a_folder_of_wrong_files_reports_the_error_of_the_first() {
    let folder = Folder::new();
    let first = folder.write("a.swv", b"");
    let reason = format!("{}: the file is empty, so nothing was recorded to it", first.display());
    assert_eq!(complaint(folder.path()), format!("the one recording in this folder can't be read: {reason}"));
    folder.write("b.swv", b"x");
    assert_eq!(
        complaint(folder.path()),
        format!("none of the 2 recordings in this folder can be read; the first: {reason}")
    );
}

#[test]
fn a_file_without_permission_is_reported() {
    let folder = Folder::new();
    let path = folder.write("secret.swv", &busy(7, 1, 1, 2).bytes);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser may read it anyway.
    if std::fs::File::open(&path).is_err() {
        assert_eq!(complaint(&path), "you may not read it (permission denied)");
    }
    let denied = OpenError::Denied(path.clone()).to_string();
    assert_eq!(denied, format!("{}: you may not read it (permission denied)", path.display()));
    let failed = OpenError::Io(path.clone(), std::io::Error::other("broken disk")).to_string();
    assert_eq!(failed, format!("{}: it can't be read (broken disk)", path.display()));
}

/// Returns the same bytes with every header of a later version.
fn of_a_later_version(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let offsets: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&SYNC)).collect();
    for at in offsets {
        bytes[at + 9] += 1;
        let own = crc32fast::hash(&bytes[at..at + BlockHeader::LEN - 4]);
        bytes[at + BlockHeader::LEN - 4..at + BlockHeader::LEN].copy_from_slice(&own.to_le_bytes());
    }
    bytes
}

#[test]
fn a_recording_of_a_later_version_requests_an_update() {
    let later = of_a_later_version(&busy(7, 1, 2, 5).end().bytes);
    let sentence = "a newer Stackweave wrote this recording, and this one can't read it; please update";
    assert_eq!(complaint_about(&later), sentence);
    let both = [busy(8, 1, 2, 5).end().bytes, later].concat();
    let folder = Folder::new();
    let recording = Recording::open(&folder.write("both.swv", &both)).unwrap();
    assert_eq!(recording.processes().len(), 1);
    let [sentence] = &recording.report()[..] else { panic!("{:?}", recording.report()) };
    assert!(sentence.starts_with("A newer Stackweave wrote ") && sentence.ends_with("please update."), "{sentence}");
}

#[test]
fn a_recording_that_is_truncated_in_its_first_block_is_reported() {
    let built = busy(7, 1, 1, 2);
    let sentence = "it is a recording that is cut or damaged at its start, so nothing of it can be read";
    for end in 1..built.blocks[0].0.end {
        assert_eq!(complaint_about(&built.bytes[..end]), sentence, "cut at {end}");
    }
}

#[test]
fn blocks_without_a_start_are_reported_as_a_damaged_recording() {
    let mut bytes = vec![];
    write_block(BlockKind::Clock, 5, &[0; 4], &mut bytes).unwrap();
    let sentence = "it is a recording that is cut or damaged at its start, so nothing of it can be read";
    assert_eq!(complaint_about(&bytes), sentence);
    let mut nonsense = vec![];
    write_block(BlockKind::Start, 5, &[0xff; 4], &mut nonsense).unwrap();
    assert_eq!(complaint_about(&nonsense), sentence);
    assert!(!start(7).payload().is_empty());
}
