//! The exceptions of the package, and which of them each error of a crate becomes. Wrong arguments are Python's own
//! exceptions, raised where they are read; nothing else of an error is decided elsewhere.

use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyImportError, PyOSError, PyValueError};
use pyo3::prelude::*;
use stackweave_capture::CantDump;
use stackweave_cpython::allocators::AllocatorError;
use stackweave_cpython::program::NotRun;
use stackweave_export::UnknownFormat;
use stackweave_memory::MemoryError;
use stackweave_recording::{FlushError, OpenError, ReadError};
use stackweave_store::thread_words::NoThreadWords;
use stackweave_symbolize::UnknownMode;
use stackweave_trace::TraceError;

create_exception!(stackweave, StackweaveError, PyException, "The root of the exceptions of the package.");
create_exception!(stackweave, StartError, StackweaveError, "Nothing can be recorded here. Nothing has changed.");
create_exception!(
    stackweave,
    StateError,
    StackweaveError,
    "A recording is not in the state that this needs: it has not begun, has begun already, or was stopped."
);
create_exception!(
    stackweave,
    RecordingError,
    StackweaveError,
    "A recording can't be read or written, or does not hold what was requested."
);
create_exception!(stackweave, ExportError, StackweaveError, "An export can't be made of this recording.");

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("StackweaveError", py.get_type::<StackweaveError>())?;
    module.add("StartError", py.get_type::<StartError>())?;
    module.add("StateError", py.get_type::<StateError>())?;
    module.add("RecordingError", py.get_type::<RecordingError>())?;
    module.add("ExportError", py.get_type::<ExportError>())
}

/// An error on its way to Python.
#[derive(Debug)]
pub(crate) struct Error(PyErr);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        error.0
    }
}

/// Errors by the exception that they become, with their text.
macro_rules! become_exceptions {
    ($($exception:ident: $($error:ty),+;)+) => {$($(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self($exception::new_err(error.to_string()))
            }
        }
    )+)+};
}

become_exceptions! {
    StartError: stackweave_recording::StartError, MemoryError, AllocatorError;
    RecordingError: OpenError, ReadError;
    StackweaveError: CantDump, UnknownMode;
    PyValueError: UnknownFormat;
    PyImportError: NoThreadWords;
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Asked => Self::state(error.to_string()),
            _ => Self::start(error.to_string()),
        }
    }
}

impl From<FlushError> for Error {
    fn from(error: FlushError) -> Self {
        match error {
            FlushError::Write(_) => Self::recording(error.to_string()),
            FlushError::Stopped | FlushError::NoRing => Self::state(error.to_string()),
        }
    }
}

impl From<NotRun> for Error {
    fn from(reason: NotRun) -> Self {
        match reason {
            NotRun::File(error) => Self(error.into()),
            NotRun::Python(reason) => Self::other(reason.to_string()),
            _ => Self::other("the program was not run"),
        }
    }
}

impl From<stackweave_export::ExportError> for Error {
    fn from(error: stackweave_export::ExportError) -> Self {
        use stackweave_export::ExportError as Why;
        let text = error.to_string();
        Self(match error {
            Why::Read(_) => RecordingError::new_err(text),
            Why::Exists(_) => PyFileExistsError::new_err(format!("{text}; overwrite=True replaces it")),
            Why::Write(..) => PyOSError::new_err(text),
            Why::TooLarge(_) => ExportError::new_err(format!(
                "{text}; start and end export a part of the time, max_size=\"4GB\" or max_size=\"none\" allows more"
            )),
            Why::IsAnInput(_) | Why::NotThis(_) => ExportError::new_err(text),
        })
    }
}

impl Error {
    /// Nothing can be recorded here.
    pub(crate) fn start(sentence: impl Into<String>) -> Self {
        Self(StartError::new_err(sentence.into()))
    }

    /// A recording is not in the state that this needs.
    pub(crate) fn state(sentence: impl Into<String>) -> Self {
        Self(StateError::new_err(sentence.into()))
    }

    /// A recording can't be read or written, or does not hold what was requested.
    pub(crate) fn recording(sentence: impl Into<String>) -> Self {
        Self(RecordingError::new_err(sentence.into()))
    }

    /// An error that callers treat like no other.
    pub(crate) fn other(sentence: impl Into<String>) -> Self {
        Self(StackweaveError::new_err(sentence.into()))
    }

    /// An output can't be written.
    pub(crate) fn output(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Self(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                PyFileExistsError::new_err(format!("{path} is there already; overwrite=True replaces it"))
            }
            _ => PyOSError::new_err(format!("can't write {path}: {error}")),
        })
    }
}
