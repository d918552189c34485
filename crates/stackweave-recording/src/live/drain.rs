//! Moves events from the lanes through the encoder to the output.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use super::chunk::Chunk;
use super::clock_points::ClockPoints;
use super::ended_threads;
use super::error::FlushError;
use super::guarded_observer::{GuardedObserver, ObserverQuery, THREAD_NAME};
use super::kind_registry::{KindNumber, KindRegistry, RegisteredKind};
use super::lane::Lane;
use super::loss_counter::CountedEvents;
use super::output::{RecordingOutput, lost};
use super::process;
use super::ring::OpenAtStart;
use super::session::{RecorderConfig, RecordingSession};
use super::writer_state::WatchedNames;
use crate::file::{Encoded, Encoder, EndReason, LossReason, PendingNames, ResolvedNames, SectionEnd, open_kind};

/// Encoded blocks are written in batches of this many bytes.
const BATCH: usize = 1 << 20;
/// The interval at which the system is queried for thread names.
const NAMES_EVERY: Duration = Duration::from_secs(1);
/// The number of attempts to read a consistent state of a lane whose thread continues to record.
const ATTEMPTS: usize = 100;

pub(super) struct Drain {
    session: Arc<RecordingSession>,
    names: WatchedNames,
    kinds: Arc<KindRegistry>,
    known_kinds: usize,
    encoder: Encoder,
    encoded: Encoded,
    notes: Vec<u8>,
    batch: Option<CountedEvents>,
    lanes: Vec<KnownLane>,
    pub(super) observer: GuardedObserver,
    /// The number of the thread of the observer's notes, once there are any.
    notes_thread: Option<u32>,
    /// The numbers of threads without a lane, by thread id.
    without_lane: HashMap<u32, u32>,
    points: ClockPoints,
    output: RecordingOutput,
    names_queried: Instant,
}

/// A lane to which the writer has a reference.
struct KnownLane {
    lane: *mut Lane,
    name: String,
    /// Whether the program gave the thread this name, so that the system need not be queried.
    is_named: bool,
    has_ended: bool,
    /// Its [`Lane::sequence`] at the beginning of the round.
    round_sequence: u64,
}

/// The use of words in chunks that are not full.
#[derive(Clone, Copy, Debug)]
enum PartialChunks {
    /// They are encoded.
    Write,
    /// Only the observer receives them.
    Observe,
}

impl KnownLane {
    fn lane(&self) -> &Lane {
        // SAFETY: the writer's reference lives until `release`.
        unsafe { &*self.lane }
    }
}

