//! Where encoded events go: to the file, as far as it can be written, or to the ring.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use stackweave_files::output::{Existing, is_stream, numbered};

use super::activity::Doing;
use super::file_sink::FileSink;
use super::options::path_of_process;
use super::outcome::{FlushError, StartError};
use super::ring::{OpenBefore, Ring};
use super::session::{Session, Setting};
use super::tally::Counted;
use crate::clock::ClockPoint;
use crate::file::{Encoded, Encoder, End, EndReason, LossReason, Lost};

/// A process tries so many names beside the first one's.
const ATTEMPTS: u32 = 100;
/// More files of one name than anybody keeps.
const MOST_NUMBERS: u32 = 100_000;

#[derive(Debug)]
pub(super) struct Output {
    session: Arc<Session>,
    target: Target,
    /// Events that could not be written since the last time that it went well.
    unwritten: Option<Counted>,
    /// Definitions that could not be written: later events need them.
    owed: Vec<u8>,
    retry_at: Option<Instant>,
    retry_after: Duration,
    /// What becomes of files of others that have the name.
    existing: Existing,
    /// How many names are tried for a file.
    attempts: u32,
}

#[derive(Debug)]
enum Target {
    File(FileSink),
    Ring(Ring),
}

impl Output {
    /// Makes the file, unless it is a ring, and says where it is.
    pub(super) fn begin(
        session: &Arc<Session>,
        setting: &Setting,
        (start, ticks_per_second): (Vec<u8>, u64),
    ) -> Result<(Self, PathBuf), StartError> {
        let (target, path, owed) = if let Some(limits) = setting.options.ring {
            let path = free_path(setting, session.pid())?;
            (Target::Ring(Ring::new(limits, ticks_per_second, start, session.first_point)), path, Vec::new())
        } else {
            let (file, path) = create(session, setting, &start)?;
            session.counts.bytes.store(file.length(), Ordering::Relaxed);
            let owed = if file.length() == 0 { start } else { Vec::new() };
            (Target::File(file), path, owed)
        };
        let retry_after = setting.options.flush_interval();
        let session = Arc::clone(session);
        let existing = Existing::from_overwrite(setting.options.overwrite && !setting.is_beside);
        let attempts = attempts(setting);
        Ok((Self { session, target, unwritten: None, owed, retry_at: None, retry_after, existing, attempts }, path))
    }

    pub(super) const fn is_ring(&self) -> bool {
        matches!(self.target, Target::Ring(_))
    }

