//! The list of hooked functions.

use std::sync::LazyLock;

use super::interpose::HookFunction;
use super::originals::ORIGINALS;
use super::{blocks_functions as blocks, mapping_functions as mappings, new_functions as new};

macro_rules! functions {
    ($($symbol:literal: $module:ident::$name:ident;)*) => {
        vec![$(HookFunction { name: $symbol, hook: $module::$name as *const () as usize, original: &ORIGINALS.$name },)*]
    };
}

/// All of them: first the functions that allocate and free blocks, then those of mappings; and how many the first are.
static FUNCTIONS: LazyLock<(Vec<HookFunction>, usize)> = LazyLock::new(|| {
    let mut functions = of_blocks();
    let count = functions.len();
    functions.extend(of_mappings());
    (functions, count)
});

/// Returns the hooked functions: those of blocks, and those of mappings if requested.
pub(super) fn functions(mappings: bool) -> &'static [HookFunction] {
    let (functions, of_blocks) = &*FUNCTIONS;
    if mappings { functions } else { &functions[..*of_blocks] }
}

fn of_mappings() -> Vec<HookFunction> {
    functions! {
        c"mmap": mappings::mmap;
        c"mmap64": mappings::mmap64;
        c"munmap": mappings::munmap;
        c"mremap": mappings::mremap;
    }
}

fn of_blocks() -> Vec<HookFunction> {
    functions! {
        c"malloc": blocks::malloc;
        c"free": blocks::free;
        c"calloc": blocks::calloc;
        c"realloc": blocks::realloc;
        c"reallocarray": blocks::reallocarray;
        c"posix_memalign": blocks::posix_memalign;
        c"aligned_alloc": blocks::aligned_alloc;
        c"memalign": blocks::memalign;
        c"valloc": blocks::valloc;
        c"pvalloc": blocks::pvalloc;
        c"cfree": blocks::cfree;
        c"_Znwm": new::new;
        c"_Znam": new::new_array;
        c"_ZnwmRKSt9nothrow_t": new::new_nothrow;
        c"_ZnamRKSt9nothrow_t": new::new_array_nothrow;
        c"_ZnwmSt11align_val_t": new::new_aligned;
        c"_ZnamSt11align_val_t": new::new_array_aligned;
        c"_ZnwmSt11align_val_tRKSt9nothrow_t": new::new_aligned_nothrow;
        c"_ZnamSt11align_val_tRKSt9nothrow_t": new::new_array_aligned_nothrow;
        c"_ZdlPv": new::delete;
        c"_ZdaPv": new::delete_array;
        c"_ZdlPvm": new::delete_sized;
        c"_ZdaPvm": new::delete_array_sized;
        c"_ZdlPvRKSt9nothrow_t": new::delete_nothrow;
        c"_ZdaPvRKSt9nothrow_t": new::delete_array_nothrow;
        c"_ZdlPvSt11align_val_t": new::delete_aligned;
        c"_ZdaPvSt11align_val_t": new::delete_array_aligned;
        c"_ZdlPvmSt11align_val_t": new::delete_sized_aligned;
        c"_ZdaPvmSt11align_val_t": new::delete_array_sized_aligned;
        c"_ZdlPvSt11align_val_tRKSt9nothrow_t": new::delete_aligned_nothrow;
        c"_ZdaPvSt11align_val_tRKSt9nothrow_t": new::delete_array_aligned_nothrow;
    }
}
