//! Writes the stacks of all threads as text, even while the process hangs.

use core::ffi::{c_int, c_void};
use core::time::Duration;

use stackweave_capture::{DumpError, DumpOptions, DumpSummary};

use crate::boundary::{CallError, call, call_signal_safe};
use crate::status::stackweave_status;
use stackweave_status::{STACKWEAVE_BAD_ARGUMENT, STACKWEAVE_BUSY, STACKWEAVE_NO_DUMP, STACKWEAVE_OK};

/// Chooses a real-time signal that has no handler and installs a handler that captures a thread's stack. Call this before
/// the first dump, outside signal handlers. Repeated calls are harmless, and needed only if the program has replaced the
/// handler since.
#[unsafe(no_mangle)]
pub extern "C" fn stackweave_prepare_dumps() -> stackweave_status {
    call(|| stackweave_capture::prepare_dumps().map_err(|why| CallError::new(status(why), why.to_string())))
}

/// Writes the woven stacks of all threads to a file descriptor as text, most recent call first: Python frames with their
/// lines, native frames with their module and offset. It needs neither the GIL nor memory and takes no lock, so it works
/// while the GIL, the allocator or the loader is stuck. `timeout_ms` is how long threads have to answer, 0 for one second;
/// threads that don't answer are listed. `context` is null or, in a signal handler, the handler's third argument.
///
/// # Safety
/// `context` is null, or the third argument of the running signal handler, on the interrupted thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stackweave_dump_threads(
    fd: c_int,
    timeout_ms: u32,
    context: *const c_void,
) -> stackweave_status {
    call_signal_safe(|| {
        if fd < 0 {
            return STACKWEAVE_BAD_ARGUMENT;
        }
        let mut options = DumpOptions::default();
        if timeout_ms != 0 {
            options.timeout = Duration::from_millis(timeout_ms.into());
        }
        let dumped: Result<DumpSummary, DumpError> = if context.is_null() {
            stackweave_capture::dump_all_threads(fd, &options)
        } else {
            // SAFETY: the caller guarantees the context.
            unsafe { stackweave_capture::dump_all_threads_from_context(fd, context, &options) }
        };
        dumped.map_or_else(status, |_| STACKWEAVE_OK)
    })
}

fn status(why: DumpError) -> stackweave_status {
    match why {
        DumpError::Busy => STACKWEAVE_BUSY,
        _ => STACKWEAVE_NO_DUMP,
    }
}
