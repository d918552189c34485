//! Outputs that are files destroy nothing, whatever is at the path.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use stackweave_testkit::folder::Folder;

use super::*;

fn write(path: &Path, existing: Existing, bytes: &[u8]) -> io::Result<u64> {
    write_file(path, existing, |out| out.write_all(bytes))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn kind_of(result: io::Result<u64>) -> io::ErrorKind {
    result.unwrap_err().kind()
}

/// Returns a copy of the null device or of the full device; `None` if this user cannot create one.
fn device(folder: &Folder, minor: u32) -> Option<PathBuf> {
    let path = folder.file("device");
    mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, minor)).ok()?;
    // The mount may forbid devices.
    File::options().write(true).open(&path).ok()?;
    Some(path)
}

#[test]
fn only_the_owner_can_access_a_new_file() {
    let folder = Folder::new();
    let path = folder.file("line\nbreak.swv");
    assert_eq!(write(&path, Existing::Keep, b"one").unwrap(), 3);
    assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"one".to_vec(), 0o600));
    assert_eq!(folder.names(), ["line\nbreak.swv"]);
}

#[test]
fn an_existing_file_is_kept_unless_it_may_be_replaced() {
    let folder = Folder::new();
    let path = folder.write("a.txt", b"before");
    assert_eq!(kind_of(write(&path, Existing::Keep, b"after")), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    write(&path, Existing::Replace, b"after").unwrap();
    assert_eq!((fs::read(&path).unwrap(), folder.names()), (b"after".to_vec(), vec!["a.txt".to_owned()]));
}

#[test]
fn a_file_that_appears_meanwhile_is_kept() {
    let folder = Folder::new();
    let path = folder.file("a.txt");
    let mut output = OutputFile::create(&path, Existing::Keep).unwrap();
    output.write_all(b"ours").unwrap();
    fs::write(&path, b"others").unwrap();
    assert_eq!(output.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!((fs::read(&path).unwrap(), folder.names()), (b"others".to_vec(), vec!["a.txt".to_owned()]));
}

#[test]
fn a_failure_changes_and_leaves_nothing() {
    let folder = Folder::new();
    let path = folder.write("a.txt", b"before");
    let fail = |out: &mut dyn Write| {
        out.write_all(&vec![0; 1 << 20])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    assert!(write_file(&path, Existing::Replace, fail).is_err());
    assert_eq!((fs::read(&path).unwrap(), folder.names()), (b"before".to_vec(), vec!["a.txt".to_owned()]));
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let folder = Folder::new();
    let path = folder.write("a.txt", b"before");
    for permissions in [0o600, 0o640, 0o644, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(permissions)).unwrap();
        write(&path, Existing::Replace, b"after").unwrap();
        assert_eq!(mode(&path), permissions);
    }
}

#[test]
fn a_link_is_kept_and_its_target_is_replaced() {
    let folder = Folder::new();
    let target = folder.write("inner/target.txt", b"before");
    let (link, dangling) = (folder.file("link.txt"), folder.file("dangling.txt"));
    symlink("inner/target.txt", &link).unwrap();
    symlink("inner/new.txt", &dangling).unwrap();
    assert_eq!(kind_of(write(&link, Existing::Keep, b"after")), io::ErrorKind::AlreadyExists);
    assert_eq!(kind_of(write(&dangling, Existing::Keep, b"after")), io::ErrorKind::AlreadyExists);
    write(&link, Existing::Replace, b"after").unwrap();
    write(&dangling, Existing::Replace, b"new").unwrap();
    assert_eq!(fs::read(target).unwrap(), b"after");
    assert_eq!(fs::read(folder.file("inner/new.txt")).unwrap(), b"new");
    assert_eq!(fs::read_link(link).unwrap(), Path::new("inner/target.txt"));
    assert_eq!(fs::read_link(dangling).unwrap(), Path::new("inner/new.txt"));
}

#[test]
fn a_device_is_written_to() {
    let folder = Folder::new();
    let Some(path) = device(&folder, 3) else { return };
    for existing in [Existing::Keep, Existing::Replace] {
        assert_eq!(write(&path, existing, b"gone").unwrap(), 4);
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_char_device());
    }
    assert_eq!(folder.names(), ["device"]);
}

#[test]
fn a_full_device_is_an_error_and_is_kept() {
    let folder = Folder::new();
    let Some(path) = device(&folder, 7) else { return };
    assert_eq!(kind_of(write(&path, Existing::Replace, b"more")), io::ErrorKind::StorageFull);
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_char_device());
}

#[test]
fn a_block_device_is_refused() {
    let folder = Folder::new();
    let path = folder.file("disk");
    // No driver has this number, so that it cannot be opened by accident.
    let made = mknodat(CWD, &path, FileType::BlockDevice, Mode::from_raw_mode(0o600), makedev(241, 77));
    if made.is_ok() {
        assert_eq!(kind_of(write(&path, Existing::Replace, b"")), io::ErrorKind::InvalidInput);
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_block_device());
    }
}

#[test]
fn a_fifo_and_a_socket_are_written_to() {
    let folder = Folder::new();
    let (fifo, socket) = (folder.file("fifo"), folder.file("socket"));
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let from_fifo = {
        let fifo = fifo.clone();
        thread::spawn(move || fs::read(fifo).unwrap())
    };
    let from_socket = thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).map(|_| bytes).unwrap()
    });
    write(&fifo, Existing::Replace, b"to the FIFO").unwrap();
    write(&socket, Existing::Keep, b"to the socket").unwrap();
    assert_eq!(from_fifo.join().unwrap(), b"to the FIFO");
    assert_eq!(from_socket.join().unwrap(), b"to the socket");
    assert!(fs::symlink_metadata(fifo).unwrap().file_type().is_fifo());
    assert!(fs::symlink_metadata(socket).unwrap().file_type().is_socket());
}

