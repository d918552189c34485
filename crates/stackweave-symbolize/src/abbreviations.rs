//! `.debug_abbrev`: the attributes of each kind of entry in debug information.
//!
//! Partial units, to which `dwz` moves data that several units share: before DWARF 5, the header of a unit does not
//! distinguish a partial unit from a full one, and a partial unit of `dwz` names the line table of the units that use
//! it. If it were treated as a full unit, it would claim their addresses without having functions for them. Only its
//! abbreviation distinguishes it, so there the attribute's name is changed to an unknown one.

/// `DW_TAG_partial_unit`
const PARTIAL_UNIT: u64 = 0x3c;
/// `DW_AT_stmt_list`
const LINES: u64 = 0x10;
/// An attribute that no standard defines, also in one byte.
const MEANINGLESS: u8 = 0x7f;
/// `DW_FORM_implicit_const`: its value follows.
const IMPLICIT_CONST: u64 = 0x21;

/// `DW_FORM_ref_addr`: the place of an entry in any unit.
const REFERENCE: u64 = 0x10;
/// `DW_FORM_indirect`: the entry has the form.
const INDIRECT: u64 = 0x16;

/// Returns `.debug_abbrev` without the line tables of partial units; `None` if there are none, or it is malformed.
pub(crate) fn without_lines(abbreviations: &[u8]) -> Option<Vec<u8>> {
    let mut changed = None;
    visit(abbreviations, |tag, place, name, _| {
        if (tag, name) == (PARTIAL_UNIT, LINES) {
            changed.get_or_insert_with(|| abbreviations.to_vec())[place] = MEANINGLESS;
        }
    })?;
    changed
}

/// Returns whether entries of a unit may refer to those of another one, by `.debug_abbrev`.
pub(crate) fn may_cross_units(abbreviations: &[u8]) -> bool {
    let mut crosses = false;
    let whole = visit(abbreviations, |_, _, _, form| crosses |= form == REFERENCE || form == INDIRECT);
    crosses || whole.is_none()
}

/// Returns the abbreviation with this code, of the table that begins with `abbreviations`, as a table of its own.
pub(crate) fn only(abbreviations: &[u8], code: u64) -> Option<Vec<u8>> {
    let mut reader = Reader { bytes: abbreviations, position: 0 };
    loop {
        let start = reader.position;
        let found = reader.uleb().filter(|found| *found != 0)?;
        reader.read_declaration(|_, _, _, _| ())?;
        if found == code {
            return Some([abbreviations.get(start..reader.position)?, &[0]].concat());
        }
    }
}

/// Returns the number at the start of `bytes`.
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    Reader { bytes, position: 0 }.uleb()
}

/// Visits the attributes of all abbreviations: the tag, the place of the attribute, its name and its form. `None` if
/// they are malformed.
fn visit(abbreviations: &[u8], mut attribute: impl FnMut(u64, usize, u64, u64)) -> Option<()> {
    let mut reader = Reader { bytes: abbreviations, position: 0 };
    while reader.position < abbreviations.len() {
        if reader.uleb()? == 0 {
            continue;
        }
        reader.read_declaration(&mut attribute)?;
    }
    Some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    /// Reads a declaration after its code: calls `attribute` with its tag, and with the place, the name and the form
    /// of each attribute.
    fn read_declaration(&mut self, mut attribute: impl FnMut(u64, usize, u64, u64)) -> Option<()> {
        let tag = self.uleb()?;
        // Skip the flag for children.
        self.position += 1;
        loop {
            let place = self.position;
            let (name, form) = (self.uleb()?, self.uleb()?);
            if form == IMPLICIT_CONST {
                self.uleb()?;
            }
            if (name, form) == (0, 0) {
                return Some(());
            }
            attribute(tag, place, name, form);
        }
    }

    fn uleb(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = *self.bytes.get(self.position)?;
            self.position += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_tables_of_partial_units_are_removed() {
        // 1: compile unit with lines, 2: partial unit with a name and lines.
        let table = [1, 0x11, 1, 0x10, 0x17, 0, 0, 2, 0x3c, 1, 0x03, 0x0e, 0x10, 0x17, 0, 0, 0];
        let mut expected = table;
        expected[12] = MEANINGLESS;
        assert_eq!(without_lines(&table), Some(expected.to_vec()));
        assert_eq!(without_lines(&table[..7]), None);
        for length in 0..table.len() {
            without_lines(&table[..length]);
        }
    }

    #[test]
    fn one_abbreviation_is_a_table() {
        let table = [1, 0x11, 1, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 0x31, 0x13, 0, 0, 0, 3, 0x2e, 0, 0, 0, 0];
        assert_eq!(only(&table, 1), Some([&table[..7], &[0]].concat()));
        assert_eq!(only(&table, 2), Some([&table[7..14], &[0]].concat()));
        assert_eq!(only(&table, 3), None, "it is in the next table");
        assert_eq!([only(&table[..5], 1), only(&table[..3], 2)], [None, None], "malformed");
    }

    #[test]
    fn references_to_other_units_are_found() {
        let table = |form| [1, 0x2e, 0, 0x31, form, 0, 0, 0];
        // DW_FORM_ref4 is within the unit.
        assert_eq!([0x13, 0x10, 0x16].map(|form| may_cross_units(&table(form))), [false, true, true]);
        assert!(may_cross_units(&table(0x13)[..5]), "malformed");
    }
}
