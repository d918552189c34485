//! Memory for what a signal handler does, so that it needs little of the stack that it was called on.
//!
//! A handler runs on the thread's alternate stack where there is one, as Go and other runtimes with small stacks require of
//! every handler. That may be small: 8 KB on a thread of Rust's, of which the kernel takes 3 to 11 KB for the registers. The
//! handler blocks all signals meanwhile: another one would begin at the top of the alternate stack, which the kernel takes for free.
//!
//! Async-signal-safe: maps memory, and nothing else.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::ptr;

/// What is mapped. Only pages that are used are backed by memory.
const BYTES: usize = 256 << 10;
/// Nothing is mapped below: what needs more ends the program, in place of overwriting other memory.
const GUARD: usize = 4096;
/// What stays free above the first frame. A callee may read where arguments on the stack would be, whether there are any or
/// not: glibc's `syscall` always reads a seventh one, which lies above the frame that called `work` by a jump.
const ABOVE: usize = 128;

/// Runs `work` on a stack of its own; on this one if there is no memory.
pub(crate) fn on_own_stack<Work: FnOnce()>(work: Work) {
    unsafe extern "C" fn run<Work: FnOnce()>(work: *mut c_void) {
        // SAFETY: a pointer to the value below, which is taken once.
        if let Some(work) = unsafe { (*work.cast::<Option<Work>>()).take() } {
            work();
        }
    }
    let mut work = Some(work);
    let argument: *mut c_void = (&raw mut work).cast();
    match Memory::map() {
        // SAFETY: the memory is large enough and unused, and the function fits its argument.
        Some(memory) => unsafe { call_on(memory.top(), run::<Work>, argument) },
        // SAFETY: as above.
        None => unsafe { run::<Work>(argument) },
    }
}

/// Calls a function with the stack pointer at `top`.
///
/// # Safety
/// Below `top`, which is a multiple of 16, is memory that nobody uses; the function may be called with the argument, and returns.
#[unsafe(naked)]
unsafe extern "C" fn call_on(top: *mut c_void, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

/// Mapped memory, until it is dropped.
struct Memory(*mut c_void);

impl Memory {
    fn map() -> Option<Self> {
        const FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        // SAFETY: a new mapping, whose first page is made inaccessible.
        unsafe {
            let start = libc::mmap(ptr::null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, FLAGS, -1, 0);
            if start == libc::MAP_FAILED {
                return None;
            }
            libc::mprotect(start, GUARD, libc::PROT_NONE);
            Some(Self(start))
        }
    }

    fn top(&self) -> *mut c_void {
        self.0.wrapping_byte_add(BYTES - ABOVE)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing runs on it any more.
        unsafe { libc::munmap(self.0, BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_above_the_first_frame_can_be_read() {
        let memory = Memory::map().unwrap();
        assert_eq!(memory.top().addr() % 16, 0);
        let above = memory.top().cast::<[u64; ABOVE / 8]>();
        // SAFETY: that many bytes of the memory are left free.
        assert_eq!(unsafe { above.read_volatile() }, [0; ABOVE / 8], "fresh memory");
    }

    #[test]
    fn work_runs_elsewhere_and_comes_back() {
        let (mut place, mut large) = (0_usize, 0);
        let here = &raw const place as usize;
        on_own_stack(|| {
            let memory = std::hint::black_box([1_u8; 16 << 10]);
            place = memory.as_ptr().addr();
            large = memory.iter().map(|byte| usize::from(*byte)).sum();
        });
        assert_eq!(large, 16 << 10);
        assert!(place.abs_diff(here) > BYTES, "{place:#x} {here:#x}");
    }
}
