//! Reading of a file while it grows.
//!
//! Keeps the blocks that it has read: each update adds those that were written since the last, as
//! [`Index`](super::index) does with all blocks. Definitions are read, events are not:
//! [`FollowBlocks`](super::FollowBlocks) and [`FollowOrder`](super::FollowOrder) read them.

use std::path::Path;
use std::sync::Arc;

use super::error::{OpenError, ReadError};
use super::index::{IndexBuilder, OpenSection};
use super::looks_like::{LOOK_LEN, looks_like};
use super::missing::Missing;
use super::process::ProcessRecording;
use super::scanner::Scanner;
use super::source::{FileId, FileSource, RecordingSource};
use crate::clock::ClockPoint;
use crate::file::SYNC;

/// Follows a file that another program writes.
#[derive(Debug)]
pub struct Follower {
    source: Arc<dyn RecordingSource>,
    path: Arc<Path>,
    /// The identity of the file, if known.
    identity: Option<FileId>,
    /// The position of the first block that was incomplete at the last update.
    at: u64,
    processes: Vec<ProcessRecording>,
    missing: Missing,
    /// The clock points of the last process, if it may continue; `None` if the next block must be a Start.
    points: Option<Vec<ClockPoint>>,
}

/// The result of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerUpdate {
    /// The number of bytes of new blocks.
    pub new_bytes: u64,
    /// The length of the file.
    pub file_bytes: u64,
    /// The file is not the opened one any more. Nothing was read: it must be opened again.
    pub changed: Option<FileChange>,
}

/// The change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is shorter than what was read before.
    Cut,
    /// Another file has its name.
    Replaced,
}

impl Follower {
    /// Opens a file. It may be empty, or contain only a part of its first block.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io_error = |error| OpenError::of_io(path, error);
        // Opening a pipe would wait for a program that writes to it.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(OpenError::NotAFile(path.to_owned()));
        }
        let source: Arc<dyn RecordingSource> = Arc::new(FileSource::open(path).map_err(io_error)?);
        let follower = Self {
            source,
            path: path.into(),
            identity: FileId::at(path),
            at: 0,
            processes: Vec::new(),
            missing: Missing::default(),
            points: None,
        };
        let mut start = [0; LOOK_LEN];
        let len = follower.source.read_at(0, &mut start).map_err(io_error)?;
        let start = &start[..len];
        if start.starts_with(&SYNC) || SYNC.starts_with(start) {
            Ok(follower)
        } else {
            Err(OpenError::NotARecording(path.to_owned(), looks_like(start)))
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the processes that were read so far. If a caller keeps a clone of the last one, the next update copies all its
    /// definitions.
    pub fn processes(&self) -> &[ProcessRecording] {
        &self.processes
    }

    /// Returns what is missing and belongs to no known process.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Reads the complete blocks that were written since the last update.
    pub fn update(&mut self) -> Result<FollowerUpdate, ReadError> {
        let file_bytes = self.source.size().map_err(|error| ReadError::new(&self.path, error))?;
        let changed = if self.is_replaced() {
            Some(FileChange::Replaced)
        } else {
            (file_bytes < self.at).then_some(FileChange::Cut)
        };
        let from = self.at;
        if changed.is_none() && file_bytes > from {
            self.read_to(file_bytes)?;
        }
        Ok(FollowerUpdate { new_bytes: self.at - from, file_bytes, changed })
    }

    fn is_replaced(&self) -> bool {
        self.identity.is_some_and(|identity| FileId::at(&self.path).is_some_and(|now| now != identity))
    }

    fn read_to(&mut self, end: u64) -> Result<(), ReadError> {
        let mut builder = IndexBuilder::default();
        builder.index.bytes = end;
        if let Some((points, last)) = self.points.take().and_then(|points| Some((points, self.processes.pop()?))) {
            let mut section = last.into_section();
            section.file_end = end;
            builder.open = Some(OpenSection { section, points });
        }
        let source = Arc::clone(&self.source);
        let mut scanner = Scanner::new(&*source, self.at..end);
        let read = (|| {
            while let Some(part) = scanner.next_whole()? {
                builder.add(&mut scanner, part)?;
                self.at = scanner.position();
            }
            Ok(())
        })();
        self.take(builder);
        read.map_err(|error| ReadError::new(&self.path, error))
    }

    fn take(&mut self, builder: IndexBuilder) {
        self.missing.add_all(&builder.index.missing);
        let process = |section| ProcessRecording::new(Arc::clone(&self.source), Arc::clone(&self.path), section);
        self.processes.extend(builder.index.sections.into_iter().map(process));
        if let Some(mut open) = builder.open {
            open.settle();
            self.processes.push(process(open.section));
            self.points = Some(open.points);
        }
    }
}
