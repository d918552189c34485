//! Takes events out of the lanes, and has them encoded and written.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use super::activity::WatchedNames;
use super::chunk::Chunk;
use super::gone_threads;
use super::kinds::{KindNumber, Kinds, Registered};
use super::lane::Lane;
use super::observing::{Observing, Question, THREAD_NAME};
use super::outcome::FlushError;
use super::output::{Output, lost};
use super::points::Points;
use super::process;
use super::ring::OpenBefore;
use super::session::{Session, Setting};
use super::tally::Counted;
use crate::file::{Answered, Encoded, Encoder, End, EndReason, LossReason, Pending, open_kind};

/// So many encoded bytes are written at once.
const BATCH: usize = 1 << 20;
/// How often the system is asked what threads are called.
const NAMES_EVERY: Duration = Duration::from_secs(1);
/// A lane whose thread goes on recording is looked at so often for a moment when all of it is taken.
const ATTEMPTS: usize = 100;

pub(super) struct Drain {
    session: Arc<Session>,
    names: WatchedNames,
    kinds: Arc<Kinds>,
    known_kinds: usize,
    encoder: Encoder,
    encoded: Encoded,
    notes: Vec<u8>,
    batch: Option<Counted>,
    lanes: Vec<KnownLane>,
    pub(super) observing: Observing,
    /// The number of the thread that the observer's notes are of, once there are any.
    notes_thread: Option<u32>,
    /// Threads without a lane, by the number that the kernel has for them: their numbers here.
    without_lane: HashMap<u32, u32>,
    points: Points,
    output: Output,
    names_asked: Instant,
}

/// A lane that the writer knows, and has a reference to.
struct KnownLane {
    lane: *mut Lane,
    name: String,
    /// Whether somebody has given that name, so that the system need not be asked.
    is_named: bool,
    has_ended: bool,
    /// Its [`Lane::sequence`] when the round began.
    wanted: u64,
}

/// What becomes of the words in chunks that are not full.
#[derive(Clone, Copy, Debug)]
enum Partial {
    /// They are written.
    Write,
    /// Only the observer is told of them.
    Tell,
}

impl KnownLane {
    fn lane(&self) -> &Lane {
        // SAFETY: the writer's reference lives until `release`.
        unsafe { &*self.lane }
    }
}

impl Drain {
    pub(super) fn new(session: &Arc<Session>, setting: &Setting, encoder: Encoder, output: Output) -> Self {
        Self {
            session: Arc::clone(session),
            names: WatchedNames { names: Arc::clone(&setting.names), session: Arc::clone(session) },
            kinds: Arc::clone(&setting.kinds),
            known_kinds: 0,
            encoder,
            encoded: Encoded::default(),
            notes: Vec::new(),
            batch: None,
            lanes: Vec::new(),
            observing: Observing::begin(session, setting),
            notes_thread: None,
            without_lane: HashMap::new(),
            points: Points::new(session.clock, session.first_point),
            output,
            names_asked: Instant::now(),
        }
    }

    /// Writes the chunks that are full. Who observes is told of all that was recorded.
    pub(super) fn full_chunks(&mut self) {
        self.meet_new_lanes();
        if self.observing.is_on() {
            self.take_round(Partial::Tell);
        } else {
            self.take_full_chunks();
        }
        // Kept for the next flush to tell.
        let _ = self.write();
    }

    /// Writes all that was recorded before the call.
    pub(super) fn all(&mut self) -> Result<(), FlushError> {
        self.meet_new_lanes();
        self.end_gone_threads();
        // Before the queue is looked at: the last chunk of a thread that has ended is in it.
        for known in &mut self.lanes {
            known.has_ended = known.lane().has_ended();
        }
        self.take_round(Partial::Write);
        self.tell_names();
        self.tell_definitions();
        if !self.output.is_failing() {
            self.tell_losses();
        }
        let result = self.write();
        self.forget_ended_lanes();
        result
    }

    /// Takes all that was recorded before the call, and settles it.
    fn take_round(&mut self, partial: Partial) {
        let began = self.points.now();
        fence(Ordering::SeqCst);
        // A thread may have begun to record since the last look, and before now.
        self.meet_new_lanes();
        for known in &mut self.lanes {
            known.wanted = known.lane().sequence();
        }
        self.take_full_chunks();
        let mut is_whole = true;
        for index in 0..self.lanes.len() {
            is_whole &= self.take_lane(index, partial);
        }
        self.learn_kinds();
        self.observing.settle(began, is_whole);
        self.encode_notes();
    }

