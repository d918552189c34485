//! The sources of functions with costs, as they are now.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use stackweave_profile::FrameKind;
use stackweave_recording::RecordingOrigin;

use super::blocks::PageBlocks;
use super::costs::FunctionCosts;
use super::names::Names;
use super::source_files::read;
use crate::included_sources::IncludedSources;
use crate::options::SourceText;
use crate::source::Source;

/// The limits of the sources in a page.
#[derive(Clone, Copy, Debug)]
struct SourceLimits {
    files: usize,
    bytes: usize,
}

const LIMITS: SourceLimits = SourceLimits { files: 400, bytes: 8 << 20 };

/// The cost of a file, and its expected length.
#[derive(Clone, Debug, Default)]
struct FileCost {
    share: f64,
    /// The greatest line number in the recording.
    last_line: u32,
}

/// A source file as it is now.
#[derive(Debug)]
struct SourceFile {
    name: String,
    text: String,
    /// Whether it was changed after the recording.
    is_changed: bool,
    /// The folder that it was read from; `None` for a given text.
    folder: Option<PathBuf>,
}

/// Writes the texts of files, those with the highest cost first. Returns their descriptions for the head.
pub(super) fn write(
    source: &Source<'_>,
    names: &mut Names,
    costs: &FunctionCosts,
    blocks: &mut PageBlocks<'_>,
) -> io::Result<Value> {
    let user = RecordingOrigin::here();
    // Given texts are not files on this machine.
    let before = source.options().before.map_or(&[][..], |before| before.processes());
    let is_own = || source.processes().iter().chain(before).all(|process| process.is_made_by(&user));
    let may_read = source.options().sources.unwrap_or_else(is_own);
    let wanted = files_by_cost(names, costs);
    let texts = if source.options().sources == Some(false) { &[] } else { source.options().texts.as_slice() };
    let (mut descriptions, mut folders) = (Vec::new(), BTreeMap::new());
    let reader = may_read.then_some(user.uid);
    let is_any_left_out = !may_read && wanted.iter().any(|(name, _)| Path::new(name).is_absolute());
    for file in select_files(wanted, texts, (source.wall_ns(0), reader), LIMITS) {
        descriptions.push(json!({
            "file": names.file(&file.name),
            "changed": file.is_changed,
            "block": blocks.bytes(file.text.as_bytes())?,
        }));
        if let Some(folder) = file.folder {
            *folders.entry(folder).or_insert(0_usize) += 1;
        }
    }
    let is_foreign = is_any_left_out && source.options().sources.is_none();
    source.set_included_sources(IncludedSources { folders, is_foreign });
    Ok(Value::Array(descriptions))
}

/// Returns the files that can be read, within the limits. `reader` is the id of this user; `None` if files must not be
/// read.
fn select_files(
    wanted: Vec<(String, FileCost)>,
    texts: &[SourceText],
    (began_wall_ns, reader): (i64, Option<u32>),
    limits: SourceLimits,
) -> Vec<SourceFile> {
    let (mut selected, mut bytes) = (Vec::new(), 0);
    for (name, wanted) in wanted {
        if selected.len() == limits.files {
            break;
        }
        let given = texts.iter().find(|given| given.file == name).map(|given| (given.text.clone(), false, None));
        let read = || {
            let (text, real, metadata) = read(Path::new(&name), reader?)?;
            Some((text, is_later(&metadata, began_wall_ns), real.parent().map(Path::to_owned)))
        };
        let found = given.or_else(read).filter(|(text, _, _)| bytes + text.len() <= limits.bytes);
        let Some((text, is_later, folder)) = found else { continue };
        bytes += text.len();
        let is_changed = is_later || text.lines().count() < wanted.last_line as usize;
        selected.push(SourceFile { name, text, is_changed, folder });
    }
    selected
}

/// Returns the files of functions with costs, those with the highest cost first.
fn files_by_cost(names: &Names, costs: &FunctionCosts) -> Vec<(String, FileCost)> {
    let mut files: HashMap<&str, FileCost> = HashMap::new();
    let functions = names.functions();
    for (function, share) in functions.iter().zip(costs.shares()).filter(|(_, share)| *share > 0.0) {
        if let Some(file) = function.filename.as_deref() {
            files.entry(file).or_default().share += share;
        }
    }
    for (function, line) in names.lines() {
        // The lines of a native function may belong to other files.
        let function = functions.get(function).filter(|function| function.kind != FrameKind::Native);
        let file = function.and_then(|function| files.get_mut(function.filename.as_deref()?));
        if let Some(file) = file {
            file.last_line = file.last_line.max(line);
        }
    }
    let mut files: Vec<(String, FileCost)> =
        files.into_iter().map(|(file, wanted)| (file.to_owned(), wanted)).collect();
    files.sort_by(|(name, a), (other, b)| b.share.total_cmp(&a.share).then_with(|| name.cmp(other)));
    files
}

/// Returns whether a file was written after a time of the wall clock.
fn is_later(metadata: &Metadata, wall_ns: i64) -> bool {
    let written = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    written.is_none_or(|written| i128::try_from(written.as_nanos()).is_ok_and(|written| written > i128::from(wall_ns)))
}

#[cfg(test)]
mod tests {
    use stackweave_testkit::folder::Folder;

    use super::*;

    #[test]
    fn files_with_the_highest_cost_come_first() {
        let folder = Folder::new();
        let write = |number: u32| folder.write(&format!("{number}.py"), b"0123456789").display().to_string();
        let files: Vec<String> = (0..6).map(write).chain(["/no/such.py".to_owned()]).rev().collect();
        let selected = |files_limit, bytes| {
            let wanted = files.iter().map(|file| (file.clone(), FileCost::default())).collect();
            let all = select_files(
                wanted,
                &[],
                (i64::MAX, Some(RecordingOrigin::here().uid)),
                SourceLimits { files: files_limit, bytes },
            );
            all.into_iter().map(|file| file.name).collect::<Vec<_>>()
        };
        assert_eq!(selected(4, 1000), files[1..5]);
        assert_eq!(selected(100, 39), files[1..4]);
        assert_eq!(selected(100, 60), files[1..]);
    }

    #[test]
    fn given_texts_come_before_files() {
        let folder = Folder::new();
        let file = folder.write("a.py", b"of the disk").display().to_string();
        let given = SourceText { file: file.clone(), name: "In [1]".to_owned(), text: "given".to_owned() };
        let cell = SourceText { file: "<ipython-input-2>".to_owned(), ..given.clone() };
        let wanted = [&file, &cell.file, &"<string>".to_owned()].map(|name| (name.clone(), FileCost::default()));
        let all = select_files(wanted.to_vec(), &[given, cell], (i64::MIN, None), LIMITS);
        let texts: Vec<_> = all.iter().map(|file| (&*file.text, file.is_changed)).collect();
        assert_eq!(texts, [("given", false), ("given", false)]);
    }
}
