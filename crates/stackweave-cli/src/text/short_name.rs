//! Shortens long C++ and Rust names, for tracebacks.

use std::borrow::Cow;

const OPERATORS: [&str; 12] = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"];

/// Shortens a name of more than `width` letters: first removes template arguments and parameters, then outer scopes.
pub fn shorten(name: &str, width: usize) -> Cow<'_, str> {
    if name.chars().count() <= width {
        return Cow::Borrowed(name);
    }
    let name = without_brackets(name);
    let length = name.chars().count();
    if length <= width {
        return Cow::Owned(name);
    }
    let end: String = name.chars().skip(length + 3 - width).collect();
    Cow::Owned(format!("...{end}"))
}

/// Empties each outermost pair of brackets after the first character; `operator<` and the like stay.
fn without_brackets(name: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0u32;
    let mut before = None;
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let operator = operator_at(rest);
        let length = operator.unwrap_or(letter.len_utf8());
        if operator.is_some() {
            if depth == 0 {
                kept.push_str(&rest[..length]);
            }
        } else {
            if matches!(letter, '<' | '(') && before.is_some() {
                if depth == 0 {
                    kept.push(letter);
                    kept.push_str("...");
                }
                depth += 1;
            } else if matches!(letter, '>' | ')') && depth > 0 && before != Some('-') {
                depth -= 1;
            }
            if depth == 0 {
                kept.push(letter);
            }
        }
        before = rest[..length].chars().next_back();
        rest = &rest[length..];
    }
    kept
}

/// Returns the length of `operator<` and the like at the start of the text.
fn operator_at(name: &str) -> Option<usize> {
    let after = name.strip_prefix("operator")?;
    OPERATORS.iter().find(|symbol| after.starts_with(**symbol)).map(|symbol| "operator".len() + symbol.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened() {
        assert_eq!(shorten("short<int>(int)", 60), "short<int>(int)");
        assert_eq!(shorten("a::b<std::vector<int>>::c(d<e>, f) const", 30), "a::b<...>::c(...) const");
        assert_eq!(shorten("x::operator<<(std::ostream&, y<z> const&)", 30), "x::operator<<(...)");
        assert_eq!(shorten("outer::middle::inner::function_name", 20), "...er::function_name");
        assert_eq!(shorten("<alloc::vec::Vec<T> as core::ops::Drop>::drop::<X>", 30).chars().count(), 30);
    }
}
