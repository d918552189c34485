//! Functions of ours in the place of those that every loaded module calls through its tables.
//!
//! A module reaches a function of another by a slot of its own, which the loader fills in. Slots that hold what the loader
//! would put there are led to a hook; one that holds anything else is foreign (another tool's, another allocator's) and
//! stays. Nothing but slots is written, nothing is allocated, no lock is waited for in a hook, and the loader's own calls are
//! never in between: what the program loads is found, bound and named as without us.
//!
//! | file | knows |
//! |---|---|
//! | `definitions` | where the originals are, and which functions are led at all |
//! | `module`, `relocations` | where a module's slots are, by its own account, every read checked |
//! | `slots` | what a slot holds, and how it is written on a read-only page |
//! | `loader` | the loader's counter of loads, and its locks |
//! | `visited`, `walk` | what is known of each module, and a walk over all |
//! | `others` | how many slots another tool holds |
//! | `refresh`, `turns` | when, and under which locks |
//! | `kept` | hooks that stay for the next recorder |
//! | `loading` | the hooks of `dlopen` and `dlsym` |

mod arch;
mod definitions;
mod kept;
mod loader;
mod loading;
mod module;
mod others;
mod refresh;
mod relocations;
mod slots;
#[cfg(test)]
mod stress_tests;
#[cfg(test)]
mod tests;
mod turns;
mod visited;
mod walk;

use core::ffi::CStr;
use core::sync::atomic::AtomicUsize;

pub use kept::KeptHooks;
pub(crate) use others::{foreign_module, forget_others, others};
pub(crate) use refresh::{install, look_for_others, recheck, refresh_if_needed, remove, stats};

/// A function and what takes its place.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static CStr,
    /// The address of a function with the same type. It is called for ever: the program may have copied it.
    pub(crate) hook: usize,
    /// Where the original is, 0 if there is none. Known before the hook is first called.
    pub(crate) original: &'static AtomicUsize,
}

/// Why no function was led anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterposeError {
    /// The program has no dynamic loader, or has no slots.
    #[error("this program calls its allocator in a way that can't be watched: it is linked statically")]
    NothingToLead,
    /// All slots are another tool's.
    #[error("another tool watches the allocator of this process already")]
    Taken,
    /// They are led already.
    #[error("the allocator of this process is watched already")]
    Installed,
    /// The loader did not become free.
    #[error("the dynamic loader of this process is busy, or was when it forked")]
    Busy,
    /// The kernel gave no memory.
    #[error("the kernel has no memory left")]
    NoMemory,
}

/// What was found in the modules that are loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterposeStats {
    /// Modules with a slot of ours.
    pub(crate) modules: u64,
    /// Slots that lead to a hook.
    pub(crate) slots: u64,
    /// Slots of the same functions that hold something else.
    pub(crate) foreign_slots: u64,
}

/// Slots of functions that allocate and free blocks, at the moment since the hooks were installed when another tool held most of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Others {
    /// All such slots.
    pub(crate) slots: u64,
    /// Those that another tool held.
    pub(crate) foreign_slots: u64,
}
