//! The calls of `ptrace` that an inspection needs. Nothing here writes to the other process.

use core::ffi::{c_int, c_long};
use core::mem::MaybeUninit;
use core::ptr::{null_mut, without_provenance_mut};

/// What the kernel says, as an error number.
pub(crate) type Result<T> = core::result::Result<T, c_int>;

/// What a thread has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It still runs, or waits in the kernel.
    NotYet,
    /// It is stopped, and was about to be given this signal; 0 if none.
    Stopped(c_int),
    /// It has ended.
    Gone,
}

/// Makes this thread the tracer of `task`, which goes on running. It is let go when this thread ends, however that comes.
pub(crate) fn seize(task: u32) -> Result<()> {
    call(libc::PTRACE_SEIZE, task, 0)
}

/// Asks `task` to stop, wherever it is.
pub(crate) fn interrupt(task: u32) -> Result<()> {
    call(libc::PTRACE_INTERRUPT, task, 0)
}

/// Lets `task` go, which is stopped, and gives it the signal that it was about to get. A process that somebody stopped
/// by a signal stays so.
pub(crate) fn let_go(task: u32, signal: c_int) -> Result<()> {
    call(libc::PTRACE_DETACH, task, signal)
}

/// The registers of `task`, which is stopped.
pub(crate) fn registers(task: u32) -> Result<libc::user_regs_struct> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::uninit();
    // SAFETY: the kernel fills in what the last argument points to, which is large enough.
    let result =
        unsafe { libc::ptrace(libc::PTRACE_GETREGS, task.cast_signed(), null_mut::<u8>(), registers.as_mut_ptr()) };
    if result < 0 {
        return Err(last_error());
    }
    // SAFETY: filled in, as the result says.
    Ok(unsafe { registers.assume_init() })
}

/// What `task`, which this thread traces, has come to. Does not wait.
pub(crate) fn arrival(task: u32) -> Arrival {
    let mut status = 0;
    // SAFETY: the kernel writes one number.
    let found = unsafe { libc::waitpid(task.cast_signed(), &raw mut status, libc::__WALL | libc::WNOHANG) };
    match found {
        0 => Arrival::NotYet,
        found if found < 0 && last_error() == libc::EINTR => Arrival::NotYet,
        found if found > 0 && libc::WIFSTOPPED(status) => {
            // An event of the tracer's own making, such as the stop that it asked for, is no signal.
            let is_event = status >> 16 != 0;
            Arrival::Stopped(if is_event { 0 } else { libc::WSTOPSIG(status) })
        }
        _ => Arrival::Gone,
    }
}

fn call(request: libc::c_uint, task: u32, data: c_int) -> Result<()> {
    let data = without_provenance_mut::<u8>(usize::try_from(data).unwrap_or(0));
    // SAFETY: these requests take numbers, and touch no memory of this process.
    let result: c_long = unsafe { libc::ptrace(request, task.cast_signed(), null_mut::<u8>(), data) };
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
