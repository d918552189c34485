//! What a slot holds, and how it is written.
//!
//! A slot is one aligned word, replaced in one piece and only if it still holds what was seen: other threads may call through
//! it, and the loader may bind it, at any moment. Pages that the loader has made read-only are so again afterwards, by what
//! the module's headers say.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::platform::interpose::definitions::{Definitions, Led};
use crate::platform::interpose::loading::any_deep_binding;
use crate::platform::interpose::module::Module;
use crate::platform::interpose::relocations::{Binding, Slot, visit_slots};
use crate::platform::interpose::visited::Visit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    Hook,
    Definition,
    /// A stub of the module's own, which asks the loader at the first call.
    Unbound,
    /// Unbound, and nobody knows what it will be bound to.
    Uncertain,
    /// What leads to another slot, which is led.
    ByWay,
    /// A weak reference to nothing.
    Nothing,
    /// A variable that the program has changed.
    Changed,
    Foreign,
}

fn holding(module: &Module<'_>, slot: Slot, function: &Led, value: u64) -> Holding {
    if value == function.hook {
        Holding::Hook
    } else if value == function.definition {
        Holding::Definition
    } else if value == 0 {
        Holding::Nothing
    } else if value == function.stub {
        Holding::ByWay
    } else if slot.binding == Binding::ByCall && module.runs(value) && Some(value) != slot.own_definition {
        let prefers_its_own = slot.own_definition.is_some_and(|own| own != function.definition);
        if prefers_its_own || any_deep_binding() { Holding::Uncertain } else { Holding::Unbound }
    } else if slot.binding == Binding::ByCall && module.runs(module.loaded.base.wrapping_add(value)) {
        // As in the file: the loader has mapped the module, and not relocated it yet.
        Holding::Uncertain
    } else if slot.binding == Binding::InVariable {
        Holding::Changed
    } else {
        Holding::Foreign
    }
}

/// Leads the module's slots to the hooks.
pub(super) fn lead(module: &Module<'_>, definitions: &Definitions, may_protect: bool) -> Visit {
    let mut visit = Visit::of(module);
    let mut pages = Pages::new(module);
    let is_allocator = module.loaded.holds(definitions.allocator);
    let find = |strings: &[u8]| definitions.named(strings);
    visit_slots(module, find, |slot, function| {
        if is_allocator && function.is_mapping {
            return;
        }
        let word = word(slot.address);
        let value = word.load(Ordering::Relaxed);
        match holding(module, slot, function, value) {
            Holding::Hook => visit.count(slot, function),
            Holding::Definition => {
                if pages.replace(slot.address, value, function.hook) {
                    visit.count(slot, function);
                }
            }
            Holding::Unbound => {
                if pages.replace(slot.address, value, function.hook) {
                    visit.count(slot, function);
                    visit.look_again();
                }
            }
            Holding::Uncertain => visit.is_open = true,
            Holding::Foreign => visit.count_foreign(value, function),
            Holding::ByWay | Holding::Nothing | Holding::Changed => {}
        }
    });
    visit.is_writable = pages.finish(may_protect);
    visit
}

/// Puts back what the loader would have put there. A slot that was not yet bound is bound then, as by a first call.
pub(super) fn put_back(module: &Module<'_>, definitions: &Definitions, may_protect: bool) {
    let mut pages = Pages::new(module);
    let find = |strings: &[u8]| definitions.named(strings);
    visit_slots(module, find, |slot, function| {
        pages.replace(slot.address, function.hook, function.definition);
    });
    pages.finish(may_protect);
}

/// In this module itself: has slots that hold a program's stub, and so come to the program's slot and its hook, hold what they
/// are meant for. What we take is not the program's.
pub(super) fn go_straight(module: &Module<'_>, definitions: &Definitions, may_protect: bool) -> Visit {
    let mut visit = Visit::of(module);
    let mut pages = Pages::new(module);
    let find = |strings: &[u8]| definitions.named(strings).filter(|function| function.stub != 0);
    visit_slots(module, find, |slot, function| {
        pages.replace(slot.address, function.stub, function.definition);
    });
    visit.is_writable = pages.finish(may_protect);
    visit
}

/// Makes the pages read-only that should be.
pub(super) fn protect(module: &Module<'_>) {
    let mut pages = Pages::new(module);
    pages.is_open = !pages.range.is_empty();
    pages.finish(true);
}

fn word(address: u64) -> &'static AtomicU64 {
    // SAFETY: the callers have it from `visit_slots`: an aligned word in a segment of a module that stays loaded while
    // the loader's callback runs, where alone it is used. The loader itself writes it as one word.
    unsafe { AtomicU64::from_ptr(core::ptr::with_exposed_provenance_mut(address as usize)) }
}

/// A module's read-only pages, opened when the first slot in them is written.
struct Pages {
    range: core::ops::Range<u64>,
    is_open: bool,
}

impl Pages {
    fn new(module: &Module<'_>) -> Self {
        Self { range: module.read_only_after_binding(), is_open: false }
    }

    /// Whether the slot held `old`, and now holds `new`.
    fn replace(&mut self, slot: u64, old: u64, new: u64) -> bool {
        let word = word(slot);
        if word.load(Ordering::Relaxed) != old {
            return false;
        }
        if self.range.contains(&slot) && !self.is_open {
            self.is_open = self.set(libc::PROT_READ | libc::PROT_WRITE);
            if !self.is_open {
                return false;
            }
        }
        word.compare_exchange(old, new, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Whether they are still writable.
    fn finish(&mut self, may_protect: bool) -> bool {
        if self.is_open && may_protect {
            self.is_open = !self.set(libc::PROT_READ);
        }
        self.is_open
    }

    fn set(&self, protection: libc::c_int) -> bool {
        let start = core::ptr::with_exposed_provenance_mut(self.range.start as usize);
        let length = (self.range.end - self.range.start) as usize;
        // SAFETY: whole pages of a module, which the loader itself has made read-only after it had filled them in.
        unsafe { libc::mprotect(start, length, protection) == 0 }
    }
}