impl Drain {
    pub(super) fn new(
        session: &Arc<RecordingSession>,
        config: &RecorderConfig,
        encoder: Encoder,
        output: RecordingOutput,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            names: WatchedNames { names: Arc::clone(&config.names), session: Arc::clone(session) },
            kinds: Arc::clone(&config.kinds),
            known_kinds: 0,
            encoder,
            encoded: Encoded::default(),
            notes: Vec::new(),
            batch: None,
            lanes: Vec::new(),
            observer: GuardedObserver::begin(session, config),
            notes_thread: None,
            without_lane: HashMap::new(),
            points: ClockPoints::new(session.clock, session.first_point),
            output,
            names_queried: Instant::now(),
        }
    }

    /// Encodes full chunks. An observer receives everything that was recorded.
    pub(super) fn full_chunks(&mut self) {
        self.adopt_new_lanes();
        if self.observer.is_on() {
            self.take_round(PartialChunks::Observe);
        } else {
            self.take_full_chunks();
        }
        // The next flush reports errors.
        let _ = self.write();
    }

    /// Encodes and writes everything that was recorded before the call.
    pub(super) fn all(&mut self) -> Result<(), FlushError> {
        self.adopt_new_lanes();
        self.end_gone_threads();
        // Must precede the look at the queue: the last chunk of a thread that has ended is in it.
        for known in &mut self.lanes {
            known.has_ended = known.lane().has_ended();
        }
        self.take_round(PartialChunks::Write);
        self.update_names();
        self.encode_definitions();
        if !self.output.is_failing() {
            self.encode_losses();
        }
        let result = self.write();
        self.forget_ended_lanes();
        result
    }

    /// Takes everything that was recorded before the call, and settles the observer.
    fn take_round(&mut self, partial: PartialChunks) {
        let began = self.points.now();
        fence(Ordering::SeqCst);
        // A thread may have begun to record since the last call, and before now.
        self.adopt_new_lanes();
        for known in &mut self.lanes {
            known.round_sequence = known.lane().sequence();
        }
        self.take_full_chunks();
        let mut is_complete = true;
        for index in 0..self.lanes.len() {
            is_complete &= self.take_lane(index, partial);
        }
        self.declare_new_kinds();
        self.observer.settle(began, is_complete);
        self.encode_notes();
    }

    /// Takes everything that was published in a lane when the round began. Returns whether that is complete: a chunk may not be
    /// queued yet because its thread is stopped.
    fn take_lane(&mut self, index: usize, partial: PartialChunks) -> bool {
        let KnownLane { lane, round_sequence, .. } = self.lanes[index];
        // SAFETY: the writer's reference.
        let lane = unsafe { &*lane };
        for _ in 0..ATTEMPTS {
            if let Some((chunk, end)) = lane.partial() {
                match partial {
                    PartialChunks::Write => self.take_words(chunk, end),
                    PartialChunks::Observe => self.notify_words(chunk, end),
                }
                return true;
            }
            if lane.is_taken_up_to(round_sequence) {
                return true;
            }
            thread::yield_now();
            self.take_full_chunks();
        }
        false
    }

    /// Ends the lanes of threads that ended without notice.
    fn end_gone_threads(&mut self) {
        let check_all = self.names_queried.elapsed() >= NAMES_EVERY;
        let pid = self.session.pid();
        for known in &self.lanes {
            let shared = &known.lane().shared;
            if (check_all || shared.is_left()) && ended_threads::is_gone(pid, shared.tid) {
                ended_threads::end(known.lane);
            }
        }
    }

    pub(super) const fn is_ring(&self) -> bool {
        self.output.is_ring()
    }

    /// Returns the names that only an interpreter can resolve.
    pub(super) fn take_pending(&mut self) -> PendingNames {
        self.encoder.take_pending()
    }

    /// Writes names that an interpreter resolved.
    pub(super) fn write_names(&mut self, resolved: ResolvedNames) -> Result<(), FlushError> {
        self.encoder.describe(resolved, &mut self.notes);
        self.write()
    }

    /// Names the thread with this id, if it has recorded.
    pub(super) fn name(&mut self, tid: u32, name: String) {
        if let Some(known) = self.lanes.iter_mut().rev().find(|known| known.lane().shared.tid == tid) {
            let number = known.lane().shared.number.get();
            (known.name, known.is_named) = (name, true);
            define_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &known.name));
        } else if let Some(number) = self.without_lane.get(&tid) {
            define_thread((&mut self.output, &mut self.encoder), &self.session, (*number, tid, &name));
        }
    }

    /// Gives the file its name, if it has none yet.
    pub(super) fn publish(&mut self, path: &Path) -> io::Result<()> {
        self.output.publish(path)
    }

    /// Writes the ring to a file. Returns its path.
    pub(super) fn dump(&mut self, path: &Path, reason: EndReason) -> Result<PathBuf, FlushError> {
        if reason == EndReason::Dumped {
            self.observer.dump(self.points.now());
        }
        let last = self.observer.take_notes();
        let point = self.points.take();
        self.output.point(&mut self.encoder, point, &mut self.notes);
        self.write()?;
        let open = self.words_of_open();
        let notes = if last.is_empty() { None } else { Some(self.thread_of_notes()) };
        let (mut first, mut behind, mut count) = (Encoded::default(), Encoded::default(), 0);
        let (names, observer) = (&self.names, &mut self.observer);
        // Definitions that only this file has must not be used by later events.
        self.encoder.with_separate_definitions(|encoder| {
            for (thread, words) in &open {
                count += encoder.events(*thread, words, names, &mut first).events;
            }
            let Some(thread) = notes else { return };
            count += encoder.events(thread, &last, names, &mut behind).events;
            while observer.more() {
                count += encoder.events(thread, &observer.take_notes(), names, &mut behind).events;
            }
        });
        self.output.dump(&mut self.encoder, path, [&first, &behind], (count, self.points.residual_ns(), reason))
    }

    /// Writes a dump if the observer requested one.
    pub(super) fn dump_if_requested(&mut self, path: &Path) {
        if self.observer.takes_dump() {
            self.dump_now(path);
        }
    }

    /// Writes everything to the file.
    pub(super) fn dump_now(&mut self, path: &Path) {
        // An error is kept as the recording's error.
        let _ = self.all();
        if self.is_ring() {
            let _ = self.dump(path, EndReason::Dumped);
        } else {
            self.observer.dump(self.points.now());
            self.encode_notes();
            let _ = self.write();
        }
    }

    /// Queries the observer, and writes its notes.
    pub(super) fn query_observer(&mut self, query: ObserverQuery) {
        self.declare_new_kinds();
        self.observer.query(query);
        self.encode_notes();
        // The next flush reports errors.
        let _ = self.write();
    }

    /// Moves the observer to the session, for queries after the writer has ended.
    pub(super) fn keep_observer(&mut self) {
        self.session.kept_observer().0 = self.observer.take_observer();
    }

    /// Encodes the observer's notes, as events of a separate thread.
    pub(super) fn encode_notes(&mut self) {
        loop {
            let words = self.observer.take_notes();
            if !words.is_empty() {
                let thread = self.thread_of_notes();
                self.encode(thread, &words);
                if self.output.is_ring() || self.encoded.events.len() >= BATCH {
                    let _ = self.write();
                }
            }
            if !self.observer.more() {
                return;
            }
        }
    }

    fn thread_of_notes(&mut self) -> u32 {
        if let Some(number) = self.notes_thread {
            return number;
        }
        let number = self.session.next_thread();
        self.notes_thread = Some(number);
        // SAFETY: has no conditions.
        let tid = unsafe { libc::gettid() }.unsigned_abs();
        define_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, THREAD_NAME));
        number
    }

    /// Returns the words of events that record what threads had open before the first event in the ring. A thread without later
    /// events gets a second open event, which shows that it still exists.
    fn words_of_open(&mut self) -> Vec<(u32, Vec<u64>)> {
        let now = self.points.now();
        let (before, began) = self.output.open_at_start(now);
        let [frames, calls] = [false, true].map(|is_call| self.kinds.register(open_kind(is_call), true));
        self.declare_new_kinds();
        let words_of = |OpenAtStart { thread, open, has_events }: OpenAtStart| {
            let last = open.last().filter(|_| !has_events).map(|last| (now.max(began), *last));
            let mut words = Vec::with_capacity(3 * open.len() + 3);
            for (ticks, (depth, span)) in open.iter().map(|open| (began, *open)).chain(last) {
                let Some(kind) = (if span.is_call { calls } else { frames }) else { continue };
                words.extend([ticks << 8 | u64::from(kind.get()), span.word, depth]);
            }
            (thread, words)
        };
        before.into_iter().map(words_of).collect()
    }

    /// Declares new kinds to the encoder and the observer.
    fn declare_new_kinds(&mut self) {
        for RegisteredKind { kind, is_written } in self.kinds.since(self.known_kinds) {
            let number = if *is_written { self.encoder.kind(kind) } else { self.encoder.observer_only_kind(kind) };
            debug_assert!(number.is_some(), "registered kinds can be encoded");
            if let Some(number) = number.and_then(|number| KindNumber::of(number, kind)) {
                self.observer.notify_kind(number, kind);
            }
            self.known_kinds += 1;
            self.output.declare(&mut self.encoder);
        }
    }

    /// Ends the recording, after a last [`Drain::all`].
    pub(super) fn end(&mut self, reason: EndReason) {
        self.output.retry_now();
        self.observer.end(self.points.now());
        if !self.output.is_ring() {
            self.encode_notes();
        }
        self.update_names();
        self.encode_definitions();
        self.encode_losses();
        let point = self.points.take();
        self.output.point(&mut self.encoder, point, &mut self.notes);
        let _ = self.write();
        if self.output.is_ring() {
            self.output.count_overwritten();
            return;
        }
        let stats = self.session.stats();
        let (events, lost) = (stats.events, stats.lost.values().sum());
        self.encoder.end(&SectionEnd { events, lost, residual_ns: self.points.residual_ns(), reason }, &mut self.notes);
        let _ = self.write();
    }

    /// Releases its references, once the session is closed.
    pub(super) fn release(mut self) {
        ended_threads::end_all(self.session.pid(), self.lanes.iter().map(|known| known.lane));
        for known in self.lanes.drain(..) {
            // SAFETY: the writer's reference, which is not used afterwards.
            unsafe { Lane::release(known.lane) };
        }
    }

    fn adopt_new_lanes(&mut self) {
        let (lanes, without) = (&mut self.lanes, &mut self.without_lane);
        let (output, encoder) = (&mut self.output, &mut self.encoder);
        let first = lanes.len();
        self.session.take_new_lanes(|lane| {
            lanes.push(KnownLane { lane, name: String::new(), is_named: false, has_ended: false, round_sequence: 0 });
        });
        let (old, new) = lanes.split_at_mut(first);
        for known in new {
            let tid = known.lane().shared.tid;
            // The kernel has reused the id for a new thread, so the old one has ended.
            let is_same = |old: &&KnownLane| tid != 0 && old.lane().shared.tid == tid;
            old.iter().filter(is_same).for_each(|old| ended_threads::end(old.lane));
            if let Some(number) = without.remove(&tid) {
                known.lane().shared.number.set(number);
            }
            let number = known.lane().shared.number.get();
            let given = known.lane().take_name();
            known.is_named = given.is_some();
            known.name = given.or_else(|| process::thread_name(tid)).unwrap_or_default();
            known.lane().shared.is_known.set(true);
            define_thread((output, encoder), &self.session, (number, tid, &known.name));
        }
    }

    /// Updates the names of threads, which may change. The system is queried at intervals.
    fn update_names(&mut self) {
        let query_system = self.names_queried.elapsed() >= NAMES_EVERY;
        for known in &mut self.lanes {
            let (number, tid) = (known.lane().shared.number.get(), known.lane().shared.tid);
            let given = known.lane().take_name();
            known.is_named |= given.is_some();
            let name = given.or_else(|| (query_system && !known.is_named).then(|| process::thread_name(tid)).flatten());
            if let Some(name) = name
                && name != known.name
            {
                define_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &name));
                known.name = name;
            }
        }
        if query_system {
            self.names_queried = Instant::now();
        }
    }

    /// Encodes declarations that no event has needed yet, such as late names of threads.
    fn encode_definitions(&mut self) {
        self.encoder.describe(ResolvedNames::default(), &mut self.encoded.definitions);
    }

    fn take_full_chunks(&mut self) {
        let session = Arc::clone(&self.session);
        session.full.take(|chunk| {
            // SAFETY: removed from the queue, so the writer's. The writer has a reference to its lane, even to a new one.
            let (head, lane) = unsafe { (&*chunk, &*(*chunk).lane.get()) };
            if !lane.shared.is_known.get() {
                self.adopt_new_lanes();
            }
            self.take_words(head, head.words.get());
            lane.shared.expected.set(head.sequence.get() + 1);
            session.pool.put(chunk);
        });
    }

    /// Encodes the new words of a chunk, up to `end`.
    fn take_words(&mut self, chunk: &Chunk, end: usize) {
        self.notify_words(chunk, end);
        // SAFETY: the chunk's lane has published these words; they are not overwritten before the chunk returns to the pool.
        let words = unsafe { chunk.words(chunk.taken.get(), end) };
        // SAFETY: the writer has a reference to the lane of every chunk that it takes.
        let thread = unsafe { &*chunk.lane.get() }.shared.number.get();
        self.encode(thread, words);
        chunk.taken.set(end);
        if self.output.is_ring() || self.encoded.events.len() >= BATCH {
            let _ = self.write();
        }
    }

    /// Passes the new words of a chunk to the observer, up to `end`.
    fn notify_words(&mut self, chunk: &Chunk, end: usize) {
        if self.observer.is_on() {
            self.declare_new_kinds();
            // SAFETY: as in `take_words`.
            let (words, lane) = unsafe { (chunk.words(chunk.observed.get(), end), &*chunk.lane.get()) };
            self.observer.notify_events(lane.shared.number.get(), words);
            chunk.observed.set(end);
        }
    }

    /// Encodes these words as events of another thread, after everything in its lane.
    pub(super) fn record_for_thread(&mut self, tid: u32, words: &[u64]) {
        let thread = self.thread_taken_whole(tid).unwrap_or_else(|| self.thread_without_lane(tid));
        self.declare_new_kinds();
        self.observer.notify_events(thread, words);
        self.encode(thread, words);
        // The next flush reports errors.
        let _ = self.write();
    }

    /// Takes everything in the lane of a thread, and returns the thread's number; `None` if it has no lane.
    fn thread_taken_whole(&mut self, tid: u32) -> Option<u32> {
        self.adopt_new_lanes();
        let is_it = |known: &&KnownLane| known.lane().shared.tid == tid && !known.lane().has_ended();
        let lane = self.lanes.iter().find(is_it)?.lane;
        // SAFETY: the writer's reference.
        let lane = unsafe { &*lane };
        for _ in 0..ATTEMPTS {
            self.take_full_chunks();
            if let Some((chunk, end)) = lane.partial() {
                self.take_words(chunk, end);
                break;
            }
            // Without a chunk, it has recorded nothing or waits for a buffer, or a full chunk has just been queued.
            if !lane.has_chunk() {
                self.take_full_chunks();
                break;
            }
        }
        Some(lane.shared.number.get())
    }

    fn thread_without_lane(&mut self, tid: u32) -> u32 {
        if let Some(number) = self.without_lane.get(&tid) {
            return *number;
        }
        let number = self.session.next_thread();
        self.without_lane.insert(tid, number);
        let name = process::thread_name(tid).unwrap_or_default();
        define_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &name));
        number
    }

    fn encode(&mut self, thread: u32, words: &[u64]) {
        let Some(first) = words.first() else { return };
        self.declare_new_kinds();
        let consumed = self.encoder.events(thread, words, &self.names, &mut self.encoded);
        let counted =
            |count| CountedEvents { count, first_ticks: first >> 8, last_ticks: self.points.now().max(first >> 8) };
        if consumed.words < words.len() {
            self.session.counts.lose(LossReason::NotUnderstood, 1);
            let lost = lost(LossReason::NotUnderstood, thread, counted(1));
            self.output.lose(&mut self.encoder, &lost, &mut self.notes);
        }
        if consumed.events == 0 {
            return;
        }
        let events = counted(consumed.events);
        self.batch = Some(self.batch.map_or(events, |others| others.and(events)));
    }

    fn encode_losses(&mut self) {
        let session = Arc::clone(&self.session);
        let mut encode = |reason, thread, tally: &super::loss_counter::LossCounter| {
            if let Some(counted) = tally.take() {
                session.counts.lose(reason, counted.count);
                self.output.lose(&mut self.encoder, &lost(reason, thread, counted), &mut self.notes);
            }
        };
        encode(LossReason::NoMemory, 0, &session.no_memory);
        encode(LossReason::Interrupted, 0, &session.interrupted);
        for known in &self.lanes {
            let shared = &known.lane().shared;
            let number = shared.number.get();
            encode(LossReason::Full, number, &shared.full);
            encode(LossReason::Interrupted, number, &shared.interrupted);
            encode(LossReason::TooLarge, number, &shared.too_large);
            encode(LossReason::NoMemory, number, &shared.no_memory);
        }
    }

    fn write(&mut self) -> Result<(), FlushError> {
        let batch = self.batch.take();
        if batch.is_some()
            && !self.output.is_failing()
            && let Some(point) = self.points.if_due()
        {
            self.output.point(&mut self.encoder, point, &mut self.notes);
        }
        let now = self.points.now();
        self.output.write(&mut self.encoder, (&mut self.encoded, &mut self.notes), batch, now)
    }

    fn forget_ended_lanes(&mut self) {
        self.lanes.retain(|known| {
            if known.has_ended && !self.output.is_failing() {
                self.output.end_thread(known.lane().shared.number.get());
                // SAFETY: its thread has ended, and all its events are encoded.
                unsafe { Lane::release(known.lane) };
                return false;
            }
            true
        });
    }
}

/// Defines a thread in the output, and in the list for callers of the recorder.
fn define_thread(
    (output, encoder): (&mut RecordingOutput, &mut Encoder),
    session: &RecordingSession,
    (number, tid, name): (u32, u32, &str),
) {
    output.thread(encoder, (number, tid, name));
    session.known_threads.set(number, tid, name);
}
