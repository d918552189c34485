//! Where functions begin, by their unwind entries: for those that have no name left.

use gimli::{BaseAddresses, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _};

use crate::elf::Elf;

/// The stated address at which the function that holds `stated` begins.
pub(crate) fn start_of(elf: &Elf<'_>, stated: u64) -> Option<u64> {
    let header = elf.section_by_name(".eh_frame_hdr")?;
    let entries = elf.section_by_name(".eh_frame")?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(header.address()).set_eh_frame(entries.address());
    let header = EhFrameHdr::new(header.data().ok()?, LittleEndian).parse(&bases, 8).ok()?;
    let eh_frame = EhFrame::from(EndianSlice::new(entries.data().ok()?, LittleEndian));
    let fde = header.table()?.fde_for_address(&eh_frame, &bases, stated, EhFrame::cie_from_offset).ok()?;
    Some(fde.initial_address())
}
