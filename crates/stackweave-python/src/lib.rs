//! `stackweave._native`: the native module of the Python package. It converts values, manages the GIL and maps errors; the other
//! crates do the work.

#![allow(
    clippy::doc_markdown,
    clippy::doc_link_with_quotes,
    reason = "the comments of Python's classes and functions are their docstrings"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the platforms that capture are 64-bit: an address, a word and a usize are one size"
)]

mod callback_guard;
mod capture_functions;
mod command;
mod dynamo;
mod errors;
mod frame;
mod import_finder;
mod keywords;
mod memory;
mod memory_sink;
mod memory_usage;
mod options;
mod outputs;
mod process_token;
mod python_extra_frames;
mod python_frame_source;
mod python_location;
mod python_source;
mod recording;
mod registration;
mod resolving;
mod stack_answers;
mod stats;
mod symbolizing;
mod thread_dumps;
mod thread_stacks;
mod timing;
mod torch_frames;
mod trace;
mod traceback_methods;
mod traceback_object;
mod traceback_type;
mod type_object;

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use stackweave_store::thread_words::thread_words;

/// The native part of stackweave.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    refuse_subinterpreters()?;
    refuse_after_finalization()?;
    refuse_without_thread_words()?;
    keywords::prepare(py);
    python_source::install(py);
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add_to(module)?;
    module.add_class::<frame::PyFrame>()?;
    module.add_class::<registration::PyRegistration>()?;
    module.add_class::<import_finder::ImportFinder>()?;
    module.add_class::<thread_dumps::PyWatchdog>()?;
    traceback_type::add_to(module)?;
    recording::add_to(module)?;
    trace::add_to(module)?;
    memory::add_to(module)?;
    dynamo::add_to(module)?;
    timing::add_to(module)?;
    memory_usage::add_to(module)?;
    capture_functions::add_to(module)?;
    module.add_function(wrap_pyfunction!(frame::rebuild_frame, module)?)?;
    module.add_function(wrap_pyfunction!(traceback_methods::rebuild_traceback, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::symbolize, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::to_json, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::resolve_addresses, module)?)?;
    module.add_function(wrap_pyfunction!(symbolizing::traceback_of, module)?)?;
    module.add_function(wrap_pyfunction!(torch_frames::torch_frames, module)?)?;
    module.add_function(wrap_pyfunction!(torch_frames::torch_address_frames, module)?)?;
    module.add_function(wrap_pyfunction!(thread_stacks::thread_stacks, module)?)?;
    module.add_function(wrap_pyfunction!(stats::stats, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::copy_to_output, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::write_output, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::unused_path, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::other_recordings_of_run, module)?)?;
    module.add_function(wrap_pyfunction!(outputs::remove_recordings_of_run, module)?)?;
    module.add_function(wrap_pyfunction!(thread_dumps::dump_threads, module)?)?;
    module.add_function(wrap_pyfunction!(thread_dumps::watchdog, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_file, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_call, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_code, module)?)?;
    module.add_function(wrap_pyfunction!(command::call_untraced, module)?)?;
    module.add_function(wrap_pyfunction!(python_frame_source::register_frame_source, module)?)?;
    module.add_function(wrap_pyfunction!(python_extra_frames::register_extra_frames, module)?)?;
    // PyO3 lists the names that it has added; the package lists the public names.
    module.delattr("__all__")?;
    stack_answers::begin();
    Ok(())
}

/// Fails in a subinterpreter: statics of this module belong to the main interpreter, whose number is 0.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: an interpreter is importing this module.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "stackweave can be imported in the main interpreter only, not in a subinterpreter",
        )),
    }
}

/// Fails in an interpreter that is initialized after another one was finalized: this module keeps types, strings and callbacks
/// of the first interpreter. They are unusable in the second one, and on 3.12 freeing them aborts the process.
fn refuse_after_finalization() -> PyResult<()> {
    static IS_IMPORTED: AtomicBool = AtomicBool::new(false);
    const MARK: &CStr = c"stackweave._native";
    // SAFETY: an interpreter is importing this module. The dict is borrowed, and lives as long as the interpreter; no reference is
    // kept here.
    unsafe {
        let state = ffi::PyInterpreterState_GetDict(ffi::PyInterpreterState_Get());
        if state.is_null() {
            return Err(PyImportError::new_err("the interpreter has no memory for the state of stackweave"));
        }
        let is_marked = !ffi::PyDict_GetItemString(state, MARK.as_ptr()).is_null();
        if IS_IMPORTED.swap(true, Ordering::Relaxed) && !is_marked {
            return Err(PyImportError::new_err(
                "stackweave can't be imported again after Py_Finalize: it belongs to the interpreter that was finalized",
            ));
        }
        match ffi::PyDict_SetItemString(state, MARK.as_ptr(), ffi::Py_True()) {
            0 => Ok(()),
            _ => Err(PyErr::fetch(Python::assume_attached())),
        }
    }
}

/// Fails if thread-local words can't be reserved: captures in signal handlers, and hooks of allocators, must not allocate them.
fn refuse_without_thread_words() -> PyResult<()> {
    thread_words().map_err(errors::Error::from)?;
    Ok(())
}
