//! The columns of each box.

use crate::text::flame::tree::FlameTree;

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineSegment {
    pub(crate) start: usize,
    /// The column after the last one.
    pub(crate) end: usize,
    pub(crate) content: SegmentContent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentContent {
    /// The box with this index.
    Box(usize),
    /// A number of boxes that are too narrow.
    Small(usize),
}

impl LineSegment {
    /// Returns the number of columns; 0 for negative costs, such as of memory that was freed.
    pub(crate) const fn width(&self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// Returns the least cost that always has a column.
pub(crate) fn least(whole: i64, columns: usize) -> i64 {
    let columns = i64::try_from(columns).unwrap_or(i64::MAX).max(1);
    whole / columns + i64::from(whole % columns != 0)
}

/// Returns the segments of each line from left to right, the root first. Children begin where their parent begins; the
/// rest of the parent's width is its self cost.
pub(crate) fn lines(tree: &FlameTree, columns: usize) -> Vec<Vec<LineSegment>> {
    let whole = tree.boxes[0].value;
    let mut lines: Vec<Vec<LineSegment>> = Vec::new();
    lines.resize_with(tree.depth() + 1, Vec::new);
    let mut waiting = vec![(0, 0_i64)];
    while let Some((index, begins)) = waiting.pop() {
        let of = &tree.boxes[index];
        let segment = |begins: i64, value: i64, content: SegmentContent| LineSegment {
            start: column(begins, whole, columns),
            end: column(begins.saturating_add(value), whole, columns),
            content,
        };
        lines[of.depth].push(segment(begins, of.value, SegmentContent::Box(index)));
        let mut next = begins;
        for child in &of.children {
            waiting.push((*child, next));
            next = next.saturating_add(tree.boxes[*child].value);
        }
        let small = segment(next, of.small.1, SegmentContent::Small(of.small.0));
        if small.width() > 0 && of.depth + 1 < lines.len() {
            lines[of.depth + 1].push(small);
        }
    }
    for line in &mut lines {
        line.sort_unstable_by_key(|segment| (segment.start, segment.end));
    }
    lines
}

/// Returns the column that is nearest to a cost from the left edge.
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
    fn costs_are_rounded_to_the_nearest_column() {
        assert_eq!([0, 4, 5, 14, 15, 95, 100].map(|cost| column(cost, 100, 10)), [0, 0, 1, 1, 2, 10, 10]);
        assert_eq!((column(5, 0, 10), column(i64::MAX, i64::MAX, 80)), (0, 80));
    }

    #[test]
    fn negative_costs_have_no_width() {
        let segment = |start, end| LineSegment { start, end, content: SegmentContent::Small(1) };
        assert_eq!((segment(5, 3).width(), segment(3, 5).width()), (0, 2));
    }

    #[test]
    fn the_least_cost_has_a_column_at_every_position() {
        for (whole, columns) in [(100, 10), (97, 13), (1, 80), (i64::MAX, 80), (1000, 3)] {
            let least = least(whole, columns);
            for begins in [0, whole / 3, whole / 2, whole - least] {
                assert!(column(begins + least, whole, columns) > column(begins, whole, columns), "{begins} of {whole}");
            }
        }
        assert_eq!((least(100, 10), least(101, 10), least(0, 10)), (10, 11, 0));
    }
}
