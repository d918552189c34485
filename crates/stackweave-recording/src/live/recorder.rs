//! The recorder that programs use.
//!
//! Hot file. [`Recorder::record`] and its variants neither allocate nor lock nor make system calls on a warm thread, except once in
//! some thousand events, when a buffer is full; they wait only as [`WhenFull`](super::WhenFull) defines, and are async-signal-safe.
//! A thread's first event maps its buffer.

use std::any::Any;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fmt};

use stackweave_core::{EventKind, FrameNames, RawFrame, StackId};
use stackweave_store::StackTable;

use super::chunk_start::{ChunkHook, ChunkHookSlot};
use super::error::{FlushError, StartError};
use super::kind_registry::{self, FixedKind, KindNumber, KindRegistry};
use super::known_threads::ThreadInfo;
use super::lanes;
use super::observer::{MakeObserver, Notes};
use super::options::RecorderOptions;
use super::requests::WriterRequest;
use super::session::RecorderConfig;
use super::shared_recorder::{RECORDING_VARIABLE, SharedRecorder};
use super::stats::{RecorderStats, Summary};

/// A running recording. Clones refer to the same one; it stops when the last is dropped.
///
/// After a fork, the child's handle refers to the child's recording, whose file is created at its first event.
#[derive(Clone)]
pub struct Recorder(Arc<SharedRecorder>);

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Starts recording. `stacks` contains the stacks that events refer to; `names` resolves frames.
    pub fn start(
        options: RecorderOptions,
        stacks: &'static StackTable,
        names: Arc<dyn FrameNames + Send + Sync>,
    ) -> Result<Self, StartError> {
        Self::start_observed(options, stacks, names, None)
    }

    /// Does the same with an observer, which receives the events on the writer's thread.
    pub fn start_observed(
        mut options: RecorderOptions,
        stacks: &'static StackTable,
        names: Arc<dyn FrameNames + Send + Sync>,
        observer: Option<MakeObserver>,
    ) -> Result<Self, StartError> {
        options.path = std::path::absolute(&options.path)
            .map_err(|error| StartError::File { path: options.path.clone(), error })?;
        options.run = options.run.or_else(|| Some(new_run()));
        let (kinds, chunk_hook) = (Arc::new(KindRegistry::new()), ChunkHookSlot::default());
        SharedRecorder::begin(RecorderConfig { options, is_beside: false, stacks, names, kinds, chunk_hook, observer })
            .map(Self)
    }

    /// Starts recording if a recording program started this one with [`RecorderOptions::subprocesses`]. The file is beside that
    /// program's.
    pub fn from_environment(
        stacks: &'static StackTable,
        names: Arc<dyn FrameNames + Send + Sync>,
    ) -> Result<Option<Self>, StartError> {
        Self::from_environment_observed(stacks, names, None, |_| {})
    }

    /// Does the same with an observer, and with changed options, such as header values or how threads wait.
    pub fn from_environment_observed(
        stacks: &'static StackTable,
        names: Arc<dyn FrameNames + Send + Sync>,
        observer: Option<MakeObserver>,
        change: impl FnOnce(&mut RecorderOptions),
    ) -> Result<Option<Self>, StartError> {
        let options = env::var_os(RECORDING_VARIABLE).and_then(|text| RecorderOptions::from_environment(&text));
        let Some(mut options) = options else { return Ok(None) };
        change(&mut options);
        let (kinds, chunk_hook) = (Arc::new(KindRegistry::new()), ChunkHookSlot::default());
        let begun = SharedRecorder::begin(RecorderConfig {
            options,
            is_beside: true,
            stacks,
            names,
            kinds,
            chunk_hook,
            observer,
        })?;
        Ok(Some(Self(begun)))
    }

    /// Registers a kind of events; equal kinds have the same number. Returns `None` if it breaks the rules for fields or has two
    /// calls, or if 255 kinds are registered. In the file, a [`FieldType::Call`](stackweave_core::FieldType::Call) becomes two
    /// frames, `frame` and `caller`.
    pub fn register(&self, kind: EventKind) -> Option<KindNumber> {
        self.0.config.kinds.register(kind, true)
    }

    /// Registers a kind whose events only the observer receives: neither they nor the kind are in the file, and they are not
    /// counted. Without an observer they have no effect.
    pub fn register_observer_only(&self, kind: EventKind) -> Option<KindNumber> {
        self.0.config.kinds.register(kind, false)
    }

    /// Records an event of a kind without bytes, with one word for each field. Nothing is recorded if the number of words is
    /// wrong.
    #[inline]
    pub fn record(&self, kind: KindNumber, words: &[u64]) {
        debug_assert!(words.len() == usize::from(kind.words) && !kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || kind.has_bytes {
            return;
        }
        let active = self.0.active();
        // SAFETY: null, or a lane in this thread's list, which lives until the thread removes it.
        if let Some(lane) = unsafe { lanes::last().as_ref() }
            && lane.enter(active)
        {
            lane.append(kind.number, words);
            lane.leave(active);
        } else {
            self.0.with_lane(&|lane| lane.append(kind.number, words));
        }
    }

    /// Returns the time that [`Recorder::record`] would give to an event now.
    #[inline]
    pub fn ticks_now(&self) -> u64 {
        // SAFETY: as in `record`.
        match unsafe { lanes::last().as_ref() } {
            Some(lane) if lane.is_ready_for(self.0.active()) => lane.ticks(),
            _ => self.0.ticks(),
        }
    }

    /// Records an event as [`Recorder::record`] does, but at a time from an earlier [`Recorder::ticks_now`] of this process: a forked
    /// child has another base.
    ///
    /// The events of a thread keep the order in which they were recorded, whatever their times. If one is earlier than its
    /// predecessor, readers of a single thread get it unchanged; readers of all threads in time order get it as early as the
    /// order of its thread allows; and a span never ends before its start.
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

    /// Records events for another thread, by thread id, which can't record them itself: after everything that it has recorded so
    /// far, and before what it records after this call. A thread that has recorded nothing yet is added to the recording. Events
    /// with bytes, or with a wrong number of words, are ignored.
    ///
    /// Allocates, and waits for the writer, so it must not be called by signal handlers. If that thread records meanwhile, the
    /// order of its event and these is undefined. The memory of these events is not limited by [`RecorderOptions::memory`].
    pub fn record_for_thread<W: AsRef<[u64]>>(&self, tid: u32, events: &[(u64, KindNumber, W)]) {
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
            self.0.record_for_thread(tid, words);
        }
    }

    /// Sets a function that each thread calls when it begins a new buffer, so that it can record its open spans there. It is called
    /// only if events may be missing: with [`WhenFull::Drop`](super::WhenFull), and after a failed write. A ring needs no hook: the
    /// writer knows what was open before the kept events, and begins a dump with that. Forked children have the same hook.
    pub fn set_chunk_hook(&self, hook: Option<ChunkHook>) {
        self.0.config.chunk_hook.set(hook);
    }

    /// Records an event of a kind with a fixed number of words. Returns the time of the event.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "an event costs a few nanoseconds, and most events are a tracer's")]
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

    /// Records an event of a kind whose last field is a byte string. It must fit into a buffer: one of more than about 65,000
    /// bytes is counted as lost.
    pub fn record_bytes(&self, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        debug_assert!(words.len() == usize::from(kind.words) && kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || !kind.has_bytes {
            return;
        }
        self.0.with_lane(&|lane| lane.append_bytes(kind.number, words, bytes));
    }

    /// Does the same at a given time: see [`Recorder::record_at`].
    pub fn record_bytes_at(&self, ticks: u64, kind: KindNumber, words: &[u64], bytes: &[u8]) {
        debug_assert!(words.len() == usize::from(kind.words) && kind.has_bytes, "not the fields of kind {kind:?}");
        if words.len() != usize::from(kind.words) || !kind.has_bytes {
            return;
        }
        self.0.with_lane(&|lane| lane.append_bytes_at(ticks, kind.number, words, bytes));
    }

    /// Records the start of a span.
    #[inline]
    pub fn begin(&self, frame: RawFrame) {
        self.record(kind_registry::BEGIN, &[frame.to_bits()]);
    }

    /// Records the start of a span, with a stack.
    #[inline]
    pub fn begin_at(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kind_registry::BEGIN_AT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Records the start of a span, with details as a JSON object.
    pub fn begin_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kind_registry::BEGIN_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// Records the end of this thread's innermost span.
    #[inline]
    pub fn end(&self) {
        self.record(kind_registry::END, &[]);
    }

    /// Records an instant.
    #[inline]
    pub fn instant(&self, frame: RawFrame, stack: Option<StackId>) {
        self.record(kind_registry::INSTANT, &[frame.to_bits(), word_of(stack)]);
    }

    /// Records an instant, with details as a JSON object.
    pub fn instant_with(&self, frame: RawFrame, stack: Option<StackId>, json: &[u8]) {
        self.record_bytes(kind_registry::INSTANT_WITH, &[frame.to_bits(), word_of(stack)], json);
    }

    /// Records a value of a quantity.
    #[inline]
    pub fn counter(&self, frame: RawFrame, value: f64) {
        self.record(kind_registry::COUNTER, &[frame.to_bits(), value.to_bits()]);
    }

    /// Records a sampled stack with a weight.
    #[inline]
    pub fn sample(&self, stack: Option<StackId>, weight: i64) {
        self.record(kind_registry::SAMPLE, &[word_of(stack), weight.cast_unsigned()]);
    }

    /// Records an allocation.
    #[inline]
    pub fn allocate(&self, address: u64, size: u64, stack: Option<StackId>) {
        self.record(kind_registry::ALLOCATE, &[address, size, word_of(stack)]);
    }

    /// Records a free.
    #[inline]
    pub fn free(&self, address: u64) {
        self.record(kind_registry::FREE, &[address]);
    }

    /// Calls `query` with the observer on the writer's thread, after the observer has received everything that was recorded before
    /// this call. After the recording has stopped, `query` is called on the calling thread, until the recorder is dropped. Returns
    /// `None` if there is no observer, if it has failed, if `query` panics, and in a forked child that has recorded nothing yet.
    ///
    /// Waits for the writer, so it must not be called by signal handlers or observers.
    pub fn query_observer<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut dyn Any) -> T + Send + 'static,
    ) -> Option<T> {
        let unanswered = match self.query_by_writer(|observer, _| query(observer))? {
            QueryOutcome::Answered(answer) => return Some(answer),
            QueryOutcome::Unanswered(query) => query,
        };
        let session = self.0.own_session()?;
        let mut kept = session.kept_observer();
        let observer = kept.0.as_deref_mut()?;
        Some(unanswered(observer.as_any(), &mut Notes::default()))
    }

    /// Does the same with notes, which are in the file when this returns. Returns `None` also after the recording has stopped.
    pub fn query_observer_with_notes<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut dyn Any, &mut Notes) -> T + Send + 'static,
    ) -> Option<T> {
        match self.query_by_writer(query)? {
            QueryOutcome::Answered(answer) => Some(answer),
            QueryOutcome::Unanswered(_) => None,
        }
    }

    /// Returns the answer of the writer, or the query if the writer has ended.
    fn query_by_writer<T, Q>(&self, query: Q) -> Option<QueryOutcome<T, Q>>
    where
        T: Send + 'static,
        Q: FnOnce(&mut dyn Any, &mut Notes) -> T + Send + 'static,
    {
        let session = self.0.own_session()?;
        let unanswered = Arc::new(Mutex::new(Some(query)));
        let (sender, answer) = channel();
        let shared = Arc::clone(&unanswered);
        let take = |shared: &Mutex<Option<Q>>| shared.lock().unwrap_or_else(PoisonError::into_inner).take();
        session.query_observer(Box::new(move |observer, notes| {
            if let Some(query) = take(&shared) {
                let _ = sender.send(query(observer, notes));
            }
        }));
        let answer = answer.try_recv().ok();
        answer.map(QueryOutcome::Answered).or_else(|| take(&unanswered).map(QueryOutcome::Unanswered))
    }

    /// Sets the name of the calling thread. By default it is the system's.
    pub fn name_thread(&self, name: &str) {
        let name = name.to_owned();
        self.0.with_lane(&|lane| lane.set_name(name.clone()));
    }

    /// Sets the name of another thread, by thread id, if it has recorded anything.
    pub fn name_other_thread(&self, tid: u32, name: &str) {
        if let Some(session) = self.0.own_session() {
            session.requests.push(WriterRequest::Name(tid, name.to_owned()));
            session.doorbell.ring();
        }
    }

    /// Writes everything that was recorded before the call to the file. The calling thread may call into interpreters to resolve
    /// names of frames.
    pub fn flush(&self) -> Result<(), FlushError> {
        match self.0.own_session() {
            Some(session) => self.0.flush(&session),
            None => Ok(()),
        }
    }

    /// Writes the events of a ring as a complete recording to `path`, or to the path of the options, and continues
    /// recording. Returns the path. A file that this recording wrote before is replaced once the new one is complete, and so is any
    /// file with [`RecorderOptions::overwrite`]; other files stay, and the name gets a number.
    pub fn dump(&self, path: Option<&Path>) -> Result<PathBuf, FlushError> {
        let session = self.0.own_session().ok_or(FlushError::Stopped)?;
        if self.0.config.options.ring.is_none() {
            return Err(FlushError::NoRing);
        }
        self.0.flush(&session)?;
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::Dump(path.map(Path::to_owned), reply));
        session.doorbell.ring();
        answer.recv().unwrap_or(Err(FlushError::Stopped))
    }

    /// Gives the file its name if that was deferred ([`RecorderOptions::named_later`]); otherwise has no effect. An older file is replaced now,
    /// if that is allowed. After an error the recording continues without a name.
    pub fn publish(&self) -> Result<(), StartError> {
        let Some(session) = self.0.own_session() else { return Ok(()) };
        let (reply, answer) = channel();
        session.requests.push(WriterRequest::Publish(reply));
        session.doorbell.ring();
        let path = &self.0.config.options.path;
        answer.recv().unwrap_or(Ok(())).map_err(|error| StartError::File { path: path.clone(), error })
    }

    /// Stops the recording, and removes the files that it created, if they still have their names. Nothing else is removed.
    pub fn discard(&self) -> Summary {
        // Before the file is closed: until then no other file can get its inode number.
        self.discard_files();
        let summary = self.0.stop();
        self.discard_files();
        summary
    }

    /// Removes the files that it has created so far, if they still have their names. The recording continues.
    pub fn discard_files(&self) {
        if let Some(session) = self.0.own_session() {
            session.written.discard();
        }
    }

    /// Returns why this forked child could not begin to record. `None` if it records.
    pub fn failure(&self) -> Option<String> {
        self.0.failure()
    }

    /// Returns the number of processes, forked from this one or its children, that could not begin to record.
    pub fn unrecorded_children(&self) -> u64 {
        self.0.unrecorded_children.get()
    }

    /// Pauses recording until [`Recorder::resume`].
    pub fn pause(&self) {
        self.0.pause();
    }

    /// Resumes recording.
    pub fn resume(&self) {
        self.0.resume();
    }

    /// Writes everything that was recorded, and ends the file. Nothing is recorded afterwards. A second call returns the same
    /// summary.
    pub fn stop(&self) -> Summary {
        self.0.stop()
    }

    /// Makes the recorder write a line to standard error if SIGTERM or SIGHUP ends this process. It calls the recording `name`.
    pub fn announce_as(&self, name: &str) {
        if let Some(session) = self.0.own_session() {
            session.announce_as(name.to_owned());
        }
    }

    /// Returns the threads that have recorded, including ended ones, as far as the observer knows them. Once an observer has added
    /// notes, their thread is among them.
    pub fn threads(&self) -> Vec<ThreadInfo> {
        let known = self.0.own_session().map(|session| session.known_threads.all());
        known.map(|known| known.to_vec()).unwrap_or_default()
    }

    /// Returns the current figures of the recording.
    pub fn stats(&self) -> RecorderStats {
        let own = self.0.own_session().map(|session| session.stats());
        own.unwrap_or_else(|| RecorderStats { error: self.0.failure(), ..RecorderStats::default() })
    }

    /// Returns the path of the file. In a forked child without events it is the parent's, which the child will not use.
    pub fn path(&self) -> PathBuf {
        let session = self.0.last_session();
        let path = session.path.get().unwrap_or(&self.0.config.options.path);
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
    // The largest number is reserved for none.
    hasher.finish() >> 1
}

enum QueryOutcome<T, Q> {
    Answered(T),
    Unanswered(Q),
}

fn word_of(stack: Option<StackId>) -> u64 {
    stack.map_or(0, |stack| stack.get().into())
}
