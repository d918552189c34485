//! A running trace: what all of its threads share. Guarded by the GIL.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_core::{
    BlobId, Call, CodeId, FrameSource, FunctionNames, Pattern, PatternScope, RawFrame, RawFrameKind, SourceLocation,
};
use stackweave_cpython::calls::{CallFrame, known_code, native_definition};
use stackweave_cpython::{CodePointer, PythonSource};
use stackweave_recording::Recorder;
use stackweave_store::{AddressMap, label};

use crate::code_states::{CallTiming, CodeState, CodeStates, DescribedCode};
use crate::describer::{DescribedCall, Describer};
use crate::engine::{CallEngine, CodeLibrary};
use crate::kinds::{HotTraceKinds, LiveSink, TraceKinds};
use crate::limits::{CountedLimits, count};
use crate::options::DescribedFunctions;
use crate::shadow_entry::call_of_label;
use crate::sink::{Sink, TraceEvent};
use crate::thread_stack::EventWriter;
use crate::traced_threads::{self, TracedThread};

/// `CO_GENERATOR`, `CO_ASYNC_GENERATOR`.
const GENERATOR_FLAGS: u32 = 0x20 | 0x200;
/// `CO_COROUTINE`, `CO_ITERABLE_COROUTINE`.
const COROUTINE_FLAGS: u32 = 0x80 | 0x100;

/// The limits for demoting functions, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemotionTicks {
    pub(crate) calls: u32,
    pub(crate) ticks: u64,
}

/// The state that all threads of a trace share.
#[repr(C)]
pub(crate) struct TraceSession {
    pub(crate) codes: CodeStates,
    pub(crate) recorder: Recorder,
    pub(crate) hot_kinds: HotTraceKinds,
    pub(crate) kinds: TraceKinds,
    pub(crate) rules: CountedLimits,
    pub(crate) source: &'static PythonSource,
    pub(crate) include: Vec<Pattern>,
    pub(crate) exclude: Vec<Pattern>,
    pub(crate) own: Vec<Pattern>,
    pub(crate) described: Vec<DescribedFunctions>,
    pub(crate) describer: Box<dyn Describer>,
    pub(crate) demotion: Option<DemotionTicks>,
    pub(crate) tasks: bool,
    /// The time at which it began, or resumed.
    pub(crate) since: Cell<u64>,
    /// Whether calls that were open at the start are recorded.
    pub(crate) shows_outer: bool,
    pub(crate) is_paused: Cell<bool>,
    pub(crate) left_out: Cell<u64>,
    /// The recorded calls of threads that have ended.
    pub(crate) ended_calls: Cell<u64>,
    /// The recorded calls of native functions of these threads.
    pub(crate) ended_native_calls: Cell<u64>,
    /// The number of threads with recorded calls that have ended.
    pub(crate) ended_threads: Cell<u64>,
    pub(crate) demoted: RefCell<Vec<(u32, CallTiming)>>,
    /// The labels of native functions, by the addresses of their `PyMethodDef`s.
    pub(crate) natives: AddressMap,
}

/// The trace that is running or paused, or null.
static SESSION: AtomicPtr<TraceSession> = AtomicPtr::new(ptr::null_mut());

/// Returns the trace that is running or paused.
///
/// # Safety
/// The GIL is held, and kept as long as the result is used.
#[inline(always)]
pub(crate) unsafe fn current() -> Option<&'static TraceSession> {
    // SAFETY: null, or a session that is only freed by a thread that holds the GIL.
    unsafe { SESSION.load(Ordering::Relaxed).as_ref() }
}

