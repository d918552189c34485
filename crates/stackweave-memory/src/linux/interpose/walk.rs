//! A walk over all loaded modules. It allocates nothing.

use core::ffi::{c_int, c_void};

use crate::platform::interpose::definitions::HookTable;
use crate::platform::interpose::module::InterposedModule;
use crate::platform::interpose::module_table::{ModuleTable, ModuleVisit};
use crate::platform::interpose::slots;

/// The known modules while functions are hooked.
#[derive(Debug)]
pub(super) struct HookedModules {
    pub(super) definitions: HookTable,
    pub(super) table: ModuleTable,
    /// The table for the next walk.
    spare: ModuleTable,
    /// The loader's count of unloaded modules.
    unloads: u64,
    /// The number of slots of allocating functions that another tool overwrote between the last two walks.
    pub(super) overwritten: u64,
}

impl HookedModules {
    pub(super) fn new(definitions: HookTable) -> Option<Self> {
        let (table, spare) = (ModuleTable::new()?, ModuleTable::new()?);
        Some(Self { definitions, table, spare, unloads: 0, overwritten: 0 })
    }
}

/// The purpose of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Hooks new modules.
    HookNew,
    /// Hooks new modules, and those that need to be checked again.
    Recheck,
    /// Does the same as `Recheck`, and visits modules with foreign slots, which another tool may have released.
    FindForeign,
    /// Restores all slots.
    Restore,
}

struct ModuleWalk<'a> {
    definitions: &'a HookTable,
    before: &'a ModuleTable,
    after: &'a mut ModuleTable,
    cursor: usize,
    purpose: Purpose,
    /// Whether this thread is inside the loader, so that modules may not be bound yet.
    is_loading: bool,
    unloads_before: u64,
    unloads: u64,
    loads: u64,
    overwritten: u64,
}

/// Walks all modules. Returns how many were ever loaded by then.
///
/// The caller holds the loader's locks, or knows that no thread is loading.
pub(super) fn walk(modules: &mut HookedModules, purpose: Purpose, is_loading: bool) -> u64 {
    modules.spare.clear();
    let mut walk = ModuleWalk {
        definitions: &modules.definitions,
        before: &modules.table,
        after: &mut modules.spare,
        cursor: 0,
        purpose,
        is_loading,
        unloads_before: modules.unloads,
        unloads: modules.unloads,
        loads: 0,
        overwritten: 0,
    };
    // SAFETY: the callback fits and `walk` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
    let ModuleWalk { loads, unloads, overwritten, .. } = walk;
    (modules.unloads, modules.overwritten) = (unloads, overwritten);
    core::mem::swap(&mut modules.table, &mut modules.spare);
    loads
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, walk: *mut c_void) -> c_int {
    // SAFETY: the loader passes valid data, and `walk` is what is passed above.
    let (info, walk) = unsafe { (&*info, &mut *walk.cast::<ModuleWalk<'_>>()) };
    (walk.loads, walk.unloads) = (info.dlpi_adds, info.dlpi_subs);
    // SAFETY: the callback still runs.
    if let Some(module) = unsafe { InterposedModule::new(info) }
        && !module.loaded.holds(walk.definitions.loader)
        && !is_vdso(&module)
    {
        walk.visit(module);
    }
    0
}

fn is_vdso(module: &InterposedModule<'_>) -> bool {
    // SAFETY: no preconditions.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    vdso != 0 && module.loaded.holds(vdso)
}

impl ModuleWalk<'_> {
    fn visit(&mut self, module: InterposedModule<'_>) {
        let any_unloaded = self.unloads != self.unloads_before;
        let found = self.before.find(&module, &mut self.cursor);
        let before = found.filter(|visit| visit.is_same_module(&module, any_unloaded));
        if let Some(found) = found.filter(|_| before.is_none() && !any_unloaded) {
            self.overwritten += u64::from(found.overwritten());
        }
        if let Some(before) = before
            && !self.is_due(before)
        {
            self.after.push(*before);
            return;
        }
        let may_protect = !self.is_loading || before.is_some_and(|before| before.is_bound);
        let mut visit = ModuleVisit::of(&module);
        if let Some(module) = module.with_tables() {
            if self.purpose == Purpose::Restore {
                slots::restore(&module, self.definitions, may_protect);
                return;
            }
            let is_own = module.loaded.holds(self.definitions.own);
            let visit_slots = if is_own { slots::bypass_stubs } else { slots::hook };
            visit = visit_slots(&module, self.definitions, may_protect);
            if before.is_some_and(|before| before.is_writable) {
                visit.is_writable |= !may_protect;
                if may_protect {
                    slots::protect(&module);
                }
            }
        }
        if let Some(before) = before {
            visit.count_recheck(before);
        }
        visit.is_bound = may_protect;
        self.after.push(visit);
    }

    fn is_due(&self, visit: &ModuleVisit) -> bool {
        match self.purpose {
            Purpose::HookNew => visit.is_unfinished(),
            Purpose::Recheck => visit.is_unfinished() || visit.needs_recheck(),
            Purpose::FindForeign => visit.is_unfinished() || visit.needs_recheck() || visit.foreign != 0,
            Purpose::Restore => true,
        }
    }
}
