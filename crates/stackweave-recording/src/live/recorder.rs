//! Recording, as a program does it.
//!
//! Hot file. [`Recorder::record`] and its kin neither allocate nor lock nor call the system on a thread that has recorded
//! before, but once in some thousand events, when a buffer is full; they wait only as [`WhenFull`](super::WhenFull) says, and
//! are async-signal-safe. A thread's first event maps its buffer.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fmt};

use stackweave_core::{EventKind, Names, RawFrame, StackId};
use stackweave_store::StackTable;

use super::chunk_start::{ChunkHook, HookSlot};
use super::inner::{Inner, VARIABLE};
use super::kinds::{self, FixedKind, KindNumber, Kinds};
use super::known_threads::ThreadOf;
use super::lanes;
use super::observer::{MakeObserver, Notes};
use super::options::Options;
use super::orders::Order;
use super::outcome::{FlushError, RecorderStats, StartError, Summary};
use super::session::Setting;

/// A recording that is being made. Clones are the same one; when the last is dropped, it stops.
///
/// When the process forks, the child's handle is the child's recording: it has its own file, made at its first event.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Starts recording. `stacks` holds the stacks that events refer to, `names` says what frames are.
    pub fn start(
        options: Options,
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
    ) -> Result<Self, StartError> {
        Self::start_observed(options, stacks, names, None)
    }

    /// The same, with somebody who looks at the events as they are written.
    pub fn start_observed(
        mut options: Options,
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
        observer: Option<MakeObserver>,
    ) -> Result<Self, StartError> {
        options.path = std::path::absolute(&options.path)
            .map_err(|error| StartError::File { path: options.path.clone(), error })?;
        options.run = options.run.or_else(|| Some(new_run()));
        let (kinds, chunk_hook) = (Arc::new(Kinds::new()), HookSlot::default());
        Inner::begin(Setting { options, is_beside: false, stacks, names, kinds, chunk_hook, observer }).map(Self)
    }

    /// Starts recording if the program was started by one that records, and that has asked for it
    /// ([`Options::subprocesses`]). The file lies beside that one's.
    pub fn from_environment(
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
    ) -> Result<Option<Self>, StartError> {
        Self::from_environment_observed(stacks, names, None, |_| {})
    }

    /// The same, with somebody who looks at the events, and with the options changed as this recording needs them: what it says
    /// about itself, or how it waits.
    pub fn from_environment_observed(
        stacks: &'static StackTable,
        names: Arc<dyn Names + Send + Sync>,
        observer: Option<MakeObserver>,
        change: impl FnOnce(&mut Options),
    ) -> Result<Option<Self>, StartError> {
        let options = env::var_os(VARIABLE).and_then(|text| Options::from_environment(&text));
        let Some(mut options) = options else { return Ok(None) };
        change(&mut options);
        let (kinds, chunk_hook) = (Arc::new(Kinds::new()), HookSlot::default());
        let begun = Inner::begin(Setting { options, is_beside: true, stacks, names, kinds, chunk_hook, observer })?;
        Ok(Some(Self(begun)))
    }

    /// Declares a kind of events; the same number for equal ones. `None` if it breaks the rules for fields or has two
    /// calls, or there are 255 already. A [`FieldType::Call`](stackweave_core::FieldType::Call) is two frames in the file,
    /// called `frame` and `caller`.
    pub fn register(&self, kind: EventKind) -> Option<KindNumber> {
        self.0.setting.kinds.register(kind, true)
    }

    /// The same for a kind whose events only the observer is told of: neither they nor the kind are in the file, and they are not
    /// counted. Without an observer they come to nobody.
    pub fn register_unwritten(&self, kind: EventKind) -> Option<KindNumber> {
        self.0.setting.kinds.register(kind, false)
    }

    /// Records an event, of a kind without bytes, with one word for each field. With another number of words nothing
    /// is recorded.
    #[inline]
    pub fn record(&self, kind: KindNumber, words: &[u64]) {
        debug_assert!(words.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || kind.has_bytes {
            return;
        }
        let active = self.0.active();
        // SAFETY: null, or a lane of this thread's list, which lives until the thread takes it out.
        if let Some(lane) = unsafe { lanes::last().as_ref() }
            && lane.enter(active)
        {
            lane.append(kind.number, words);
            lane.leave(active);
        } else {
            self.0.with_lane(&|lane| lane.append(kind.number, words));
        }
    }

    /// The time that [`Recorder::record`] would give to an event now.
    #[inline]
    pub fn ticks_now(&self) -> u64 {
        // SAFETY: as in `record`.
        match unsafe { lanes::last().as_ref() } {
            Some(lane) if lane.is_ready_for(self.0.active()) => lane.ticks(),
            _ => self.0.ticks(),
        }
    }

    /// Records an event as [`Recorder::record`] does, but at a time that the caller knows from [`Recorder::ticks_now`], in
    /// this process: a forked child counts from anew.
    ///
    /// The events of a thread stay in the order in which they were recorded, whatever their times. Where one is earlier
    /// than the event before it, readers of one thread get it as it is; readers of all threads in the order of time get
    /// it as early as its thread's order allows; and a span never ends before it has begun.
    #[inline]
    pub fn record_at(&self, ticks: u64, kind: KindNumber, words: &[u64]) {
        debug_assert!(words.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || kind.has_bytes {
            return;
        }
        let active = self.0.active();
        // SAFETY: as in `record`.
        if let Some(lane) = unsafe { lanes::last().as_ref() }
            && lane.enter(active)
        {
            lane.append_at(ticks, kind.number, words);
            lane.leave(active);
        } else {
            self.0.with_lane(&|lane| lane.append_at(ticks, kind.number, words));
        }
    }

    /// Records events for the thread that has this number in the kernel, and that can't do it itself: behind all that it has
    /// recorded so far, and before what it records once this has returned. A thread that has recorded nothing yet gets its place
    /// in the recording by it. Events with bytes, or with another number of words than their kind has, are left out.
    ///
    /// Allocates, and waits for the writer; not for signal handlers. If that thread is recording meanwhile, its event may
    /// come before or behind these. The memory that these take is not that of [`Options::memory`].
    pub fn record_for<W: AsRef<[u64]>>(&self, tid: u32, events: &[(u64, KindNumber, W)]) {
        let mut words = Vec::with_capacity(3 * events.len());
        for (ticks, kind, fields) in events {
            let fields = fields.as_ref();
            debug_assert!(fields.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of {kind:?}");
            if fields.len() == usize::from(kind.words) && !kind.has_bytes {
                words.push(ticks << 8 | u64::from(kind.number));
                words.extend_from_slice(fields);
            }
        }
        if !words.is_empty() {
            self.0.record_for(tid, words);
        }
    }

    /// Has `hook` called by each thread that begins a new buffer, so that it can say there what is open. Only where events
    /// may be missing: with [`WhenFull::Drop`](super::WhenFull), and once the file could not be written. A ring needs no hook: the writer
    /// knows what was open before the events that it keeps, and a dump begins with that. Forked children have the same hook.
    pub fn at_each_chunk(&self, hook: Option<ChunkHook>) {
        self.0.setting.chunk_hook.set(hook);
    }

    /// The same for a kind of which is known how many words its events have. Gives the time that the event got.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event is a few nanoseconds; a tracer's are the most of all")]
    pub fn record_fixed<const WORDS: usize>(&self, kind: FixedKind<WORDS>, words: [u64; WORDS]) -> u64 {
        let active = self.0.active();
        // SAFETY: as in `record`.
        if let Some(lane) = unsafe { lanes::last().as_ref() }
            && lane.enter(active)
        {
            let ticks = lane.ticks();
            lane.append_at(ticks, kind.0, &words);
            lane.leave(active);
            ticks
        } else {
            self.record_fixed_slowly(kind, words)
        }
    }

    #[cold]
    #[inline(never)]
    fn record_fixed_slowly<const WORDS: usize>(&self, kind: FixedKind<WORDS>, words: [u64; WORDS]) -> u64 {
        let ticks = self.ticks_now();
        self.0.with_lane(&|lane| lane.append_at(ticks, kind.0, &words));
        ticks
    }

    /// Records an event of a kind whose last field is a byte string. It must fit into a buffer: more than some 65,000
    /// bytes are counted as lost.
    pub fn record_bytes(&self, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        debug_assert!(words.len() == usize::from(kind.words) && kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || !kind.has_bytes {
            return;
        }
        self.0.with_lane(&|lane| lane.append_bytes(kind.number, words, bytes));
    }

    /// The same, at a time that the caller knows: see [`Recorder::record_at`].
    pub fn record_bytes_at(&self, ticks: u64, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        debug_assert!(words.len() == usize::from(kind.words) && kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || !kind.has_bytes {
            return;
        }
        self.0.with_lane(&|lane| lane.append_bytes_at(ticks, kind.number, words, bytes));
    }

    /// Something begins.
    #[inline]
    pub fn begin(&self, frame: RawFrame) {
        self.record(kinds::BEGIN, &[frame.to_bits()]);
    }

    /// Something begins, on this stack.
    #[inline]
    pub fn begin_at(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kinds::BEGIN_AT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Something begins, about which there is more to say, as a JSON object.
    pub fn begin_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kinds::BEGIN_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// What this thread has begun last ends.
    #[inline]
    pub fn end(&self) {
        self.record(kinds::END, &[]);
    }

    /// Something happens.
    #[inline]
    pub fn instant(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kinds::INSTANT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Something happens, about which there is more to say, as a JSON object.
    pub fn instant_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kinds::INSTANT_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// A quantity has this value from now on.
    #[inline]
    pub fn counter(&self, frame: RawFrame, value: f64) {
        self.record(kinds::COUNTER, &[frame.to_bits(), value.to_bits()]);
    }

    /// A stack was seen, and counts this much.
    #[inline]
    pub fn sample(&self, stack: Option<StackId>, weight: i64) {
        self.record(kinds::SAMPLE, &[word_of(stack), weight.cast_unsigned()]);
    }

    /// Memory is taken.
    #[inline]
    pub fn allocate(&self, address: u64, size: u64, stack: Option<StackId>) {
        self.record(kinds::ALLOCATE, &[address, size, word_of(stack)]);
    }

    /// Memory is given back.
    #[inline]
    pub fn free(&self, address: u64) {
        self.record(kinds::FREE, &[address]);
    }

    /// Asks the observer, once it was told of all that was recorded before the call, on the writer's thread. When the recording
    /// has stopped, it is asked on the calling thread, until the recorder is dropped. `None` if there is no observer, or it has
    /// failed, or the question panics; and in a forked child that has recorded nothing yet.
    ///
    /// Waits for the writer: not for signal handlers, nor for observers.
    pub fn ask<T: Send + 'static>(&self, question: impl FnOnce(&mut dyn Any) -> T + Send + 'static) -> Option<T> {
        let unasked = match self.ask_writer(|observer, _| question(observer))? {
            Asked::Answered(answer) => return Some(answer),
            Asked::Unasked(question) => question,
        };
        let session = self.0.own_session()?;
        let mut kept = session.kept_observer();
        let observer = kept.0.as_deref_mut()?;
        Some(unasked(observer.as_any(), &mut Notes::default()))
    }

    /// The same with notes, which are in the file when this returns. `None` also if the recording has stopped.
    pub fn ask_with_notes<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Any, &mut Notes) -> T + Send + 'static,
    ) -> Option<T> {
        match self.ask_writer(question)? {
            Asked::Answered(answer) => Some(answer),
            Asked::Unasked(_) => None,
        }
    }

    /// The writer's answer, or the question if the writer is gone.
    fn ask_writer<T, Q>(&self, question: Q) -> Option<Asked<T, Q>>
    where
        T: Send + 'static,
        Q: FnOnce(&mut dyn Any, &mut Notes) -> T + Send + 'static,
    {
        let session = self.0.own_session()?;
        let unasked = Arc::new(Mutex::new(Some(question)));
        let (told, answer) = channel();
        let asked = Arc::clone(&unasked);
        let take = |asked: &Mutex<Option<Q>>| asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        session.ask(Box::new(move |observer, notes| {
            if let Some(question) = take(&asked) {
                let _ = told.send(question(observer, notes));
            }
        }));
        let answer = answer.try_recv().ok();
        answer.map(Asked::Answered).or_else(|| take(&unasked).map(Asked::Unasked))
    }

    /// Names the calling thread. Without this it has the name that the system knows.
    pub fn name_thread(&self, name: &str) {
        let name = name.to_owned();
        self.0.with_lane(&|lane| lane.set_name(name.clone()));
    }

    /// Names the thread that has this number in the kernel, if it has recorded anything.
    pub fn name_other_thread(&self, tid: u32, name: &str) {
        if let Some(session) = self.0.own_session() {
            session.orders.give(Order::Name(tid, name.to_owned()));
            session.doorbell.ring();
        }
    }

    /// Brings all that was recorded before the call into the file. Interpreters may be asked about frames, by the
    /// calling thread.
    pub fn flush(&self) -> Result<(), FlushError> {
        match self.0.own_session() {
            Some(session) => self.0.flush(&session),
            None => Ok(()),
        }
    }

    /// In ring mode: writes what is kept as a whole recording, to `path`, or else to the one of the options, and goes on
    /// recording. Returns the path. A file that this recording has written before is replaced once the new one is whole, and so is
    /// another one with [`Options::overwrite`]; else that stays, and the name gets a number.
    pub fn dump(&self, path: Option<&Path>) -> Result<PathBuf, FlushError> {
        let session = self.0.own_session().ok_or(FlushError::Stopped)?;
        if self.0.setting.options.ring.is_none() {
            return Err(FlushError::NoRing);
        }
        self.0.flush(&session)?;
        let (reply, answer) = channel();
        session.orders.give(Order::Dump(path.map(Path::to_owned), reply));
        session.doorbell.ring();
        answer.recv().unwrap_or(Err(FlushError::Stopped))
    }

    /// Gives the file its name, where that was left for later ([`Options::named_later`]); else it changes nothing. An older file is
    /// replaced now, if that is allowed. After an error the recording goes on, without a name.
    pub fn publish(&self) -> Result<(), StartError> {
        let Some(session) = self.0.own_session() else { return Ok(()) };
        let (reply, answer) = channel();
        session.orders.give(Order::Publish(reply));
        session.doorbell.ring();
        let path = &self.0.setting.options.path;
        answer.recv().unwrap_or(Ok(())).map_err(|error| StartError::File { path: path.clone(), error })
    }

    /// Ends the recording, and removes the files that it has created, if they still have their names. Nothing else is removed.
    pub fn discard(&self) -> Summary {
        // Before the file is closed: until then no other file can get its inode number.
        self.discard_files();
        let summary = self.0.stop();
        self.discard_files();
        summary
    }

    /// Removes the files that it has created so far, if they still have their names. The recording goes on.
    pub fn discard_files(&self) {
        if let Some(session) = self.0.own_session() {
            session.written.discard();
        }
    }

    /// Why this process records nothing, although it should: a forked child could not begin. `None` if it records.
    pub fn failure(&self) -> Option<String> {
        self.0.failure()
    }

    /// How many processes that were forked from this one, or from its children, could not begin to record.
    pub fn unrecorded_children(&self) -> u64 {
        self.0.unrecorded.get()
    }

    /// Records nothing until [`Recorder::resume`].
    pub fn pause(&self) {
        self.0.pause();
    }

    /// Records again.
    pub fn resume(&self) {
        self.0.resume();
    }

    /// Writes all that was recorded, and ends the file. From then on nothing is recorded. A second time it only
    /// says the same again.
    pub fn stop(&self) -> Summary {
        self.0.stop()
    }

    /// Has a line written to standard error if SIGTERM or SIGHUP ends this process, which calls the recording by this name.
    pub fn announce_as(&self, name: &str) {
        if let Some(session) = self.0.own_session() {
            session.announce_as(name.to_owned());
        }
    }

    /// The threads that have recorded and that the writer knows of, also those that have ended: all that the observer was told of.
    /// The thread of an observer's notes is among them, once there are any.
    pub fn threads(&self) -> Vec<ThreadOf> {
        let known = self.0.own_session().map(|session| session.known_threads.all());
        known.map(|known| known.to_vec()).unwrap_or_default()
    }

    /// How it is going.
    pub fn stats(&self) -> RecorderStats {
        let own = self.0.own_session().map(|session| session.stats());
        own.unwrap_or_else(|| RecorderStats { error: self.0.failure(), ..RecorderStats::default() })
    }

    /// The file. In a forked child without events it is the one that it will not have: the parent's.
    pub fn path(&self) -> PathBuf {
        let session = self.0.last_session();
        let path = session.path.get().unwrap_or(&self.0.setting.options.path);
        session.written.path(path).unwrap_or_else(|| path.clone())
    }
}

/// Returns a number that no other run has.
fn new_run() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    // A forked child has the random keys of its parent.
    hasher.write_u32(std::process::id());
    hasher.write_u128(std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos());
    // The largest one stands for none.
    hasher.finish() >> 1
}

enum Asked<T, Q> {
    Answered(T),
    Unasked(Q),
}

fn word_of(stack: Option<StackId>) -> u64 {
    stack.map_or(0, |stack| stack.get().into())
}
