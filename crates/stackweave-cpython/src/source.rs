//! Python as a source of frames: combines the walk, the code table and the names.
//!
//! Hot file, except for installation, names and statistics: no allocation, no lock, no GIL; in signal handlers too.
//! This does not hold where only the public API can be used.

use core::ffi::c_void;
use core::fmt;
use std::sync::OnceLock;

use stackweave_core::{CodeId, FrameSource, RawFrame, SourceKind, SourceLocation, SourceWalk, SourceWalkResult};

use crate::code_names::CodeNames;
use crate::code_table::{CODES, PinnedCodeIds, WatchedCodeIds};
use crate::code_text;
use crate::death_watch::{self, DeathWatch};
use crate::frame::CodePointer;
use crate::frame_reader::FrameReader;
use crate::interpreter::{Interpreter, first_of};
use crate::public_source::PublicSource;
use crate::stats::PythonStats;
use crate::thread_state::ThreadStatePointer;
use crate::unavailable::Unavailable;
use crate::walk::{CodeIds, FrameBuffers, MEMORY_WORDS};

/// Provides the Python frames of each thread, with code objects as ids.
#[derive(Clone, Copy, Debug)]
pub struct PythonSource {
    reader: SourceMode,
}

#[derive(Clone, Copy, Debug)]
enum SourceMode {
    Watching(&'static Interpreter),
    Pinning(&'static Interpreter, unsafe extern "C" fn(*mut c_void)),
    Public(PublicSource, Unavailable),
}

static NAMES: OnceLock<CodeNames> = OnceLock::new();

impl PythonSource {
    /// The number of words of [`SourceWalk::memory`] that a walk needs to reuse the last one. With fewer words it does
    /// not.
    pub const MEMORY_WORDS: usize = MEMORY_WORDS;

    /// Returns the source of this process: finds the interpreter, tests the direct walk, begins to watch code objects,
    /// once. Call it at import, with the GIL held and no exception set. Fails only if there is no interpreter.
    pub fn install() -> Result<&'static Self, Unavailable> {
        static INSTALLED: OnceLock<PythonSource> = OnceLock::new();
        if let Some(installed) = INSTALLED.get() {
            return Ok(installed);
        }
        // Not inside the cell: this runs Python code, and other threads may get the GIL meanwhile.
        let installed = Self::choose()?;
        Ok(INSTALLED.get_or_init(|| installed))
    }

    fn choose() -> Result<Self, Unavailable> {
        let reader = match FrameReader::choose()? {
            FrameReader::Direct(interpreter) => match death_watch::install(interpreter) {
                DeathWatch::Watching => SourceMode::Watching(interpreter),
                DeathWatch::Pinning => Self::pinning_reader(interpreter)?,
            },
            FrameReader::PublicApi(api, reason) => SourceMode::Public(PublicSource::new(api)?, reason),
        };
        Ok(Self { reader })
    }

    fn pinning_reader(interpreter: &'static Interpreter) -> Result<SourceMode, Unavailable> {
        // SAFETY: the function has this signature in every version.
        let increment = unsafe { first_of(interpreter.symbols, &[c"Py_IncRef"])? };
        Ok(SourceMode::Pinning(interpreter, increment))
    }

    /// Returns a source for which deaths can't be detected: for tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn with_pinning() -> Result<Self, Unavailable> {
        Ok(Self { reader: Self::pinning_reader(Interpreter::find()?)? })
    }