    /// Takes what was published in a lane when the round began. Says whether that is all: a chunk may be on its way, and its
    /// thread stopped.
    fn take_lane(&mut self, index: usize, partial: Partial) -> bool {
        let KnownLane { lane, wanted, .. } = self.lanes[index];
        // SAFETY: the writer's reference.
        let lane = unsafe { &*lane };
        for _ in 0..ATTEMPTS {
            if let Some((chunk, end)) = lane.partial() {
                match partial {
                    Partial::Write => self.take_words(chunk, end),
                    Partial::Tell => self.tell_words(chunk, end),
                }
                return true;
            }
            if lane.is_taken_up_to(wanted) {
                return true;
            }
            thread::yield_now();
            self.take_full_chunks();
        }
        false
    }

    /// Ends the lanes of threads that are gone without a word.
    fn end_gone_threads(&mut self) {
        let look_at_all = self.names_asked.elapsed() >= NAMES_EVERY;
        let pid = self.session.pid();
        for known in &self.lanes {
            let shared = &known.lane().shared;
            if (look_at_all || shared.is_left()) && gone_threads::is_gone(pid, shared.tid) {
                gone_threads::end(known.lane);
            }
        }
    }

    pub(super) const fn is_ring(&self) -> bool {
        self.output.is_ring()
    }

    /// What only an interpreter can tell.
    pub(super) fn take_pending(&mut self) -> Pending {
        self.encoder.take_pending()
    }

    /// Writes what an interpreter has told.
    pub(super) fn tell(&mut self, answered: Answered) -> Result<(), FlushError> {
        self.encoder.describe(answered, &mut self.notes);
        self.write()
    }

