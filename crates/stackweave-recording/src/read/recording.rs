//! Recordings on a disk: a file, or a folder of files, of one or more processes.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::duplicates;
use super::error::{OpenError, ReadError};
use super::folder::FolderContents;
use super::index::Index;
use super::looks_like::{LOOK_LEN, looks_like};
use super::missing::Missing;
use super::process::ProcessRecording;
use super::source::{FileSource, RecordingSource};
use super::time_axis::TimeAxis;
use super::time_order::{TimeOrder, TimedEvent};
use crate::file::SYNC;

/// The recordings of one or more processes.
///
/// Opening reads the definitions and the positions of events, but not the events. It needs memory for the definitions, and about
/// 40 bytes for each block of events. A file that is still being written is read as far as it is complete.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    processes: Vec<ProcessRecording>,
    missing: Missing,
    bytes: u64,
}

impl Recording {
    /// Opens a file, or every `.swv` file in a folder and in the folders in it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_all(&[path])
    }

    /// Opens several files and folders as one recording. A path that can't be read is an error; a file in a folder that can't be
    /// read is ignored, and [`Recording::missing`] reports it.
    pub fn open_all(paths: &[impl AsRef<Path>]) -> Result<Self, OpenError> {
        let mut all = Self::default();
        for path in paths {
            all.add_path(path.as_ref())?;
        }
        if paths.is_empty() {
            return Err(OpenError::NoPaths);
        }
        all.leave_out_duplicates();
        Ok(all)
    }

    /// Opens a recording in memory, or anywhere else. `name` is its name in sentences.
    pub fn from_source(source: &Arc<dyn RecordingSource>, name: &Path) -> Result<Self, OpenError> {
        let mut all = Self::default();
        all.add_source(source, name)?;
        all.leave_out_duplicates();
        Ok(all)
    }

    /// Returns the processes, in the order of their files.
    pub fn processes(&self) -> &[ProcessRecording] {
        &self.processes
    }

    /// Removes the processes for which `keep` returns `false`.
    pub fn retain(&mut self, keep: impl FnMut(&ProcessRecording) -> bool) {
        self.processes.retain(keep);
    }

    /// Returns what is missing and belongs to no known process. Each process has its own [`ProcessRecording::missing`].
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Returns the total length of the recordings of all processes.
    pub fn bytes(&self) -> u64 {
        self.processes.iter().map(ProcessRecording::bytes).sum()
    }

    /// Returns the total length of the files.
    pub fn file_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of events, according to their blocks.
    pub fn event_count(&self) -> u64 {
        self.processes.iter().map(ProcessRecording::event_count).sum()
    }

    /// Returns a sentence for everything that is missing, with the process if there are several.
    pub fn report(&self) -> Vec<String> {
        let mut report = self.missing.sentences();
        for process in &self.processes {
            let sentences = process.missing().sentences().into_iter();
            let name = format!("Process {} ({}): ", process.start().pid, process.path().display());
            let name = if self.processes.len() == 1 { "" } else { &name };
            report.extend(sentences.map(|sentence| format!("{name}{sentence}")));
        }
        report
    }

    /// Returns the axis of the times of all processes, when they are visited together.
    pub fn time_axis(&self) -> TimeAxis {
        TimeAxis::common(&self.processes)
    }

    /// Returns the range from the first event to one nanosecond after the last, on that axis.
    pub fn time_range(&self) -> Option<Range<i64>> {
        let axis = self.time_axis();
        let ranges = self.processes.iter().filter_map(|process| {
            let (first, last) = process.ticks()?;
            Some((axis.time_ns(process, first), axis.time_ns(process, last)))
        });
        let (first, last) = ranges.reduce(|all, next| (all.0.min(next.0), all.1.max(next.1)))?;
        Some(first..last.saturating_add(1))
    }

    /// Calls `event` for every event of all threads of all processes in time order: see
    /// [`ProcessRecording::visit_in_time_order`]. Times and `range` are on [`Recording::time_axis`].
    pub fn visit_in_time_order(
        &self,
        range: Option<Range<i64>>,
        progress: &mut dyn FnMut(u64),
        event: &mut dyn FnMut(TimedEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Missing, ReadError> {
        self.in_time_order(range).visit(progress, event)
    }

    /// Returns an iterator-like reader of the same events.
    pub fn in_time_order(&self, range: Option<Range<i64>>) -> TimeOrder {
        TimeOrder::new(&self.processes, self.time_axis(), range, None)
    }

    fn add_path(&mut self, path: &Path) -> Result<(), OpenError> {
        if path.is_dir() { self.add_folder(path) } else { self.add_file(path) }
    }

    fn add_folder(&mut self, path: &Path) -> Result<(), OpenError> {
        let FolderContents { files, mut refused } = FolderContents::in_folder(path)?;
        let mut is_any_read = false;
        for file in &files {
            match self.add_file(file) {
                Ok(()) => is_any_read = true,
                Err(error) => refused.push(error),
            }
        }
        if !is_any_read {
            let (path, files) = (path.to_owned(), files.len());
            return Err(match refused.into_iter().next() {
                Some(first) if files > 0 => OpenError::NoneReadable { path, files, first: Box::new(first) },
                Some(folder) => folder,
                None => OpenError::NoRecordings(path),
            });
        }
        self.missing.skipped_files.extend(refused.iter().map(OpenError::to_string));
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<(), OpenError> {
        let io_error = |error| OpenError::of_io(path, error);
        // Opening a pipe would wait for a program that writes to it.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(OpenError::NotAFile(path.to_owned()));
        }
        let source: Arc<dyn RecordingSource> = Arc::new(FileSource::open(path).map_err(io_error)?);
        self.add_source(&source, path)
    }

    fn add_source(&mut self, source: &Arc<dyn RecordingSource>, path: &Path) -> Result<(), OpenError> {
        let io_error = |error| OpenError::of_io(path, error);
        let mut start = [0; LOOK_LEN];
        let len = source.read_at(0, &mut start).map_err(io_error)?;
        let start = &start[..len];
        let begins_well = start.starts_with(&SYNC) || SYNC.starts_with(start);
        if start.is_empty() {
            return Err(OpenError::Empty(path.to_owned()));
        }
        if let Some(what) = looks_like(start).filter(|_| !begins_well) {
            return Err(OpenError::NotARecording(path.to_owned(), Some(what)));
        }
        let index = Index::read(&**source).map_err(io_error)?;
        if index.sections.is_empty() {
            let path = path.to_owned();
            return Err(match index {
                Index { missing, .. } if !missing.too_new.is_empty() => OpenError::TooNew(path),
                Index { has_blocks, .. } if has_blocks || begins_well => OpenError::NothingReadable(path),
                _ => OpenError::NotARecording(path, None),
            });
        }
        self.bytes += index.bytes;
        self.missing.add_all(&index.missing);
        let path: Arc<Path> = path.into();
        let process = |section| ProcessRecording::new(Arc::clone(source), Arc::clone(&path), section);
        self.processes.extend(index.sections.into_iter().map(process));
        Ok(())
    }

    fn leave_out_duplicates(&mut self) {
        let (kept, duplicates) = duplicates::leave_out(std::mem::take(&mut self.processes));
        self.processes = kept;
        self.missing.duplicates = duplicates;
    }
}

/// Returns the files of these recordings, without duplicates.
pub(crate) fn files_of(processes: &[ProcessRecording]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = processes.iter().map(|process| process.path().to_owned()).collect();
    files.sort();
    files.dedup();
    files
}