    /// Returns a source that can't read frames directly: for tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn with_public_api() -> Result<Self, Unavailable> {
        let api = crate::public_api::PublicApi::find()?;
        Ok(Self { reader: SourceMode::Public(PublicSource::new(api)?, Unavailable::SelfTestNotRun) })
    }

    /// Returns how many frames walks with this memory have reused from earlier walks: for tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn replayed(memory: &[u64]) -> u64 {
        crate::walk::stack_caches::replayed(memory)
    }

    /// Returns the interpreter, if frames are read directly.
    pub(crate) fn interpreter(&self) -> Option<&'static Interpreter> {
        match self.reader {
            SourceMode::Watching(interpreter) | SourceMode::Pinning(interpreter, _) => Some(interpreter),
            SourceMode::Public(..) => None,
        }
    }

    /// Writes the frames of another thread, innermost first.
    ///
    /// # Safety
    /// The GIL is held, and the state is one of [`PythonSource::thread_states`], which was called since the GIL was
    /// taken.
    pub unsafe fn walk_thread(&self, state: ThreadStatePointer, frames: &mut [RawFrame]) -> SourceWalkResult {
        let buffers = FrameBuffers { frames, activations: &mut [] };
        match &self.reader {
            // SAFETY: passed on to the caller: while the GIL is held, no other thread changes its frames.
            SourceMode::Watching(interpreter) => unsafe {
                interpreter.walk_source_thread(state, buffers, &WatchedCodeIds(interpreter))
            },
            SourceMode::Pinning(interpreter, increment) => {
                let codes = PinnedCodeIds { interpreter, increment: *increment, may_pin: true };
                // SAFETY: as above.
                unsafe { interpreter.walk_source_thread(state, buffers, &codes) }
            }
            // SAFETY: as above.
            SourceMode::Public(source, _) => unsafe { source.walk_thread(state, buffers) },
        }
    }

    /// Returns the id that frames of this code object have. `None` if it is not a code object, or there is no memory.
    ///
    /// # Safety
    /// The GIL is held, and the object is alive.
    pub unsafe fn code_id(&self, code: CodePointer) -> Option<CodeId> {
        let code = code.address();
        match &self.reader {
            SourceMode::Watching(interpreter) => WatchedCodeIds(interpreter).id_of(code).ok(),
            SourceMode::Pinning(interpreter, increment) => {
                PinnedCodeIds { interpreter, increment: *increment, may_pin: true }.id_of(code).ok()
            }
            // SAFETY: passed on to the caller.
            SourceMode::Public(source, _) => unsafe { source.id_of(code) }.ok(),
        }
    }

    /// Returns how frames are read, and what was seen so far.
    pub fn stats(&self) -> PythonStats {
        let (reader, fallback_reason, death_watch) = match self.reader {
            SourceMode::Watching(_) => ("direct", None, DeathWatch::Watching),
            SourceMode::Pinning(..) => ("direct", None, DeathWatch::Pinning),
            SourceMode::Public(_, reason) => ("public API", Some(reason.to_string()), DeathWatch::Pinning),
        };
        let codes = CODES.stats();
        PythonStats {
            reader,
            fallback_reason,
            minor: self.interpreter().map_or_else(Interpreter::minor_of_any, Interpreter::minor_version),
            codes: codes.codes,
            live_codes: codes.live,
            deaths: codes.deaths,
            code_bytes: codes.bytes,
            decoded_codes: NAMES.get().map_or(0, CodeNames::len),
            death_watch: death_watch.as_str(),
        }
    }
}

impl FrameSource for PythonSource {
    fn kind(&self) -> SourceKind {
        SourceKind::Python
    }

    #[inline]
    fn walk(&self, walk: SourceWalk<'_>) -> SourceWalkResult {
        let SourceWalk { frames, activations, memory, in_signal_handler, .. } = walk;
        let buffers = FrameBuffers { frames, activations };
        match &self.reader {
            SourceMode::Watching(interpreter) if !in_signal_handler => {
                let deaths = CODES.deaths();
                // SAFETY: the memory belongs to this source; each death of a code object with an id is counted.
                unsafe { interpreter.replay_source(buffers, memory, &WatchedCodeIds(interpreter), deaths) }
            }
            SourceMode::Watching(interpreter) => {
                interpreter.walk_source_interrupted(buffers, &WatchedCodeIds(interpreter))
            }
            SourceMode::Pinning(interpreter, increment) => {
                let may_pin = !in_signal_handler && interpreter.holds_gil();
                let codes = PinnedCodeIds { interpreter, increment: *increment, may_pin };
                if in_signal_handler {
                    return interpreter.walk_source_interrupted(buffers, &codes);
                }
                interpreter.walk_source(buffers, &codes)
            }
            SourceMode::Public(source, _) => source.walk(buffers, in_signal_handler),
        }
    }

    fn locate(&self, frame: RawFrame) -> Option<SourceLocation> {
        NAMES.get_or_init(CodeNames::default).locate(CODES.blobs(), frame)
    }

    fn write(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> fmt::Result {
        code_text::write_frame(CODES.blobs(), frame, out)
    }

    fn write_parts(&self, frame: RawFrame, out: &mut dyn fmt::Write) -> Result<bool, fmt::Error> {
        code_text::write_parts(CODES.blobs(), frame, out)
    }
}
