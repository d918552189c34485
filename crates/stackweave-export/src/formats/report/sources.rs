//! The sources of functions that cost something, as they can be read now.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use stackweave_profile::FrameKind;

use super::blocks::Blocks;
use super::costs::FunctionCosts;
use super::names::Names;
use crate::options::SourceText;
use crate::source::Source;

/// How much goes into a page.
#[derive(Clone, Copy, Debug)]
struct Limits {
    files: usize,
    bytes: usize,
}

const LIMITS: Limits = Limits { files: 400, bytes: 8 << 20 };
/// Larger files are left out.
const LARGEST: u64 = 1 << 20;

/// How the names of sources end. A recording may come from anybody and name any file: only what looks like a source is
/// taken, so that nobody's other files get into a page that is passed on.
const ENDS: [&str; 33] = [
    "py", "pyw", "pyi", "pyx", "pxd", "pxi", "ipynb", "c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "inc", "inl",
    "ipp", "tcc", "cu", "cuh", "m", "mm", "s", "rs", "go", "swift", "f", "f90", "java", "kt", "lua", "ts",
];

/// What a file with costs is known to be like.
#[derive(Clone, Debug, Default)]
struct Wanted {
    share: f64,
    /// The last line that anything is known to be on.
    last_line: u32,
}

/// A file as it can be read now.
#[derive(Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// Whether it is another than the one that ran.
    is_changed: bool,
}

/// Writes the texts of files, those with the greatest cost first: what the head tells of them.
pub(super) fn write(
    source: &Source<'_>,
    names: &mut Names,
    costs: &FunctionCosts,
    blocks: &mut Blocks<'_>,
) -> io::Result<Value> {
    let wanted = if source.options().sources { wanted(names, costs) } else { Vec::new() };
    let mut told = Vec::new();
    for file in chosen(wanted, &source.options().texts, source.wall_ns(0), LIMITS) {
        told.push(json!({
            "file": names.file(&file.name),
            "changed": file.is_changed,
            "block": blocks.bytes(file.text.as_bytes())?,
        }));
    }
    Ok(Value::Array(told))
}

/// The files that can be read, as many as there is room for.
fn chosen(wanted: Vec<(String, Wanted)>, texts: &[SourceText], began_wall_ns: i64, limits: Limits) -> Vec<SourceFile> {
    let (mut chosen, mut bytes) = (Vec::new(), 0);
    for (name, wanted) in wanted {
        if chosen.len() == limits.files {
            break;
        }
        let given = texts.iter().find(|given| given.file == name).map(|given| (given.text.clone(), false));
        let read = || {
            let (text, metadata) = read(Path::new(&name))?;
            Some((text, is_later(&metadata, began_wall_ns)))
        };
        let found = given.or_else(read).filter(|(text, _)| bytes + text.len() <= limits.bytes);
        let Some((text, is_later)) = found else { continue };
        bytes += text.len();
        let is_changed = is_later || text.lines().count() < wanted.last_line as usize;
        chosen.push(SourceFile { name, text, is_changed });
    }
    chosen
}

/// The files of functions that cost something, with the greatest cost first.
fn wanted(names: &Names, costs: &FunctionCosts) -> Vec<(String, Wanted)> {
    let mut files: HashMap<&str, Wanted> = HashMap::new();
    let functions = names.functions();
    for (function, share) in functions.iter().zip(costs.shares()).filter(|(_, share)| *share > 0.0) {
        if let Some(file) = function.filename.as_deref() {
            files.entry(file).or_default().share += share;
        }
    }
    for (function, line) in names.lines() {
        // Lines of a native function may be of other files.
        let function = functions.get(function).filter(|function| function.kind != FrameKind::Native);
        let file = function.and_then(|function| files.get_mut(function.filename.as_deref()?));
        if let Some(file) = file {
            file.last_line = file.last_line.max(line);
        }
    }
    let mut files: Vec<(String, Wanted)> = files.into_iter().map(|(file, wanted)| (file.to_owned(), wanted)).collect();
    files.sort_by(|(name, a), (other, b)| b.share.total_cmp(&a.share).then_with(|| name.cmp(other)));
    files
}

