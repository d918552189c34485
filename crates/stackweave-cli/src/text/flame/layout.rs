//! Which columns of the screen each box takes.

use crate::text::flame::tree::FlameTree;

/// Some columns of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: usize,
    /// The first column behind it.
    pub(crate) end: usize,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The box at this place.
    Box(usize),
    /// So many that are too narrow.
    Small(usize),
}

impl Piece {
    /// Nothing for what costs less than nothing, as memory that was given back does.
    pub(crate) const fn width(&self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// The least cost that has a column for itself, wherever it begins.
pub(crate) fn least(whole: i64, columns: usize) -> i64 {
    let columns = i64::try_from(columns).unwrap_or(i64::MAX).max(1);
    whole / columns + i64::from(whole % columns != 0)
}

/// The pieces of each line from left to right, the whole first. What is below a box begins where that begins; the room that is
/// left is the box's own cost.
pub(crate) fn lines(tree: &FlameTree, columns: usize) -> Vec<Vec<Piece>> {
    let whole = tree.boxes[0].value;
    let mut lines: Vec<Vec<Piece>> = Vec::new();
    lines.resize_with(tree.depth() + 1, Vec::new);
    let mut waiting = vec![(0, 0_i64)];
    while let Some((place, begins)) = waiting.pop() {
        let of = &tree.boxes[place];
        let piece = |begins: i64, value: i64, what: What| Piece {
            start: column(begins, whole, columns),
            end: column(begins.saturating_add(value), whole, columns),
            what,
        };
        lines[of.depth].push(piece(begins, of.value, What::Box(place)));
        let mut next = begins;
        for child in &of.children {
            waiting.push((*child, next));
            next = next.saturating_add(tree.boxes[*child].value);
        }
        let small = piece(next, of.small.1, What::Small(of.small.0));
        if small.width() > 0 && of.depth + 1 < lines.len() {
            lines[of.depth + 1].push(small);
        }
    }
    for line in &mut lines {
        line.sort_unstable_by_key(|piece| (piece.start, piece.end));
    }
    lines
}

/// Where a cost from the left lies, to the nearest column.
fn column(cost: i64, whole: i64, columns: usize) -> usize {
    if whole <= 0 {
        return 0;
    }
    let (cost, whole) = (i128::from(cost.clamp(0, whole)), i128::from(whole));
    let wide = i128::try_from(columns).unwrap_or(i128::MAX);
    usize::try_from((cost * wide * 2 + whole) / (whole * 2)).unwrap_or(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_lie_at_the_nearest_column() {
        assert_eq!([0, 4, 5, 14, 15, 95, 100].map(|cost| column(cost, 100, 10)), [0, 0, 1, 1, 2, 10, 10]);
        assert_eq!((column(5, 0, 10), column(i64::MAX, i64::MAX, 80)), (0, 80));
    }

    #[test]
    fn what_costs_less_than_nothing_has_no_width() {
        let piece = |start, end| Piece { start, end, what: What::Small(1) };
        assert_eq!((piece(5, 3).width(), piece(3, 5).width()), (0, 2));
    }

    #[test]
    fn the_least_cost_has_a_column_wherever_it_begins() {
        for (whole, columns) in [(100, 10), (97, 13), (1, 80), (i64::MAX, 80), (1000, 3)] {
            let least = least(whole, columns);
            for begins in [0, whole / 3, whole / 2, whole - least] {
                assert!(column(begins + least, whole, columns) > column(begins, whole, columns), "{begins} of {whole}");
            }
        }
        assert_eq!((least(100, 10), least(101, 10), least(0, 10)), (10, 11, 0));
    }
}
