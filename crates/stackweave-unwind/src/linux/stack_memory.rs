//! The memory that a walk may read.
//!
//! Every read of a walk is in one contiguous, readable range that begins at the stack pointer. For a thread's own
//! stack, that range is found once and kept: its upper end is fixed (the thread control block, or the program's
//! arguments for the first thread), its lower end follows the stack as it grows. Any other stack (a coroutine's,
//! an alternate signal stack) may be unmapped before the next capture, so it is probed page by page each time.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::arch;
use crate::platform::stepping::ReadMemory;

const PAGE: u64 = 4096;

/// The distance above the stack pointer at which a thread's own stack may end: beyond that, it is treated as a foreign
/// stack.
const OWN_STACK_LIMIT: u64 = 1 << 30;

/// The number of bytes of a foreign stack that one capture may read.
const FOREIGN_STACK_LIMIT: u64 = 1 << 26;

/// A thread's stacks, as far as they are known between captures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownStacks {
    own: (u64, u64),
    /// A range that does not extend to the end of the thread's own stack.
    foreign: (u64, u64),
    /// The end of the first thread's stack.
    process_top: u64,
}

impl KnownStacks {
    pub(crate) fn new() -> Self {
        // SAFETY: reads the auxiliary vector, which exists for the life of the process.
        let name = unsafe { libc::getauxval(libc::AT_EXECFN) };
        Self { own: (0, 0), foreign: (0, 0), process_top: page_end(name) }
    }

    /// Returns whether `sp` is in the known part of the thread's own stack.
    #[inline(always)]
    pub(crate) fn owns(&self, sp: u64) -> bool {
        sp >= self.own.0 && sp < self.own.1
    }

    /// Returns the end of the thread's own stack.
    #[inline(always)]
    pub(crate) fn own_end(&self) -> u64 {
        self.own.1
    }

    /// Returns whether `address` is in a known part of the thread's own stack below `sp`.
    pub(crate) fn owns_both(&self, address: u64, sp: u64) -> bool {
        self.owns(address) && self.owns(sp)
    }

    /// Extends the thread's own stack down to `sp`, if everything in between is readable.
    fn learn(&mut self, sp: u64) -> bool {
        let tops = [arch::thread_control_block(), self.process_top];
        let Some(top) = tops.into_iter().filter(|top| *top > sp).min() else { return false };
        if top - sp > OWN_STACK_LIMIT || (sp >= self.foreign.0 && sp < self.foreign.1) {
            return false;
        }
        let start = page_start(sp);
        let known = if self.own.1 == top { self.own.0 } else { top };
        let mut page = start;
        while page < known {
            if !is_readable(page) {
                self.foreign = (start, page);
                return false;
            }
            page += PAGE;
        }
        self.own = (start, top);
        true
    }
}

/// The range that the current walk may read.
#[derive(Debug)]
pub(crate) struct StackMemory<'a> {
    known: &'a mut KnownStacks,
    low: u64,
    high: u64,
    is_foreign: bool,
}

impl<'a> StackMemory<'a> {
    /// Creates the memory of a walk that has not entered any stack yet.
    #[inline(always)]
    pub(crate) fn new(known: &'a mut KnownStacks) -> Self {
        Self { known, low: 0, high: 0, is_foreign: false }
    }

    /// Enters the stack that contains `sp`; `false` if it cannot be read.
    #[inline(always)]
    pub(crate) fn enter(&mut self, sp: u64) -> bool {
        if self.known.owns(sp) {
            (self.low, self.high, self.is_foreign) = (sp, self.known.own.1, false);
            return true;
        }
        self.enter_unknown(sp)
    }

    #[cold]
    #[inline(never)]
    fn enter_unknown(&mut self, sp: u64) -> bool {
        if self.known.learn(sp) {
            return self.enter(sp);
        }
        (self.low, self.high, self.is_foreign) = (sp, page_end(sp), true);
        let readable = sp >> 47 == 0 && is_readable(page_start(sp));
        if !readable {
            self.high = sp;
        }
        readable
    }

    /// Returns whether this is not the thread's own stack.
    #[inline(always)]
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Returns the end of the range that is known to be readable.
    #[inline(always)]
    pub(crate) fn high(&self) -> u64 {
        self.high
    }

    /// Extends the range up to `end`, if possible.
    #[inline(always)]
    pub(crate) fn reaches(&mut self, end: u64) -> bool {
        end <= self.high || self.extend(end)
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, end: u64) -> bool {
        if !self.is_foreign || end.saturating_sub(self.low) > FOREIGN_STACK_LIMIT {
            return false;
        }
        while self.high < end {
            if !is_readable(self.high) {
                return false;
            }
            self.high += PAGE;
        }
        true
    }

