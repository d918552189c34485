//! The destination of encoded events: the file, with retries when it can't be written, or the ring.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stackweave_files::output::{Existing, is_stream, numbered};

use super::error::{FlushError, StartError};
use super::file_sink::FileSink;
use super::loss_counter::CountedEvents;
use super::options::path_of_process;
use super::ring::{OpenAtStart, Ring};
use super::session::{RecorderConfig, RecordingSession};
use super::writer_state::WriterState;
use crate::clock::ClockPoint;
use crate::file::{Encoded, Encoder, EndReason, LossReason, Lost, SectionEnd};

/// The number of names that a process tries beside the first one's.
const ATTEMPTS: u32 = 100;
/// The number of names that are tried if the name may get a number.
const MAX_NUMBERED: u32 = 100_000;

#[derive(Debug)]
pub(super) struct RecordingOutput {
    session: Arc<RecordingSession>,
    target: FileOrRing,
    /// Events that could not be written since the last success.
    unwritten_events: Option<CountedEvents>,
    /// Definitions that could not be written. Later events need them.
    unwritten_definitions: Vec<u8>,
    retry_at: Option<Instant>,
    retry_after: Duration,
    /// The treatment of existing files with the name.
    existing: Existing,
    /// The number of names that are tried for a file.
    attempts: u32,
}

#[derive(Debug)]
enum FileOrRing {
    File(FileSink),
    Ring(Ring),
}

impl RecordingOutput {
    /// Creates the file, unless it is a ring, and returns its path.
    pub(super) fn begin(
        session: &Arc<RecordingSession>,
        config: &RecorderConfig,
        (start, ticks_per_second): (Vec<u8>, u64),
    ) -> Result<(Self, PathBuf), StartError> {
        let (target, path, unwritten_definitions) = if let Some(limits) = config.options.ring {
            let path = free_path(config, session.pid())?;
            (FileOrRing::Ring(Ring::new(limits, ticks_per_second, start, session.first_point)), path, Vec::new())
        } else {
            let (file, path) = create(session, config, &start)?;
            session.counts.bytes.store(file.length(), Ordering::Relaxed);
            let unwritten_definitions = if file.length() == 0 { start } else { Vec::new() };
            (FileOrRing::File(file), path, unwritten_definitions)
        };
        let retry_after = config.options.flush_interval();
        let session = Arc::clone(session);
        let existing = Existing::from_overwrite(config.options.overwrite && !config.is_beside);
        let attempts = attempts(config);
        let output = Self {
            session,
            target,
            unwritten_events: None,
            unwritten_definitions,
            retry_at: None,
            retry_after,
            existing,
            attempts,
        };
        Ok((output, path))
    }

    pub(super) const fn is_ring(&self) -> bool {
        matches!(self.target, FileOrRing::Ring(_))
    }

