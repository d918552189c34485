//! Sets the profile function of each thread: of the existing threads, and of those that `threading` starts later.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::CallObserver;
use super::api::{HookApi, ObjectReference};
use super::callback::CallbackType;
use super::error::HookError;
use super::inspection::with_minor;
use super::live_frame::field;
use super::native_functions::{self, OBJECT_TYPE};
use super::profile_function::{ProfileFunction, prepare, profile_event};
use crate::interpreter::{Interpreter, first_of};
use crate::public_api::ObjectPointer;
use crate::threads::states_of_this_interpreter;

type SetProfile = unsafe extern "C" fn(*mut c_void, *mut c_void, ObjectPointer) -> c_int;
type SetOwnProfile = unsafe extern "C" fn(*mut c_void, ObjectPointer);

const TYPE_NAME: usize = 24;

/// The function that records; null if none does.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static SET_OWN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static NONE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
static INCREMENT: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The profile functions that are ours.
#[derive(Debug)]
pub(super) struct ProfileSlot {
    interpreter: &'static Interpreter,
    api: &'static HookApi,
    set: SetProfile,
    function: *mut c_void,
    threading: ObjectReference,
    /// The profile function with which new threads begin.
    thread_starter: ObjectReference,
    /// The one with which they began before.
    previous_starter: ObjectReference,
}

impl ProfileSlot {
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn install<O: CallObserver>(
        interpreter: &'static Interpreter,
        api: &'static HookApi,
        c_calls: bool,
    ) -> Result<Self, HookError> {
        native_functions::prepare(interpreter)?;
        let function: ProfileFunction = with_minor!(interpreter.layout.minor, MINOR => {
            if c_calls { profile_event::<O, MINOR, true> } else { profile_event::<O, MINOR, false> }
        });
        let symbols = interpreter.symbols;
        // SAFETY: passed on to the caller; the signatures are those of the headers.
        unsafe {
            check_unset(interpreter, api)?;
            prepare(interpreter, api)?;
            SET_OWN.store(first_of(symbols, &[c"PyEval_SetProfile"])?, Ordering::Relaxed);
            INCREMENT.store(first_of(symbols, &[c"Py_IncRef"])?, Ordering::Relaxed);
            NONE.store(api.none, Ordering::Relaxed);
            let threading = api.module(c"threading")?;
            let mut installed = Self {
                interpreter,
                api,
                set: first_of(symbols, &[c"_PyEval_SetProfile"])?,
                function: function as *mut c_void,
                thread_starter: CallbackType::new(interpreter, api)?.callback(begin_thread)?,
                previous_starter: threading.call(c"getprofile", &[])?,
                threading,
            };
            FUNCTION.store(installed.function, Ordering::Relaxed);
            match installed.set_everywhere() {
                Ok(()) => Ok(installed),
                Err(reason) => {
                    installed.remove();
                    Err(reason)
                }
            }
        }
    }

