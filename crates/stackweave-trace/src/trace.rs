//! The trace, from its start to its end.

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::time::Duration;

use stackweave_cpython::PythonSource;
use stackweave_cpython::calls::{HookOptions, Hooks, Mechanism};
use stackweave_recording::Recorder;
use stackweave_recording::clock::Clock;
use stackweave_store::AddressMap;

use crate::chunk_start;
use crate::code_states::CodeStates;
use crate::error::TraceError;
use crate::kinds::{HotTraceKinds, TraceKinds};
use crate::limits::{CountedLimits, TraceLimits};
use crate::observer::{self, TraceObserver};
use crate::options::TraceOptions;
use crate::session::{self, DemotionTicks, TraceSession};
use crate::stats::{TraceStats, write_notes};
use crate::traced_threads;

pub(crate) const NANOSECONDS: u64 = 1_000_000_000;

/// A trace that is running or paused. A process has one at a time.
#[derive(Debug)]
pub struct Trace {
    hooks: Option<Hooks>,
    options: HookOptions,
    mode: u8,
    pub(crate) ticks_per_second: u64,
    pub(crate) mechanism: Mechanism,
    pub(crate) fallback_reason: Option<String>,
    pub(crate) stepped_aside: u64,
    pub(crate) unrecorded_threads: u64,
    pub(crate) taken_out: u64,
    pub(crate) other_interpreters: u64,
    /// Whether it was stopped: another may be running now.
    is_over: bool,
}

// SAFETY: its references to the interpreter are only used with the GIL held, as its functions require.
unsafe impl Send for Trace {}
// SAFETY: as above.
unsafe impl Sync for Trace {}

impl Trace {
    /// Starts to trace all threads into this recording.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub unsafe fn start(
        recorder: Recorder,
        source: &'static PythonSource,
        options: TraceOptions,
    ) -> Result<Self, TraceError> {
        // SAFETY: passed on to the caller.
        if unsafe { session::current() }.is_some() {
            return Err(TraceError::AlreadyTracing);
        }
        let ticks_per_second = Clock::start().0.ticks_per_second();
        let mode = mode_of(&options);
        let hook_options = HookOptions { mechanism: options.mechanism, c_calls: options.c_calls };
        let session = session_of(recorder, source, options, ticks_per_second)?;
        // SAFETY: passed on to the caller; no thread is in the middle of an event, because nothing was traced.
        unsafe {
            traced_threads::remove_ended(|_| {});
            traced_threads::visit(|thread| {
                thread.stack.forget();
                thread.calls.set(0);
            });
        }
        session.recorder.set_chunk_hook(Some(chunk_start::write));
        if !session::begin(session) {
            return Err(TraceError::AlreadyTracing);
        }
        let mut trace = Self {
            hooks: None,
            options: hook_options,
            mode,
            ticks_per_second,
            mechanism: Mechanism::Monitoring,
            fallback_reason: None,
            stepped_aside: 0,
            unrecorded_threads: 0,
            taken_out: 0,
            other_interpreters: 0,
            is_over: false,
        };
        // SAFETY: passed on to the caller.
        if let Err(error) = unsafe { trace.install(source) } {
            // SAFETY: there was no event yet.
            unsafe { session::end() };
            return Err(error);
        }
        Ok(trace)
    }

    /// # Safety
    /// The GIL is held, and no exception is set.
    unsafe fn install(&mut self, source: &PythonSource) -> Result<(), TraceError> {
        // SAFETY: passed on to the caller.
        let hooks = unsafe {
            match self.mode {
                observer::PLAIN => Hooks::install::<TraceObserver<{ observer::PLAIN }>>(source, self.options)?,
                observer::TIMED => Hooks::install::<TraceObserver<{ observer::TIMED }>>(source, self.options)?,
                _ => Hooks::install::<TraceObserver<{ observer::LIMITED }>>(source, self.options)?,
            }
        };
        self.mechanism = hooks.mechanism();
        self.fallback_reason = hooks.fallback_reason().map(ToString::to_string);
        self.hooks = Some(hooks);
        Ok(())
    }

    /// Returns whether a thread has released the GIL in the middle of an event. Then the caller may only wait, and do
    /// nothing else with the trace.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn is_busy() -> bool {
        let own = traced_threads::current().map_or(0, |thread| thread.tid.get());
        let mut is_busy = false;
        // SAFETY: passed on to the caller.
        unsafe {
            traced_threads::visit(|thread| {
                let is_gone = thread.ended_at().is_some();
                is_busy |= !is_gone && thread.tid.get() != own && thread.is_waiting.load(Ordering::Relaxed);
            });
        }
        is_busy
    }

    /// Stops recording until [`Trace::resume`]. Open calls end.
    ///
    /// # Safety
    /// The GIL is held, and [`Trace::is_busy`] is false.
    pub unsafe fn pause(&mut self) -> Result<(), TraceError> {
        refuse_in_describer()?;
        // SAFETY: passed on to the caller.
        let Some(session) = (unsafe { self.session() }).filter(|session| !session.is_paused.get()) else {
            return Ok(());
        };
        // SAFETY: passed on to the caller.
        unsafe {
            self.remove();
            session.end_all_threads(false);
        }
        session.is_paused.set(true);
        Ok(())
    }

    /// Continues after a pause.
    ///
    /// # Safety
    /// As for [`Trace::start`].
    pub unsafe fn resume(&mut self) -> Result<(), TraceError> {
        refuse_in_describer()?;
        // SAFETY: passed on to the caller.
        let Some(session) = (unsafe { self.session() }).filter(|session| session.is_paused.get()) else {
            return Ok(());
        };
        session.since.set(session.recorder.ticks_now());
        session.is_paused.set(false);
        // SAFETY: passed on to the caller.
        let installed = unsafe { self.install(session.source) };
        session.is_paused.set(installed.is_err());
        installed
    }

    /// Returns what it shares with its threads, unless it was stopped.
    ///
    /// # Safety
    /// The GIL is held, and kept as long as the result is used.
    unsafe fn session(&self) -> Option<&'static TraceSession> {
        // SAFETY: passed on to the caller.
        if self.is_over { None } else { unsafe { session::current() } }
    }

    /// # Safety
    /// The GIL is held.
    unsafe fn remove(&mut self) {
        if let Some(mut hooks) = self.hooks.take() {
            self.stepped_aside += hooks.stepped_aside();
            // SAFETY: passed on to the caller.
            unsafe {
                self.unrecorded_threads = self.unrecorded_threads.max(hooks.unrecorded_threads());
                self.taken_out += u64::from(hooks.is_replaced());
                self.other_interpreters = self.other_interpreters.max(hooks.other_interpreters());
                hooks.remove();
            }
        }
    }

    /// Ends the trace, and the open calls of all threads. The recording continues.
    ///
    /// # Safety
    /// The GIL is held, and [`Trace::is_busy`] is false.
    pub unsafe fn stop(&mut self) -> Result<TraceStats, TraceError> {
        refuse_in_describer()?;
        // SAFETY: passed on to the caller.
        let stats = unsafe {
            self.remove();
            let Some(session) = self.session() else { return Ok(self.stats(None)) };
            if !session.is_paused.get() {
                session.end_all_threads(true);
            }
            let stats = self.stats(Some(session));
            write_notes(session, &stats);
            session.recorder.set_chunk_hook(None);
            traced_threads::visit(|thread| {
                thread.stack.forget();
                thread.set_recorder(None);
            });
            stats
        };
        // SAFETY: no thread is in the middle of an event: none has released the GIL, and this one is here.
        unsafe { session::end() };
        self.is_over = true;
        Ok(stats)
    }

    /// Begins the recording of a forked child with the calls that are open.
    ///
    /// # Safety
    /// The GIL is held.
    pub unsafe fn forked(&mut self) {
        // SAFETY: passed on to the caller.
        unsafe {
            traced_threads::forget_other_threads();
            if let Some(session) = self.session() {
                session.begin_again();
            }
        }
    }
}

