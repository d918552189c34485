//! framehop, walking its own process: modules from the loader, plain memory reads, one cache per thread.

use std::arch::asm;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::OnceLock;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder as _};

use super::{Unwinder, locked_version};

pub(super) const NAME: &str = "framehop";

type Bytes = &'static [u8];
type Walker = UnwinderX86_64<Bytes, MustNotAllocateDuringUnwind>;

/// Filled by the first capture, as a user would have to.
static WALKER: OnceLock<Walker> = OnceLock::new();

thread_local! {
    static CACHE: RefCell<CacheX86_64<MustNotAllocateDuringUnwind>> = RefCell::new(CacheX86_64::new_in());
}

pub(super) fn load() -> Unwinder {
    Unwinder {
        name: NAME,
        version: || format!("{}, MustNotAllocateDuringUnwind", locked_version("framehop")),
        capture: Ok(capture),
        needs_frame_pointers: false,
        remembers_addresses: true,
    }
}

unsafe extern "C" fn capture(buffer: *mut *mut c_void, max: usize) -> usize {
    let walker = WALKER.get_or_init(walker_of_this_process);
    // SAFETY: the caller hands over `max` initialised words.
    let frames = unsafe { slice::from_raw_parts_mut(buffer, max) };
    CACHE.with_borrow_mut(|cache| walk(walker, cache, frames))
}

#[inline(never)]
fn walk(walker: &Walker, cache: &mut CacheX86_64<MustNotAllocateDuringUnwind>, frames: &mut [*mut c_void]) -> usize {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers; nothing moves the stack pointer between the instructions.
    unsafe {
        asm!(
            "lea {pc}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
            pc = out(reg) pc, sp = out(reg) sp, bp = out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    // SAFETY: framehop asks for words above the stack pointer of frames that are live during this call.
    let mut read = |address: u64| unsafe { Ok((address as *const u64).read()) };
    let mut walk = walker.iter_frames(pc, UnwindRegsX86_64::new(pc, sp, bp), cache, &mut read);
    let mut count = 0;
    while count < frames.len() {
        let Ok(Some(frame)) = walk.next() else { break };
        frames[count] = frame.address() as *mut c_void;
        count += 1;
    }
    count
}

fn walker_of_this_process() -> Walker {
    let mut walker = Walker::new();
    // SAFETY: `add_module` gets back the pointer to `walker`, which outlives the iteration.
    unsafe { libc::dl_iterate_phdr(Some(add_module), (&raw mut walker).cast()) };
    walker
}

unsafe extern "C" fn add_module(info: *mut libc::dl_phdr_info, _size: usize, walker: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid module description for the time of this call.
    let info = unsafe { &*info };
    // SAFETY: `walker_of_this_process` passed a pointer to its `Walker`, and waits for this call.
    let walker = unsafe { &mut *walker.cast::<Walker>() };
    // SAFETY: the loader keeps a module's program headers mapped, `dlpi_phnum` of them.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    if let Some(module) = describe(info.dlpi_addr, headers) {
        walker.add_module(module);
    }
    0
}

fn describe(bias: u64, headers: &[libc::Elf64_Phdr]) -> Option<Module<Bytes>> {
    let loads = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loads().map(|load| load.p_vaddr).min()?;
    let end = loads().map(|load| load.p_vaddr + load.p_memsz).max()?;
    let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME)?;
    let index_range = index.p_vaddr..index.p_vaddr + index.p_memsz;
    // SAFETY: the loader mapped the segment, and the benchmark unloads no library.
    let index_bytes = unsafe { mapped(bias, index_range.start, index_range.end) };

    // The index begins: version, encoding of the pointer to .eh_frame (0x1b: relative, four bytes), two more.
    let relative = i32::from_le_bytes(index_bytes.get(4..8)?.try_into().ok()?);
    if index_bytes[1] != 0x1b {
        return None;
    }
    let frames_start = (index_range.start + 4).checked_add_signed(relative.into())?;
    let segment = loads().find(|load| (load.p_vaddr..load.p_vaddr + load.p_filesz).contains(&frames_start))?;
    let frames_range = frames_start..segment.p_vaddr + segment.p_filesz;
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_hdr_svma: Some(index_range),
        eh_frame_hdr: Some(index_bytes),
        eh_frame_svma: Some(frames_range.clone()),
        // SAFETY: the range is inside a segment that the loader mapped.
        eh_frame: Some(unsafe { mapped(bias, frames_range.start, frames_range.end) }),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Module::new(format!("{bias:#x}"), bias + start..bias + end, bias, sections))
}

/// # Safety
/// The range lies in a readable segment that stays mapped and unchanged until the process ends.
unsafe fn mapped(bias: u64, start: u64, end: u64) -> Bytes {
    let length = usize::try_from(end - start).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts((bias + start) as *const u8, length) }
}
