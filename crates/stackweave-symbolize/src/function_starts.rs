//! Finds where functions begin by their unwind entries, for functions without names.

use gimli::{BaseAddresses, EhFrame, EhFrameOffset, LittleEndian, UnwindSection as _};
use object::{Object as _, ObjectSection as _};

use crate::elf::Elf;

/// The header of the sorted table that every linker writes: pairs of 32-bit offsets from the header.
const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
const PAIR: usize = 8;

/// Returns the stated start of the function that contains `stated`.
pub(crate) fn start_of(elf: &Elf<'_>, stated: u64) -> Option<u64> {
    let header = elf.section_by_name(".eh_frame_hdr")?;
    let entries = elf.section_by_name(".eh_frame")?;
    let entry = entry_before(header.data().ok()?, header.address(), stated)?;
    let offset = usize::try_from(entry.checked_sub(entries.address())?).ok()?;
    let bytes = entries.data().ok().filter(|bytes| offset < bytes.len())?;
    let bases = BaseAddresses::default().set_eh_frame(entries.address());
    let eh_frame = EhFrame::new(bytes, LittleEndian);
    let fde = eh_frame.fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset).ok()?;
    (stated.wrapping_sub(fde.initial_address()) < fde.len()).then(|| fde.initial_address())
}

/// Returns the address of the last entry whose function begins at or before `stated`.
fn entry_before(header: &[u8], address: u64, stated: u64) -> Option<u64> {
    let rest = header.strip_prefix(&HEADER)?;
    let (count, pairs) = rest.get(4..)?.split_first_chunk::<4>()?;
    let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
    let pairs = pairs.as_chunks::<PAIR>().0.get(..count)?;
    let key = i32::try_from(stated.wrapping_sub(address).cast_signed()).ok()?;
    let half = |pair: &[u8; PAIR], at: usize| i32::from_le_bytes([pair[at], pair[at + 1], pair[at + 2], pair[at + 3]]);
    let index = pairs.partition_point(|pair| half(pair, 0) <= key).checked_sub(1)?;
    Some(address.wrapping_add(i64::from(half(&pairs[index], 4)).cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_before_an_address_is_found_in_the_table() {
        let mut header = Vec::from(HEADER);
        header.extend(0i32.to_le_bytes());
        header.extend(2u32.to_le_bytes());
        for (start, entry) in [(-0x100i32, 0x50i32), (0x20, 0x70)] {
            header.extend(start.to_le_bytes());
            header.extend(entry.to_le_bytes());
        }
        let find = |stated| entry_before(&header, 0x1000, stated);
        assert_eq!(find(0xeff), None);
        assert_eq!(find(0xf00), Some(0x1050));
        assert_eq!(find(0x101f), Some(0x1050));
        assert_eq!(find(0x5000), Some(0x1070));
        assert_eq!(find(u64::MAX / 2), None);
        for length in 0..header.len() {
            assert_eq!(entry_before(&header[..length], 0x1000, 0x5000), None, "{length}");
        }
    }
}
