//! Tables with aligned columns.

use std::io::{self, Write};

use crate::text::style::{Style, cut, cut_start, width};

/// A text with its style.
pub(crate) type StyledText = (String, Style);

/// A row: numbers, aligned to the right, then the guides of a tree, the name and its location.
#[derive(Clone, Debug)]
pub(crate) struct TextRow<const N: usize> {
    pub(crate) numbers: [StyledText; N],
    pub(crate) guides: String,
    pub(crate) name: StyledText,
    pub(crate) location: String,
}

impl<const N: usize> TextRow<N> {
    /// Returns the row with the first columns only.
    pub(crate) fn first<const M: usize>(self) -> TextRow<M> {
        TextRow { numbers: first(self.numbers), guides: self.guides, name: self.name, location: self.location }
    }
}

/// Returns the first `M` of these; `M` is not greater than `N`.
pub(crate) fn first<T: Default, const N: usize, const M: usize>(all: [T; N]) -> [T; M] {
    let mut all = all.into_iter();
    core::array::from_fn(|_| all.next().unwrap_or_default())
}

/// The width of lines, and whether they have colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineLayout {
    pub(crate) width: Option<usize>,
    pub(crate) colour: bool,
    /// Whether the end of a location is kept if it is cut, instead of the beginning.
    pub(crate) are_paths: bool,
}

/// Names are not cut to less than this.
const MIN_NAME_WIDTH: usize = 20;
const BETWEEN: &str = "  ";

/// Writes the rows under their headings. An empty column takes no space.
pub(crate) fn write_rows<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    name_head: &str,
    rows: &[TextRow<N>],
    layout: LineLayout,
) -> io::Result<()> {
    let mut widths = heads.map(width);
    for row in rows {
        for (column, (text, _)) in widths.iter_mut().zip(&row.numbers) {
            *column = (*column).max(width(text));
        }
    }
    let head = TextRow {
        numbers: heads.map(|head| (head.to_owned(), Style::Head)),
        guides: String::new(),
        name: (name_head.to_owned(), Style::Head),
        location: String::new(),
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

fn put_row<const N: usize>(line: &mut String, row: &TextRow<N>, widths: [usize; N], layout: LineLayout) {
    let is_used = |(_, column): &(&StyledText, usize)| *column > 0;
    for ((text, style), column) in row.numbers.iter().zip(widths).filter(is_used) {
        line.extend(std::iter::repeat_n(' ', column - width(text)));
        style.put(line, text, layout.colour);
        line.push_str(BETWEEN);
    }
    let numbers: usize = widths.iter().filter(|width| **width > 0).map(|width| width + BETWEEN.len()).sum();
    let left = layout.width.map(|width| width.saturating_sub(numbers));
    let left = left.map(|left| left.saturating_sub(width(&row.guides)).max(MIN_NAME_WIDTH));
    let (name, location) = fitted(&row.name.0, &row.location, left, layout.are_paths);
    Style::Dim.put(line, &row.guides, layout.colour);
    row.name.1.put(line, &name, layout.colour);
    if !location.is_empty() {
        line.push_str(BETWEEN);
        Style::Dim.put(line, &location, layout.colour);
    }
}

/// Fits name and location into a number of columns; the location is cut first.
fn fitted(name: &str, location: &str, columns: Option<usize>, is_path: bool) -> (String, String) {
    let Some(columns) = columns else { return (name.to_owned(), location.to_owned()) };
    let name = cut(name, columns);
    let left = columns.saturating_sub(width(&name) + BETWEEN.len());
    let location = if left < 8.min(width(location)) {
        String::new()
    } else if is_path {
        cut_start(location, left)
    } else {
        cut(location, left)
    };
    (name, location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_and_long_names_are_cut() {
        let row = |number: &str, name: &str| TextRow {
            numbers: [(number.to_owned(), Style::Plain)],
            guides: String::new(),
            name: (name.to_owned(), Style::Plain),
            location: "/a/long/folder/file.py:10".to_owned(),
        };
        let rows = [row("1", "short"), row("1000", "a_name_that_is_much_too_long_for_this")];
        let mut out = Vec::new();
        let layout = LineLayout { width: Some(34), colour: false, are_paths: true };
        write_rows(&mut out, ["n"], "function", &rows, layout).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "   n  function\n   1  short  …ng/folder/file.py:10\n1000  a_name_that_is…long_for_this\n";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| width(line) <= 34), "{text}");
    }
}
