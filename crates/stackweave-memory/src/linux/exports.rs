//! Finds exported functions by name, in all loaded modules.
//!
//! `dlsym` searches only modules that were loaded for global use; a program's own libraries mostly are not. So this
//! reads the modules' own tables, as the loader does, under the loader's lock. Allocates nothing.

use core::ffi::{CStr, c_int, c_void};

use crate::platform::loaded_module::{DT_GNU_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, LoadedModule};

const FUNCTION: u8 = 2;

/// Calls `each` with the address of every function of this name that a loaded module exports, except the module that
/// contains `own`. The module stays loaded meanwhile; `each` must not call the loader.
pub(crate) fn for_each_export(name: &CStr, own: usize, each: &mut dyn FnMut(usize)) {
    struct ExportSearch<'a> {
        name: &'a CStr,
        own: u64,
        each: &'a mut dyn FnMut(usize),
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `search` is what is passed below.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<ExportSearch<'_>>()) };
        // SAFETY: the loader's callback runs.
        if let Some(module) = unsafe { LoadedModule::of(info) }
            && !module.holds(search.own)
            && let Some(address) = find(&module, search.name)
        {
            (search.each)(address as usize);
        }
        0
    }
    let mut search = ExportSearch { name, own: own as u64, each };
    // SAFETY: the callback fits, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
}

/// Returns the address of the function of this name that the module exports.
fn find(module: &LoadedModule<'_>, name: &CStr) -> Option<u64> {
    let dynamic = module.dynamic()?;
    let strings: &[u8] = module.array(dynamic.address(DT_STRTAB)?, dynamic.value(DT_STRSZ)?)?;
    let (symbols, table) = (dynamic.address(DT_SYMTAB)?, dynamic.address(DT_GNU_HASH)?);
    let &[buckets, first, words, _] = module.array::<u32>(table, 16)? else { return None };
    let starts = table + 16 + u64::from(words) * 8;
    let chains = starts + u64::from(buckets) * 4;
    let hash = name.to_bytes().iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()));
    let mut number: u32 = module.item(starts, hash.checked_rem(buckets)?.into())?;
    while number >= first {
        let known: u32 = module.item(chains, (number - first).into())?;
        if known | 1 == hash | 1 {
            let symbol: libc::Elf64_Sym = module.item(symbols, number.into())?;
            let is_named = strings.get(symbol.st_name as usize..)?.starts_with(name.to_bytes_with_nul());
            if is_named && symbol.st_shndx != 0 && symbol.st_info & 0xf == FUNCTION {
                return Some(module.base.wrapping_add(symbol.st_value)).filter(|address| module.holds(*address));
            }
        }
        if known & 1 == 1 {
            break;
        }
        number += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exports(name: &CStr, own: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for_each_export(name, own, &mut |address| found.push(address));
        found
    }

    #[test]
    fn a_function_of_the_c_library_is_found_where_the_loader_finds_it() {
        for name in [c"fopen", c"qsort", c"pthread_create", c"getpid"] {
            // SAFETY: a name that ends in zero.
            let known = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr();
            assert!(exports(name, 0).contains(&known), "{name:?}");
            assert!(!exports(name, known).contains(&known), "the excluded module is skipped");
        }
        for name in [c"", c"stackweave_no_such_function", c"environ"] {
            assert_eq!(exports(name, 0), [0_usize; 0], "{name:?}");
        }
    }
}
