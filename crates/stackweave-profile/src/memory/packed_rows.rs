//! The rows of a snapshot in little memory: most figures are small numbers, and a snapshot may have a million rows.

use stackweave_heap::{CallSite, Figures};

use crate::packed_numbers::PackedNumbers;

/// The number of values of a row: its device, its call site and its figures.
const VALUES: usize = 13;

/// Call sites of devices with their figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedRows {
    values: PackedNumbers,
}

impl PackedRows {
    pub(super) fn push(&mut self, device: i64, site: &CallSite, of: &Figures) {
        let CallSite { stack, thread, allocator, tag } = *site;
        let place = [stack, thread, allocator, tag].map(u64::from);
        // The process's own memory is device -1.
        let device = device.wrapping_add(1).cast_unsigned();
        for value in [device].into_iter().chain(place).chain(of.to_array()) {
            self.values.push(value);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, CallSite, Figures)> {
        let mut rest = self.values.iter();
        core::iter::from_fn(move || {
            let mut values = [0; VALUES];
            for value in &mut values {
                *value = rest.next()?;
            }
            Some(row(values))
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "they were numbers of 32 bits")]
fn row(values: [u64; VALUES]) -> (i64, CallSite, Figures) {
    let [device, stack, thread, allocator, tag, figures @ ..] = values;
    let site = CallSite { stack: stack as u32, thread: thread as u32, allocator: allocator as u32, tag: tag as u32 };
    (device.cast_signed().wrapping_sub(1), site, Figures::from_array(figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_packed_without_loss() {
        let figures = |value: u64| Figures { allocations: value, temporary_bytes: value, ..Figures::default() };
        let site = |number: u32| CallSite { stack: number, thread: 1, allocator: 2, tag: number };
        let rows: Vec<(i64, CallSite, Figures)> = [-1, 0, 7, i64::MIN, i64::MAX]
            .into_iter()
            .zip([0, 127, 128, u64::MAX, 1 << 63])
            .zip([0, 1, u32::MAX, 300, 5])
            .map(|((device, value), number)| (device, site(number), figures(value)))
            .collect();
        let mut packed = PackedRows::default();
        for (device, site, figures) in &rows {
            packed.push(*device, site, figures);
        }
        assert_eq!(packed.iter().collect::<Vec<_>>(), rows);
        assert_eq!(PackedRows::default().iter().count(), 0);
    }
}
