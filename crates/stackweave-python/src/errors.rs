//! The exceptions of the package, and the only mapping from errors of the crates to exceptions. Wrong arguments raise Python's
//! own exceptions where the arguments are read.

use std::io;
use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileExistsError, PyImportError, PyOSError, PyValueError};
use pyo3::prelude::*;
use stackweave_capture::DumpError;
use stackweave_cpython::allocators::AllocatorError;
use stackweave_cpython::program::ProgramError;
use stackweave_export::UnknownFormat;
use stackweave_memory::MemoryError;
use stackweave_recording::{FlushError, OpenError, ReadError};
use stackweave_store::thread_words::NoThreadWords;
use stackweave_symbolize::UnknownMode;
use stackweave_trace::TraceError;

create_exception!(
    stackweave,
    StackweaveError,
    PyException,
    "The base class of the exceptions of the package.

>>> try:
...     stackweave.open(\"none.swv\")
... except stackweave.StackweaveError as error:
...     print(type(error).__name__)
RecordingError"
);
create_exception!(
    stackweave,
    StartError,
    StackweaveError,
    "A recording can't be started. Nothing has changed.

>>> with stackweave.memory(\"one.swv\"), stackweave.memory(\"two.swv\"):
...     main()
Traceback (most recent call last):
stackweave.StartError: <stackweave.MemoryRecorder 'one.swv', recording> is on"
);
create_exception!(
    stackweave,
    StateError,
    StackweaveError,
    "A recording is in the wrong state for the call: it has not started, has started already, or was stopped.

>>> stackweave.Recorder(\"out.swv\").instant(\"ready\")
Traceback (most recent call last):
stackweave.StateError: the recording has not started"
);
create_exception!(
    stackweave,
    RecordingError,
    StackweaveError,
    "A recording can't be read or written, or does not contain the requested data.

>>> stackweave.open(\"none.swv\")
Traceback (most recent call last):
stackweave.RecordingError: can't read none.swv"
);
create_exception!(
    stackweave,
    ExportError,
    StackweaveError,
    "The recording can't be exported.

>>> with stackweave.trace(\"calls.swv\") as recorder:
...     main()
>>> recorder.recording.export(\"report.html\", max_size=1)
Traceback (most recent call last):
stackweave.ExportError: report.html would be too large"
);

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("StackweaveError", py.get_type::<StackweaveError>())?;
    module.add("StartError", py.get_type::<StartError>())?;
    module.add("StateError", py.get_type::<StateError>())?;
    module.add("RecordingError", py.get_type::<RecordingError>())?;
    module.add("ExportError", py.get_type::<ExportError>())
}

/// An error that will be raised in Python.
#[derive(Debug)]
pub(crate) struct Error(PyErr);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        error.0
    }
}

/// Converts errors to exceptions with the text of the error.
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
    StackweaveError: DumpError, UnknownMode;
    PyValueError: UnknownFormat;
    PyImportError: NoThreadWords;
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::InDescriber => Self::state(error.to_string()),
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

impl From<ProgramError> for Error {
    fn from(reason: ProgramError) -> Self {
        match reason {
            ProgramError::File(error) => Self(error.into()),
            ProgramError::Python(reason) => Self::other(reason.to_string()),
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
            Why::TooLarge(what) => ExportError::new_err(format!(
                "{text}; {}start and end export a part of the time, max_size=\"4GB\" or max_size=\"none\" allows more",
                if what.format.filters_frames() { "kinds=\"python\" leaves out native frames; " } else { "" }
            )),
            Why::IsInput(_) | Why::Unsupported(_) => ExportError::new_err(text),
        })
    }
}

impl Error {
    /// Returns a `StartError`: a recording can't be started.
    pub(crate) fn start(sentence: impl Into<String>) -> Self {
        Self(StartError::new_err(sentence.into()))
    }

    /// Returns a `StateError`: a recording is in the wrong state for the call.
    pub(crate) fn state(sentence: impl Into<String>) -> Self {
        Self(StateError::new_err(sentence.into()))
    }

    /// Returns a `RecordingError`: a recording can't be read or written, or does not contain the requested data.
    pub(crate) fn recording(sentence: impl Into<String>) -> Self {
        Self(RecordingError::new_err(sentence.into()))
    }

    /// Returns a `StackweaveError`, for errors that callers don't handle separately.
    pub(crate) fn other(sentence: impl Into<String>) -> Self {
        Self(StackweaveError::new_err(sentence.into()))
    }

    /// Returns the error of an output that can't be written.
    pub(crate) fn output(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        Self(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                PyFileExistsError::new_err(format!("{path} already exists; overwrite=True replaces it"))
            }
            _ => PyOSError::new_err(format!("can't write {path}: {error}")),
        })
    }
}