/// The text of a file; `None` if there is no such file, or it is no source.
fn read(path: &Path) -> Option<(String, Metadata)> {
    let end = path.extension().map(|end| end.to_string_lossy().to_ascii_lowercase());
    if !path.is_absolute() || end.as_ref().is_some_and(|end| !ENDS.contains(&end.as_str())) {
        return None;
    }
    // Looked at before it is opened: to open a pipe may wait for ever.
    let is_source = |metadata: &Metadata| metadata.is_file() && metadata.len() <= LARGEST;
    fs::metadata(path).ok().filter(is_source)?;
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok().filter(is_source)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    let is_script = end.is_some() || bytes.starts_with(b"#!");
    let is_text = !bytes.contains(&0) && bytes.len() as u64 <= LARGEST;
    (is_script && is_text).then(|| (String::from_utf8_lossy(&bytes).into_owned(), metadata))
}

/// Whether a file was written to after a time by the wall clock.
fn is_later(metadata: &Metadata, wall_ns: i64) -> bool {
    let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    written.is_none_or(|written| i128::try_from(written.as_nanos()).is_ok_and(|written| written > i128::from(wall_ns)))
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn only_what_is_a_source_is_read() {
        let folder = Folder::new();
        let read = |name: &str, bytes: &[u8]| read(&folder.write(name, bytes)).map(|(text, _)| text);
        assert_eq!(read("a.py", b"x = 1\n").as_deref(), Some("x = 1\n"));
        assert_eq!(read("latin.py", b"# coding: latin-1\n\xe9").as_deref(), Some("# coding: latin-1\n\u{fffd}"));
        assert_eq!(read("script", b"#!/bin/python\nx").as_deref(), Some("#!/bin/python\nx"));
        assert_eq!(read("id_rsa", b"secret"), None);
        assert_eq!(read("key.pem", b"#!secret"), None);
        assert_eq!(read("binary.c", b"a\0b"), None);
        assert_eq!(read("large.py", &vec![b'x'; (LARGEST + 1).try_into().unwrap_or(usize::MAX)]), None);
        assert!(super::read(folder.path()).is_none() && super::read(Path::new("<string>")).is_none());
        assert!(super::read(Path::new("/dev/zero")).is_none() && super::read(Path::new("a.py")).is_none());
    }

    #[test]
    fn what_costs_most_goes_first() {
        let folder = Folder::new();
        let write = |number: u32| folder.write(&format!("{number}.py"), b"0123456789").display().to_string();
        let files: Vec<String> = (0..6).map(write).chain(["/no/such.py".to_owned()]).rev().collect();
        let chosen = |files_limit, bytes| {
            let wanted = files.iter().map(|file| (file.clone(), Wanted::default())).collect();
            let all = chosen(wanted, &[], i64::MAX, Limits { files: files_limit, bytes });
            all.into_iter().map(|file| file.name).collect::<Vec<_>>()
        };
        assert_eq!(chosen(4, 1000), files[1..5]);
        assert_eq!(chosen(100, 39), files[1..4]);
        assert_eq!(chosen(100, 60), files[1..]);
    }

    #[test]
    fn what_is_given_goes_before_what_is_read() {
        let folder = Folder::new();
        let file = folder.write("a.py", b"of the disk").display().to_string();
        let given = SourceText { file: file.clone(), name: "In [1]".to_owned(), text: "given".to_owned() };
        let cell = SourceText { file: "<ipython-input-2>".to_owned(), ..given.clone() };
        let wanted = [&file, &cell.file, &"<string>".to_owned()].map(|name| (name.clone(), Wanted::default()));
        let all = chosen(wanted.to_vec(), &[given, cell], i64::MIN, LIMITS);
        let seen: Vec<_> = all.iter().map(|file| (&*file.text, file.is_changed)).collect();
        assert_eq!(seen, [("given", false), ("given", false)]);
    }
}
