//! Registers the callbacks of `sys.monitoring`, from 3.12 on.

use core::ffi::{CStr, c_long};

use super::CallObserver;
use super::api::{HookApi, ObjectReference};
use super::callback::{CallbackType, Vectorcall};
use super::error::HookError;
use super::monitoring_callbacks as callbacks;
use crate::interpreter::Interpreter;

pub(super) const OLDEST: u8 = 12;

/// Ids without a conventional owner come first; then those of coverage tools, debuggers and profilers.
const TOOL_IDS: [c_long; 6] = [3, 4, 5, 1, 0, 2];
const TOOL: &CStr = c"stackweave";

type MonitoringEvent = (&'static CStr, Vectorcall);

/// The registered tool and its callbacks.
#[derive(Debug)]
pub(super) struct Monitoring {
    module: ObjectReference,
    tool: ObjectReference,
    /// The numbers of its events.
    events: Vec<ObjectReference>,
    api: &'static HookApi,
}

impl Monitoring {
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn install<O: CallObserver>(
        interpreter: &'static Interpreter,
        api: &'static HookApi,
        c_calls: bool,
    ) -> Result<Self, HookError> {
        // SAFETY: passed on to the caller.
        unsafe {
            let module = (api.system_object)(c"monitoring".as_ptr());
            if module.is_null() {
                return Err(HookError::Raised("sys.monitoring is not there".to_owned()));
            }
            let monitoring = api.borrow(module);
            callbacks::prepare(interpreter, api, &monitoring)?;
            let tool = reserve_tool_id(api, &monitoring)?;
            let mut installed = Self { module: monitoring, tool, events: Vec::new(), api };
            let (events, native) = events_of::<O>(interpreter.layout.minor);
            let native = if c_calls { &native[..] } else { &[] };
            match installed.register(interpreter, &events, native) {
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
    unsafe fn register(
        &mut self,
        interpreter: &Interpreter,
        events: &[MonitoringEvent],
        native: &[MonitoringEvent],
    ) -> Result<(), HookError> {
        // SAFETY: passed on to the caller.
        unsafe {
            let kind = CallbackType::new(interpreter, self.api)?;
            let numbers = self.module.attribute(c"events")?;
            let mut set = 0;
            for (name, function) in events.iter().chain(native) {
                let number = numbers.attribute(name)?;
                let callback = kind.callback(*function)?;
                self.module.call(c"register_callback", &[&self.tool, &number, &callback])?;
                set |= number.as_number();
                self.events.push(number);
            }
            self.module.call(c"set_events", &[&self.tool, &self.api.number(set)?])?;
            self.enable_all_events()
        }
    }

    /// Enables the events again that were disabled.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn enable_all_events(&self) -> Result<(), HookError> {
        // SAFETY: passed on to the caller.
        unsafe { self.module.call(c"restart_events", &[]).map(drop) }
    }

    /// Removes the callbacks and the tool id. A failure means that they were removed already.
    ///
    /// # Safety
    /// The GIL is held, and no exception is set.
    pub(super) unsafe fn remove(&mut self) {
        // SAFETY: passed on to the caller.
        unsafe {
            if let Ok(nothing) = self.api.number(0) {
                let _ = self.module.call(c"set_events", &[&self.tool, &nothing]);
            }
            let none = self.api.borrow(self.api.none);
            for event in self.events.drain(..) {
                let _ = self.module.call(c"register_callback", &[&self.tool, &event, &none]);
            }
            let _ = self.module.call(c"free_tool_id", &[&self.tool]);
        }
    }
}

/// # Safety
/// The GIL is held, and no exception is set.
unsafe fn reserve_tool_id(api: &'static HookApi, monitoring: &ObjectReference) -> Result<ObjectReference, HookError> {
    let mut names = Vec::new();
    // SAFETY: passed on to the caller.
    unsafe {
        for id in TOOL_IDS {
            let id = api.number(id)?;
            let owner = monitoring.call(c"get_tool", &[&id])?;
            if owner.object() == api.none {
                monitoring.call(c"use_tool_id", &[&id, &api.text(TOOL)?])?;
                return Ok(id);
            }
            names.push(api.read_text(owner.object()).unwrap_or_default());
        }
    }
    Err(HookError::NoToolId(names.join(", ")))
}

fn events_of<O: CallObserver>(minor: u8) -> ([MonitoringEvent; 6], [MonitoringEvent; 3]) {
    match minor {
        12 => events::<O, 12>(),
        13 => events::<O, 13>(),
        14 => events::<O, 14>(),
        _ => events::<O, 15>(),
    }
}

fn events<O: CallObserver, const MINOR: u8>() -> ([MonitoringEvent; 6], [MonitoringEvent; 3]) {
    (
        [
            (c"PY_START", callbacks::start::<O, MINOR>),
            (c"PY_RESUME", callbacks::resume::<O, MINOR>),
            (c"PY_THROW", callbacks::throw::<O, MINOR>),
            (c"PY_RETURN", callbacks::returned::<O, MINOR>),
            (c"PY_YIELD", callbacks::yielded::<O, MINOR>),
            (c"PY_UNWIND", callbacks::unwind::<O, MINOR>),
        ],
        [
            (c"CALL", callbacks::native_call::<O, MINOR>),
            (c"C_RETURN", callbacks::native_return::<O, MINOR>),
            (c"C_RAISE", callbacks::native_raise::<O, MINOR>),
        ],
    )
}
