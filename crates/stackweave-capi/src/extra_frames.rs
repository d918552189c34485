//! Code generators of the host, which know what generated Python code was made from.

use std::ffi::{CString, c_char, c_void};

use stackweave_core::SourceLocation;

use crate::border::{Fault, call};
use crate::gate;
use crate::growing::{self, Growing};
use crate::handles::Handles;
use crate::location::{collect, stackweave_locations};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_TOO_MANY, STACKWEAVE_UNKNOWN_HANDLE,
};

/// A code generator of the host. Its callback may be called on any thread, several times at once. It must not throw or
/// jump out.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_extra_frames {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Passed to the callback.
    pub data: *mut c_void,
    /// Adds the original frames, innermost first, that stand behind a line of a generated Python file, by
    /// stackweave_locations_add; adds none if the file is not its own. Called when stacks are resolved, with no lock of
    /// the library held.
    pub frames_behind: Option<
        unsafe extern "C" fn(data: *mut c_void, filename: *const c_char, line: u32, frames: *mut stackweave_locations),
    >,
}

// SAFETY: a number, a pointer and an optional function, the size first; zeros are valid in all of them.
unsafe impl Growing for stackweave_extra_frames {
    const FIRST: usize = size_of::<Self>();
}

struct Generator(stackweave_extra_frames);

// SAFETY: the callback may be called with its data on any thread, as its documentation demands.
unsafe impl Send for Generator {}
// SAFETY: as above, several at once.
unsafe impl Sync for Generator {}

const MOST: usize = 64;
static GENERATORS: Handles<Generator, MOST> = Handles::new();

/// Whether any is registered.
pub(crate) fn any() -> bool {
    GENERATORS.any()
}

/// What the first that knows the line says.
pub(crate) fn frames_behind(filename: &str, line: u32) -> Vec<SourceLocation> {
    let Ok(filename) = CString::new(filename) else { return Vec::new() };
    let found = GENERATORS.find(|Generator(generator)| {
        let callback = generator.frames_behind?;
        // SAFETY: the host vouches for its callback until it is removed, which waits for us.
        let frames = collect(|frames| unsafe { callback(generator.data, filename.as_ptr(), line, frames) });
        (!frames.is_empty()).then_some(frames)
    });
    found.unwrap_or_default()
}

/// Adds a code generator, which is asked about every Python frame that is resolved from now on. `handle`, to remove it
/// by, is never 0. At most 64 at a time.
///
/// # Safety
/// `extra` is null or valid, and its callback may be called until it is removed; `handle` is null or can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_register_extra_frames(
    extra: *const stackweave_extra_frames,
    handle: *mut u64,
) -> stackweave_status {
    call(|| {
        let bad = |text: &'static str| Fault::new(STACKWEAVE_BAD_ARGUMENT, text);
        // SAFETY: the caller vouches for it.
        let extra = unsafe { growing::read(extra) }.ok_or_else(|| bad("extra is null or of a wrong size"))?;
        if handle.is_null() || extra.frames_behind.is_none() {
            return Err(bad("handle or frames_behind is null"));
        }
        let too_many = |_| Fault::new(STACKWEAVE_TOO_MANY, format!("{MOST} code generators are registered"));
        let given = GENERATORS.insert(Generator(extra)).map_err(too_many)?;
        // SAFETY: not null, and the caller vouches for it.
        unsafe { handle.write(given) };
        Ok(())
    })
}

/// Removes a code generator. When this returns, its callback does not run and will not run any more. It waits for other
/// threads that are asking it, so it must not be called with a lock held that the callback takes, nor in a callback.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_remove_extra_frames(handle: u64) -> stackweave_status {
    call(|| {
        if gate::inside() {
            return Err(Fault::new(STACKWEAVE_BUSY, "not from inside a callback"));
        }
        let unknown = || Fault::new(STACKWEAVE_UNKNOWN_HANDLE, "no code generator has this handle");
        GENERATORS.take(handle).map(drop).ok_or_else(unknown)
    })
}
