//! The units of debug information by address. So only the units of looked-up addresses are parsed and kept: a library
//! may have thousands, with a hundred megabytes of tables.

use std::ops::Range;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugAbbrev, DebugAbbrevOffset, DebugAranges, DebugInfo, DebugInfoOffset, DwarfSections,
    EndianSlice, LittleEndian, Section as _, Unit, UnitHeader, UnitRef, UnitType,
};

use crate::abbreviations;
use crate::dwarf::Slice;

/// The units of a file by address.
#[derive(Debug)]
pub(crate) struct UnitIndex {
    /// The place of each unit in `.debug_info`; `None` if all units are treated as one.
    places: Option<Vec<Range<usize>>>,
    /// Sorted by their ends.
    ranges: Vec<UnitRange>,
}

#[derive(Debug)]
struct UnitRange {
    begin: u64,
    end: u64,
    /// The least start of this range and of those behind it.
    least_begin: u64,
    unit: usize,
}

/// `.debug_aranges` of one unit, for all addresses: whether a unit contains an address is known before it is queried.
const ALL_ADDRESSES: [u8; 48] = {
    let mut table = [0; 48];
    // Its length without this field, version 2, addresses of 8 bytes.
    (table[0], table[4], table[10]) = (44, 2, 8);
    // From 0 to the end.
    let mut byte = 24;
    while byte < 32 {
        table[byte] = 0xff;
        byte += 1;
    }
    table
};

impl UnitIndex {
    /// Returns an index for units that refer to each other, which are parsed together.
    pub(crate) fn undivided() -> Self {
        let all = UnitRange { begin: 0, end: u64::MAX, least_begin: 0, unit: 0 };
        Self { places: None, ranges: vec![all] }
    }

    /// Reads the addresses of all units. `release` is called now and then, to release the memory of what was read.
    pub(crate) fn read(sections: &DwarfSections<Slice<'_>>, release: &dyn Fn()) -> gimli::Result<Self> {
        const UNITS_BETWEEN: usize = 16;
        let dwarf = sections.borrow(|section| *section);
        let mut listed = Vec::new();
        let mut headers = dwarf.debug_aranges.headers();
        while let Some(header) = headers.next()? {
            listed.push((header.debug_info_offset(), header.offset()));
        }
        listed.sort_unstable_by_key(|(unit, _)| *unit);
        let (mut places, mut ranges) = (Vec::new(), Vec::new());
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            let Some(place) = header.debug_info_offset() else { continue };
            // These have no code.
            let is_of_code = !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. });
            if !is_of_code || header.type_() == UnitType::Partial {
                continue;
            }
            let Ok(unit) = with_first_entry(&dwarf, header, place) else { continue };
            let first = listed.partition_point(|(unit, _)| *unit < place);
            let sets = listed[first..].iter().take_while(|(unit, _)| *unit == place).map(|(_, set)| *set);
            let index = places.len();
            let found = unit_ranges(UnitRef::new(&dwarf, &unit), sets)?;
            ranges.extend(found.into_iter().map(|(begin, end)| UnitRange { begin, end, least_begin: 0, unit: index }));
            places.push(place.0..place.0 + header.length_including_self());
            if places.len().is_multiple_of(UNITS_BETWEEN) {
                release();
            }
        }
        ranges.sort_unstable_by_key(|range| (range.end, range.unit));
        let mut least = u64::MAX;
        for range in ranges.iter_mut().rev() {
            least = least.min(range.begin);
            range.least_begin = least;
        }
        Ok(Self { places: Some(places), ranges })
    }

    /// Returns the number of units.
    pub(crate) fn len(&self) -> usize {
        self.places.as_ref().map_or(1, Vec::len)
    }

    /// Returns the units that may contain `stated`.
    pub(crate) fn find(&self, stated: u64) -> impl Iterator<Item = usize> {
        let first = self.ranges.partition_point(|range| range.end <= stated);
        let near = self.ranges[first..].iter().take_while(move |range| range.least_begin <= stated);
        near.filter(move |range| range.begin <= stated).map(|range| range.unit)
    }

    /// Returns the debug information of one unit.
    pub(crate) fn only<'a>(&self, unit: usize, sections: &DwarfSections<Slice<'a>>) -> gimli::Dwarf<Slice<'a>> {
        let mut dwarf = sections.borrow(|section| *section);
        if let Some(place) = self.places.as_ref().and_then(|places| places.get(unit)) {
            let info = sections.debug_info.reader().slice();
            dwarf.debug_info = DebugInfo::new(info.get(place.clone()).unwrap_or_default(), LittleEndian);
            dwarf.debug_aranges = DebugAranges::from(EndianSlice::new(&ALL_ADDRESSES[..], LittleEndian));
        }
        dwarf
    }
}

