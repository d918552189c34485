//! Registered code outside of modules, such as that of a just-in-time compiler.
//!
//! There are two ways to register: [`register_code`] here, and libgcc's `__register_frame`, which LLVM's compilers
//! call. Stackweave's own registrations are searched without a lock; removing one waits until no capture is
//! reading them.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::platform::cfi::{Cie, Table, TableSection, rule_at};
use crate::platform::process_count::ProcessCount;
use crate::platform::rule::Rule;

/// A range of generated code whose frames Stackweave can walk through, until this is dropped.
#[derive(Debug)]
#[must_use = "dropping it makes the code unknown again"]
pub struct RegisteredCode {
    code: *const CodeRegistration,
}

// SAFETY: the pointer is to an immutable value that only `drop` frees.
unsafe impl Send for RegisteredCode {}
// SAFETY: the value is immutable, and shared references give no access to it.
unsafe impl Sync for RegisteredCode {}

/// One registration.
#[derive(Debug)]
struct CodeRegistration {
    start: u64,
    length: u64,
    /// A copy of its `.eh_frame`, and the address of the original; empty: the code keeps frame pointers.
    entries: Vec<u8>,
    entries_address: u64,
}

/// The registrations. The list is replaced as a whole when one is added or removed.
static CODES: AtomicPtr<Vec<*const CodeRegistration>> = AtomicPtr::new(core::ptr::null_mut());
/// The captures that are reading `CODES`.
static READERS: ProcessCount = ProcessCount::new();
/// Incremented when a registration is removed: rules that were read from it must be dropped, as for an unloaded
/// module.
static REMOVALS: AtomicU64 = AtomicU64::new(0);
/// Serialises additions and removals; captures never take it.
static CHANGES: ProcessCount = ProcessCount::new();

/// Registers generated code.
///
/// `eh_frame` is the code's unwind table, as in an object file's `.eh_frame` section, loaded and relocated at its
/// address; it is copied. Without one (an empty slice), the code must keep frame pointers: `push %rbp; mov %rsp,
/// %rbp` at each function's start.
///
/// Must not be called from a signal handler; nor may the result be dropped in one.
pub fn register_code(start: *const u8, length: usize, eh_frame: &[u8]) -> RegisteredCode {
    let code = Box::into_raw(Box::new(CodeRegistration {
        start: start.addr() as u64,
        length: length as u64,
        entries: eh_frame.to_vec(),
        entries_address: eh_frame.as_ptr().addr() as u64,
    }));
    change(|codes| codes.push(code));
    RegisteredCode { code }
}

impl Drop for RegisteredCode {
    fn drop(&mut self) {
        change(|codes| codes.retain(|code| *code != self.code));
        REMOVALS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: `change` has waited until no reader can still see it.
        drop(unsafe { Box::from_raw(self.code.cast_mut()) });
    }
}

/// Replaces the list by a changed copy, and waits until no thread reads the old one.
fn change(edit: impl FnOnce(&mut Vec<*const CodeRegistration>)) {
    while !CHANGES.try_enter_alone() {
        std::thread::yield_now();
    }
    let old = CODES.load(Ordering::SeqCst);
    // SAFETY: only the one thread that changes the list replaces it, and frees it afterwards. In a child that was
    // forked meanwhile, the list is the old or the new one, both of which are complete; what the other thread had
    // not freed yet is never freed.
    let mut codes = if old.is_null() { Vec::new() } else { unsafe { (*old).clone() } };
    edit(&mut codes);
    CODES.store(Box::into_raw(Box::new(codes)), Ordering::SeqCst);
    while !READERS.is_empty() {
        std::thread::yield_now();
    }
    if !old.is_null() {
        // SAFETY: no reader was left after the new list was stored.
        drop(unsafe { Box::from_raw(old) });
    }
    CHANGES.leave();
}

/// Returns the number of removed registrations.
#[inline(always)]
pub(crate) fn removals() -> u64 {
    REMOVALS.load(Ordering::Relaxed)
}

/// Returns the rule for `pc` if it is in registered code.
pub(crate) fn rule(pc: u64) -> Option<Rule> {
    with_code(pc, |code| {
        if code.entries.is_empty() {
            return Rule::frame_pointer();
        }
        let section = TableSection { bytes: &code.entries, address: code.entries_address };
        rule_at(&Table::from_entries(section), pc, &mut { Cie::NONE })
    })
}

