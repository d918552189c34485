//! framehop, given every loaded module.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Unwinder};
use stackweave_unwind::CodeAddress;

use crate::modules::{self, MappedObject};

type Bytes = &'static [u8];

/// Fills `frames` with the caller's stack. Allocates.
#[inline(never)]
pub fn capture(frames: &mut [CodeAddress]) -> usize {
    let (rip, rsp, rbp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        std::arch::asm!(
            "lea {rip}, [rip]",
            "mov {rsp}, rsp",
            "mov {rbp}, rbp",
            rip = out(reg) rip,
            rsp = out(reg) rsp,
            rbp = out(reg) rbp,
            options(nomem, nostack, preserves_flags),
        );
    }
    let mut unwinder = UnwinderX86_64::<Bytes, MayAllocateDuringUnwind>::new();
    for module in modules::loaded() {
        if let Some(module) = module_for(&module) {
            unwinder.add_module(module);
        }
    }
    let mut cache = CacheX86_64::<MayAllocateDuringUnwind>::new_in();
    // SAFETY: framehop reads words of the frames above this one, which remain in place while it runs.
    let mut read = |address: u64| Ok(unsafe { std::ptr::with_exposed_provenance::<u64>(address as usize).read() });
    let mut iterator = unwinder.iter_frames(rip, UnwindRegsX86_64::new(rip, rsp, rbp), &mut cache, &mut read);
    let mut count = 0;
    let _own_frame = iterator.next();
    while let Some(slot) = frames.get_mut(count) {
        match catch_unwind(AssertUnwindSafe(|| iterator.next())) {
            Ok(Ok(Some(frame))) => *slot = CodeAddress::return_address(frame.address()),
            _ => break,
        }
        count += 1;
    }
    count
}

fn module_for(module: &MappedObject) -> Option<framehop::Module<Bytes>> {
    let header = module.eh_frame_hdr.clone()?;
    // SAFETY: the loader says that this range is mapped; it stays so for the length of one capture.
    let header_bytes = unsafe { bytes(&header) };
    let eh_frame = eh_frame(module, &header, header_bytes)?;
    let svma = |range: &Range<u64>| range.start.wrapping_sub(module.bias)..range.end.wrapping_sub(module.bias);
    let code = module.code.first()?;
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: Some(svma(code)),
        // SAFETY: as for `header_bytes`.
        text: Some(unsafe { bytes(code) }),
        eh_frame_svma: Some(svma(&eh_frame)),
        // SAFETY: `eh_frame` is in one of the module's segments.
        eh_frame: Some(unsafe { bytes(&eh_frame) }),
        eh_frame_hdr_svma: Some(svma(&header)),
        eh_frame_hdr: Some(header_bytes),
        ..Default::default()
    };
    Some(framehop::Module::new(module.path.clone(), module.range.clone(), module.bias, info))
}

/// Returns the range from the start of `.eh_frame`, as the header states it, to the end of its segment. Only the
/// usual encoding of the pointer (relative to itself, four bytes) is read: every linker writes it.
fn eh_frame(module: &MappedObject, header: &Range<u64>, bytes: &[u8]) -> Option<Range<u64>> {
    const PCREL_SDATA4: u8 = 0x1b;
    if *bytes.get(1)? != PCREL_SDATA4 {
        return None;
    }
    let offset = i32::from_le_bytes(bytes.get(4..8)?.try_into().ok()?);
    let start = header.start.wrapping_add(4).wrapping_add_signed(i64::from(offset));
    let segment = module.segments.iter().find(|segment| segment.contains(&start))?;
    Some(start..segment.end)
}

/// # Safety
/// The range is mapped and readable for as long as the result is used.
unsafe fn bytes(range: &Range<u64>) -> Bytes {
    let start = std::ptr::with_exposed_provenance(range.start as usize);
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, (range.end - range.start) as usize) }
}
