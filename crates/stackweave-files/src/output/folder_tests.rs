//! Outputs that are folders replace an older export, and nothing else.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use stackweave_testkit::folder::Folder;

use super::*;

fn export(path: &Path, existing: Existing, text: &str) -> io::Result<()> {
    let mut folder = OutputFolder::create(path, existing, &[])?;
    folder.file(Path::new("events/process=1/part-0"))?.write_all(text.as_bytes())?;
    folder.file(Path::new("events/process=2/part-0"))?.write_all(b"2")?;
    folder.file(Path::new("threads/part-0"))?.write_all(b"3")?;
    folder.finish().map(drop)
}

fn text_of(path: &Path) -> String {
    fs::read_to_string(path.join("events/process=1/part-0")).unwrap()
}

/// Returns all files and folders below a folder.
fn all(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(all(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn an_export_replaces_only_an_older_export() {
    let folder = Folder::new();
    let path = folder.file("out");
    export(&path, Existing::Keep, "first").unwrap();
    assert_eq!(export(&path, Existing::Keep, "no").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(text_of(&path), "first");
    let before = all(&path);
    export(&path, Existing::Replace, "second").unwrap();
    assert_eq!((text_of(&path), folder.names(), all(&path)), ("second".to_owned(), vec!["out".to_owned()], before));
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("events")), mode(&path.join("threads/part-0"))), (0o700, 0o700, 0o600));
}

#[test]
fn a_folder_with_additions_is_unchanged() {
    let folder = Folder::new();
    let path = folder.file("out");
    export(&path, Existing::Keep, "first").unwrap();
    let additions: [(&str, &str); 3] =
        [("notes.txt", ""), ("events/process=9/part-0", "x"), ("events/process=1/x", "")];
    for (name, text) in additions {
        let added = folder.write(&format!("out/{name}"), text.as_bytes());
        let before = all(folder.path());
        let error = export(&path, Existing::Replace, "second").unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert_eq!(all(folder.path()), before);
        assert_eq!(text_of(&path), "first");
        fs::remove_file(&added).unwrap();
        let _ = fs::remove_dir(added.parent().unwrap());
    }
    fs::create_dir(path.join("empty")).unwrap();
    assert!(export(&path, Existing::Replace, "second").is_err());
    fs::remove_dir(path.join("empty")).unwrap();
    symlink("/nowhere", path.join("link")).unwrap();
    assert!(export(&path, Existing::Replace, "second").is_err());
    fs::remove_file(path.join("link")).unwrap();
    fs::write(path.join("threads/part-0"), "changed").unwrap();
    let error = export(&path, Existing::Replace, "second").unwrap_err().to_string();
    assert!(error.contains("threads/part-0"), "{error}");
    assert_eq!(text_of(&path), "first");
}

#[test]
fn a_folder_that_is_not_an_export_is_unchanged() {
    let folder = Folder::new();
    let thesis = folder.write("precious/sub/thesis.txt", b"years");
    let error = export(&folder.file("precious"), Existing::Replace, "no").unwrap_err().to_string();
    assert!(error.contains("name a new folder"), "{error}");
    assert_eq!((fs::read(&thesis).unwrap(), folder.names()), (b"years".to_vec(), vec!["precious".to_owned()]));
    let file = folder.write("file", b"kept");
    assert_eq!(export(&file, Existing::Replace, "no").unwrap_err().kind(), io::ErrorKind::NotADirectory);
    assert_eq!(fs::read(&file).unwrap(), b"kept");
    for path in [".", "..", "/", "../.."] {
        assert!(export(Path::new(path), Existing::Replace, "no").is_err(), "{path}");
    }
}

#[test]
fn a_list_with_files_outside_the_folder_removes_nothing() {
    let folder = Folder::new();
    let victim = folder.write("victim", b"kept");
    folder.write("out/one", b"1");
    folder.write("out/_stackweave_export", b"stackweave export 1\n1 one\n4 ../victim\n");
    export(&folder.file("out"), Existing::Replace, "new").unwrap();
    assert_eq!((fs::read(victim).unwrap(), text_of(&folder.file("out"))), (b"kept".to_vec(), "new".to_owned()));
}

#[test]
fn links_and_empty_folders_in_a_list_are_not_files() {
    let folder = Folder::new();
    folder.write("out/_stackweave_export", format!("stackweave export 1\n{0} link\n{0} empty\n", u64::MAX).as_bytes());
    let path = folder.file("out");
    symlink("elsewhere", path.join("link")).unwrap();
    fs::create_dir(path.join("empty")).unwrap();
    let before = fs::read_dir(&path).unwrap().count();
    assert_eq!(export(&path, Existing::Replace, "no").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!((before, fs::read_dir(&path).unwrap().count()), (3, 3));
}

#[test]
fn a_folder_that_contains_an_input_is_refused() {
    let folder = Folder::new();
    let path = folder.file("out");
    export(&path, Existing::Keep, "first").unwrap();
    let input = path.join("threads/part-0");
    let error = OutputFolder::create(&path, Existing::Replace, &[input]).unwrap_err().to_string();
    assert!(error.contains("recording"), "{error}");
}

#[test]
fn an_unfinished_folder_leaves_nothing_and_the_old_one_is_kept() {
    let folder = Folder::new();
    let path = folder.file("out");
    export(&path, Existing::Keep, "first").unwrap();
    let mut unfinished = OutputFolder::create(&path, Existing::Replace, &[]).unwrap();
    unfinished.file(Path::new("a/b/c")).unwrap().write_all(b"half").unwrap();
    drop(unfinished);
    assert_eq!((folder.names(), text_of(&path)), (vec!["out".to_owned()], "first".to_owned()));
}

#[test]
fn files_added_during_the_export_are_kept() {
    let folder = Folder::new();
    let path = folder.file("out");
    export(&path, Existing::Keep, "first").unwrap();
    let mut second = OutputFolder::create(&path, Existing::Replace, &[]).unwrap();
    second.file(Path::new("one")).unwrap();
    let added = folder.write("out/notes.txt", b"mine");
    assert!(second.finish().is_err());
    assert_eq!((fs::read(added).unwrap(), text_of(&path)), (b"mine".to_vec(), "first".to_owned()));
    assert_eq!(folder.names(), ["out"]);
}

#[test]
fn names_outside_the_folder_are_refused() {
    let folder = Folder::new();
    let mut output = OutputFolder::create(&folder.file("out"), Existing::Keep, &[]).unwrap();
    for name in ["../a", "/a", "", "a/../../b"] {
        assert!(output.file(Path::new(name)).is_err(), "{name}");
    }
}