/// Calls `then` with the unwind entries of the registered code that contains `pc`.
pub(crate) fn with_entries<R>(pc: u64, then: impl FnOnce(Table<'_>) -> R) -> Option<R> {
    with_code(pc, |code| {
        then(Table::from_entries(TableSection { bytes: &code.entries, address: code.entries_address }))
    })
}

fn with_code<R>(pc: u64, then: impl FnOnce(&CodeRegistration) -> R) -> Option<R> {
    if CODES.load(Ordering::Relaxed).is_null() {
        return None;
    }
    READERS.enter();
    let codes = CODES.load(Ordering::SeqCst);
    // SAFETY: the list, and each registration in it, is valid while READERS is not empty.
    let code = unsafe { (*codes).iter().map(|code| &**code) }.find(|code| pc.wrapping_sub(code.start) < code.length);
    let result = code.map(then);
    READERS.leave();
    result
}

/// Returns libgcc's unwind entry for `pc`, as a section and the entry's offset in it.
///
/// Before GCC 13, libgcc takes a lock here if anything was registered with it, so this is not for signal handlers.
/// The result is never cached, because libgcc does not report when it becomes invalid.
pub(crate) fn libgcc_entry(pc: u64) -> Option<(TableSection<'static>, usize)> {
    unsafe extern "C" {
        fn _Unwind_Find_FDE(pc: *const c_void, bases: *mut [*const c_void; 3]) -> *const c_void;
    }
    let mut bases = [core::ptr::null(); 3];
    // SAFETY: the address is only compared, and `bases` is large enough.
    let entry = unsafe { _Unwind_Find_FDE(core::ptr::without_provenance(pc as usize), &raw mut bases) };
    if entry.is_null() {
        return None;
    }
    // SAFETY: libgcc returned a complete entry: a 32-bit length, then the distance back to its CIE.
    let (length, distance) = unsafe {
        (entry.cast::<u32>().read_unaligned() as usize, entry.cast::<u32>().add(1).read_unaligned() as usize)
    };
    let cie = entry.addr().checked_add(4)?.checked_sub(distance)?;
    if length >= u32::MAX as usize || distance == 0 || cie > entry.addr() {
        return None;
    }
    let offset = entry.addr() - cie;
    // SAFETY: both entries belong to one table, which is valid while its code is on the stack.
    let bytes = unsafe { core::slice::from_raw_parts(entry.byte_sub(offset).cast(), offset + 4 + length) };
    Some((TableSection { bytes, address: cie as u64 }, offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Waits for a child, at most for a minute, and returns its exit status; a child that hangs is killed.
    fn status_of(child: libc::pid_t) -> Option<i32> {
        let mut status = 0;
        for _ in 0..6_000 {
            // SAFETY: a child of this process, and valid memory for its status.
            if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
                return libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // SAFETY: as above.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, &raw mut status, 0);
        }
        None
    }

    #[test]
    fn a_child_forked_during_a_read_and_a_change_can_register_and_remove() {
        static PLACE: [u8; 16] = [0; 16];
        let pc = PLACE.as_ptr().addr() as u64;
        let registered = register_code(PLACE.as_ptr(), PLACE.len(), &[]);
        let (inside, is_inside) = channel();
        let (end, ended) = channel::<()>();
        let reader = std::thread::spawn(move || {
            with_code(pc, |_| {
                inside.send(()).unwrap();
                ended.recv().unwrap();
            })
        });
        is_inside.recv().unwrap();
        // It waits for the reader, in the middle of a change.
        let changer = std::thread::spawn(|| drop(register_code(PLACE.as_ptr(), 1, &[])));
        while CHANGES.is_empty() {
            std::thread::yield_now();
        }
        // SAFETY: the child allocates, which glibc allows, and ends without running any of the parent's code.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(register_code(PLACE.as_ptr(), 8, &[]));
            let is_known = with_code(pc, |code| code.length).is_some();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(if is_known { 7 } else { 8 }) };
        }
        let status = status_of(child);
        end.send(()).unwrap();
        reader.join().unwrap();
        changer.join().unwrap();
        drop(registered);
        assert_eq!(status, Some(7), "the child hangs, or has lost the registered code");
    }
}
