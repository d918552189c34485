//! Lines of columns that stand under each other.

use std::io::{self, Write};

use crate::text::style::{Style, cut, cut_start, width};

/// A cell and its style.
pub(crate) type Cell = (String, Style);

/// One line: numbers, aligned to the right, then what leads to a name, the name and its place.
#[derive(Clone, Debug)]
pub(crate) struct Row<const N: usize> {
    pub(crate) numbers: [Cell; N],
    pub(crate) guides: String,
    pub(crate) name: Cell,
    pub(crate) place: String,
}

impl<const N: usize> Row<N> {
    /// The same with the first columns only.
    pub(crate) fn first<const M: usize>(self) -> Row<M> {
        Row { numbers: first(self.numbers), guides: self.guides, name: self.name, place: self.place }
    }
}

/// The first of these; `M` is not greater than `N`.
pub(crate) fn first<T: Default, const N: usize, const M: usize>(all: [T; N]) -> [T; M] {
    let mut all = all.into_iter();
    core::array::from_fn(|_| all.next().unwrap_or_default())
}

/// How wide lines may be, and whether they have colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) width: Option<usize>,
    pub(crate) colour: bool,
    /// Whether the end of a place is what matters, rather than its beginning.
    pub(crate) are_paths: bool,
}

/// Names are not cut below this.
const LEAST_NAME: usize = 20;
const BETWEEN: &str = "  ";

/// Writes the lines under their heads. A column that has nothing in it takes no room.
pub(crate) fn write_rows<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    name_head: &str,
    rows: &[Row<N>],
    layout: Layout,
) -> io::Result<()> {
    let mut widths = heads.map(width);
    for row in rows {
        for (column, (text, _)) in widths.iter_mut().zip(&row.numbers) {
            *column = (*column).max(width(text));
        }
    }
    let head = Row {
        numbers: heads.map(|head| (head.to_owned(), Style::Head)),
        guides: String::new(),
        name: (name_head.to_owned(), Style::Head),
        place: String::new(),
    };
    let mut line = String::new();
    for row in std::iter::once(&head).chain(rows) {
        line.clear();
        put_row(&mut line, row, widths, layout);
        line.truncate(line.trim_end_matches(' ').len());
        line.push('\n');
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn put_row<const N: usize>(line: &mut String, row: &Row<N>, widths: [usize; N], layout: Layout) {
    let is_used = |(_, column): &(&Cell, usize)| *column > 0;
    for ((text, style), column) in row.numbers.iter().zip(widths).filter(is_used) {
        line.extend(std::iter::repeat_n(' ', column - width(text)));
        style.put(line, text, layout.colour);
        line.push_str(BETWEEN);
    }
    let numbers: usize = widths.iter().filter(|width| **width > 0).map(|width| width + BETWEEN.len()).sum();
    let left = layout.width.map(|width| width.saturating_sub(numbers));
    let left = left.map(|left| left.saturating_sub(width(&row.guides)).max(LEAST_NAME));
    let (name, place) = fitted(&row.name.0, &row.place, left, layout.are_paths);
    Style::Dim.put(line, &row.guides, layout.colour);
    row.name.1.put(line, &name, layout.colour);
    if !place.is_empty() {
        line.push_str(BETWEEN);
        Style::Dim.put(line, &place, layout.colour);
    }
}

/// Name and place in so many columns: the place gives way first.
fn fitted(name: &str, place: &str, columns: Option<usize>, is_path: bool) -> (String, String) {
    let Some(columns) = columns else { return (name.to_owned(), place.to_owned()) };
    let name = cut(name, columns);
    let left = columns.saturating_sub(width(&name) + BETWEEN.len());
    let place = if left < 8.min(width(place)) {
        String::new()
    } else if is_path {
        cut_start(place, left)
    } else {
        cut(place, left)
    };
    (name, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_under_each_other_and_long_names_are_cut() {
        let row = |number: &str, name: &str| Row {
            numbers: [(number.to_owned(), Style::Plain)],
            guides: String::new(),
            name: (name.to_owned(), Style::Plain),
            place: "/a/long/folder/file.py:10".to_owned(),
        };
        let rows = [row("1", "short"), row("1000", "a_name_that_is_much_too_long_for_this")];
        let mut out = Vec::new();
        let layout = Layout { width: Some(34), colour: false, are_paths: true };
        write_rows(&mut out, ["n"], "function", &rows, layout).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "   n  function\n   1  short  …ng/folder/file.py:10\n1000  a_name_that_is…long_for_this\n";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| width(line) <= 34), "{text}");
    }
}
