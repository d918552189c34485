//! Runs a program as the interpreter's own main function does, by its own functions.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;
use std::io;

use crate::interpreter::first_of;
use crate::symbols::SymbolLookup;
use crate::unavailable::Unavailable;

/// The reason why a program was not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProgramError {
    /// There is no interpreter, or it lacks a function.
    Python(Unavailable),
    /// The file could not be opened.
    File(io::Error),
}

/// `PyRun_SimpleFileExFlags`: file, its name, whether to close it, flags of the compiler or null.
type RunFile = unsafe extern "C" fn(*mut libc::FILE, *const c_char, c_int, *mut c_void) -> c_int;

/// An open file that can be run.
#[derive(Debug)]
pub struct ProgramFile {
    run: RunFile,
    file: *mut libc::FILE,
    name: Option<CString>,
}

impl ProgramFile {
    /// Opens the file; the standard input if there is no path.
    pub fn open(path: Option<CString>) -> Result<Self, ProgramError> {
        let symbols = SymbolLookup::find().ok_or(ProgramError::Python(Unavailable::NoInterpreter))?;
        // SAFETY: the signature is that of the headers of 3.10 to 3.15.
        let run: RunFile = unsafe { first_of(symbols, &[c"PyRun_SimpleFileExFlags"]) }.map_err(ProgramError::Python)?;
        // SAFETY: both are C strings; if the standard input is closed, the call fails.
        let file = unsafe {
            match &path {
                Some(path) => libc::fopen(path.as_ptr(), c"rbe".as_ptr()),
                None => libc::fdopen(libc::STDIN_FILENO, c"rb".as_ptr()),
            }
        };
        if file.is_null() {
            Err(ProgramError::File(io::Error::last_os_error()))
        } else {
            Ok(Self { run, file, name: path })
        }
    }

    /// Runs the file in the module `__main__`, as `python FILE` does. An exception is printed as there, `SystemExit`
    /// ends the process. Returns whether it ended without an exception.
    ///
    /// # Safety
    /// The calling thread is the main one, and holds the GIL. If the process ends here, nothing of the callers is
    /// dropped.
    pub unsafe fn run(self) -> bool {
        let name = self.name.as_deref().unwrap_or(c"<stdin>");
        let closes_file = c_int::from(self.name.is_some());
        // SAFETY: the GIL is held; the file is open, and the interpreter closes it if it is not the standard input.
        unsafe { (self.run)(self.file, name.as_ptr(), closes_file, core::ptr::null_mut()) == 0 }
    }
}

/// Ends the process as the interpreter does after a program: finalizes it, then exits.
///
/// # Safety
/// As for [`ProgramFile::run`].
pub unsafe fn end(has_failed: bool) -> ! {
    // SAFETY: the signature is that of the headers of 3.10 to 3.15. The thread holds the GIL, and runs no Python after
    // this.
    unsafe {
        let exit: Option<unsafe extern "C" fn(c_int) -> !> =
            SymbolLookup::find().and_then(|symbols| symbols.function(c"Py_Exit"));
        match exit {
            Some(exit) => exit(c_int::from(has_failed)),
            None => libc::exit(c_int::from(has_failed)),
        }
    }
}

/// Ends the process as the interpreter does after an unhandled `KeyboardInterrupt`: finalizes it, then raises the
/// signal.
///
/// # Safety
/// As for [`ProgramFile::run`].
pub unsafe fn end_interrupted() -> ! {
    // SAFETY: the signature is that of the headers of 3.10 to 3.15. The thread holds the GIL, and runs no Python after
    // this.
    unsafe {
        let finalize: Option<unsafe extern "C" fn() -> c_int> =
            SymbolLookup::find().and_then(|symbols| symbols.function(c"Py_FinalizeEx"));
        if let Some(finalize) = finalize {
            finalize();
        }
        libc::signal(libc::SIGINT, libc::SIG_DFL);
        libc::kill(libc::getpid(), libc::SIGINT);
        // The exit status that a shell uses, in case the signal is blocked.
        libc::exit(128 + libc::SIGINT)
    }
}
