//! The table of what is known of each module. It is mapped from the kernel, so that a walk allocates nothing.
//!
//! Each walk writes the modules that it visits into a new table, and drops the old one: unloaded modules are forgotten.

use core::ptr::NonNull;

use crate::platform::interpose::definitions::HookedFunction;
use crate::platform::interpose::module::InterposedModule;
use crate::platform::interpose::relocations::{Binding, FunctionSlot};

/// The number of times that a module is checked again after an unbound slot in it was hooked: a thread that is calling
/// through it at that moment has the loader bind it, which overwrites our hook.
const RECHECKS: u8 = 3;

/// The result of a walk for one module.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub(super) struct ModuleVisit {
    base: u64,
    dynamic: u64,
    /// A slot that was hooked; 0: there is none. `hook` is what it held then. A module that was unloaded and loaded
    /// again at the same address does not hold it.
    witness: u64,
    hook: u64,
    pub(super) slots: u32,
    pub(super) foreign: u32,
    /// Those of `slots` and `foreign` that are of functions which allocate or free blocks.
    pub(super) block_slots: u32,
    pub(super) foreign_block_slots: u32,
    /// The content of the first of `foreign_block_slots`; 0: there is none.
    pub(super) foreign_function: u64,
    has_block_witness: bool,
    rechecks: u8,
    /// Whether slots were skipped until they are bound.
    pub(super) has_unbound_slots: bool,
    /// Whether its read-only pages were left writable, because the loader may still write them.
    pub(super) is_writable: bool,
    /// Whether the loader had bound the module.
    pub(super) is_bound: bool,
}

impl ModuleVisit {
    pub(super) fn of(module: &InterposedModule<'_>) -> Self {
        Self { base: module.loaded.base, dynamic: module.dynamic, ..Self::default() }
    }

    pub(super) fn count(&mut self, slot: FunctionSlot, function: &HookedFunction) {
        // The program may change a variable; another tool takes over slots of functions that allocate.
        let is_block = function.is_block && slot.binding != Binding::InVariable;
        self.slots += 1;
        self.block_slots += u32::from(is_block);
        if self.witness == 0 || is_block && !self.has_block_witness {
            (self.witness, self.hook, self.has_block_witness) = (slot.address, function.hook, is_block);
        }
    }

    /// Counts a slot that holds the function `value` of another tool.
    pub(super) fn count_foreign(&mut self, value: u64, function: &HookedFunction) {
        self.foreign += 1;
        if function.is_block {
            self.foreign_block_slots += 1;
            if self.foreign_function == 0 {
                self.foreign_function = value;
            }
        }
    }

    pub(super) fn request_rechecks(&mut self) {
        self.rechecks = RECHECKS;
    }

    /// Counts down the rechecks that the previous visit requested.
    pub(super) fn count_recheck(&mut self, before: &Self) {
        if self.rechecks == 0 {
            self.rechecks = before.rechecks.saturating_sub(1);
        }
    }

    /// Returns whether it must be checked again even if nothing else is loaded.
    pub(super) fn needs_recheck(&self) -> bool {
        self.rechecks != 0 || self.has_unbound_slots
    }

    /// Returns whether the visit could not do everything.
    pub(super) fn is_unfinished(&self) -> bool {
        self.has_unbound_slots || self.is_writable || !self.is_bound
    }

    /// Returns how many slots of functions that allocate another tool has overwritten since, if this is still the same
    /// module.
    pub(super) fn overwritten(&self) -> u32 {
        let may_be_bound = self.needs_recheck() || self.is_unfinished();
        if may_be_bound || !self.has_block_witness { 0 } else { self.block_slots }
    }

    /// Returns whether this is the module that was visited, if nothing else than possibly this module was unloaded
    /// since.
    pub(super) fn is_same_module(&self, module: &InterposedModule<'_>, any_unloaded: bool) -> bool {
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
pub(super) struct ModuleTable {
    entries: NonNull<ModuleVisit>,
    len: usize,
}

// SAFETY: the table owns its memory.
unsafe impl Send for ModuleTable {}

impl ModuleTable {
    const CAPACITY: usize = 1 << 14;
    const BYTES: usize = Self::CAPACITY * size_of::<ModuleVisit>();

    /// Maps an empty table. The kernel provides its pages when they are used.
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

    /// Adds a module. If the table is full it is not added, and visited again.
    pub(super) fn push(&mut self, visit: ModuleVisit) {
        if self.len < Self::CAPACITY {
            // SAFETY: the position is in the table.
            unsafe { self.entries.add(self.len).write(visit) };
            self.len += 1;
        }
    }

    /// Returns what is known of the module. Modules are looked up in the loader's order, in which later ones come last,
    /// so the search continues at `cursor`, which is 0 at the start of a walk.
    pub(super) fn find(&self, module: &InterposedModule<'_>, cursor: &mut usize) -> Option<&ModuleVisit> {
        let rest = self.entries().get(*cursor..)?;
        let at = rest.iter().position(|visit| visit.base == module.loaded.base && visit.dynamic == module.dynamic)?;
        *cursor += at + 1;
        Some(&rest[at])
    }

    pub(super) fn entries(&self) -> &[ModuleVisit] {
        // SAFETY: our own mapping; this many entries were written.
        unsafe { core::slice::from_raw_parts(self.entries.as_ptr(), self.len) }
    }
}

impl Drop for ModuleTable {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.entries.as_ptr().cast(), Self::BYTES) };
    }
}
