//! The stacks of all threads as text, while everything hangs.

use core::ffi::{c_int, c_void};
use core::time::Duration;

use stackweave_capture::{CantDump, DumpOptions, Dumped};

use crate::border::{Fault, call, call_quietly};
use crate::status::stackweave_status;
use stackweave_status::{STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_DUMP, STACKWEAVE_OK};

/// Chooses a real-time signal that has no handler, and installs one for it, by which threads are asked where they are. To be
/// called before the first dump, outside signal handlers. Again is harmless, and needed only when somebody has put
/// another handler in its place since.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_prepare_dumps() -> stackweave_status {
    call(|| stackweave_capture::prepare_dumps().map_err(|why| Fault::new(status(why), why.to_string())))
}

/// Writes the woven stacks of all threads to a file descriptor, as text, most recent call first: Python frames with their
/// lines, native ones with their module and offset. Needs neither the GIL nor memory, and takes no lock, so it works
/// while the GIL, the allocator or the loader is stuck. `timeout_ms`: how long threads have to answer, 0 for a second; those
/// that don't are named. `context`: null, or in a signal handler its third argument.
///
/// # Safety
/// `context` is null, or the third argument of the handler that is running, on the thread that was interrupted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_dump_threads(
    fd: c_int,
    timeout_ms: u32,
    context: *const c_void,
) -> stackweave_status {
    call_quietly(|| {
        if fd < 0 {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let mut options = DumpOptions::default();
        if timeout_ms != 0 {
            options.timeout = Duration::from_millis(timeout_ms.into());
        }
        let dumped: Result<Dumped, CantDump> = if context.is_null() {
            stackweave_capture::dump_all_threads(fd, &options)
        } else {
            // SAFETY: the caller vouches for the context.
            unsafe { stackweave_capture::dump_all_threads_from_context(fd, context, &options) }
        };
        dumped.map_or_else(status, |_| STACKWEAVE_OK)
    })
}

fn status(why: CantDump) -> stackweave_status {
    match why {
        CantDump::Busy => STACKWEAVE_BUSY,
        _ => STACKWEAVE_NO_DUMP,
    }
}
