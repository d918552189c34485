//! The `ptrace` calls that an inspection needs. None of them writes to the other process.

use core::ffi::{c_int, c_long};
use core::mem::MaybeUninit;
use core::ptr::{null_mut, without_provenance_mut};

/// The result of a call, with an error number.
pub(crate) type Result<T> = core::result::Result<T, c_int>;

/// The result of polling a thread for its stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopStatus {
    /// It still runs, or waits in the kernel.
    Running,
    /// It is stopped, and was about to receive this signal; 0 if none.
    Stopped(c_int),
    /// It has ended.
    Gone,
}

/// Makes this thread the tracer of `task`, which continues to run. It is detached when this thread ends, for any
/// reason.
pub(crate) fn seize(task: u32) -> Result<()> {
    call(libc::PTRACE_SEIZE, task, 0)
}

/// Requests that `task` stops.
pub(crate) fn interrupt(task: u32) -> Result<()> {
    call(libc::PTRACE_INTERRUPT, task, 0)
}

/// Resumes and detaches the stopped `task`, and delivers the signal that it was about to receive. A process that
/// was stopped by a signal stays stopped.
pub(crate) fn let_go(task: u32, signal: c_int) -> Result<()> {
    call(libc::PTRACE_DETACH, task, signal)
}

/// Returns the registers of the stopped `task`.
pub(crate) fn registers(task: u32) -> Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    // SAFETY: the kernel fills the struct to which the last argument points.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GETREGS, task.cast_signed(), null_mut::<u8>(), registers.as_mut_ptr()) };
    if result < 0 {
        return Err(last_error());
    }
    // SAFETY: initialised, according to the result.
    Ok(unsafe { registers.assume_init() })
}

/// Polls whether `task`, which this thread traces, has stopped. Does not wait.
pub(crate) fn stop_status(task: u32) -> StopStatus {
    let mut status = 0;
    // SAFETY: the kernel writes one number.
    let found = unsafe { libc::waitpid(task.cast_signed(), &raw mut status, libc::__WALL | libc::WNOHANG) };
    match found {
        0 => StopStatus::Running,
        found if found < 0 && last_error() == libc::EINTR => StopStatus::Running,
        found if found > 0 && libc::WIFSTOPPED(status) => {
            // An event of the tracer, such as the stop that it requested, is not a signal.
            let is_event = status >> 16 != 0;
            StopStatus::Stopped(if is_event { 0 } else { libc::WSTOPSIG(status) })
        }
        _ => StopStatus::Gone,
    }
}

fn call(request: libc::c_uint, task: u32, data: c_int) -> Result<()> {
    let data = without_provenance_mut::<u8>(usize::try_from(data).unwrap_or(0));
    // SAFETY: these requests take numbers, and access no memory of this process.
    let result: c_long = unsafe { libc::ptrace(request, task.cast_signed(), null_mut::<u8>(), data) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