    /// Names a thread of the system's number `tid`, if it has recorded.
    pub(super) fn name(&mut self, tid: u32, name: String) {
        if let Some(known) = self.lanes.iter_mut().rev().find(|known| known.lane().shared.tid == tid) {
            let number = known.lane().shared.number.get();
            (known.name, known.is_named) = (name, true);
            tell_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &known.name));
        } else if let Some(number) = self.without_lane.get(&tid) {
            tell_thread((&mut self.output, &mut self.encoder), &self.session, (*number, tid, &name));
        }
    }

    /// Gives the file its name, if it has none yet.
    pub(super) fn publish(&mut self, path: &Path) -> io::Result<()> {
        self.output.publish(path)
    }

    /// Writes the ring to a file. Returns which.
    pub(super) fn dump(&mut self, path: &Path, reason: EndReason) -> Result<PathBuf, FlushError> {
        if reason == EndReason::Dumped {
            self.observing.dump(self.points.now());
        }
        let last = self.observing.take_notes();
        let point = self.points.take();
        self.output.point(&mut self.encoder, point, &mut self.notes);
        self.write()?;
        let open = self.words_of_open();
        let notes = if last.is_empty() { None } else { Some(self.thread_of_notes()) };
        let (mut first, mut behind, mut count) = (Encoded::default(), Encoded::default(), 0);
        let (names, observing) = (&self.names, &mut self.observing);
        // What only this file has is not defined for the events to come.
        self.encoder.aside(|encoder| {
            for (thread, words) in &open {
                count += encoder.events(*thread, words, names, &mut first).events;
            }
            let Some(thread) = notes else { return };
            count += encoder.events(thread, &last, names, &mut behind).events;
            while observing.more() {
                count += encoder.events(thread, &observing.take_notes(), names, &mut behind).events;
            }
        });
        self.output.dump(&mut self.encoder, path, [&first, &behind], (count, self.points.residual_ns(), reason))
    }

    /// Brings what there is into the file, if the observer has asked for that.
    pub(super) fn dump_if_asked(&mut self, path: &Path) {
        if self.observing.takes_dump() {
            self.dump_now(path);
        }
    }

    /// Brings what there is into the file.
    pub(super) fn dump_now(&mut self, path: &Path) {
        // What goes wrong is kept as the recording's error.
        let _ = self.all();
        if self.is_ring() {
            let _ = self.dump(path, EndReason::Dumped);
        } else {
            self.observing.dump(self.points.now());
            self.encode_notes();
            let _ = self.write();
        }
    }

    /// Asks the observer, and writes what it notes by that.
    pub(super) fn ask(&mut self, question: Question) {
        self.learn_kinds();
        self.observing.ask(question);
        self.encode_notes();
        // Kept for the next flush to tell.
        let _ = self.write();
    }

    /// Gives the observer to who asks when the writer is gone.
    pub(super) fn keep_observer(&mut self) {
        self.session.kept_observer().0 = self.observing.take_observer();
    }

    /// Encodes what the observer has noted, as events of a thread of its own.
    pub(super) fn encode_notes(&mut self) {
        loop {
            let words = self.observing.take_notes();
            if !words.is_empty() {
                let thread = self.thread_of_notes();
                self.encode(thread, &words);
                if self.output.is_ring() || self.encoded.events.len() >= BATCH {
                    let _ = self.write();
                }
            }
            if !self.observing.more() {
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
        tell_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, THREAD_NAME));
        number
    }

    /// What threads had open before the events that the ring still has, as words of events. A thread that has done nothing
    /// since is said to be there still.
    fn words_of_open(&mut self) -> Vec<(u32, Vec<u64>)> {
        let now = self.points.now();
        let (before, began) = self.output.open_before(now);
        let [frames, calls] = [false, true].map(|is_call| self.kinds.register(open_kind(is_call), true));
        self.learn_kinds();
        let words_of = |OpenBefore { thread, open, goes_on }: OpenBefore| {
            let last = open.last().filter(|_| !goes_on).map(|last| (now.max(began), *last));
            let mut words = Vec::with_capacity(3 * open.len() + 3);
            for (ticks, (depth, what)) in open.iter().map(|open| (began, *open)).chain(last) {
                let Some(kind) = (if what.is_call { calls } else { frames }) else { continue };
                words.extend([ticks << 8 | u64::from(kind.get()), what.word, depth]);
            }
            (thread, words)
        };
        before.into_iter().map(words_of).collect()
    }

    /// Tells the encoder, and who observes, of kinds that are new.
    fn learn_kinds(&mut self) {
        for Registered { kind, is_written } in self.kinds.since(self.known_kinds) {
            let number = if *is_written { self.encoder.kind(kind) } else { self.encoder.unwritten_kind(kind) };
            debug_assert!(number.is_some(), "what is registered can be encoded");
            if let Some(number) = number.and_then(|number| KindNumber::of(number, kind)) {
                self.observing.kind(number, kind);
            }
            self.known_kinds += 1;
            self.output.declare(&mut self.encoder);
        }
    }

    /// Ends the recording, after a last [`Drain::all`].
    pub(super) fn end(&mut self, reason: EndReason) {
        self.output.retry_now();
        self.observing.end(self.points.now());
        if !self.output.is_ring() {
            self.encode_notes();
        }
        self.tell_names();
        self.tell_definitions();
        self.tell_losses();
        let point = self.points.take();
        self.output.point(&mut self.encoder, point, &mut self.notes);
        let _ = self.write();
        if self.output.is_ring() {
            self.output.count_overwritten();
            return;
        }
        let stats = self.session.stats();
        let (events, lost) = (stats.events, stats.lost.values().sum());
        self.encoder.end(&End { events, lost, residual_ns: self.points.residual_ns(), reason }, &mut self.notes);
        let _ = self.write();
    }

    /// Gives up its references, once the session is closed.
    pub(super) fn release(mut self) {
        gone_threads::end_all(self.session.pid(), self.lanes.iter().map(|known| known.lane));
        for known in self.lanes.drain(..) {
            // SAFETY: the writer's reference, used no more.
            unsafe { Lane::release(known.lane) };
        }
    }

    fn meet_new_lanes(&mut self) {
        let (lanes, without) = (&mut self.lanes, &mut self.without_lane);
        let (output, encoder) = (&mut self.output, &mut self.encoder);
        let first = lanes.len();
        self.session.take_new_lanes(|lane| {
            lanes.push(KnownLane { lane, name: String::new(), is_named: false, has_ended: false, wanted: 0 });
        });
        let (old, new) = lanes.split_at_mut(first);
        for known in new {
            let tid = known.lane().shared.tid;
            // The kernel has given its number to a new thread.
            let is_same = |old: &&KnownLane| tid != 0 && old.lane().shared.tid == tid;
            old.iter().filter(is_same).for_each(|old| gone_threads::end(old.lane));
            if let Some(number) = without.remove(&tid) {
                known.lane().shared.number.set(number);
            }
            let number = known.lane().shared.number.get();
            let given = known.lane().take_name();
            known.is_named = given.is_some();
            known.name = given.or_else(|| process::thread_name(tid)).unwrap_or_default();
            known.lane().shared.is_known.set(true);
            tell_thread((output, encoder), &self.session, (number, tid, &known.name));
        }
    }

    /// Threads may get other names, which the system is asked for now and then.
    fn tell_names(&mut self) {
        let ask = self.names_asked.elapsed() >= NAMES_EVERY;
        for known in &mut self.lanes {
            let (number, tid) = (known.lane().shared.number.get(), known.lane().shared.tid);
            let given = known.lane().take_name();
            known.is_named |= given.is_some();
            let name = given.or_else(|| (ask && !known.is_named).then(|| process::thread_name(tid)).flatten());
            if let Some(name) = name
                && name != known.name
            {
                tell_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &name));
                known.name = name;
            }
        }
        if ask {
            self.names_asked = Instant::now();
        }
    }

    /// What was declared, and no event has needed yet: names of threads, that may come late.
    fn tell_definitions(&mut self) {
        self.encoder.describe(Answered::default(), &mut self.encoded.definitions);
    }

    fn take_full_chunks(&mut self) {
        let session = Arc::clone(&self.session);
        session.full.take(|chunk| {
            // SAFETY: out of the queue, so the writer's. Its lane is known, or new: the writer has a reference either way.
            let (head, lane) = unsafe { (&*chunk, &*(*chunk).lane.get()) };
            if !lane.shared.is_known.get() {
                self.meet_new_lanes();
            }
            self.take_words(head, head.words.get());
            lane.shared.expected.set(head.sequence.get() + 1);
            session.pool.give_back(chunk);
        });
    }

    /// Encodes what is new in a chunk, up to `end` words.
    fn take_words(&mut self, chunk: &Chunk, end: usize) {
        self.tell_words(chunk, end);
        // SAFETY: the chunk's lane has published that many words; none is written twice before the chunk is given back.
        let words = unsafe { chunk.words(chunk.taken.get(), end) };
        // SAFETY: the writer has a reference to the lane of every chunk it takes.
        let thread = unsafe { &*chunk.lane.get() }.shared.number.get();
        self.encode(thread, words);
        chunk.taken.set(end);
        if self.output.is_ring() || self.encoded.events.len() >= BATCH {
            let _ = self.write();
        }
    }

    /// Tells the observer what is new in a chunk, up to `end` words.
    fn tell_words(&mut self, chunk: &Chunk, end: usize) {
        if self.observing.is_on() {
            self.learn_kinds();
            // SAFETY: as in `take_words`.
            let (words, lane) = unsafe { (chunk.words(chunk.told.get(), end), &*chunk.lane.get()) };
            self.observing.tell(lane.shared.number.get(), words);
            chunk.told.set(end);
        }
    }

    /// Takes these words for events of another thread, behind all that its lane holds.
    pub(super) fn record_for(&mut self, tid: u32, words: &[u64]) {
        let thread = self.thread_taken_whole(tid).unwrap_or_else(|| self.thread_without_lane(tid));
        self.learn_kinds();
        self.observing.tell(thread, words);
        self.encode(thread, words);
        // Kept for the next flush to tell.
        let _ = self.write();
    }

    /// The number of a thread that has a lane, all of which is taken.
    fn thread_taken_whole(&mut self, tid: u32) -> Option<u32> {
        self.meet_new_lanes();
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
            // Without a chunk it has recorded nothing, or waits for room; else a full one came into the queue just now.
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
        tell_thread((&mut self.output, &mut self.encoder), &self.session, (number, tid, &name));
        number
    }

    fn encode(&mut self, thread: u32, words: &[u64]) {
        let Some(first) = words.first() else { return };
        self.learn_kinds();
        let taken = self.encoder.events(thread, words, &self.names, &mut self.encoded);
        let counted = |count| Counted { count, first_ticks: first >> 8, last_ticks: self.points.now().max(first >> 8) };
        if taken.words < words.len() {
            self.session.counts.lose(LossReason::NotUnderstood, 1);
            let lost = lost(LossReason::NotUnderstood, thread, counted(1));
            self.output.lose(&mut self.encoder, &lost, &mut self.notes);
        }
        if taken.events == 0 {
            return;
        }
        let of = counted(taken.events);
        self.batch = Some(self.batch.map_or(of, |others| others.and(of)));
    }

    fn tell_losses(&mut self) {
        let session = Arc::clone(&self.session);
        let mut tell = |reason, thread, tally: &super::tally::Tally| {
            if let Some(counted) = tally.take() {
                session.counts.lose(reason, counted.count);
                self.output.lose(&mut self.encoder, &lost(reason, thread, counted), &mut self.notes);
            }
        };
        tell(LossReason::NoMemory, 0, &session.no_memory);
        tell(LossReason::Interrupted, 0, &session.interrupted);
        for known in &self.lanes {
            let shared = &known.lane().shared;
            let number = shared.number.get();
            tell(LossReason::Full, number, &shared.full);
            tell(LossReason::Interrupted, number, &shared.interrupted);
            tell(LossReason::TooLarge, number, &shared.too_large);
            tell(LossReason::NoMemory, number, &shared.no_memory);
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
                // SAFETY: its thread has ended, and all it recorded is taken.
                unsafe { Lane::release(known.lane) };
                return false;
            }
            true
        });
    }
}

/// Tells the file and those who ask what a thread is.
fn tell_thread(
    (output, encoder): (&mut Output, &mut Encoder),
    session: &Session,
    (number, tid, name): (u32, u32, &str),
) {
    output.thread(encoder, (number, tid, name));
    session.known_threads.tell(number, tid, name);
}