/// Begins a session. Returns false if there is one already.
pub(crate) fn begin(session: Box<TraceSession>) -> bool {
    let session = Box::into_raw(session);
    let begun = SESSION.compare_exchange(ptr::null_mut(), session, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !begun {
        // SAFETY: boxed above, and no other thread has it.
        drop(unsafe { Box::from_raw(session) });
    }
    begun
}

/// Ends the current session.
///
/// # Safety
/// The GIL is held; no thread is in the middle of an event.
pub(crate) unsafe fn end() {
    let session = SESSION.swap(ptr::null_mut(), Ordering::AcqRel);
    if !session.is_null() {
        // SAFETY: boxed by `begin`, and removed by the swap.
        drop(unsafe { Box::from_raw(session) });
    }
}

impl TraceSession {
    pub(crate) fn live(&self) -> LiveSink<'_> {
        LiveSink { recorder: &self.recorder, kinds: &self.kinds }
    }

    /// Runs `work` with the engine of a traced thread.
    pub(crate) fn on<R>(
        &self,
        thread: &TracedThread,
        work: impl FnOnce(&CallEngine<'_, LiveSink<'_>, Self>) -> R,
    ) -> R {
        let live = self.live();
        let engine = CallEngine {
            stack: &thread.stack,
            writer: EventWriter { sink: &live, rules: &self.rules },
            codes: &self.codes,
            library: self,
            known_path: &thread.known_path,
            since: self.since.get(),
            shows_outer: self.shows_outer,
        };
        work(&engine)
    }

    /// Runs a query that may run Python code, which is not traced.
    fn without_tracing<R>(&self, work: impl FnOnce(&dyn Describer) -> R) -> R {
        let Some(thread) = traced_threads::current().filter(|thread| !thread.stack.shadow.is_suspended()) else {
            return work(&*self.describer);
        };
        // Other threads may run meanwhile.
        let was_waiting = thread.is_waiting.swap(true, Ordering::Relaxed);
        thread.stack.shadow.suspend();
        let answer = work(&*self.describer);
        thread.stack.shadow.resume();
        thread.is_waiting.store(was_waiting, Ordering::Relaxed);
        answer
    }

    /// Runs a query to the interpreter that may allocate, without recording that.
    fn without_memory_recording<R>(&self, query: impl Fn() -> Option<R>) -> Option<R> {
        let mut answer = None;
        self.describer.without_memory_recording(&mut || answer = query());
        answer
    }

    fn location(&self, number: u32) -> Option<SourceLocation> {
        let code = CodeId::new(number)?;
        self.source.locate(RawFrame::python(code, RawFrame::MAX_INSTRUCTION, false))
    }

    fn needs_names(&self) -> bool {
        ![&self.include, &self.exclude, &self.own].iter().all(|patterns| patterns.is_empty())
            || !self.described.is_empty()
    }

    /// Returns a bit for each pattern of described functions that matches this one, and whether native stacks are
    /// wanted.
    fn descriptions_of(&self, names: FunctionNames<'_>, is_qualified: bool) -> (u64, bool) {
        let full = names.module.map(|module| format!("{module}.{}", names.function));
        let (mut matched, mut native) = (0, false);
        for (index, described) in self.described.iter().enumerate() {
            let text = match described.pattern.part {
                PatternScope::Function => Some(names.function),
                PatternScope::Module => names.module,
                PatternScope::File => names.file,
                PatternScope::Any => full.as_deref(),
            };
            let is_match = text.is_some_and(|text| described.pattern.matches_whole(text))
                || (!is_qualified && may_match(&described.pattern, names));
            matched |= u64::from(is_match) << (index % 64);
            native |= is_match && described.native;
        }
        (matched, native)
    }

    /// Returns the call of a native function, by its name; `None` if there is no memory.
    ///
    /// # Safety
    /// `callable` is alive, and a `PyCFunctionObject` or a `PyMethodDescrObject`.
    pub(crate) unsafe fn native(&self, callable: u64) -> Option<Call> {
        // SAFETY: passed on to the caller.
        let definition = unsafe { native_definition(callable) };
        if let Some(known) = self.natives.get(definition) {
            return BlobId::new(known).and_then(Call::to_label);
        }
        // SAFETY: passed on to the caller.
        let name = self.without_memory_recording(|| unsafe { self.source.native_name(callable) })?;
        let frame = label(&name, "", 0)?;
        if let RawFrameKind::Label(id) = frame.kind() {
            self.natives.insert(definition, id.get());
        }
        call_of_label(frame)
    }

    /// Records the name of the task whose outermost coroutine this is.
    pub(crate) fn name_task(&self, object: u64) {
        let Some(name) = self.without_tracing(|describer| describer.task_name()) else { return };
        if let Some(frame) = label(&name, "", 0) {
            let live = self.live();
            live.record(live.now(), TraceEvent::Name, &[frame.to_bits(), object]);
        }
    }

    /// Records the name of the thread. Returns false if it has none yet.
    pub(crate) fn name_thread(&self) -> bool {
        let Some(name) = self.without_tracing(|describer| describer.thread_name()) else { return false };
        self.recorder.name_thread(&name);
        true
    }
}

