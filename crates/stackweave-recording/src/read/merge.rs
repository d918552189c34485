//! Merging of several recordings to one file.
//!
//! Blocks are copied unchanged, process by process, so nothing is lost and a file of any size needs the memory of one block.
//! Damaged parts are not copied.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stackweave_files::output::{Existing, OutputFile};

use super::error::ReadError;
use super::process::ProcessRecording;
use super::recording::{Recording, files_of};
use super::scanner::{FilePart, Scanner};
use super::source::FileId;
use crate::file::BlockHeader;

/// The totals of a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeSummary {
    /// The number of processes in the result.
    pub processes: u64,
    /// The number of blocks in the result.
    pub blocks: u64,
    /// The size of the result in bytes.
    pub bytes: u64,
    /// The number of damaged bytes that were not copied.
    pub damaged_bytes: u64,
}

/// The reason why a merge failed.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A recording can no longer be read.
    #[error("{0}")]
    Read(#[source] ReadError),
    /// The result can't be written.
    #[error("{what} can't be written ({1})", what = target(.0.as_deref()))]
    Write(Option<PathBuf>, #[source] io::Error),
    /// The file exists, and may not be replaced.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// The result would replace one of the recordings.
    #[error("{0}: it is one of the recordings to merge, and would be overwritten")]
    IsAnInput(PathBuf),
}

fn target(path: Option<&Path>) -> String {
    path.map_or_else(|| "the merged recording".to_owned(), |path| format!("{}: it", path.display()))
}

/// Writes all processes of a recording to `out`. Calls `progress` with the part of [`Recording::bytes`] that is done.
pub fn merge(
    inputs: &Recording,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<MergeSummary, MergeError> {
    let mut merger = Merger { out, progress, summary: MergeSummary::default(), done: 0 };
    inputs.processes().iter().try_for_each(|process| merger.add(process))?;
    merger.out.flush().map_err(|error| MergeError::Write(None, error))?;
    Ok(merger.summary)
}

/// Merges to a file. It appears when it is complete, and not if the merge fails: then an earlier file is unchanged.
pub fn merge_to(
    inputs: &Recording,
    path: &Path,
    existing: Existing,
    progress: &mut dyn FnMut(u64),
) -> Result<MergeSummary, MergeError> {
    let target = FileId::at(path);
    if target.is_some() && files_of(inputs.processes()).iter().any(|input| FileId::at(input) == target) {
        return Err(MergeError::IsAnInput(path.to_owned()));
    }
    let write_error = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => MergeError::Exists(path.to_owned()),
        _ => MergeError::Write(Some(path.to_owned()), error),
    };
    let mut out = OutputFile::create(path, existing).map_err(write_error)?;
    let summary = merge(inputs, &mut out, progress).map_err(|error| match error {
        MergeError::Write(_, error) => write_error(error),
        other => other,
    })?;
    out.finish().map_err(write_error)?;
    Ok(summary)
}

struct Merger<'a> {
    out: &'a mut dyn Write,
    progress: &'a mut dyn FnMut(u64),
    summary: MergeSummary,
    done: u64,
}

impl Merger<'_> {
    fn add(&mut self, process: &ProcessRecording) -> Result<(), MergeError> {
        let read_error = |error| MergeError::Read(process.read_error(error));
        let section = process.section();
        // Scanned up to the end of the file, so that the same blocks are found as when it was opened.
        let mut scanner = Scanner::new(process.source(), section.range.start..section.file_end);
        self.summary.processes += 1;
        while scanner.position() < section.range.end
            && let Some(part) = scanner.next().map_err(read_error)?
        {
            let end = match part {
                FilePart::Block(block) if block.header.section == section.tag => {
                    let mut header = [0; BlockHeader::LEN];
                    process.source().read_at(block.at, &mut header).map_err(read_error)?;
                    let stored = scanner.stored(&block).map_err(read_error)?;
                    if block.header.check(stored).is_ok() {
                        self.write(&header, stored).map_err(|error| MergeError::Write(None, error))?;
                    } else {
                        self.summary.damaged_bytes += block.end() - block.at;
                    }
                    block.end()
                }
                FilePart::Block(block) => block.end(),
                FilePart::Damage(range) | FilePart::Tail(range) | FilePart::TooNew(range) => {
                    self.summary.damaged_bytes += range.end - range.start;
                    range.end
                }
            };
            (self.progress)(self.done + (end - section.range.start));
        }
        self.done += process.bytes();
        Ok(())
    }

    fn write(&mut self, header: &[u8], stored: &[u8]) -> io::Result<()> {
        self.out.write_all(header)?;
        self.out.write_all(stored)?;
        self.summary.blocks += 1;
        self.summary.bytes += (header.len() + stored.len()) as u64;
        Ok(())
    }
}
