//! Functions that loaded modules offer by a name, whichever module it is.
//!
//! The loader finds a name in what it was asked to offer to all; a library beside a program's own is mostly not. So the
//! modules' own tables are read, as the loader reads them, under its lock. Nothing is allocated.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const FUNCTION: u8 = 2;

/// Calls `each` with the address of every function of this name that a loaded module offers, but for the module that holds
/// `own`. The module stays loaded meanwhile; `each` may not ask the loader for anything.
pub(crate) fn for_each_export(name: &CStr, own: usize, each: &mut dyn FnMut(usize)) {
    struct Wanted<'a> {
        name: &'a CStr,
        own: u64,
        each: &'a mut dyn FnMut(usize),
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid data, and `wanted` is what is given below.
        let (info, wanted) = unsafe { (&*info, &mut *wanted.cast::<Wanted<'_>>()) };
        // SAFETY: the loader's callback runs.
        if let Some(module) = unsafe { Module::of(info) }
            && !module.holds(wanted.own)
            && let Some(address) = module.find(wanted.name)
        {
            (wanted.each)(address as usize);
        }
        0
    }
    let mut wanted = Wanted { name, own: own as u64, each };
    // SAFETY: the callback fits, and `wanted` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut wanted).cast()) };
}

/// A loaded module, while the loader's callback runs.
struct Module<'a> {
    base: u64,
    headers: &'a [libc::Elf64_Phdr],
}

impl<'a> Module<'a> {
    /// # Safety
    /// `info` is what the loader gives to a callback that still runs.
    unsafe fn of(info: &'a libc::dl_phdr_info) -> Option<Self> {
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the loader vouches for its headers.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        Some(Self { base: info.dlpi_addr, headers })
    }

    fn segments(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let is_read = |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_R != 0;
        self.headers.iter().filter(is_read).map(|header| {
            let start = self.base.wrapping_add(header.p_vaddr);
            start..start.saturating_add(header.p_memsz)
        })
    }

    fn holds(&self, address: u64) -> bool {
        self.segments().any(|segment| segment.contains(&address))
    }

    /// `count` values from this address on, if they lie in a segment that can be read.
    fn array<T>(&self, address: u64, count: u64) -> Option<&'a [T]> {
        let size = count.checked_mul(size_of::<T>() as u64)?;
        let end = address.checked_add(size)?;
        let fits = self.segments().any(|segment| segment.start <= address && end <= segment.end);
        let start = core::ptr::with_exposed_provenance::<T>(address as usize);
        // SAFETY: in a readable segment of a module that stays loaded; `T` is a number or made of numbers.
        (fits && start.is_aligned()).then(|| unsafe { core::slice::from_raw_parts(start, count as usize) })
    }

    /// glibc writes where things are over where the file says they are; in read-only sections it can't.
    fn moved(&self, address: u64) -> Option<u64> {
        [address, address.wrapping_add(self.base)].into_iter().find(|address| self.holds(*address))
    }

    /// Where the function of this name is that the module offers.
    fn find(&self, name: &CStr) -> Option<u64> {
        let section = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let entries: &[[u64; 2]] = self.array(self.base.wrapping_add(section.p_vaddr), section.p_memsz / 16)?;
        let entry = |tag: u64| entries.iter().take_while(|entry| entry[0] != 0).find(|entry| entry[0] == tag);
        let place = |tag| self.moved(entry(tag)?[1]);
        let strings: &[u8] = self.array(place(DT_STRTAB)?, entry(DT_STRSZ)?[1])?;
        let (symbols, table) = (place(DT_SYMTAB)?, place(DT_GNU_HASH)?);
        let &[buckets, first, words, _] = self.array::<u32>(table, 4)? else { return None };
        let starts = table + 16 + u64::from(words) * 8;
        let chains = starts + u64::from(buckets) * 4;
        let hash =
            name.to_bytes().iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add((*byte).into()));
        let bucket = u64::from(hash.checked_rem(buckets)?);
        let mut number = *self.array::<u32>(starts + bucket * 4, 1)?.first()?;
        while number >= first {
            let known = *self.array::<u32>(chains + u64::from(number - first) * 4, 1)?.first()?;
            if known | 1 == hash | 1 {
                let symbol = self.array::<libc::Elf64_Sym>(symbols + u64::from(number) * 24, 1)?.first()?;
                let is_it = strings.get(symbol.st_name as usize..)?.starts_with(name.to_bytes_with_nul());
                if is_it && symbol.st_shndx != 0 && symbol.st_info & 0xf == FUNCTION {
                    return Some(self.base.wrapping_add(symbol.st_value)).filter(|address| self.holds(*address));
                }
            }
            if known & 1 == 1 {
                break;
            }
            number += 1;
        }
        None
    }
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
    fn a_function_of_the_c_library_is_where_the_loader_says() {
        for name in [c"fopen", c"qsort", c"pthread_create", c"getpid"] {
            // SAFETY: a name that ends in zero.
            let known = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.addr();
            assert!(exports(name, 0).contains(&known), "{name:?}");
            assert!(!exports(name, known).contains(&known), "its own module is left out");
        }
        for name in [c"", c"stackweave_nobody_has_this", c"environ"] {
            assert_eq!(exports(name, 0), [0_usize; 0], "{name:?}");
        }
    }
}