    /// Returns whether the file can't be written at present, so that notices should be kept for later.
    pub(super) const fn is_failing(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Adds a clock point.
    pub(super) fn point(&mut self, encoder: &mut Encoder, point: ClockPoint, notes: &mut Vec<u8>) {
        match &mut self.target {
            FileOrRing::Ring(ring) => ring.add_point(point),
            FileOrRing::File(_) => encoder.clock(&point, notes),
        }
    }

    /// Adds a notice of lost events.
    pub(super) fn lose(&mut self, encoder: &mut Encoder, lost: &Lost, notes: &mut Vec<u8>) {
        let Lost { reason, count, thread, first_ticks, last_ticks } = *lost;
        match &mut self.target {
            FileOrRing::Ring(ring) => ring.lose(reason, thread, CountedEvents { count, first_ticks, last_ticks }),
            FileOrRing::File(_) => encoder.lost(lost, notes),
        }
    }

    /// Adds a thread, or changes its name.
    pub(super) fn thread(&mut self, encoder: &mut Encoder, (number, tid, name): (u32, u32, &str)) {
        match &mut self.target {
            FileOrRing::Ring(ring) => ring.name_thread(number, tid, name),
            FileOrRing::File(_) => encoder.thread(number, tid, name),
        }
    }

    /// Notes that a thread will not record again.
    pub(super) fn end_thread(&mut self, number: u32) {
        if let FileOrRing::Ring(ring) = &mut self.target {
            ring.end_thread(number);
        }
    }

    /// Moves the declarations of kinds from the encoder to the ring, which must not drop them with other definitions.
    pub(super) fn declare(&mut self, encoder: &mut Encoder) {
        if let FileOrRing::Ring(ring) = &mut self.target {
            encoder.definitions(ring.declared());
        }
    }

    /// Takes the encoded blocks, and leaves the buffers empty. `of` counts their events; `notes` are small blocks that, like
    /// definitions, must not be lost.
    pub(super) fn write(
        &mut self,
        encoder: &mut Encoder,
        (blocks, notes): (&mut Encoded, &mut Vec<u8>),
        of: Option<CountedEvents>,
        now: u64,
    ) -> Result<(), FlushError> {
        let result = match &mut self.target {
            FileOrRing::Ring(ring) => {
                ring.define(&blocks.definitions);
                ring.define(notes);
                if let Some(of) = of {
                    ring.add(std::mem::take(&mut blocks.events), of, std::mem::take(&mut blocks.nesting));
                    self.session.counts.events.fetch_add(of.count, Ordering::Relaxed);
                }
                ring.shrink(now);
                change_generation(ring, encoder);
                self.session.counts.kept.store(ring.kept_bytes(), Ordering::Relaxed);
                Ok(())
            }
            FileOrRing::File(_) => self.write_to_file(encoder, (blocks, notes), of),
        };
        blocks.definitions.clear();
        blocks.events.clear();
        blocks.nesting.clear();
        notes.clear();
        result
    }

    fn write_to_file(
        &mut self,
        encoder: &mut Encoder,
        (blocks, notes): (&Encoded, &[u8]),
        of: Option<CountedEvents>,
    ) -> Result<(), FlushError> {
        let FileOrRing::File(file) = &mut self.target else { return Ok(()) };
        let counts = &self.session.counts;
        let must_wait = self.retry_at.is_some_and(|at| Instant::now() < at);
        let written = if must_wait {
            Err(counts.error().unwrap_or_default())
        } else {
            let mut losses = Vec::new();
            if let Some(unwritten) = self.unwritten_events {
                encoder.lost(&lost(LossReason::WriteFailed, 0, unwritten), &mut losses);
            }
            let parts = [&self.unwritten_definitions, &blocks.definitions, notes, &losses, &blocks.events];
            let appended = if parts.iter().all(|part| part.is_empty()) {
                Ok(())
            } else {
                self.session.writer_state.during(WriterState::Writing, || file.append(&parts))
            };
            appended.map_err(|error| error.to_string())
        };
        match written {
            Ok(()) => {
                self.unwritten_definitions = Vec::new();
                (self.unwritten_events, self.retry_at) = (None, None);
                counts.events.fetch_add(of.map_or(0, |of| of.count), Ordering::Relaxed);
                counts.bytes.store(file.length(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.session.expect_gaps();
                self.unwritten_definitions.extend_from_slice(&blocks.definitions);
                self.unwritten_definitions.extend_from_slice(notes);
                if let Some(of) = of {
                    counts.lose(LossReason::WriteFailed, of.count);
                    self.unwritten_events = Some(self.unwritten_events.map_or(of, |others| others.and(of)));
                }
                if !must_wait {
                    self.retry_at = Some(Instant::now() + self.retry_after);
                    counts.set_error(error.clone());
                }
                Err(FlushError::Write(error))
            }
        }
    }

    /// Makes the next write try again, however recent the last failure is.
    pub(super) fn retry_now(&mut self) {
        self.retry_at = self.retry_at.map(|_| Instant::now());
    }

    /// Returns what threads had open before the first event in the ring, and the time of that event.
    pub(super) fn open_at_start(&self, now: u64) -> (Vec<OpenAtStart>, u64) {
        match &self.target {
            FileOrRing::Ring(ring) => ring.open_at_start(now),
            FileOrRing::File(_) => (Vec::new(), now),
        }
    }

    /// Writes the ring to a file: the events of `before`, the ring's, and those of `after`; `count` is the number of
    /// events in both. An existing file that is not this recording's stays, unless it may be overwritten: then the name gets a
    /// number. Returns the path.
    pub(super) fn dump(
        &mut self,
        encoder: &mut Encoder,
        path: &Path,
        [before, after]: [&Encoded; 2],
        (count, residual_ns, reason): (u64, u64, EndReason),
    ) -> Result<PathBuf, FlushError> {
        let FileOrRing::Ring(ring) = &mut self.target else { return Err(FlushError::NoRing) };
        let (mut head, mut tail) = ([&before.definitions[..], &after.definitions[..]].concat(), Vec::new());
        for (number, tid, name) in ring.threads() {
            encoder.thread(number, tid, name);
        }
        encoder.definitions(&mut head);
        for point in ring.points() {
            encoder.clock(point, &mut head);
        }
        head.extend_from_slice(&before.events);
        tail.extend_from_slice(&after.events);
        for (reason, thread, counted) in ring.lost() {
            encoder.lost(&lost(reason, thread, counted), &mut tail);
        }
        if let Some(overwritten) = ring.overwritten() {
            encoder.lost(&lost(LossReason::Ring, 0, overwritten), &mut tail);
        }
        let others: u64 = self.session.counts.lost().values().sum();
        let lost = others + ring.overwritten().map_or(0, |overwritten| overwritten.count);
        encoder.end(&SectionEnd { events: ring.events() + count, lost, residual_ns, reason }, &mut tail);
        let (session, existing) = (&self.session, self.existing);
        let written = session
            .writer_state
            .during(WriterState::Writing, || write_ring(session, ring, path, [&head, &tail], existing));
        match &written {
            Ok((length, _)) => self.session.counts.bytes.store(*length, Ordering::Relaxed),
            Err(error) => self.session.counts.set_error(error.to_string()),
        }
        written.map(|(_, path)| path).map_err(|error| FlushError::Write(error.to_string()))
    }

    /// Gives the file its name, if it has none yet.
    pub(super) fn publish(&mut self, path: &Path) -> io::Result<()> {
        if let FileOrRing::File(file) = &mut self.target
            && self.session.written.path(path).is_none()
        {
            publish(&self.session, file, path, (self.existing, self.attempts))?;
        }
        Ok(())
    }

    /// Counts the events that the ring dropped as lost, once the recording has stopped.
    pub(super) fn count_overwritten(&self) {
        if let FileOrRing::Ring(ring) = &self.target
            && let Some(overwritten) = ring.overwritten()
        {
            self.session.counts.lose(LossReason::Ring, overwritten.count);
            self.session.counts.events.fetch_sub(overwritten.count, Ordering::Relaxed);
        }
    }
}

/// Drops definitions whose numbers are reused, and begins a new generation if there are too many.
fn change_generation(ring: &mut Ring, encoder: &mut Encoder) {
    if encoder.overlaps_previous() {
        ring.drop_previous();
    }
    if !ring.has_previous() {
        encoder.forget_previous();
    }
    if ring.wants_generation() {
        encoder.begin_generation();
        ring.begin_generation();
    }
}

/// Returns the content of a Lost block.
pub(super) const fn lost(reason: LossReason, thread: u32, counted: CountedEvents) -> Lost {
    let CountedEvents { count, first_ticks, last_ticks } = counted;
    Lost { reason, count, thread, first_ticks, last_ticks }
}

fn create(
    session: &RecordingSession,
    config: &RecorderConfig,
    start: &[u8],
) -> Result<(FileSink, PathBuf), StartError> {
    let path = &config.options.path;
    if !config.is_beside {
        let existing = Existing::from_overwrite(config.options.overwrite);
        let attempts = attempts(config);
        let created =
            first_free(path, attempts, |path| FileSink::create(path, existing, start)).and_then(|(mut file, _)| {
                if !config.options.named_later {
                    publish(session, &mut file, path, (existing, attempts))?;
                }
                Ok((file, path.clone()))
            });
        return created.map_err(|error| StartError::File { path: path.clone(), error });
    }
    let mut attempt = 1;
    loop {
        let path = path_of_process(path, session.pid(), attempt);
        let created = FileSink::create(&path, Existing::Keep, start).and_then(|mut file| {
            session.written.add(&path, &path, file.publish(&path, Existing::Keep)?);
            Ok(file)
        });
        match created {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(StartError::File { path, error }),
        }
    }
}

/// Returns the number of names to try: one, if the user has chosen it.
const fn attempts(config: &RecorderConfig) -> u32 {
    if config.options.numbered { MAX_NUMBERED } else { 1 }
}

/// Calls `create` with the path, and then with numbers in its name while the file exists.
fn first_free<T>(
    path: &Path,
    attempts: u32,
    mut create: impl FnMut(&Path) -> io::Result<T>,
) -> io::Result<(T, PathBuf)> {
    let mut attempt = 1;
    loop {
        let path = numbered(path, attempt);
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < attempts => attempt += 1,
            created => return created.map(|created| (created, path)),
        }
    }
}

/// Gives a file its name.
fn publish(
    session: &RecordingSession,
    file: &mut FileSink,
    wanted: &Path,
    (existing, attempts): (Existing, u32),
) -> io::Result<()> {
    let (created, path) = first_free(wanted, attempts, |path| file.publish(path, existing))?;
    session.written.add(wanted, &path, created);
    Ok(())
}

/// Writes a ring to the path, or to the file that this recording wrote for it before. Returns the length and the path.
fn write_ring(
    session: &RecordingSession,
    ring: &Ring,
    wanted: &Path,
    around: [&[u8]; 2],
    existing: Existing,
) -> io::Result<(u64, PathBuf)> {
    if let Some(own) = session.written.own_path(wanted) {
        let (length, created) = ring.write(&own, Existing::Replace, around)?;
        session.written.add(wanted, &own, created);
        return Ok((length, own));
    }
    let ((length, created), path) = first_free(wanted, MAX_NUMBERED, |path| ring.write(path, existing, around))?;
    session.written.add(wanted, &path, created);
    Ok((length, path))
}

/// Returns the path that a ring can be dumped to.
fn free_path(config: &RecorderConfig, pid: u32) -> Result<PathBuf, StartError> {
    let path = &config.options.path;
    if config.is_beside {
        let mut choices = (1..=ATTEMPTS).map(|attempt| path_of_process(path, pid, attempt));
        return Ok(choices.find(|choice| !choice.exists()).unwrap_or_else(|| path_of_process(path, pid, 1)));
    }
    let refuse = |kind| Err(StartError::File { path: path.clone(), error: io::Error::from(kind) });
    if path.exists() && !config.options.overwrite && !config.options.numbered && !is_stream(path) {
        return refuse(io::ErrorKind::AlreadyExists);
    }
    if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return refuse(io::ErrorKind::NotFound);
    }
    Ok(path.clone())
}
