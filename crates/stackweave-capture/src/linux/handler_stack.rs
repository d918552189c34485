//! A mapped stack for the work of a signal handler, so that it needs little of the stack on which it was called.
//!
//! A handler runs on the thread's alternate stack if there is one, as Go and other runtimes with small stacks
//! require of every handler. That may be small: 8 KB on Rust's threads, of which the kernel uses 3 to 11 KB for
//! the registers. The handler blocks all signals meanwhile: another one would begin at the top of the alternate
//! stack, which the kernel regards as free.
//!
//! Async-signal-safe: maps memory, and nothing else.

use core::arch::naked_asm;
use core::ffi::c_void;
use core::ptr;

/// The size of the mapping. Only used pages are backed by memory.
const BYTES: usize = 256 << 10;
/// An inaccessible page below the stack: an overflow ends the program instead of overwriting other memory.
const GUARD: usize = 4096;
/// The free bytes above the first frame. A callee may read where arguments on the stack would be, even if there
/// are none: glibc's `syscall` always reads a seventh argument, which is above the frame that called `work` by a
/// jump.
const RESERVED_ABOVE: usize = 128;

/// Runs `work` on a mapped stack, or on the current one if there is no memory.
pub(crate) fn on_mapped_stack<Work: FnOnce()>(work: Work) {
    unsafe extern "C" fn run<Work: FnOnce()>(work: *mut c_void) {
        // SAFETY: a pointer to the value below, which is taken once.
        if let Some(work) = unsafe { (*work.cast::<Option<Work>>()).take() } {
            work();
        }
    }
    let mut work = Some(work);
    let argument: *mut c_void = (&raw mut work).cast();
    match MappedMemory::map() {
        // SAFETY: the memory is large enough and unused, and the function has the type of its argument.
        Some(memory) => unsafe { call_on(memory.top(), run::<Work>, argument) },
        // SAFETY: the function has the type of its argument.
        None => unsafe { run::<Work>(argument) },
    }
}

/// Calls a function with the stack pointer at `top`.
///
/// # Safety
/// Below `top`, which is a multiple of 16, is unused memory; the function may be called with the argument, and
/// returns.
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
struct MappedMemory(*mut c_void);

impl MappedMemory {
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
        self.0.wrapping_byte_add(BYTES - RESERVED_ABOVE)
    }
}

impl Drop for MappedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and nothing runs on it any longer.
        unsafe { libc::munmap(self.0, BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_above_the_first_frame_is_readable() {
        let memory = MappedMemory::map().unwrap();
        assert_eq!(memory.top().addr() % 16, 0);
        let above = memory.top().cast::<[u64; RESERVED_ABOVE / 8]>();
        // SAFETY: that many bytes of the mapping are reserved.
        assert_eq!(unsafe { above.read_volatile() }, [0; RESERVED_ABOVE / 8], "fresh memory");
    }

    #[test]
    fn work_runs_on_the_mapped_stack_and_returns() {
        let (mut place, mut large) = (0_usize, 0);
        let here = &raw const place as usize;
        on_mapped_stack(|| {
            let memory = std::hint::black_box([1_u8; 16 << 10]);
            place = memory.as_ptr().addr();
            large = memory.iter().map(|byte| usize::from(*byte)).sum();
        });
        assert_eq!(large, 16 << 10);
        assert!(place.abs_diff(here) > BYTES, "{place:#x} {here:#x}");
    }
}