/// Returns whether a pattern for a qualified name may match a function of which only the last name is known: on 3.10.
fn may_match(pattern: &Pattern, names: FunctionNames<'_>) -> bool {
    let (qualifier, last) = pattern.text.rsplit_once('.').unwrap_or(("", &pattern.text));
    let applies = match pattern.part {
        PatternScope::Function => true,
        PatternScope::Any => names.module.is_some_and(|module| qualifier.starts_with(module)),
        PatternScope::Module | PatternScope::File => false,
    };
    applies && last == names.function
}

impl CodeLibrary for TraceSession {
    fn number(&self, code: u64) -> Option<u32> {
        if let Some(known) = known_code(code) {
            return Some(known.get());
        }
        // SAFETY: a frame keeps its code object alive, and events come with the GIL held.
        self.without_memory_recording(|| unsafe { self.source.code_id(CodePointer::new(code)) }).map(CodeId::get)
    }

    #[cold]
    fn decide<F: CallFrame>(&self, number: u32, frame: F) -> CodeState {
        // SAFETY: the frame keeps its code object alive.
        let flags = unsafe { self.source.code_flags(frame.code()) };
        let plain = match flags {
            flags if flags & COROUTINE_FLAGS != 0 => CodeState::Coroutine,
            flags if flags & GENERATOR_FLAGS != 0 => CodeState::Generator,
            _ => CodeState::Plain,
        };
        if !self.needs_names() {
            return self.codes.set_state(number, plain);
        }
        // SAFETY: the GIL is held, and the frame is that of an event, or on the stack.
        let module = self.without_memory_recording(|| unsafe { self.source.module_name(frame.address()) });
        let location = self.location(number);
        let function = location.as_ref().map_or("", |location| location.qualname.as_deref().unwrap_or(&location.name));
        let file = location.as_ref().map(|location| &*location.filename);
        let names = FunctionNames { module: module.as_deref(), file, function };
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(names));
        if any(&self.own) {
            return self.codes.set_state(number, CodeState::Excluded);
        }
        if any(&self.exclude) || !(self.include.is_empty() || any(&self.include)) {
            count(&self.left_out);
            return self.codes.set_state(number, CodeState::Excluded);
        }
        let is_qualified = location.as_ref().is_some_and(|location| location.qualname.is_some());
        match self.descriptions_of(names, is_qualified) {
            (0, _) => self.codes.set_state(number, plain),
            (matched, native) => self.codes.describe(number, DescribedCode { matched, native, otherwise: plain }),
        }
    }

    fn describe<F: CallFrame>(&self, number: u32, frame: F) -> bool {
        let Some(DescribedCode { matched, native, .. }) = self.codes.described(number) else { return false };
        let call = DescribedCall { code: frame.code(), locals: frame.locals(), matched, native };
        let Some(description) = self.without_tracing(|describer| describer.describe(call)) else { return false };
        let own = CodeId::new(number).map(|code| RawFrame::python(code, RawFrame::MAX_INSTRUCTION, false));
        let Some(frame) = description.label.or(own) else { return false };
        self.recorder.begin_with(frame, description.stack, &description.details);
        true
    }

    #[inline(always)]
    fn judged_after(&self) -> Option<u32> {
        self.demotion.map(|demotion| demotion.calls)
    }

    #[cold]
    fn judge(&self, number: u32, timing: CallTiming) {
        let limit = self.demotion.map_or(0, |demotion| demotion.ticks);
        if timing.ticks >= u64::from(timing.calls).saturating_mul(limit) {
            return;
        }
        let mut open = 0;
        // SAFETY: an event comes with the GIL held; counting creates no threads.
        unsafe {
            traced_threads::visit(|thread| {
                let shadow = &thread.stack.shadow;
                let is_call = |index: &usize| shadow.at(*index).code == number && shadow.at(*index).is_frame();
                open += u32::try_from((1..=shadow.len()).filter(is_call).count()).unwrap_or(u32::MAX);
            });
        }
        self.codes.demote(number, open);
        self.demoted.borrow_mut().push((number, timing));
        if let Some(code) = CodeId::new(number) {
            let frame = RawFrame::python(code, RawFrame::MAX_INSTRUCTION, false).to_bits();
            let (calls, live) = (u64::from(timing.calls), self.live());
            live.record(live.now(), TraceEvent::Demoted, &[frame, calls, timing.ticks / calls.max(1)]);
        }
    }
}
