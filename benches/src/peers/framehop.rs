//! framehop, which unwinds its own process: it gets modules from the loader, reads memory directly, and keeps one cache
//! per thread.

use std::arch::asm;
use std::cell::RefCell;
use std::ffi::c_void;
use std::slice;
use std::sync::OnceLock;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, MustNotAllocateDuringUnwind, Unwinder as _};

use super::unwind_tables::{Bytes, UnwindTables};
use super::{Unwinder, locked_version};

pub(crate) const NAME: &str = "framehop";

pub(crate) type Walker = UnwinderX86_64<Bytes, MustNotAllocateDuringUnwind>;

/// The unwinder of this process. The first capture creates it, as in any program that uses framehop.
static WALKER: OnceLock<Walker> = OnceLock::new();

pub(crate) type Cache = CacheX86_64<MustNotAllocateDuringUnwind>;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::new_in());
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
    // SAFETY: the caller passes `max` initialised words.
    let frames = unsafe { slice::from_raw_parts_mut(buffer, max) };
    CACHE.with_borrow_mut(|cache| walk(walker, cache, frames))
}

#[inline(never)]
fn walk(walker: &Walker, cache: &mut Cache, frames: &mut [*mut c_void]) -> usize {
    let (pc, sp, bp): (u64, u64, u64);
    // SAFETY: reads three registers; nothing moves the stack pointer between the instructions.
    unsafe {
        asm!(
            "lea {pc}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp",
            pc = out(reg) pc, sp = out(reg) sp, bp = out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    // SAFETY: framehop reads words above the stack pointer of frames that are live during this call.
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
    for tables in UnwindTables::of_this_process() {
        walker.add_module(module(&tables));
    }
    walker
}

/// Converts a module to framehop's form.
pub(crate) fn module(tables: &UnwindTables) -> Module<Bytes> {
    let UnwindTables { bias, image, index, entries, .. } = tables;
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        eh_frame_hdr_svma: Some(index.range.clone()),
        eh_frame_hdr: Some(index.bytes),
        eh_frame_svma: Some(entries.range.clone()),
        eh_frame: Some(entries.bytes),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(format!("{bias:#x}"), bias + image.start..bias + image.end, *bias, sections)
}
