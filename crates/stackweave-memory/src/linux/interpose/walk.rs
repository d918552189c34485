//! A walk over all modules that are loaded. It allocates nothing.

use core::ffi::{c_int, c_void};

use crate::platform::interpose::definitions::Definitions;
use crate::platform::interpose::module::Module;
use crate::platform::interpose::slots;
use crate::platform::interpose::visited::{Table, Visit};

/// What is known of the modules while functions are led.
#[derive(Debug)]
pub(super) struct Knowledge {
    pub(super) definitions: Definitions,
    pub(super) modules: Table,
    /// For the next walk.
    spare: Table,
    /// How many were unloaded, by the loader's account.
    unloads: u64,
    /// How many slots of functions that allocate somebody else has overwritten between the last two walks.
    pub(super) overwritten: u64,
}

impl Knowledge {
    pub(super) fn new(definitions: Definitions) -> Option<Self> {
        Some(Self { definitions, modules: Table::new()?, spare: Table::new()?, unloads: 0, overwritten: 0 })
    }
}

/// What is done in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Modules that are new are led.
    Lead,
    /// So are those that wanted another look.
    LookAgain,
    /// So are those with slots of somebody else's, who may have given them up.
    LookForOthers,
    PutBack,
}

struct Walk<'a> {
    definitions: &'a Definitions,
    before: &'a Table,
    after: &'a mut Table,
    cursor: usize,
    purpose: Purpose,
    /// Whether this thread is inside the loader, and modules may not be bound yet.
    is_loading: bool,
    unloads_before: u64,
    unloads: u64,
    loads: u64,
    overwritten: u64,
}

/// Walks all modules, and says how many were ever loaded by then.
///
/// The caller has the loader's locks, or knows that nobody is loading.
pub(super) fn walk(knowledge: &mut Knowledge, purpose: Purpose, is_loading: bool) -> u64 {
    knowledge.spare.clear();
    let mut walk = Walk {
        definitions: &knowledge.definitions,
        before: &knowledge.modules,
        after: &mut knowledge.spare,
        cursor: 0,
        purpose,
        is_loading,
        unloads_before: knowledge.unloads,
        unloads: knowledge.unloads,
        loads: 0,
        overwritten: 0,
    };
    // SAFETY: the callback fits and `walk` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut walk).cast()) };
    let Walk { loads, unloads, overwritten, .. } = walk;
    (knowledge.unloads, knowledge.overwritten) = (unloads, overwritten);
    core::mem::swap(&mut knowledge.modules, &mut knowledge.spare);
    loads
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, walk: *mut c_void) -> c_int {
    // SAFETY: the loader passes valid data, and `walk` is what is given above.
    let (info, walk) = unsafe { (&*info, &mut *walk.cast::<Walk<'_>>()) };
    (walk.loads, walk.unloads) = (info.dlpi_adds, info.dlpi_subs);
    // SAFETY: the callback runs.
    if let Some(module) = unsafe { Module::new(info) }
        && !module.loaded.holds(walk.definitions.loader)
        && !is_vdso(&module)
    {
        walk.visit(module);
    }
    0
}

fn is_vdso(module: &Module<'_>) -> bool {
    // SAFETY: no preconditions.
    let vdso = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) };
    vdso != 0 && module.loaded.holds(vdso)
}

impl Walk<'_> {
    fn visit(&mut self, module: Module<'_>) {
        let any_unloaded = self.unloads != self.unloads_before;
        let found = self.before.find(&module, &mut self.cursor);
        let before = found.filter(|visit| visit.is_still(&module, any_unloaded));
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
        let mut visit = Visit::of(&module);
        if let Some(module) = module.with_tables() {
            if self.purpose == Purpose::PutBack {
                slots::put_back(&module, self.definitions, may_protect);
                return;
            }
            let is_own = module.loaded.holds(self.definitions.own);
            let visit_slots = if is_own { slots::go_straight } else { slots::lead };
            visit = visit_slots(&module, self.definitions, may_protect);
            if before.is_some_and(|before| before.is_writable) {
                visit.is_writable |= !may_protect;
                if may_protect {
                    slots::protect(&module);
                }
            }
        }
        if let Some(before) = before {
            visit.looked(before);
        }
        visit.is_bound = may_protect;
        self.after.push(visit);
    }

    fn is_due(&self, visit: &Visit) -> bool {
        match self.purpose {
            Purpose::Lead => visit.is_unfinished(),
            Purpose::LookAgain => visit.is_unfinished() || visit.wants_a_look(),
            Purpose::LookForOthers => visit.is_unfinished() || visit.wants_a_look() || visit.foreign != 0,
            Purpose::PutBack => true,
        }
    }
}
