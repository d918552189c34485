//! Replaces functions that every loaded module calls through its tables.
//!
//! A module calls a function of another module through a slot of its own, which the loader fills in. A slot that holds
//! what the loader would put there is changed to a hook; one that holds anything else is foreign (another tool's,
//! another allocator's) and stays. Only slots are written, nothing is allocated, a hook waits for no lock, and the
//! loader's own calls are never hooked: what the program loads is found, bound and named as without us.
//!
//! | file | content |
//! |---|---|
//! | `definitions` | where the originals are, and which functions are hooked |
//! | `module`, `relocations` | where a module's slots are according to its own tables, with every read checked |
//! | `slots` | what a slot holds, and how it is written on a read-only page |
//! | `loader` | the loader's counter of loads, and its locks |
//! | `module_table`, `walk` | what is known of each module, and a walk over all |
//! | `foreign_slots` | how many slots another tool holds |
//! | `refresh`, `walk_lock` | when modules are walked, and under which locks |
//! | `kept_hooks` | hooks that stay for the next recorder |
//! | `loader_hooks` | the hooks of `dlopen` and `dlsym` |

mod arch;
mod definitions;
mod foreign_slots;
mod kept_hooks;
mod loader;
mod loader_hooks;
mod module;
mod module_table;
mod refresh;
mod relocations;
mod slots;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
mod tests;
mod walk;
mod walk_lock;

use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;

pub(crate) use foreign_slots::{foreign_module, foreign_slots, reset_foreign_slots};
pub use kept_hooks::KeptHooks;
pub(crate) use refresh::{install, recheck, refresh_if_needed, remove, stats, update_foreign_slots};

/// A function and its hook.
#[derive(Debug)]
pub(crate) struct HookFunction {
    pub(crate) name: &'static CStr,
    /// The address of a function with the same type. It is called forever: the program may have copied it.
    pub(crate) hook: usize,
    /// The address of the original, 0 if there is none. Known before the hook is first called.
    pub(crate) original: &'static AtomicUsize,
}

/// The reason why no function was hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterposeError {
    /// The program has no dynamic loader, or has no slots.
    #[error("this program calls its allocator in a way that can't be watched: it is linked statically")]
    NoSlots,
    /// Another tool holds all slots.
    #[error("another tool watches the allocator of this process already")]
    HookedByAnotherTool,
    /// The hooks are installed already.
    #[error("the allocator of this process is watched already")]
    AlreadyInstalled,
    /// The loader's locks did not become free.
    #[error("the dynamic loader of this process is busy, or was when it forked")]
    Busy,
    /// The kernel has no memory left.
    #[error("the kernel has no memory left")]
    NoMemory,
}

/// Counts of the loaded modules and their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterposeStats {
    /// Modules with a slot that holds a hook.
    pub(crate) modules: u64,
    /// Slots that hold a hook.
    pub(crate) slots: u64,
    /// Slots of the same functions that hold something else.
    pub(crate) foreign_slots: u64,
}

/// Slots of functions that allocate or free blocks, at the moment since the installation when another tool held the
/// largest share of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForeignSlots {
    /// All such slots.
    pub(crate) slots: u64,
    /// Those that another tool held.
    pub(crate) foreign: u64,
}
