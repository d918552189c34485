//! A trace that runs: what all of its threads share. Guarded by the GIL.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use stackweave_core::{
    BlobId, Call, CodeId, FrameSource, FunctionNames, Part, Pattern, RawFrame, RawFrameKind, SourceLocation,
};
use stackweave_cpython::calls::{CallFrame, known_code, native_definition};
use stackweave_cpython::{CodePointer, PythonSource};
use stackweave_recording::Recorder;
use stackweave_store::{AddressMap, label};

use crate::blocks::{self, Block};
use crate::codes::{Codes, Described, State, Timing};
use crate::describer::{DescribedCall, Describer};
use crate::engine::{Engine, Library};
use crate::entry::call_of_label;
use crate::kinds::{HotKinds, Kinds, Live};
use crate::options::DescribedFunctions;
use crate::rules::{Rules, count};
use crate::sink::{Sink, What};
use crate::thread::Pen;

/// `CO_GENERATOR`, `CO_ASYNC_GENERATOR`.
const GENERATOR_FLAGS: u32 = 0x20 | 0x200;
/// `CO_COROUTINE`, `CO_ITERABLE_COROUTINE`.
const COROUTINE_FLAGS: u32 = 0x80 | 0x100;

/// When functions are demoted, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DemotionTicks {
    pub(crate) calls: u32,
    pub(crate) ticks: u64,
}

/// What all threads of a trace share.
#[repr(C)]
pub(crate) struct Session {
    pub(crate) codes: Codes,
    pub(crate) recorder: Recorder,
    pub(crate) hot_kinds: HotKinds,
    pub(crate) kinds: Kinds,
    pub(crate) rules: Rules,
    pub(crate) source: &'static PythonSource,
    pub(crate) include: Vec<Pattern>,
    pub(crate) exclude: Vec<Pattern>,
    pub(crate) own: Vec<Pattern>,
    pub(crate) described: Vec<DescribedFunctions>,
    pub(crate) describer: Box<dyn Describer>,
    pub(crate) demotion: Option<DemotionTicks>,
    pub(crate) tasks: bool,
    /// When it began, or went on.
    pub(crate) since: Cell<u64>,
    /// Whether frames around the start are shown.
    pub(crate) shows_outer: bool,
    pub(crate) is_paused: Cell<bool>,
    pub(crate) left_out: Cell<u64>,
    /// Of threads that have ended: the calls that were recorded.
    pub(crate) ended_calls: Cell<u64>,
    /// The same of native functions.
    pub(crate) ended_native_calls: Cell<u64>,
    /// How many threads have ended that had any.
    pub(crate) ended_threads: Cell<u64>,
    pub(crate) demoted: RefCell<Vec<(u32, Timing)>>,
    /// The labels of native functions, by the addresses of their `PyMethodDef`s.
    pub(crate) natives: AddressMap,
}

/// The trace that runs or is paused, or null.
static SESSION: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());

/// The trace that runs or is paused.
///
/// # Safety
/// The GIL is held, and kept as long as this is used.
#[inline(always)]
pub(crate) unsafe fn current() -> Option<&'static Session> {
    // SAFETY: null, or a session that is freed by who holds the GIL.
    unsafe { SESSION.load(Ordering::Relaxed).as_ref() }
}

/// Begins a session. False if there is one.
pub(crate) fn begin(session: Box<Session>) -> bool {
    let session = Box::into_raw(session);
    let begun = SESSION.compare_exchange(ptr::null_mut(), session, Ordering::AcqRel, Ordering::Acquire).is_ok();
    if !begun {
        // SAFETY: boxed just now, and nobody knows of it.
        drop(unsafe { Box::from_raw(session) });
    }
    begun
}

