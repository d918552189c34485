//! A loaded module: its segments, and checked reads of its own tables.
//!
//! Everything is read through [`LoadedModule::array`], which checks that it is in a readable segment. If the tables of
//! a module are wrong, nothing is read. Allocates nothing.

use core::ops::Range;

pub(crate) const DT_PLTRELSZ: u64 = 2;
pub(crate) const DT_STRTAB: u64 = 5;
pub(crate) const DT_SYMTAB: u64 = 6;
pub(crate) const DT_RELA: u64 = 7;
pub(crate) const DT_RELASZ: u64 = 8;
pub(crate) const DT_STRSZ: u64 = 10;
pub(crate) const DT_PLTREL: u64 = 20;
pub(crate) const DT_JMPREL: u64 = 23;
pub(crate) const DT_GNU_HASH: u64 = 0x6fff_fef5;

/// A loaded module, while the loader's callback runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadedModule<'a> {
    pub(crate) base: u64,
    headers: &'a [libc::Elf64_Phdr],
}

impl<'a> LoadedModule<'a> {
    /// Returns the module of `info`, if that has headers.
    ///
    /// # Safety
    /// `info` is what the loader passes to a callback that still runs.
    pub(crate) unsafe fn of(info: &'a libc::dl_phdr_info) -> Option<Self> {
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the loader vouches for its headers while the callback runs.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        Some(Self { base: info.dlpi_addr, headers })
    }

    /// Returns the addresses of the module's segment of this kind, if it has one.
    pub(crate) fn segment_of_kind(&self, kind: u32) -> Option<Range<u64>> {
        self.headers.iter().find(|header| header.p_type == kind).map(|header| self.addresses(header))
    }

    /// Returns the addresses of the module's loaded segments that have these flags.
    pub(crate) fn segments(&self, flags: u32) -> impl Iterator<Item = Range<u64>> + '_ {
        let fits = move |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & flags == flags;
        self.headers.iter().filter(fits).map(|header| self.addresses(header))
    }

    fn addresses(&self, header: &libc::Elf64_Phdr) -> Range<u64> {
        let start = self.base.wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    }

    /// Returns whether the module contains `address`.
    pub(crate) fn holds(&self, address: u64) -> bool {
        self.segments(0).any(|segment| segment.contains(&address))
    }

    /// Returns the module's dynamic section, if it has one.
    pub(crate) fn dynamic(&self) -> Option<Dynamic<'a>> {
        let section = self.segment_of_kind(libc::PT_DYNAMIC)?;
        let entries = self.array(section.start, section.end - section.start)?;
        Some(Dynamic { module: *self, entries })
    }

    /// Returns as many `T`s as fit into the `length` bytes from `address` on.
    pub(crate) fn array<T: Plain>(&self, address: u64, length: u64) -> Option<&'a [T]> {
        let end = address.checked_add(length)?;
        let within = |segment: Range<u64>| segment.start <= address && end <= segment.end;
        if !address.is_multiple_of(align_of::<T>() as u64) || !self.segments(libc::PF_R).any(within) {
            return None;
        }
        let pointer = core::ptr::with_exposed_provenance::<T>(usize::try_from(address).ok()?);
        // SAFETY: aligned, inside a readable segment of a module that stays loaded while the loader's callback runs,
        // and any bytes are a `T`. The loader has filled these tables in before it lists the module.
        Some(unsafe { core::slice::from_raw_parts(pointer, usize::try_from(length).ok()? / size_of::<T>()) })
    }

    /// Returns the `T` of that number in the array at `address`.
    pub(crate) fn item<T: Plain + Copy>(&self, address: u64, number: u64) -> Option<T> {
        let size = size_of::<T>() as u64;
        self.array(address.checked_add(number.checked_mul(size)?)?, size)?.first().copied()
    }
}

/// The dynamic section of a loaded module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dynamic<'a> {
    module: LoadedModule<'a>,
    entries: &'a [[u64; 2]],
}

impl Dynamic<'_> {
    /// Returns the value of the first entry with this tag.
    pub(crate) fn value(&self, tag: u64) -> Option<u64> {
        let entries = self.entries.iter().take_while(|entry| entry[0] != 0);
        entries.into_iter().find(|entry| entry[0] == tag).map(|entry| entry[1])
    }

    /// Returns the address of the first entry with this tag. glibc replaces the file's values by addresses; other
    /// loaders do not, and a read-only section can't be changed.
    pub(crate) fn address(&self, tag: u64) -> Option<u64> {
        let value = self.value(tag)?;
        [value, value.wrapping_add(self.module.base)].into_iter().find(|address| self.module.holds(*address))
    }
}

/// A type for which any bytes are a valid value.
///
/// # Safety
/// The type consists of integers without padding.
pub(crate) unsafe trait Plain {}
// SAFETY: a byte.
unsafe impl Plain for u8 {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: integers.
unsafe impl Plain for [u64; 2] {}
// SAFETY: integers without padding, as the format defines them.
unsafe impl Plain for libc::Elf64_Sym {}
