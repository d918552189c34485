//! The unwind tables of the modules in this process, for readers that need their addresses.

use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;
use std::slice;

pub(crate) type Bytes = &'static [u8];

/// A section in memory, and its range of addresses in the file.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) range: Range<u64>,
    pub(crate) bytes: Bytes,
}

/// A module and its tables. The addresses are those of the file: add `bias` for the addresses in memory.
#[derive(Clone, Debug)]
pub(crate) struct UnwindTables {
    pub(crate) file: &'static CStr,
    pub(crate) bias: u64,
    pub(crate) image: Range<u64>,
    /// `.eh_frame_hdr`
    pub(crate) index: Section,
    /// `.eh_frame`, and whatever follows it in its segment.
    pub(crate) entries: Section,
}

impl UnwindTables {
    /// Returns the tables of every module that has an index.
    ///
    /// No library may be unloaded while they are in use.
    pub(crate) fn of_this_process() -> Vec<Self> {
        let mut found = Vec::new();
        // SAFETY: `add` receives the pointer to `found`, which outlives the iteration.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut found).cast()) };
        found
    }

    fn new(file: &'static CStr, bias: u64, headers: &[libc::Elf64_Phdr]) -> Option<Self> {
        let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = loads().map(|load| load.p_vaddr).min()?;
        let end = loads().map(|load| load.p_vaddr + load.p_memsz).max()?;
        let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
        // SAFETY: the loader mapped the segment, and the benchmark unloads no library.
        let index = unsafe { Section::mapped(bias, index.p_vaddr..index.p_vaddr + index.p_memsz) };

        // The index begins with a version, the encoding of the pointer to .eh_frame (0x1b: relative, four bytes), and
        // two more bytes.
        let relative = i32::from_le_bytes(index.bytes.get(4..8)?.try_into().ok()?);
        if index.bytes[1] != 0x1b {
            return None;
        }
        let first = (index.range.start + 4).checked_add_signed(relative.into())?;
        let segment = loads().find(|load| (load.p_vaddr..load.p_vaddr + load.p_filesz).contains(&first))?;
        // SAFETY: the range is inside a segment that the loader mapped.
        let entries = unsafe { Section::mapped(bias, first..segment.p_vaddr + segment.p_filesz) };
        Some(Self { file, bias, image: start..end, index, entries })
    }
}

impl Section {
    /// # Safety
    /// The range lies in a readable segment that stays mapped and unchanged until the process ends.
    unsafe fn mapped(bias: u64, range: Range<u64>) -> Self {
        let length = usize::try_from(range.end - range.start).unwrap_or(0);
        // SAFETY: the caller's promise.
        let bytes = unsafe { slice::from_raw_parts((bias + range.start) as *const u8, length) };
        Self { range, bytes }
    }
}

unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid module description for the time of this call.
    let info = unsafe { &*info };
    // SAFETY: `of_this_process` passed a pointer to its list, and waits for this call.
    let found = unsafe { &mut *found.cast::<Vec<UnwindTables>>() };
    // SAFETY: the loader keeps a module's program headers mapped, `dlpi_phnum` of them.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    // SAFETY: the loader keeps the C string as long as the module is loaded.
    let file = unsafe { CStr::from_ptr(info.dlpi_name) };
    found.extend(UnwindTables::new(file, info.dlpi_addr, headers));
    0
}
