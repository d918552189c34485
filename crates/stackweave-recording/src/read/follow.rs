//! A file that grows while it is read.
//!
//! What was read stays: each look takes in the blocks that were added since the last, as [`Index`](super::index) does with all
//! of them. Definitions are read, events are not: [`FollowBlocks`](super::FollowBlocks) and
//! [`FollowOrder`](super::FollowOrder) go through those.

use std::path::Path;
use std::sync::Arc;

use super::error::{OpenError, ReadError};
use super::index::{Builder, Growing};
use super::looks_like::{LOOK_LEN, looks_like};
use super::missing::Missing;
use super::process::ProcessRecording;
use super::scanner::Scanner;
use super::source::{FileId, FileSource, Source};
use crate::clock::ClockPoint;
use crate::file::SYNC;

/// Follows a file that somebody else writes.
#[derive(Debug)]
pub struct Follower {
    source: Arc<dyn Source>,
    path: Arc<Path>,
    /// Which file it is, where that could be told.
    identity: Option<FileId>,
    /// Where the first block begins that was not whole at the last look.
    at: u64,
    processes: Vec<ProcessRecording>,
    missing: Missing,
    /// The clock points of the last process, if that may go on; `None` if the next block must be a start.
    points: Option<Vec<ClockPoint>>,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// How many bytes of blocks are new.
    pub new_bytes: u64,
    /// How long the file is.
    pub file_bytes: u64,
    /// The file is not any more the one that was begun with. Nothing was read: it has to be opened again.
    pub changed: Option<Changed>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is shorter than what was read of it.
    Cut,
    /// Another file has its name.
    Replaced,
}

impl Follower {
    /// Opens a file. It may be empty, or have nothing but a part of its first block.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io_error = |error| OpenError::of_io(path, error);
        // Opening a pipe would wait for whoever writes to it.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            return Err(OpenError::NotAFile(path.to_owned()));
        }
        let source: Arc<dyn Source> = Arc::new(FileSource::open(path).map_err(io_error)?);
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was read so far, a process after the other. Who keeps a clone of the last one over the next look makes that
    /// copy all definitions.
    pub fn processes(&self) -> &[ProcessRecording] {
        &self.processes
    }

    /// What is missing and can't be said to be some process's.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Takes in what was written since the last look, as far as blocks are whole.
    pub fn look(&mut self) -> Result<Look, ReadError> {
        let file_bytes = self.source.size().map_err(|error| ReadError::new(&self.path, error))?;
        let changed =
            if self.is_replaced() { Some(Changed::Replaced) } else { (file_bytes < self.at).then_some(Changed::Cut) };
        let from = self.at;
        if changed.is_none() && file_bytes > from {
            self.read_to(file_bytes)?;
        }
        Ok(Look { new_bytes: self.at - from, file_bytes, changed })
    }

    fn is_replaced(&self) -> bool {
        self.identity.is_some_and(|identity| FileId::at(&self.path).is_some_and(|now| now != identity))
    }

    fn read_to(&mut self, end: u64) -> Result<(), ReadError> {
        let mut builder = Builder::default();
        builder.index.bytes = end;
        if let Some((points, last)) = self.points.take().and_then(|points| Some((points, self.processes.pop()?))) {
            let mut section = last.into_section();
            section.file_end = end;
            builder.open = Some(Growing { section, points });
        }
        let source = Arc::clone(&self.source);
        let mut scanner = Scanner::new(&*source, self.at..end);
        let read = (|| {
            while let Some(piece) = scanner.next_whole()? {
                builder.add(&mut scanner, piece)?;
                self.at = scanner.position();
            }
            Ok(())
        })();
        self.take(builder);
        read.map_err(|error| ReadError::new(&self.path, error))
    }

    fn take(&mut self, builder: Builder) {
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