    /// Returns the word at `address`, if it is in the range, or in the red zone just below it: the words that an
    /// interrupted function has just popped are still there.
    pub(crate) fn read(&mut self, address: u64) -> Option<u64> {
        let end = address.checked_add(8)?;
        let is_inside = address >= self.low || self.is_in_red_zone(address);
        if !is_inside || !self.reaches(end) {
            return None;
        }
        // SAFETY: low <= address, or the red zone's page is also readable; and address + 8 <= high.
        Some(unsafe { read_word(address) })
    }

    fn is_in_red_zone(&self, address: u64) -> bool {
        const RED_ZONE: u64 = 128;
        let is_below = self.low.wrapping_sub(address) <= RED_ZONE && !self.is_empty();
        is_below && (page_start(address) == page_start(self.low) || is_readable(address))
    }

    fn is_empty(&self) -> bool {
        self.high <= self.low
    }
}

impl ReadMemory for StackMemory<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        self.read(address)
    }

    /// Checks with the kernel before it reads.
    fn code<const N: usize>(&mut self, address: u64) -> Option<[u8; N]> {
        const { assert!(N as u64 <= PAGE) };
        let last = address.checked_add(N as u64)?.checked_sub(8)?;
        if last >> 47 != 0 || !is_readable(address) || !is_readable(last) {
            return None;
        }
        let pointer = core::ptr::with_exposed_provenance::<[u8; N]>(address as usize);
        // SAFETY: both ends are readable, and the bytes span at most two pages.
        Some(unsafe { pointer.read_unaligned() })
    }
}

/// Reads a word of stack.
///
/// # Safety
/// The eight bytes at `address` are readable.
#[inline(always)]
pub(crate) unsafe fn read_word(address: u64) -> u64 {
    let pointer = core::ptr::with_exposed_provenance::<u64>(address as usize);
    // SAFETY: the caller promises a readable address; a malformed table may make it unaligned.
    unsafe { pointer.read_unaligned() }
}

fn page_start(address: u64) -> u64 {
    address & !(PAGE - 1)
}

fn page_end(address: u64) -> u64 {
    page_start(address).saturating_add(PAGE)
}

/// Returns whether the eight bytes at `address` can be read, according to the kernel and without accessing them:
/// `rt_sigprocmask` with an invalid `how` copies the new mask before it fails.
pub(crate) fn is_readable(address: u64) -> bool {
    const IMPOSSIBLE_HOW: u64 = u64::MAX;
    // SAFETY: with an invalid `how`, the call changes nothing; a bad pointer is reported, not followed.
    let result = unsafe { arch::syscall4(libc::SYS_rt_sigprocmask, [IMPOSSIBLE_HOW, address, 0, 8]) };
    result == -i64::from(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_of<T>(value: &T) -> u64 {
        core::ptr::from_ref(value).expose_provenance() as u64
    }

    #[test]
    fn readable_addresses_are_recognised() {
        let word = 7u64;
        assert!(is_readable(address_of(&word)));
        assert!(!is_readable(0));
        assert!(!is_readable(8));
        assert!(!is_readable(0xffff_8000_0000_0000));
        assert!(!is_readable(u64::MAX - 7));
    }

    #[test]
    fn the_threads_own_stack_is_read_and_adjacent_memory_is_not() {
        let word = 0x1234_5678_9abc_def0u64;
        let mut known = KnownStacks::new();
        let mut memory = StackMemory::new(&mut known);
        assert!(memory.enter(address_of(&word)));
        assert!(!memory.is_foreign);
        assert_eq!(memory.read(address_of(&word)), Some(word));
        assert!(memory.read(address_of(&word) - 128).is_some(), "the red zone");
        assert_eq!(memory.read(address_of(&word) - 136), None, "below the red zone");
        assert_eq!(memory.read(memory.high()), None, "above the stack");
        assert_eq!(memory.read(u64::MAX - 3), None);
    }

    #[test]
    fn a_foreign_stack_is_read_up_to_its_end() {
        let length = 5 * PAGE as usize;
        // SAFETY: a fresh anonymous mapping.
        let map = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        // Make a page before the stack and one behind it unreadable.
        let start = map.expose_provenance() as u64 + PAGE;
        for page in [0, length - PAGE as usize] {
            // SAFETY: a page of that mapping.
            assert_eq!(unsafe { libc::mprotect(map.byte_add(page), PAGE as usize, libc::PROT_NONE) }, 0);
        }
        let mut known = KnownStacks::new();
        let mut memory = StackMemory::new(&mut known);
        assert!(memory.enter(start + 64));
        assert!(memory.is_foreign);
        assert_eq!(memory.read(start + 3 * PAGE - 8), Some(0));
        assert_eq!(memory.read(start + 3 * PAGE - 4), None);
        assert_eq!(memory.read(start + 3 * PAGE), None);
        assert_eq!(memory.read(start - 16), None, "the red zone, in a page that can't be read");
        assert!(!memory.enter(start + 3 * PAGE + 8));
        // SAFETY: unmaps the mapping made above.
        unsafe { libc::munmap(map, length) };
        assert!(!StackMemory::new(&mut known).enter(start + 64));
    }
}