/// Marks that the calling thread is about to release the GIL in the middle of an event, or has it again: for code that
/// waits for a recorder on its behalf. Returns the previous mark.
pub fn mark_waiting(is_waiting: bool) -> bool {
    traced_threads::current().is_some_and(|thread| thread.is_waiting.swap(is_waiting, Ordering::Relaxed))
}

fn refuse_in_describer() -> Result<(), TraceError> {
    match traced_threads::current() {
        Some(thread) if thread.stack.shadow.is_suspended() => Err(TraceError::InDescriber),
        _ => Ok(()),
    }
}

/// Returns the mode of the observer.
fn mode_of(options: &TraceOptions) -> u8 {
    if !options.min_duration.is_zero() || options.max_depth.is_some() || options.max_events.is_some() {
        observer::LIMITED
    } else if options.demotion.is_some() {
        observer::TIMED
    } else {
        observer::PLAIN
    }
}

fn ticks_of(duration: Duration, ticks_per_second: u64) -> u64 {
    u64::try_from(duration.as_nanos() * u128::from(ticks_per_second) / u128::from(NANOSECONDS)).unwrap_or(u64::MAX)
}

fn session_of(
    recorder: Recorder,
    source: &'static PythonSource,
    options: TraceOptions,
    ticks_per_second: u64,
) -> Result<Box<TraceSession>, TraceError> {
    let kinds = TraceKinds::register(&recorder).ok_or(TraceError::NoKinds)?;
    let hot_kinds = HotTraceKinds::of(&kinds).ok_or(TraceError::NoKinds)?;
    let limits = TraceLimits {
        min_duration: ticks_of(options.min_duration, ticks_per_second),
        max_depth: options.max_depth.unwrap_or(usize::MAX),
        max_events: options.max_events.unwrap_or(u64::MAX),
    };
    let demotion = options.demotion.map(|demotion| DemotionTicks {
        calls: demotion.calls.max(1),
        ticks: ticks_of(demotion.mean, ticks_per_second),
    });
    Ok(Box::new(TraceSession {
        codes: CodeStates::new(),
        hot_kinds,
        kinds,
        rules: CountedLimits::new(limits),
        source,
        include: options.include,
        exclude: options.exclude,
        own: options.own,
        described: options.described,
        describer: options.describer,
        demotion,
        tasks: options.tasks,
        since: Cell::new(recorder.ticks_now()),
        shows_outer: options.outer,
        is_paused: Cell::new(false),
        left_out: Cell::new(0),
        ended_calls: Cell::new(0),
        ended_native_calls: Cell::new(0),
        ended_threads: Cell::new(0),
        demoted: RefCell::default(),
        natives: AddressMap::new(),
        recorder,
    }))
}
