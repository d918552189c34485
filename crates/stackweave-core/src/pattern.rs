//! Patterns that users write to select functions.

use core::convert::Infallible;
use core::str::FromStr;

/// The part of a function that a pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternScope {
    /// Its module, its file or its name.
    Any,
    /// The module: the library of a native function, or the import name of a Python module.
    Module,
    /// The source file.
    File,
    /// The name, with the classes and functions around it.
    Function,
}

/// A text to look for in functions.
///
/// A text with `*` (any text), `?` (any character) or `[abc]`, `[a-z]`, `[!a]` is a glob, which must match the
/// whole name, module or file; for a file, also only its last component. Any other text may match a part. A text
/// that begins with `=` must be equal to the whole. A prefix limits the comparison: `file:*/models/*.py`,
/// `module:libtorch`, `function:Model.*`, `function:=main`; without a prefix, all three are compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// The part that is compared.
    pub part: PatternScope,
    /// The text to look for.
    pub text: String,
}

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let parts =
            [("module:", PatternScope::Module), ("file:", PatternScope::File), ("function:", PatternScope::Function)];
        let found = parts.iter().find_map(|(start, part)| Some((*part, text.strip_prefix(start)?)));
        let (part, text) = found.unwrap_or((PatternScope::Any, text));
        Ok(Self { part, text: text.to_owned() })
    }
}

/// The names that patterns are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionNames<'a> {
    /// The module, if it is known.
    pub module: Option<&'a str>,
    /// The source file, if it is known.
    pub file: Option<&'a str>,
    /// The name, with the classes and functions around it.
    pub function: &'a str,
}

impl Pattern {
    /// Returns whether it matches this function.
    pub fn matches(&self, names: FunctionNames<'_>) -> bool {
        let compares = |part| self.part == PatternScope::Any || self.part == part;
        (compares(PatternScope::Function) && self.is_in(names.function))
            || (compares(PatternScope::Module) && names.module.is_some_and(|module| self.is_in(module)))
            || (compares(PatternScope::File) && names.file.is_some_and(|file| self.is_in_path(file)))
    }

    /// Returns whether it matches the whole of this text, even if it is not a glob.
    pub fn matches_whole(&self, text: &str) -> bool {
        match self.exact() {
            Some(exact) => exact == text,
            None => self.text == text || glob(&self.text, text),
        }
    }

    /// Returns the only text that it can match, if there is one.
    fn exact(&self) -> Option<&str> {
        self.text.strip_prefix('=')
    }

    fn is_in(&self, text: &str) -> bool {
        self.exact().map_or_else(|| text_matches(&self.text, text), |exact| exact == text)
    }

    fn is_in_path(&self, path: &str) -> bool {
        self.is_in(path) || path.rsplit('/').next().is_some_and(|name| self.is_in(name))
    }
}

/// Returns whether the text of a [`Pattern`] matches this text, or a part of it if the pattern is not a glob.
pub fn text_matches(pattern: &str, text: &str) -> bool {
    if pattern.contains(['*', '?', '[']) { glob(pattern, text) } else { text.contains(pattern) }
}

/// Backtracks to the last `*` only, so that the number of steps is at most the product of both lengths.
fn glob(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern, text);
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            retry = Some((rest, text));
            pattern = rest;
            continue;
        }
        let Some(letter) = text.chars().next() else { return pattern.is_empty() };
        if let Some(rest) = one(pattern, letter) {
            (pattern, text) = (rest, &text[letter.len_utf8()..]);
            continue;
        }
        let Some((rest, from)) = retry else { return false };
        let Some(skipped) = from.chars().next() else { return false };
        text = &from[skipped.len_utf8()..];
        (pattern, retry) = (rest, Some((rest, text)));
    }
}

/// Returns the rest of the pattern if its beginning, which is not `*`, matches this character.
fn one(pattern: &str, letter: char) -> Option<&str> {
    if let Some((set, rest)) = pattern.strip_prefix('[').and_then(split_set) {
        return is_in_set(set, letter).then_some(rest);
    }
    let mut letters = pattern.chars();
    let first = letters.next()?;
    (first == '?' || first == letter).then_some(letters.as_str())
}