/// Parses a unit with the abbreviation of its first entry only: most of the time for a unit is that for the others.
fn with_first_entry<'a>(
    dwarf: &gimli::Dwarf<Slice<'a>>,
    header: UnitHeader<Slice<'a>>,
    place: DebugInfoOffset,
) -> gimli::Result<Unit<Slice<'a>>> {
    let first = || {
        let entries = dwarf.debug_info.reader().slice().get(place.0 + header.root_offset().0..)?;
        let table = dwarf.debug_abbrev.reader().slice().get(header.debug_abbrev_offset().0..)?;
        let table = abbreviations::only(table, abbreviations::number(entries)?)?;
        DebugAbbrev::new(&table, LittleEndian).abbreviations(DebugAbbrevOffset(0)).ok()
    };
    match first() {
        Some(abbreviations) => Unit::new_with_abbreviations(dwarf, header, Arc::new(abbreviations)),
        None => dwarf.unit(header),
    }
}

/// Returns the addresses of a unit: those that it states as a list, otherwise those of `sets` in `.debug_aranges`,
/// otherwise its first and last one, otherwise those of its lines.
fn unit_ranges(
    unit: UnitRef<'_, Slice<'_>>,
    sets: impl Iterator<Item = gimli::DebugArangesOffset>,
) -> gimli::Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let stated = StatedRange::of(unit)?;
    if let Some(list) = stated.list {
        let mut list = unit.ranges(list)?;
        while let Some(range) = list.next()? {
            found.push((range.begin, range.end));
        }
    } else {
        for set in sets {
            let mut entries = unit.dwarf.debug_aranges.header(set)?.entries();
            while let Some(entry) = entries.next().transpose() {
                // An entry whose end overflows is left out.
                found.extend(entry.map(|entry| (entry.range().begin, entry.range().end)));
            }
        }
        if found.is_empty() {
            found.extend(stated.begin.zip(stated.end));
        }
    }
    found.retain(|(begin, end)| begin < end);
    let lines = unit.line_program.as_ref().filter(|_| found.is_empty());
    if let Some(Ok((_, sequences))) = lines.map(|lines| lines.clone().sequences()) {
        found.extend(sequences.iter().map(|sequence| (sequence.start, sequence.end)));
    }
    Ok(found)
}

/// The addresses that the first entry of a unit states.
#[derive(Debug, Default)]
struct StatedRange {
    begin: Option<u64>,
    end: Option<u64>,
    list: Option<gimli::RangeListsOffset>,
}

impl StatedRange {
    fn of(unit: UnitRef<'_, Slice<'_>>) -> gimli::Result<Self> {
        let (mut stated, mut size) = (Self::default(), None);
        let mut entries = unit.entries_raw(None)?;
        let Some(first) = entries.read_abbreviation()? else { return Ok(stated) };
        for attribute in first.attributes() {
            let attribute = entries.read_attribute(*attribute)?;
            match (attribute.name(), attribute.value()) {
                (gimli::DW_AT_low_pc, value) => stated.begin = unit.attr_address(value)?,
                (gimli::DW_AT_high_pc, AttributeValue::Udata(value)) => size = Some(value),
                (gimli::DW_AT_high_pc, value) => stated.end = unit.attr_address(value)?,
                (gimli::DW_AT_ranges, value) => stated.list = unit.attr_ranges_offset(value)?,
                _ => {}
            }
        }
        let end_by_size = || stated.begin?.checked_add(size?);
        stated.end = stated.end.or_else(end_by_size);
        Ok(stated)
    }
}