#[test]
fn a_fifo_without_a_reader_is_an_error() {
    let folder = Folder::new();
    let fifo = folder.file("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let error = write(&fifo, Existing::Keep, b"").unwrap_err();
    assert_eq!(error.to_string(), "it is a FIFO without a reader: start its reader first");
    assert!(fs::symlink_metadata(fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_fifo_with_a_slow_reader_gets_everything() {
    let folder = Folder::new();
    let fifo = folder.file("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let reader = {
        let fifo = fifo.clone();
        thread::spawn(move || {
            let (mut file, mut bytes) = (File::open(fifo).unwrap(), vec![0]);
            file.read_exact(&mut bytes).unwrap();
            thread::yield_now();
            file.read_to_end(&mut bytes).map(|_| bytes).unwrap()
        })
    };
    // More than a pipe holds: a writer that does not block would fail.
    let long = vec![7; 1 << 20];
    write(&fifo, Existing::Keep, &long).unwrap();
    assert!(reader.join().unwrap() == long);
}

#[test]
fn a_folder_is_never_replaced_by_a_file() {
    let folder = Folder::new();
    let kept = folder.write("out/thesis.txt", b"kept");
    for existing in [Existing::Keep, Existing::Replace] {
        assert_eq!(kind_of(write(&folder.file("out"), existing, b"")), io::ErrorKind::IsADirectory);
        assert_eq!(kind_of(write(Path::new("/"), existing, b"")), io::ErrorKind::IsADirectory);
    }
    assert_eq!(fs::read(kept).unwrap(), b"kept");
}

#[test]
fn only_created_files_are_discarded() {
    let folder = Folder::new();
    let path = folder.file("a.txt");
    let mut output = OutputFile::create(&path, Existing::Keep).unwrap();
    output.write_all(b"ours").unwrap();
    let created = output.finish().unwrap().1.unwrap();
    assert!(created.exists());
    fs::rename(folder.write("other", b"others"), &path).unwrap();
    assert!(!created.exists() && !created.discard());
    assert_eq!(fs::read(&path).unwrap(), b"others");
    fs::remove_file(&path).unwrap();
    assert!(!created.discard());
    write(&path, Existing::Keep, b"again").unwrap();
    let output = OutputFile::create(&path, Existing::Replace).unwrap();
    assert!(output.finish().unwrap().1.unwrap().discard());
    assert!(folder.names().is_empty());
}

#[test]
fn a_file_with_a_random_name_is_published_and_discarded_too() {
    let folder = Folder::new();
    let path = folder.write("a.txt", b"before");
    for existing in [Existing::Keep, Existing::Replace] {
        let (mut file, mut draft) = draft::tests::named_draft(&path, existing);
        file.write_all(b"after").unwrap();
        assert_eq!(folder.names().len(), 2);
        assert_eq!(draft.publish(&file).is_ok(), existing == Existing::Replace);
        drop(draft);
        assert_eq!(folder.names(), ["a.txt"]);
    }
    assert_eq!(fs::read(&path).unwrap(), b"after");
    let (file, mut draft) = draft::tests::named_draft(&folder.file("b.txt"), Existing::Keep);
    draft.publish(&file).unwrap();
    drop(draft);
    assert_eq!((folder.names(), mode(&folder.file("b.txt"))), (vec!["a.txt".to_owned(), "b.txt".to_owned()], 0o600));
}

#[test]
fn a_link_at_a_temporary_name_is_not_followed() {
    let folder = Folder::new();
    let victim = folder.write("victim", b"kept");
    let link = folder.file("link");
    symlink(&victim, &link).unwrap();
    let mut names = vec![link, folder.file("free")].into_iter();
    let (file, path) = temporary::with_random_name(folder.path(), |_| {
        let next = names.next().unwrap();
        File::create_new(&next).map(|file| (file, next))
    })
    .unwrap();
    assert!(path.starts_with(folder.path()));
    assert_eq!(file.1, folder.file("free"));
    assert_eq!(fs::read(victim).unwrap(), b"kept");
}

#[test]
fn a_missing_folder_is_an_error_and_is_not_created() {
    let folder = Folder::new();
    assert_eq!(kind_of(write(&folder.file("no/a.txt"), Existing::Keep, b"")), io::ErrorKind::NotFound);
    assert!(folder.names().is_empty());
}

#[test]
fn discarding_removes_unfinished_files() {
    let folder = Folder::new();
    let (_file, draft) = draft::tests::named_draft(&folder.file("a.txt"), Existing::Keep);
    let unfinished = unfinished::UnfinishedFiles::new();
    unfinished.add(draft.temporary().unwrap().clone());
    assert_eq!(folder.names().len(), 1);
    unfinished.discard();
    assert!(folder.names().is_empty());
}

#[test]
fn permissions_are_octal_numbers() {
    let read = |text: &str| permissions::parse(text);
    assert_eq!((read("640"), read("0666"), read("0")), (Some(0o640), Some(0o666), Some(0o600)));
    assert_eq!((read(""), read("777"), read("9"), read("rw")), (Some(0o600), None, None, None));
}

#[test]
fn numbers_are_inserted_before_the_last_extension() {
    let numbered = |path, number| numbered(Path::new(path), number).display().to_string();
    assert_eq!(numbered("a/out.1.swv", 1), "a/out.1.swv");
    assert_eq!(numbered("a/out.1.swv", 2), "a/out.1-2.swv");
    assert_eq!(numbered("out", 3), "out-3");
}