/// Splits the contents of brackets from the rest. A `]` that comes first belongs to the set.
fn split_set(after_bracket: &str) -> Option<(&str, &str)> {
    let negated = usize::from(after_bracket.starts_with('!'));
    let end = after_bracket.char_indices().skip(negated + 1).find(|(_, letter)| *letter == ']')?.0;
    Some((&after_bracket[..end], &after_bracket[end + 1..]))
}

fn is_in_set(set: &str, letter: char) -> bool {
    let (set, is_negated) = set.strip_prefix('!').map_or((set, false), |set| (set, true));
    let letters: Vec<char> = set.chars().collect();
    let mut rest = letters.as_slice();
    let mut found = false;
    while let Some((first, after)) = rest.split_first() {
        if let ['-', last, after @ ..] = after {
            found |= (*first..=*last).contains(&letter);
            rest = after;
        } else {
            found |= *first == letter;
            rest = after;
        }
    }
    found != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        let yes = [
            ("*", ""),
            ("a*c", "abbc"),
            ("a*b*c", "a-b-b-c"),
            ("?é", "xé"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]]", "]"),
            ("[a", "[a"),
            ("a-[x-]", "a--"),
            ("**", "x"),
        ];
        for (pattern, text) in yes {
            assert!(glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a*c", "abb"), ("?", ""), ("[a-c]", "d"), ("[!a]", "a"), ("a", "ab"), ("", "a")] {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_may_have_to_match_the_whole_text() {
        let pattern = |text: &str| text.parse::<Pattern>().unwrap();
        assert!(pattern("pkg.load").matches_whole("pkg.load") && pattern("pkg.*").matches_whole("pkg.load"));
        assert!(!pattern("pkg.load").matches_whole("pkg.load_all") && !pattern("load").matches_whole("pkg.load"));
    }

    #[test]
    fn a_pattern_with_an_equals_sign_matches_one_name() {
        let is_for = |pattern: &str, function: &str| {
            let names = FunctionNames { module: Some("libf.so"), file: Some("/srv/f.py"), function };
            pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.matches(names))
        };
        assert!(is_for("function:f", "off") && !is_for("function:=f", "off"));
        assert!(is_for("function:=f", "f") && is_for("=f", "f") && !is_for("function:=f", "A.f"));
        assert!(is_for("function:=A.f", "A.f") && is_for("function:=[f]*", "[f]*") && !is_for("function:=*", "f"));
        assert!(is_for("file:=f.py", "x") && is_for("file:=/srv/f.py", "x") && !is_for("file:=srv/f.py", "x"));
        assert!(is_for("module:=libf.so", "x") && !is_for("module:=libf", "x"));
        let whole =
            |pattern: &str, text: &str| pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.matches_whole(text));
        assert!(whole("=f", "f") && !whole("=f", "ff") && !whole("=*", "f"));
    }

    #[test]
    fn long_texts_of_near_matches_are_fast() {
        assert!(!glob(&"a*".repeat(30), &"b".repeat(10_000)));
        assert!(!glob(&format!("{}b", "*a".repeat(30)), &"a".repeat(5_000)));
    }

    #[test]
    fn a_prefix_selects_the_compared_part() {
        let names =
            FunctionNames { module: Some("shop.model"), file: Some("/srv/me/model.py"), function: "Model.step" };
        let matches = |text: &str| text.parse::<Pattern>().is_ok_and(|pattern| pattern.matches(names));
        for text in ["Model", "model.py", "function:*.step", "file:*/me/*", "file:model.*", "me/mod", "module:shop"] {
            assert!(matches(text), "{text}");
        }
        for text in ["function:model", "file:step", "module:step", "function:Model", "Mode?"] {
            assert_eq!(matches(text), text == "function:Model", "{text}");
        }
    }
}