    /// # Safety
    /// The GIL is held, and no exception is set.
    unsafe fn set_everywhere(&self) -> Result<(), HookError> {
        // SAFETY: passed on to the caller; the states are alive as long as the GIL is held.
        unsafe {
            self.threading.call(c"setprofile", &[&self.thread_starter])?;
            for state in states_of_this_interpreter(self.interpreter) {
                if profile_of(self.interpreter, state).0.is_null() {
                    self.set(state, self.function)?;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// The GIL is held, the state is alive.
    unsafe fn set(&self, state: u64, function: *mut c_void) -> Result<(), HookError> {
        // SAFETY: passed on to the caller. An audit hook may refuse.
        unsafe {
            if (self.set)(state as usize as *mut c_void, function, ptr::null_mut()) != 0 {
                return self.api.own(ptr::null_mut()).map(drop);
            }
        }
        Ok(())
    }

    /// Returns how many threads have another profile function by now, or none: they are not recorded.
    ///
    /// # Safety
    /// The GIL is held.
    pub(super) unsafe fn unrecorded_threads(&self) -> u64 {
        let mut unrecorded = 0;
        for state in states_of_this_interpreter(self.interpreter) {
            // SAFETY: passed on to the caller; the states are alive as long as the GIL is held.
            let (function, object) = unsafe { profile_of(self.interpreter, state) };
            unrecorded += u64::from(function != self.function && object != self.thread_starter.object());
        }
        unrecorded
    }

    /// Removes our functions, and restores the one with which new threads began before. A failure means that they were
    /// removed already.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn remove(&mut self) {
        FUNCTION.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: passed on to the caller; the states are alive as long as the GIL is held.
        unsafe {
            for state in states_of_this_interpreter(self.interpreter) {
                let (function, object) = profile_of(self.interpreter, state);
                if function == self.function || object == self.thread_starter.object() {
                    let _ = self.set(state, ptr::null_mut());
                }
            }
            if let Ok(now) = self.threading.call(c"getprofile", &[])
                && now.object() == self.thread_starter.object()
            {
                let _ = self.threading.call(c"setprofile", &[&self.previous_starter]);
            }
        }
    }
}

/// Returns the profile function of a thread, and the object with which it is called.
///
/// # Safety
/// The state is alive.
unsafe fn profile_of(interpreter: &Interpreter, state: u64) -> (*mut c_void, ObjectPointer) {
    let layout = interpreter.layout.thread.profile;
    // SAFETY: passed on to the caller.
    unsafe { (field(state, layout.function), field(state, layout.object)) }
}

/// # Safety
/// The GIL is held, and no exception is set.
unsafe fn check_unset(interpreter: &Interpreter, api: &'static HookApi) -> Result<(), HookError> {
    let state = interpreter.thread_state().map_err(|_| HookError::NoGil)?;
    // SAFETY: the state is this thread's; what it refers to is alive.
    unsafe {
        let (function, object) = profile_of(interpreter, state.address());
        if function.is_null() {
            return Ok(());
        }
        Err(HookError::ProfileFunctionSet(name_of(interpreter, api, object)))
    }
}

/// Returns the name of a function, or of the type of any other object.
///
/// # Safety
/// The GIL is held, no exception is set; the object is null or alive.
unsafe fn name_of(interpreter: &Interpreter, api: &'static HookApi, object: ObjectPointer) -> String {
    if object.is_null() {
        return "a function in C".to_owned();
    }
    // SAFETY: passed on to the caller; every object has a type, and every type a name. A function has its own names.
    unsafe {
        let kind: u64 = field(object as u64, OBJECT_TYPE);
        if interpreter.symbols.address(c"PyFunction_Type").is_some_and(|function| function as u64 == kind) {
            let function = api.borrow(object);
            let text = |name| function.attribute(name).ok().and_then(|name| api.read_text(name.object()));
            if let (Some(module), Some(name)) = (text(c"__module__"), text(c"__qualname__")) {
                return format!("{module}.{name}");
            }
        }
        let name: *const core::ffi::c_char = field(kind, TYPE_NAME);
        core::ffi::CStr::from_ptr(name).to_string_lossy().into_owned()
    }
}

/// Handles the first event of a new thread, for which `threading` sets this profile function: replaces it by the
/// function that records, and passes the event on.
///
/// # Safety
/// The interpreter calls it, with a frame, the name of an event and its argument.
unsafe extern "C-unwind" fn begin_thread(
    _: ObjectPointer,
    arguments: *const ObjectPointer,
    count: usize,
    _: ObjectPointer,
) -> ObjectPointer {
    let function = FUNCTION.load(Ordering::Relaxed);
    // SAFETY: `install` stored the functions; the arguments are alive.
    unsafe {
        let set: SetOwnProfile = mem::transmute(SET_OWN.load(Ordering::Relaxed));
        set(function, ptr::null_mut());
        if count & (usize::MAX >> 1) == 3 && !function.is_null() {
            let [frame, event, argument] = arguments.cast::<[ObjectPointer; 3]>().read();
            if let Some(event_number) = super::profile_function::event_of_name(event) {
                mem::transmute::<*mut c_void, ProfileFunction>(function)(
                    ptr::null_mut(),
                    frame,
                    event_number,
                    argument,
                );
            }
        }
        let none = NONE.load(Ordering::Relaxed);
        mem::transmute::<*mut c_void, unsafe extern "C" fn(ObjectPointer)>(INCREMENT.load(Ordering::Relaxed))(none);
        none
    }
}
