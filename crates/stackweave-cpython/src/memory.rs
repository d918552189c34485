//! Reads the interpreter's memory: plain loads after a cheap check of the address, and reads that can't fault.
//!
//! Hot file: no allocation, no lock, no GIL, async-signal-safe.

use core::ffi::c_void;

/// Returns whether a word can point to one of the interpreter's structures: aligned, not null, in user space.
#[inline(always)]
pub fn is_plausible(address: u64) -> bool {
    // Rotated by the alignment, a misplaced low bit makes the word as large as an address of the kernel.
    address.rotate_right(ALIGNMENT).wrapping_sub(FIRST_PAGE >> ALIGNMENT) < (USER_HALF - FIRST_PAGE) >> ALIGNMENT
}

const ALIGNMENT: u32 = 3;
const USER_HALF: u64 = 1 << 47;
/// The end of the first page. No memory is ever mapped below.
const FIRST_PAGE: u64 = 4096;

/// Returns the word at `address + offset`.
///
/// # Safety
/// The word is readable.
#[inline(always)]
pub(crate) unsafe fn word(address: u64, offset: usize) -> u64 {
    // SAFETY: the caller vouches that it is readable; structures of the interpreter are aligned.
    unsafe { load::<u64>(address, offset) }
}

/// Returns a value of another type.
///
/// # Safety
/// As for [`word`]; any bits are a valid `T`.
#[inline(always)]
pub(crate) unsafe fn load<T: Copy>(address: u64, offset: usize) -> T {
    let pointer = core::ptr::with_exposed_provenance::<u8>(address as usize + offset);
    // SAFETY: the caller vouches that it is readable. A volatile read, because a signal may have interrupted its
    // writer.
    unsafe { pointer.cast::<T>().read_volatile() }
}

/// Writes a field.
///
/// # Safety
/// The field belongs to the interpreter and has this type, and the GIL is held.
pub(crate) unsafe fn store<T: Copy>(address: u64, offset: usize, value: T) {
    let pointer = core::ptr::with_exposed_provenance_mut::<u8>(address as usize + offset);
    // SAFETY: passed on to the caller. Volatile, because a signal handler may walk the frames at any moment.
    unsafe { pointer.cast::<T>().write_volatile(value) }
}

/// Returns the word as a value that the compiler can't relate to others. After a comparison it may use one of two equal
/// words for the other: it would replace a prediction by the value that was predicted, and wait for that.
#[inline(always)]
pub(crate) fn opaque(mut word: u64) -> u64 {
    // SAFETY: no instruction.
    unsafe { core::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags)) };
    word
}

/// Copies words from `address` by a system call, which returns false instead of faulting if they can't be read.
pub(crate) fn copy_guarded(address: u64, words: &mut [u64]) -> bool {
    let length = size_of_val(words);
    let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as usize as *mut c_void, iov_len: length };
    // SAFETY: the kernel only writes into `words`, and checks the other address itself; errno is restored, because the
    // code that a signal interrupted may be about to read it.
    let copied = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let copied = libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0);
        *errno = before;
        copied
    };
    usize::try_from(copied) == Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_addresses_are_recognised_by_their_bits() {
        for (address, expected) in [
            (0, false),
            (8, false),
            (4096, true),
            (4097, false),
            (0x7fff_ffff_fff8, true),
            (1 << 47, false),
            (u64::MAX - 7, false),
        ] {
            assert_eq!(is_plausible(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn a_guarded_copy_of_unmapped_memory_fails_without_a_fault() {
        let source = [1_u64, 2, 3];
        let mut words = [0; 3];
        assert!(copy_guarded(source.as_ptr() as u64, &mut words));
        assert_eq!(words, source);
        assert!(!copy_guarded(4096, &mut words));
        assert!(!copy_guarded(u64::MAX - 7, &mut words));
    }
}
