//! What is known of each module: a table in memory of the kernel's, so that a walk allocates nothing.
//!
//! Each walk writes the modules it meets into a new table, and drops the old one: what was unloaded is forgotten.

use core::ptr::NonNull;

use crate::platform::interpose::definitions::Led;
use crate::platform::interpose::module::Module;
use crate::platform::interpose::relocations::{Binding, Slot};

/// How often a module is looked at again after a slot in it was led that was not yet bound: a thread that was calling
/// through it at that moment is having it bound by the loader, which then writes over our hook.
const LOOKS: u8 = 3;

/// What was found in a module.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Visit {
    base: u64,
    dynamic: u64,
    /// A slot that was led and what it held then; 0: there is none. A module that was unloaded and loaded again at the same
    /// place does not hold it.
    witness: u64,
    hook: u64,
    pub(super) slots: u32,
    pub(super) foreign: u32,
    /// Of `slots` and `foreign`, those of functions that allocate and free blocks.
    pub(super) block_slots: u32,
    pub(super) foreign_block_slots: u32,
    /// What the first of `foreign_block_slots` held; 0: there is none.
    pub(super) foreign_function: u64,
    has_block_witness: bool,
    looks: u8,
    /// Whether it has slots that were left until they are bound.
    pub(super) is_open: bool,
    /// Whether its read-only pages were left writable: the loader may not have been done with them.
    pub(super) is_writable: bool,
    /// Whether the loader was done with it.
    pub(super) is_bound: bool,
}

impl Visit {
    pub(super) fn of(module: &Module<'_>) -> Self {
        Self { base: module.loaded.base, dynamic: module.dynamic, ..Self::default() }
    }

    pub(super) fn count(&mut self, slot: Slot, function: &Led) {
        // A variable may be changed by the program; a slot of a function that allocates is what another tool takes over.
        let is_block = function.is_block && slot.binding != Binding::InVariable;
        self.slots += 1;
        self.block_slots += u32::from(is_block);
        if self.witness == 0 || is_block && !self.has_block_witness {
            (self.witness, self.hook, self.has_block_witness) = (slot.address, function.hook, is_block);
        }
    }

    /// Counts a slot that holds the function `value` of somebody else.
    pub(super) fn count_foreign(&mut self, value: u64, function: &Led) {
        self.foreign += 1;
        if function.is_block {
            self.foreign_block_slots += 1;
            if self.foreign_function == 0 {
                self.foreign_function = value;
            }
        }
    }

    pub(super) fn look_again(&mut self) {
        self.looks = LOOKS;
    }

    /// Counts a look at a module that needs more of them.
    pub(super) fn looked(&mut self, before: &Self) {
        if self.looks == 0 {
            self.looks = before.looks.saturating_sub(1);
        }
    }

    /// Whether it should be looked at again, though nothing else is loaded.
    pub(super) fn wants_a_look(&self) -> bool {
        self.looks != 0 || self.is_open
    }

    /// Whether there was more to do than could be done.
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_open || self.is_writable || !self.is_bound
    }

    /// Returns how many slots of functions that allocate somebody else has overwritten since, if this is still the same module.
    pub(super) fn overwritten(&self) -> u32 {
        let may_be_bound = self.wants_a_look() || self.is_unfinished();
        if may_be_bound || !self.has_block_witness { 0 } else { self.block_slots }
    }

    /// Whether it is the module that was visited, if nothing, or nothing but this one, was unloaded since.
    pub(super) fn is_still(&self, module: &Module<'_>, any_unloaded: bool) -> bool {
        if self.witness == 0 {
            return !any_unloaded;
        }
        if !module.is_slot(self.witness) {
            return false;
        }
        let word = core::ptr::with_exposed_provenance::<u64>(self.witness as usize);
        // SAFETY: an aligned word in a segment of the module, which stays loaded while the loader's callback runs.
        unsafe { word.read_volatile() == self.hook }
    }
}

/// The modules of one walk, in the loader's order.
#[derive(Debug)]
pub(super) struct Table {
    entries: NonNull<Visit>,
    len: usize,
}

// SAFETY: memory of its own.
unsafe impl Send for Table {}

impl Table {
    const CAPACITY: usize = 1 << 14;
    const BYTES: usize = Self::CAPACITY * size_of::<Visit>();

    /// An empty table, whose pages are the kernel's until they are used.
    pub(super) fn new() -> Option<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let memory = unsafe { libc::mmap(core::ptr::null_mut(), Self::BYTES, protection, flags, -1, 0) };
        if memory == libc::MAP_FAILED {
            return None;
        }
        Some(Self { entries: NonNull::new(memory.cast())?, len: 0 })
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Remembers a module. When there is no room it is not remembered, and visited again.
    pub(super) fn push(&mut self, visit: Visit) {
        if self.len < Self::CAPACITY {
            // SAFETY: the position is in the table.
            unsafe { self.entries.add(self.len).write(visit) };
            self.len += 1;
        }
    }

    /// What is known of the module. Modules are asked for in the loader's order, in which later ones come last: so what was
    /// passed is not looked at again. `cursor` is 0 when a walk begins.
    pub(super) fn find(&self, module: &Module<'_>, cursor: &mut usize) -> Option<&Visit> {
        let rest = self.entries().get(*cursor..)?;
        let at = rest.iter().position(|visit| visit.base == module.loaded.base && visit.dynamic == module.dynamic)?;
        *cursor += at + 1;
        Some(&rest[at])
    }

    pub(super) fn entries(&self) -> &[Visit] {
        // SAFETY: our own mapping; so many were written.
        unsafe { core::slice::from_raw_parts(self.entries.as_ptr(), self.len) }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.entries.as_ptr().cast(), Self::BYTES) };
    }
}