    /// Whether the file can't be written for now, so that what need not be said yet is better kept.
    pub(super) const fn is_failing(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Adds a clock point.
    pub(super) fn point(&mut self, encoder: &mut Encoder, point: ClockPoint, notes: &mut Vec<u8>) {
        match &mut self.target {
            Target::Ring(ring) => ring.add_point(point),
            Target::File(_) => encoder.clock(&point, notes),
        }
    }

    /// Adds that events were lost.
    pub(super) fn lose(&mut self, encoder: &mut Encoder, lost: &Lost, notes: &mut Vec<u8>) {
        let Lost { reason, count, thread, first_ticks, last_ticks } = *lost;
        match &mut self.target {
            Target::Ring(ring) => ring.lose(reason, thread, Counted { count, first_ticks, last_ticks }),
            Target::File(_) => encoder.lost(lost, notes),
        }
    }

    /// Adds a thread, or gives it another name.
    pub(super) fn thread(&mut self, encoder: &mut Encoder, (number, tid, name): (u32, u32, &str)) {
        match &mut self.target {
            Target::Ring(ring) => ring.name_thread(number, tid, name),
            Target::File(_) => encoder.thread(number, tid, name),
        }
    }

    /// A thread will not record again.
    pub(super) fn end_thread(&mut self, number: u32) {
        if let Target::Ring(ring) = &mut self.target {
            ring.end_thread(number);
        }
    }

    /// Takes the kinds that the encoder was told of, where they must not be dropped with other definitions.
    pub(super) fn declare(&mut self, encoder: &mut Encoder) {
        if let Target::Ring(ring) = &mut self.target {
            encoder.definitions(ring.declared());
        }
    }

    /// Takes what was encoded, and leaves the buffers empty. `of` says which events are in it; `notes` are small
    /// blocks that are as little to be lost as definitions.
    pub(super) fn write(
        &mut self,
        encoder: &mut Encoder,
        (blocks, notes): (&mut Encoded, &mut Vec<u8>),
        of: Option<Counted>,
        now: u64,
    ) -> Result<(), FlushError> {
        let result = match &mut self.target {
            Target::Ring(ring) => {
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
            Target::File(_) => self.write_to_file(encoder, (blocks, notes), of),
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
        of: Option<Counted>,
    ) -> Result<(), FlushError> {
        let Target::File(file) = &mut self.target else { return Ok(()) };
        let counts = &self.session.counts;
        let must_wait = self.retry_at.is_some_and(|at| Instant::now() < at);
        let written = if must_wait {
            Err(counts.error().unwrap_or_default())
        } else {
            let mut told = Vec::new();
            if let Some(unwritten) = self.unwritten {
                encoder.lost(&lost(LossReason::WriteFailed, 0, unwritten), &mut told);
            }
            let parts = [&self.owed, &blocks.definitions, notes, &told, &blocks.events];
            let appended = if parts.iter().all(|part| part.is_empty()) {
                Ok(())
            } else {
                self.session.activity.during(Doing::Writing, || file.append(&parts))
            };
            appended.map_err(|error| error.to_string())
        };
        match written {
            Ok(()) => {
                self.owed = Vec::new();
                (self.unwritten, self.retry_at) = (None, None);
                counts.events.fetch_add(of.map_or(0, |of| of.count), Ordering::Relaxed);
                counts.bytes.store(file.length(), Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.session.expect_gaps();
                self.owed.extend_from_slice(&blocks.definitions);
                self.owed.extend_from_slice(notes);
                if let Some(of) = of {
                    counts.lose(LossReason::WriteFailed, of.count);
                    self.unwritten = Some(self.unwritten.map_or(of, |others| others.and(of)));
                }
                if !must_wait {
                    self.retry_at = Some(Instant::now() + self.retry_after);
                    counts.set_error(error.clone());
                }
                Err(FlushError::Write(error))
            }
        }
    }

    /// Tries to write again at the next chance, however short ago it went wrong.
    pub(super) fn retry_now(&mut self) {
        self.retry_at = self.retry_at.map(|_| Instant::now());
    }

    /// What threads had open before the events that the ring still has, and when these begin.
    pub(super) fn open_before(&self, now: u64) -> (Vec<OpenBefore>, u64) {
        match &self.target {
            Target::Ring(ring) => ring.open_before(now),
            Target::File(_) => (Vec::new(), now),
        }
    }

    /// Writes the ring to a file, with the first of these events before all others, and the last behind them, and how many they
    /// are. A file that is not this recording's stays, unless it may be overwritten: then the name gets a number. Returns the path.
    pub(super) fn dump(
        &mut self,
        encoder: &mut Encoder,
        path: &Path,
        [first, behind]: [&Encoded; 2],
        (count, residual_ns, reason): (u64, u64, EndReason),
    ) -> Result<PathBuf, FlushError> {
        let Target::Ring(ring) = &mut self.target else { return Err(FlushError::NoRing) };
        let (mut head, mut tail) = ([&first.definitions[..], &behind.definitions[..]].concat(), Vec::new());
        for (number, tid, name) in ring.threads() {
            encoder.thread(number, tid, name);
        }
        encoder.definitions(&mut head);
        for point in ring.points() {
            encoder.clock(point, &mut head);
        }
        head.extend_from_slice(&first.events);
        tail.extend_from_slice(&behind.events);
        for (reason, thread, counted) in ring.lost() {
            encoder.lost(&lost(reason, thread, counted), &mut tail);
        }
        if let Some(overwritten) = ring.overwritten() {
            encoder.lost(&lost(LossReason::Ring, 0, overwritten), &mut tail);
        }
        let others: u64 = self.session.counts.lost().values().sum();
        let lost = others + ring.overwritten().map_or(0, |overwritten| overwritten.count);
        encoder.end(&End { events: ring.events() + count, lost, residual_ns, reason }, &mut tail);
        let (session, existing) = (&self.session, self.existing);
        let written =
            session.activity.during(Doing::Writing, || write_ring(session, ring, path, [&head, &tail], existing));
        match &written {
            Ok((length, _)) => self.session.counts.bytes.store(*length, Ordering::Relaxed),
            Err(error) => self.session.counts.set_error(error.to_string()),
        }
        written.map(|(_, path)| path).map_err(|error| FlushError::Write(error.to_string()))
    }

    /// Gives the file its name, if it has none yet.
    pub(super) fn publish(&mut self, path: &Path) -> io::Result<()> {
        if let Target::File(file) = &mut self.target
            && self.session.written.path(path).is_none()
        {
            publish(&self.session, file, path, (self.existing, self.attempts))?;
        }
        Ok(())
    }

    /// What the ring has dropped counts as lost once the recording has stopped.
    pub(super) fn count_overwritten(&self) {
        if let Target::Ring(ring) = &self.target
            && let Some(overwritten) = ring.overwritten()
        {
            self.session.counts.lose(LossReason::Ring, overwritten.count);
            self.session.counts.events.fetch_sub(overwritten.count, Ordering::Relaxed);
        }
    }
}

/// Drops definitions whose numbers are given again, and begins new ones where there are many.
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

/// What a Lost block says.
pub(super) const fn lost(reason: LossReason, thread: u32, counted: Counted) -> Lost {
    let Counted { count, first_ticks, last_ticks } = counted;
    Lost { reason, count, thread, first_ticks, last_ticks }
}

fn create(session: &Session, setting: &Setting, start: &[u8]) -> Result<(FileSink, PathBuf), StartError> {
    let path = &setting.options.path;
    if !setting.is_beside {
        let existing = Existing::from_overwrite(setting.options.overwrite);
        let attempts = attempts(setting);
        let created =
            first_free(path, attempts, |path| FileSink::create(path, existing, start)).and_then(|(mut file, _)| {
                if !setting.options.named_later {
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

/// How many names are tried: one, if the user has chosen it.
const fn attempts(setting: &Setting) -> u32 {
    if setting.options.numbered { MOST_NUMBERS } else { 1 }
}

/// Calls `create` with the path, and with numbers in its name as long as it finds a file there.
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
    session: &Session,
    file: &mut FileSink,
    wanted: &Path,
    (existing, attempts): (Existing, u32),
) -> io::Result<()> {
    let (created, path) = first_free(wanted, attempts, |path| file.publish(path, existing))?;
    session.written.add(wanted, &path, created);
    Ok(())
}

/// Writes a ring to the path, or to the file that this recording has written for it before. Returns the length and the path.
fn write_ring(
    session: &Session,
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
    let ((length, created), path) = first_free(wanted, MOST_NUMBERS, |path| ring.write(path, existing, around))?;
    session.written.add(wanted, &path, created);
    Ok((length, path))
}

/// Where a ring can be dumped to.
fn free_path(setting: &Setting, pid: u32) -> Result<PathBuf, StartError> {
    let path = &setting.options.path;
    if setting.is_beside {
        let mut choices = (1..=ATTEMPTS).map(|attempt| path_of_process(path, pid, attempt));
        return Ok(choices.find(|choice| !choice.exists()).unwrap_or_else(|| path_of_process(path, pid, 1)));
    }
    let refuse = |kind| Err(StartError::File { path: path.clone(), error: io::Error::from(kind) });
    if path.exists() && !setting.options.overwrite && !setting.options.numbered && !is_stream(path) {
        return refuse(io::ErrorKind::AlreadyExists);
    }
    if path.parent().is_some_and(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return refuse(io::ErrorKind::NotFound);
    }
    Ok(path.clone())
}
