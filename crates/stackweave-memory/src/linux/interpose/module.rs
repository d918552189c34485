//! One loaded module: its segments and what its dynamic section says of its symbols and slots.
//!
//! Everything is read through [`Module::bytes`] or [`Module::read`], which check that it lies in a readable segment. A module
//! that is wrong about itself has no slots.

use core::ops::Range;

use crate::platform::interpose::relocations::Relocation;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_STRSZ: u64 = 10;
const DT_PLTRELSZ: u64 = 2;
const DT_PLTREL: u64 = 20;
const DT_JMPREL: u64 = 23;

const PAGE: u64 = 4096;

/// A loaded module, while the loader's callback runs.
#[derive(Debug)]
pub(super) struct Module<'a> {
    pub(super) base: u64,
    headers: &'a [libc::Elf64_Phdr],
    /// Where its dynamic section is: with the base, what a module is known by.
    pub(super) dynamic: u64,
    symbols: u64,
    strings: &'a [u8],
    tables: [&'a [Relocation]; 2],
}

impl<'a> Module<'a> {
    /// The module of `info`. None if it has no dynamic section.
    ///
    /// # Safety
    /// `info` is what the loader gives to a callback that still runs.
    pub(super) unsafe fn new(info: &'a libc::dl_phdr_info) -> Option<Self> {
        if info.dlpi_phdr.is_null() {
            return None;
        }
        // SAFETY: the loader vouches for its headers while the callback runs.
        let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let section = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let dynamic = info.dlpi_addr.wrapping_add(section.p_vaddr);
        Some(Self { base: info.dlpi_addr, headers, dynamic, symbols: 0, strings: &[], tables: [&[], &[]] })
    }

    /// Reads the dynamic section. None if there is nothing in it that has slots.
    pub(super) fn with_tables(mut self) -> Option<Self> {
        let section = self.headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let entries: &'a [[u64; 2]] = self.array(self.dynamic, section.p_memsz)?;
        let find = |tag: u64| {
            let entries = entries.iter().take_while(|entry| entry[0] != 0);
            entries.into_iter().find(|entry| entry[0] == tag).map(|entry| entry[1])
        };
        self.symbols = self.moved(find(DT_SYMTAB)?)?;
        self.strings = self.bytes(self.moved(find(DT_STRTAB)?)?, find(DT_STRSZ)?)?;
        let table = |at: Option<u64>, size: Option<u64>| self.array(self.moved(at?)?, size?);
        let bound = table(find(DT_RELA), find(DT_RELASZ));
        let called = if find(DT_PLTREL) == Some(DT_RELA) { table(find(DT_JMPREL), find(DT_PLTRELSZ)) } else { None };
        self.tables = [bound.unwrap_or_default(), called.unwrap_or_default()];
        self.tables.iter().any(|table| !table.is_empty()).then_some(self)
    }

    /// glibc writes where things are over where the file says they are; other loaders, and read-only sections, do not.
    fn moved(&self, address: u64) -> Option<u64> {
        [address, address.wrapping_add(self.base)].into_iter().find(|address| self.holds(*address))
    }

    pub(super) fn relocations(&self) -> impl Iterator<Item = &'a Relocation> + use<'a> {
        let [bound, called] = self.tables;
        bound.iter().chain(called)
    }

    /// The symbol of that number.
    pub(super) fn symbol(&self, number: u32) -> Option<libc::Elf64_Sym> {
        self.read(self.symbols.checked_add(u64::from(number) * size_of::<libc::Elf64_Sym>() as u64)?)
    }

    /// A symbol's name and all strings after it, from its first byte on.
    pub(super) fn name(&self, symbol: &libc::Elf64_Sym) -> Option<&'a [u8]> {
        self.strings.get(symbol.st_name as usize..)
    }

    fn addresses(&self, header: &libc::Elf64_Phdr) -> Range<u64> {
        let start = self.base.wrapping_add(header.p_vaddr);
        start..start.saturating_add(header.p_memsz)
    }

    fn segments(&self, flags: u32) -> impl Iterator<Item = Range<u64>> + '_ {
        let fits = move |header: &&libc::Elf64_Phdr| header.p_type == libc::PT_LOAD && header.p_flags & flags == flags;
        self.headers.iter().filter(fits).map(|header| self.addresses(header))
    }

    /// Whether `address` is in it.
    pub(super) fn holds(&self, address: u64) -> bool {
        self.segments(0).any(|segment| segment.contains(&address))
    }

    /// Whether `address` is in its code.
    pub(super) fn runs(&self, address: u64) -> bool {
        self.segments(libc::PF_X).any(|segment| segment.contains(&address))
    }

    /// The word at `address`, if that is a place where the loader may have put one: whole and aligned, in a segment that
    /// is written to.
    pub(super) fn is_slot(&self, address: u64) -> bool {
        let within = |segment: Range<u64>| segment.start <= address && address.saturating_add(8) <= segment.end;
        address.is_multiple_of(8) && self.segments(libc::PF_R | libc::PF_W).any(within)
    }

    /// The pages that the loader has made read-only once it had filled them in.
    pub(super) fn read_only_after_binding(&self) -> Range<u64> {
        let header = self.headers.iter().find(|header| header.p_type == libc::PT_GNU_RELRO);
        let range = header.map_or(0..0, |header| self.addresses(header));
        let (start, end) = (range.start / PAGE * PAGE, range.end / PAGE * PAGE);
        start..end.max(start)
    }

    fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        self.array(address, length)
    }

    /// As many `T`s as fit into `length` bytes from `address` on.
    fn array<T: Plain>(&self, address: u64, length: u64) -> Option<&'a [T]> {
        let end = address.checked_add(length)?;
        let within = |segment: Range<u64>| segment.start <= address && end <= segment.end;
        if !address.is_multiple_of(align_of::<T>() as u64) || !self.segments(libc::PF_R).any(within) {
            return None;
        }
        let pointer = core::ptr::with_exposed_provenance::<T>(usize::try_from(address).ok()?);
        // SAFETY: aligned, inside a readable segment of a module that stays loaded while the loader's callback runs, and
        // any bytes are a `T`. The loader has filled these tables in before it lists the module.
        Some(unsafe { core::slice::from_raw_parts(pointer, usize::try_from(length).ok()? / size_of::<T>()) })
    }

    fn read<T: Plain + Copy>(&self, address: u64) -> Option<T> {
        self.array(address, size_of::<T>() as u64)?.first().copied()
    }
}

/// What any bytes are.
///
/// # Safety
/// A type of integers without padding.
unsafe trait Plain {}
// SAFETY: a byte.
unsafe impl Plain for u8 {}
// SAFETY: integers.
unsafe impl Plain for [u64; 2] {}
// SAFETY: integers without padding, as the format has them.
unsafe impl Plain for libc::Elf64_Sym {}
// SAFETY: integers without padding, as the format has them.
unsafe impl Plain for Relocation {}
