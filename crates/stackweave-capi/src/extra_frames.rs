//! Code generators of the host, which report the original frames of generated Python code.

use std::ffi::{CString, c_char, c_void};

use stackweave_core::SourceLocation;

use crate::boundary::{CallError, call};
use crate::callback_gate;
use crate::handle_table::HandleTable;
use crate::location::{collect, stackweave_location_list};
use crate::sized_struct::{self, SizedStruct};
use crate::status::stackweave_status::{
    self, STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_TOO_MANY, STACKWEAVE_UNKNOWN_HANDLE,
};

/// A code generator of the host. Its callback may be called on any thread, and by several threads at once. It must not
/// throw or `longjmp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct stackweave_extra_frames {
    /// The size of this structure, in bytes.
    pub size: usize,
    /// Passed to the callback.
    pub data: *mut c_void,
    /// Adds the original frames of a line of a generated Python file with stackweave_add_location, innermost first; adds
    /// none if the host did not generate the file. Called when stacks are resolved, with no lock of the library held.
    pub frames_behind: Option<
        unsafe extern "C" fn(
            data: *mut c_void,
            filename: *const c_char,
            line: u32,
            frames: *mut stackweave_location_list,
        ),
    >,
}

// SAFETY: a number, a pointer and an optional function, for which zeros are valid; the size comes first.
unsafe impl SizedStruct for stackweave_extra_frames {
    const MIN_SIZE: usize = size_of::<Self>();
}

struct CodeGenerator(stackweave_extra_frames);

// SAFETY: the documentation of the callback requires that it may be called with its data on any thread.
unsafe impl Send for CodeGenerator {}
// SAFETY: it also requires that several threads may call it at once.
unsafe impl Sync for CodeGenerator {}

const MAX_GENERATORS: usize = 64;
static GENERATORS: HandleTable<CodeGenerator, MAX_GENERATORS> = HandleTable::new();

/// Returns whether any code generator is registered.
pub(crate) fn any() -> bool {
    GENERATORS.any()
}

/// Returns the frames of the first code generator that knows the line.
pub(crate) fn frames_behind(filename: &str, line: u32) -> Vec<SourceLocation> {
    let Ok(filename) = CString::new(filename) else { return Vec::new() };
    let found = GENERATORS.find(|CodeGenerator(generator)| {
        let callback = generator.frames_behind?;
        // SAFETY: the host guarantees its callback until it is removed, and the removal waits for this call.
        let frames = collect(|frames| unsafe { callback(generator.data, filename.as_ptr(), line, frames) });
        (!frames.is_empty()).then_some(frames)
    });
    found.unwrap_or_default()
}

/// Adds a code generator, which is called for each Python frame that is resolved from now on. `handle` receives the handle
/// for stackweave_remove_extra_frames, which is never 0. At most 64 can be registered at a time.
///
/// # Safety
/// `extra` is null or valid, and its callback may be called until it is removed; `handle` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_register_extra_frames(
    extra: *const stackweave_extra_frames,
    handle: *mut u64,
) -> stackweave_status {
    call(|| {
        let bad = |message: &'static str| CallError::new(STACKWEAVE_BAD_ARGUMENT, message);
        // SAFETY: guaranteed by the caller.
        let extra = unsafe { sized_struct::read(extra) }.ok_or_else(|| bad("extra is null, or its size is wrong"))?;
        if handle.is_null() || extra.frames_behind.is_none() {
            return Err(bad("handle or frames_behind is null"));
        }
        let too_many =
            |_| CallError::new(STACKWEAVE_TOO_MANY, format!("{MAX_GENERATORS} code generators are registered"));
        let registered = GENERATORS.insert(CodeGenerator(extra)).map_err(too_many)?;
        // SAFETY: not null; the caller guarantees the rest.
        unsafe { handle.write(registered) };
        Ok(())
    })
}

/// Removes a code generator. When this returns, its callback is not running and will not be called again. It waits for
/// threads that are in the callback, so it must not be called with a lock held that the callback takes, nor in a callback.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_remove_extra_frames(handle: u64) -> stackweave_status {
    call(|| {
        if callback_gate::is_inside_callback() {
            return Err(CallError::new(STACKWEAVE_BUSY, "must not be called in a callback"));
        }
        let unknown = || CallError::new(STACKWEAVE_UNKNOWN_HANDLE, "no code generator has this handle");
        GENERATORS.remove(handle).map(drop).ok_or_else(unknown)
    })
}