/// Ends the session that runs.
///
/// # Safety
/// The GIL is held; no thread is in the middle of an event.
pub(crate) unsafe fn end() {
    let session = SESSION.swap(ptr::null_mut(), Ordering::AcqRel);
    if !session.is_null() {
        // SAFETY: boxed by `begin`, and taken out by the swap.
        drop(unsafe { Box::from_raw(session) });
    }
}

impl Session {
    pub(crate) fn live(&self) -> Live<'_> {
        Live { recorder: &self.recorder, kinds: &self.kinds }
    }

    /// Does something on a thread that is traced.
    pub(crate) fn on<R>(&self, block: &Block, work: impl FnOnce(&Engine<'_, Live<'_>, Self>) -> R) -> R {
        let live = self.live();
        let engine = Engine {
            thread: &block.thread,
            pen: Pen { sink: &live, rules: &self.rules },
            codes: &self.codes,
            library: self,
            way: &block.way,
            since: self.since.get(),
            shows_outer: self.shows_outer,
        };
        work(&engine)
    }

    /// Runs what may run Python code, of which nothing is told.
    fn quietly<R>(&self, work: impl FnOnce(&dyn Describer) -> R) -> R {
        let Some(block) = blocks::of_this_thread().filter(|block| !block.thread.shadow.is_asleep()) else {
            return work(&*self.describer);
        };
        // Other threads may run meanwhile.
        let was_waiting = block.is_waiting.swap(true, Ordering::Relaxed);
        block.thread.shadow.sleep();
        let answer = work(&*self.describer);
        block.thread.shadow.wake();
        block.is_waiting.store(was_waiting, Ordering::Relaxed);
        answer
    }

    /// Asks the interpreter something that it takes memory for, of which nobody is told.
    fn unseen<R>(&self, ask: impl Fn() -> Option<R>) -> Option<R> {
        let mut answer = None;
        self.describer.unseen(&mut || answer = ask());
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

    /// A bit for each pattern of described functions that stands for this one, and whether native stacks are wanted.
    fn descriptions_of(&self, names: FunctionNames<'_>, is_qualified: bool) -> (u64, bool) {
        let full = names.module.map(|module| format!("{module}.{}", names.function));
        let (mut matched, mut native) = (0, false);
        for (place, described) in self.described.iter().enumerate() {
            let text = match described.pattern.part {
                Part::Function => Some(names.function),
                Part::Module => names.module,
                Part::File => names.file,
                Part::Any => full.as_deref(),
            };
            let is_it = text.is_some_and(|text| described.pattern.is_whole(text))
                || (!is_qualified && may_stand_for(&described.pattern, names));
            matched |= u64::from(is_it) << (place % 64);
            native |= is_it && described.native;
        }
        (matched, native)
    }

    /// The name that stands for a native function; `None` without memory.
    ///
    /// # Safety
    /// It is alive, and a `PyCFunctionObject` or a `PyMethodDescrObject`.
    pub(crate) unsafe fn native(&self, callable: u64) -> Option<Call> {
        // SAFETY: the caller's promise.
        let definition = unsafe { native_definition(callable) };
        if let Some(known) = self.natives.get(definition) {
            return BlobId::new(known).and_then(Call::to_label);
        }
        // SAFETY: the caller's promise.
        let name = self.unseen(|| unsafe { self.source.native_name(callable) })?;
        let frame = label(&name, "", 0)?;
        if let RawFrameKind::Label(id) = frame.kind() {
            self.natives.insert(definition, id.get());
        }
        call_of_label(frame)
    }

    /// Names the task that a coroutine is the outermost of.
    pub(crate) fn name_task(&self, object: u64) {
        let Some(name) = self.quietly(|describer| describer.task_name()) else { return };
        if let Some(frame) = label(&name, "", 0) {
            let live = self.live();
            live.record(live.now(), What::Name, &[frame.to_bits(), object]);
        }
    }

    /// Names the thread, if it has a name by now.
    pub(crate) fn name_thread(&self) -> bool {
        let Some(name) = self.quietly(|describer| describer.thread_name()) else { return false };
        self.recorder.name_thread(&name);
        true
    }
}

