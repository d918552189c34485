//! The interpreter of this process: its version, its layout, its functions.

use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::OnceLock;

use crate::debug_offsets;
use crate::symbols::SymbolLookup;
use crate::unavailable::Unavailable;
use crate::version::VersionLayout;

/// The Python in this process, if its frames can be read without its help.
#[derive(Debug)]
pub struct Interpreter {
    pub(crate) layout: &'static VersionLayout,
    pub(crate) functions: InterpreterFunctions,
    pub(crate) symbols: SymbolLookup,
    /// `PyCode_Type`: the type of every code object.
    pub(crate) code_type: u64,
}

/// The functions that a walk calls. None of them takes the GIL or a lock, or allocates: each reads a word or two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterpreterFunctions {
    /// Returns 0 before initialisation, and again from early in the shutdown on.
    pub(crate) is_initialized: unsafe extern "C" fn() -> c_int,
    pub(crate) is_finalizing: unsafe extern "C" fn() -> c_int,
    /// Returns the state in this thread's own storage, whether it holds the GIL or not.
    pub(crate) this_thread_state: unsafe extern "C" fn() -> *mut c_void,
    /// Returns the state of this thread if it holds the GIL, else null; before 3.12, the state of the thread that holds
    /// it.
    pub(crate) holder_state: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) newest_interpreter: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) main_interpreter: unsafe extern "C" fn() -> *mut c_void,
}

impl Interpreter {
    /// Returns the interpreter of this process. Once found, it is cached; a failure is not, because an interpreter can
    /// be loaded later.
    pub fn find() -> Result<&'static Self, Unavailable> {
        static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();
        if let Some(found) = INTERPRETER.get() {
            return Ok(found);
        }
        let found = Self::look_up()?;
        Ok(INTERPRETER.get_or_init(|| found))
    }

    /// Returns the second number of the version: 13 for Python 3.13.
    pub fn minor_version(&self) -> u8 {
        self.layout.minor
    }

    /// Returns the same for an interpreter that may have no table; 0 if there is none.
    pub(crate) fn minor_of_any() -> u8 {
        SymbolLookup::find().and_then(|symbols| version(symbols).ok()).map_or(0, |(_, minor)| minor)
    }

    /// Returns this interpreter with the table of another version, as if its layout had moved: for tests of the
    /// self-test.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn with_table_of(&self, minor: u8) -> Option<Self> {
        Some(Self {
            layout: VersionLayout::of_minor(minor)?,
            functions: self.functions,
            symbols: self.symbols,
            code_type: self.code_type,
        })
    }

    fn look_up() -> Result<Self, Unavailable> {
        let symbols = SymbolLookup::find().ok_or(Unavailable::NoInterpreter)?;
        let (major, minor) = version(symbols)?;
        let layout = match major {
            3 => VersionLayout::of_minor(minor),
            _ => None,
        }
        .ok_or(Unavailable::UnsupportedVersion { major, minor })?;
        reject_other_builds(symbols)?;
        if let Some(offsets) = &layout.debug_offsets {
            let runtime = symbols.address(c"_PyRuntime").ok_or(Unavailable::MissingFunction("_PyRuntime"))?;
            // SAFETY: the version is the layout's, and every version with `debug_offsets` has the structure.
            unsafe { debug_offsets::check(runtime.cast(), layout, offsets)? };
        }
        let code_type = symbols.address(c"PyCode_Type").ok_or(Unavailable::MissingFunction("PyCode_Type"))? as u64;
        Ok(Self { layout, functions: InterpreterFunctions::look_up(symbols)?, symbols, code_type })
    }
}

impl InterpreterFunctions {
    fn look_up(symbols: SymbolLookup) -> Result<Self, Unavailable> {
        // SAFETY: the signatures are those of the headers of 3.10 to 3.15.
        unsafe {
            Ok(Self {
                is_initialized: first_of(symbols, &[c"Py_IsInitialized"])?,
                is_finalizing: first_of(symbols, &[c"Py_IsFinalizing", c"_Py_IsFinalizing"])?,
                this_thread_state: first_of(symbols, &[c"PyGILState_GetThisThreadState"])?,
                holder_state: first_of(symbols, &[c"PyThreadState_GetUnchecked", c"_PyThreadState_UncheckedGet"])?,
                newest_interpreter: first_of(symbols, &[c"PyInterpreterState_Head"])?,
                main_interpreter: first_of(symbols, &[c"PyInterpreterState_Main"])?,
            })
        }
    }
}

/// Returns the first of these functions that the interpreter has.
///
/// # Safety
/// As for [`SymbolLookup::function`], for each of the names.
pub(crate) unsafe fn first_of<F: Copy>(symbols: SymbolLookup, names: &[&'static CStr]) -> Result<F, Unavailable> {
    let mut missing = "";
    for name in names {
        // SAFETY: passed on to the caller.
        if let Some(function) = unsafe { symbols.function(name) } {
            return Ok(function);
        }
        missing = name.to_str().unwrap_or_default();
    }
    Err(Unavailable::MissingFunction(missing))
}

/// Returns the version. `Py_Version` is a word of data since 3.11; before, the version is only available as text.
pub(crate) fn version(symbols: SymbolLookup) -> Result<(u8, u8), Unavailable> {
    if let Some(word) = symbols.address(c"Py_Version") {
        // SAFETY: it is a constant `unsigned long`.
        let [major, minor, ..] = unsafe { word.cast::<c_ulong>().read() }.to_be_bytes()[4..] else {
            return Err(Unavailable::NoInterpreter);
        };
        return Ok((major, minor));
    }
    parse_version(version_text(symbols)?).ok_or(Unavailable::NoInterpreter)
}

fn parse_version(text: &[u8]) -> Option<(u8, u8)> {
    let text = core::str::from_utf8(text).ok()?;
    let mut numbers = text.split(['.', ' ', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn version_text(symbols: SymbolLookup) -> Result<&'static [u8], Unavailable> {
    // SAFETY: the function has this signature in every version.
    let get_version: unsafe extern "C" fn() -> *const c_char = unsafe { first_of(symbols, &[c"Py_GetVersion"])? };
    // SAFETY: it may be called at any time and returns a C string that lives forever.
    Ok(unsafe { CStr::from_ptr(get_version()) }.to_bytes())
}

/// Rejects builds whose structures differ from the tables: those without the GIL have a mark in their version, those
/// that count references for debugging export the counter.
fn reject_other_builds(symbols: SymbolLookup) -> Result<(), Unavailable> {
    if is_free_threaded(symbols)? {
        return Err(Unavailable::FreeThreaded);
    }
    if [c"_Py_RefTotal", c"_Py_INCREF_IncRefTotal"].iter().any(|name| symbols.address(name).is_some()) {
        return Err(Unavailable::DebugBuild);
    }
    Ok(())
}

pub(crate) fn is_free_threaded(symbols: SymbolLookup) -> Result<bool, Unavailable> {
    const MARK: &[u8] = b"free-threading build";
    Ok(version_text(symbols)?.windows(MARK.len()).any(|window| window == MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_text() {
        assert_eq!(parse_version(b"3.10.13 (main, May  9 2026) [GCC 12.2.0]"), Some((3, 10)));
        assert_eq!(parse_version(b"3.12.0a1+ (heads/main)"), Some((3, 12)));
        assert_eq!(parse_version(b"three"), None);
    }

    #[test]
    fn a_process_without_python_has_no_interpreter() {
        assert_eq!(Interpreter::find().map(Interpreter::minor_version), Err(Unavailable::NoInterpreter));
    }
}
