//! Damaged copies of files, the same in every run.

use object::{Object as _, ObjectSection as _};

use crate::random::Random;

/// The number of lengths to which a file is cut.
const CUTS: usize = 64;
/// Values that damaged fields are often set to: counts and offsets that exceed all bounds.
const EXTREMES: [u8; 4] = [0x00, 0x7f, 0x80, 0xff];

/// Returns the file cut short at each sixty-fourth of its length.
pub fn truncations(file: &[u8]) -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..CUTS).map(|cut| (format!("cut at {cut}/{CUTS}"), file[..file.len() * cut / CUTS].to_vec()))
}

/// Returns `count` copies of the file, each with a few bytes changed. A third of the changes are in the file's
/// header and in its last kilobytes, which hold the section headers.
pub fn changes(file: &[u8], count: u64) -> impl Iterator<Item = (String, Vec<u8>)> {
    (0..count).map(|seed| {
        let mut random = Random::new(seed);
        let mut changed = file.to_vec();
        for _ in 0..=random.below(4) {
            let place = match random.below(6) {
                0 => random.below(64.min(changed.len())),
                1 => changed.len() - 1 - random.below(4096.min(changed.len())),
                _ => random.below(changed.len()),
            };
            let run = 1 + random.below(4);
            for byte in changed.iter_mut().skip(place).take(run) {
                *byte = if random.below(2) == 0 { EXTREMES[random.below(4)] } else { *byte ^ (1 << random.below(8)) };
            }
        }
        (format!("changed by seed {seed}"), changed)
    })
}

/// Returns copies with a wrong table of unwind entries (`.eh_frame_hdr`): it claims that the entries begin behind
/// the first of them, or that there are more than a file can hold. Returns no copy if the file has no such table.
pub fn lying_unwind_tables(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    /// An encoding that joins the count and the bytes behind it to one number of eight bytes.
    const EIGHT_BYTES: u8 = 0x04;
    let table = object::File::parse(file).ok().and_then(|elf| elf.section_by_name(".eh_frame_hdr")?.file_range());
    let Some(start) = table.and_then(|(start, _)| usize::try_from(start).ok()) else { return Vec::new() };
    let with = |place: usize, bytes: &[u8]| {
        let mut changed = file.to_vec();
        changed[start + place..][..bytes.len()].copy_from_slice(bytes);
        changed
    };
    vec![
        ("entries begin behind the first".to_owned(), with(4, &i32::MAX.to_le_bytes())),
        ("as many entries as a word holds".to_owned(), with(8, &u32::MAX.to_le_bytes())),
        ("more entries than that".to_owned(), with(2, &[EIGHT_BYTES])),
    ]
}
