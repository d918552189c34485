//! Classifies what a slot holds, and writes slots.
//!
//! A slot is one aligned word. It is replaced atomically, and only if it still holds the value that was read: other
//! threads may call through it, and the loader may bind it, at any moment. Pages that the loader has made read-only,
//! according to the module's headers, are made read-only again.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::platform::interpose::definitions::{HookTable, HookedFunction};
use crate::platform::interpose::loader_hooks::any_deep_binding;
use crate::platform::interpose::module::InterposedModule;
use crate::platform::interpose::module_table::ModuleVisit;
use crate::platform::interpose::relocations::{Binding, FunctionSlot, visit_slots};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotContent {
    Hook,
    Definition,
    /// A stub of the module itself, which calls the loader at the first call.
    Unbound,
    /// Unbound, and what it will be bound to is unknown.
    Uncertain,
    /// The stub of the program, which leads to another slot that is hooked.
    ProgramStub,
    /// A weak reference to nothing.
    Nothing,
    /// A variable that the program has changed.
    Changed,
    Foreign,
}

fn content(module: &InterposedModule<'_>, slot: FunctionSlot, function: &HookedFunction, value: u64) -> SlotContent {
    if value == function.hook {
        SlotContent::Hook
    } else if value == function.definition {
        SlotContent::Definition
    } else if value == 0 {
        SlotContent::Nothing
    } else if value == function.stub {
        SlotContent::ProgramStub
    } else if slot.binding == Binding::ByCall && module.is_code(value) && Some(value) != slot.own_definition {
        let prefers_its_own = slot.own_definition.is_some_and(|own| own != function.definition);
        if prefers_its_own || any_deep_binding() { SlotContent::Uncertain } else { SlotContent::Unbound }
    } else if slot.binding == Binding::ByCall && module.is_code(module.loaded.base.wrapping_add(value)) {
        // The slot has its value from the file: the loader has mapped the module, but not relocated it yet.
        SlotContent::Uncertain
    } else if slot.binding == Binding::InVariable {
        SlotContent::Changed
    } else {
        SlotContent::Foreign
    }
}

/// Changes the module's slots to the hooks.
pub(super) fn hook(module: &InterposedModule<'_>, definitions: &HookTable, may_protect: bool) -> ModuleVisit {
    let mut visit = ModuleVisit::of(module);
    let mut pages = Pages::new(module);
    let is_allocator = module.loaded.holds(definitions.allocator);
    let find = |strings: &[u8]| definitions.named(strings);
    visit_slots(module, find, |slot, function| {
        if is_allocator && function.is_mapping {
            return;
        }
        let word = word(slot.address);
        let value = word.load(Ordering::Relaxed);
        match content(module, slot, function, value) {
            SlotContent::Hook => visit.count(slot, function),
            SlotContent::Definition => {
                if pages.replace(slot.address, value, function.hook) {
                    visit.count(slot, function);
                }
            }
            SlotContent::Unbound => {
                if pages.replace(slot.address, value, function.hook) {
                    visit.count(slot, function);
                    visit.request_rechecks();
                }
            }
            SlotContent::Uncertain => visit.has_unbound_slots = true,
            SlotContent::Foreign => visit.count_foreign(value, function),
            SlotContent::ProgramStub | SlotContent::Nothing | SlotContent::Changed => {}
        }
    });
    visit.is_writable = pages.finish(may_protect);
    visit
}

/// Restores what the loader would have put there. A slot that was not yet bound is then bound, as by a first call.
pub(super) fn restore(module: &InterposedModule<'_>, definitions: &HookTable, may_protect: bool) {
    let mut pages = Pages::new(module);
    let find = |strings: &[u8]| definitions.named(strings);
    visit_slots(module, find, |slot, function| {
        pages.replace(slot.address, function.hook, function.definition);
    });
    pages.finish(may_protect);
}

/// Makes this module's own slots hold the original, if they hold a program's stub, which would lead to the program's
/// slot and its hook. What we allocate is not the program's.
pub(super) fn bypass_stubs(module: &InterposedModule<'_>, definitions: &HookTable, may_protect: bool) -> ModuleVisit {
    let mut visit = ModuleVisit::of(module);
    let mut pages = Pages::new(module);
    let find = |strings: &[u8]| definitions.named(strings).filter(|function| function.stub != 0);
    visit_slots(module, find, |slot, function| {
        pages.replace(slot.address, function.stub, function.definition);
    });
    visit.is_writable = pages.finish(may_protect);
    visit
}

/// Makes the pages read-only that the module's headers declare so.
pub(super) fn protect(module: &InterposedModule<'_>) {
    let mut pages = Pages::new(module);
    pages.is_writable = !pages.range.is_empty();
    pages.finish(true);
}

fn word(address: u64) -> &'static AtomicU64 {
    // SAFETY: the callers have the address from `visit_slots`: an aligned word in a segment of a module that stays
    // loaded while the loader's callback runs, and it is used only there. The loader itself writes it as one word.
    unsafe { AtomicU64::from_ptr(core::ptr::with_exposed_provenance_mut(address as usize)) }
}

/// The pages of a module that are read-only after binding. They are made writable when the first slot in them is
/// written.
struct Pages {
    range: core::ops::Range<u64>,
    is_writable: bool,
}

impl Pages {
    fn new(module: &InterposedModule<'_>) -> Self {
        Self { range: module.read_only_after_binding(), is_writable: false }
    }

    /// Replaces `old` by `new` in the slot. Returns whether it held `old`.
    fn replace(&mut self, slot: u64, old: u64, new: u64) -> bool {
        let word = word(slot);
        if word.load(Ordering::Relaxed) != old {
            return false;
        }
        if self.range.contains(&slot) && !self.is_writable {
            self.is_writable = self.set(libc::PROT_READ | libc::PROT_WRITE);
            if !self.is_writable {
                return false;
            }
        }
        word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Makes the pages read-only again if `may_protect`. Returns whether they are still writable.
    fn finish(&mut self, may_protect: bool) -> bool {
        if self.is_writable && may_protect {
            self.is_writable = !self.set(libc::PROT_READ);
        }
        self.is_writable
    }

    fn set(&self, protection: libc::c_int) -> bool {
        let start = core::ptr::with_exposed_provenance_mut(self.range.start as usize);
        let length = (self.range.end - self.range.start) as usize;
        // SAFETY: whole pages of a module, which the loader itself made read-only after it had filled them in.
        unsafe { libc::mprotect(start, length, protection) == 0 }
    }
}