/// Whether a pattern for a qualified name may stand for a function of which only the last name is known: on 3.10.
fn may_stand_for(pattern: &Pattern, names: FunctionNames<'_>) -> bool {
    let (around, last) = pattern.text.rsplit_once('.').unwrap_or(("", &pattern.text));
    let is_there = match pattern.part {
        Part::Function => true,
        Part::Any => names.module.is_some_and(|module| around.starts_with(module)),
        Part::Module | Part::File => false,
    };
    is_there && last == names.function
}

impl Library for Session {
    fn number(&self, code: u64) -> Option<u32> {
        if let Some(known) = known_code(code) {
            return Some(known.get());
        }
        // SAFETY: a frame keeps its code object alive, and events come with the GIL held.
        self.unseen(|| unsafe { self.source.code_id(CodePointer::new(code)) }).map(CodeId::get)
    }

    #[cold]
    fn decide<F: CallFrame>(&self, number: u32, frame: F) -> State {
        // SAFETY: the frame keeps its code object alive.
        let flags = unsafe { self.source.code_flags(frame.code()) };
        let plain = match flags {
            flags if flags & COROUTINE_FLAGS != 0 => State::Coroutine,
            flags if flags & GENERATOR_FLAGS != 0 => State::Generator,
            _ => State::Plain,
        };
        if !self.needs_names() {
            return self.codes.set_state(number, plain);
        }
        // SAFETY: the GIL is held, and the frame is told of or on the stack.
        let module = self.unseen(|| unsafe { self.source.module_name(frame.address()) });
        let location = self.location(number);
        let function = location.as_ref().map_or("", |location| location.qualname.as_deref().unwrap_or(&location.name));
        let file = location.as_ref().map(|location| &*location.filename);
        let names = FunctionNames { module: module.as_deref(), file, function };
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(names));
        if any(&self.own) {
            return self.codes.set_state(number, State::LeftOut);
        }
        if any(&self.exclude) || !(self.include.is_empty() || any(&self.include)) {
            count(&self.left_out);
            return self.codes.set_state(number, State::LeftOut);
        }
        let is_qualified = location.as_ref().is_some_and(|location| location.qualname.is_some());
        match self.descriptions_of(names, is_qualified) {
            (0, _) => self.codes.set_state(number, plain),
            (matched, native) => self.codes.describe(number, Described { matched, native, otherwise: plain }),
        }
    }

    fn describe<F: CallFrame>(&self, number: u32, frame: F) -> bool {
        let Some(Described { matched, native, .. }) = self.codes.described(number) else { return false };
        let call = DescribedCall { code: frame.code(), locals: frame.locals(), matched, native };
        let Some(description) = self.quietly(|describer| describer.describe(call)) else { return false };
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
    fn judge(&self, number: u32, timing: Timing) {
        let limit = self.demotion.map_or(0, |demotion| demotion.ticks);
        if timing.ticks >= u64::from(timing.calls).saturating_mul(limit) {
            return;
        }
        let mut open = 0;
        // SAFETY: an event comes with the GIL held; counting makes no blocks.
        unsafe {
            blocks::visit(|block| {
                let shadow = &block.thread.shadow;
                let is_it = |place: &usize| shadow.at(*place).code == number && shadow.at(*place).is_frame();
                open += u32::try_from((1..=shadow.len()).filter(is_it).count()).unwrap_or(u32::MAX);
            });
        }
        self.codes.demote(number, open);
        self.demoted.borrow_mut().push((number, timing));
        if let Some(code) = CodeId::new(number) {
            let frame = RawFrame::python(code, RawFrame::MAX_INSTRUCTION, false).to_bits();
            let (calls, live) = (u64::from(timing.calls), self.live());
            live.record(live.now(), What::Demoted, &[frame, calls, timing.ticks / calls.max(1)]);
        }
    }
}
