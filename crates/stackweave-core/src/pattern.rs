//! Patterns that people write to choose functions.

use core::convert::Infallible;
use core::str::FromStr;

/// What of a function a pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Its module, its file or its name.
    Any,
    /// The module: of a native function its library, of Python's the name that `import` knows.
    Module,
    /// The source file.
    File,
    /// The name, with the classes and functions around it.
    Function,
}

/// A text to look for in functions.
///
/// With `*` (any text), `?` (any character) or `[abc]`, `[a-z]`, `[!a]` in it, it stands for the whole of what is looked
/// at, a file also without its folders; else it may stand anywhere in it. With `=` before it, it is the whole, letter by letter. As
/// text: `file:*/models/*.py`, `module:libtorch`, `function:Model.*`, `function:=main`; without such a beginning it is looked
/// for in all three.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    /// What is looked at.
    pub part: Part,
    /// What is looked for.
    pub text: String,
}

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let parts = [("module:", Part::Module), ("file:", Part::File), ("function:", Part::Function)];
        let found = parts.iter().find_map(|(start, part)| Some((*part, text.strip_prefix(start)?)));
        let (part, text) = found.unwrap_or((Part::Any, text));
        Ok(Self { part, text: text.to_owned() })
    }
}

/// What patterns look at.
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
    /// Whether it stands for this function.
    pub fn matches(&self, names: FunctionNames<'_>) -> bool {
        let looks_at = |part| self.part == Part::Any || self.part == part;
        (looks_at(Part::Function) && self.is_in(names.function))
            || (looks_at(Part::Module) && names.module.is_some_and(|module| self.is_in(module)))
            || (looks_at(Part::File) && names.file.is_some_and(|file| self.is_in_path(file)))
    }

    /// Whether it stands for the whole of this text, glob or not.
    pub fn is_whole(&self, text: &str) -> bool {
        match self.exact() {
            Some(exact) => exact == text,
            None => self.text == text || glob(&self.text, text),
        }
    }

    /// Returns what it stands for if that is exactly one text.
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

/// Whether the text of a [`Pattern`] stands for this text, or for a part of it if it is no glob.
pub fn text_matches(pattern: &str, text: &str) -> bool {
    if pattern.contains(['*', '?', '[']) { glob(pattern, text) } else { text.contains(pattern) }
}

/// Goes back to the last `*` only, so that it takes at most as many steps as both lengths multiplied.
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

/// The rest of the pattern if what it begins with, which is no `*`, stands for this letter.
fn one(pattern: &str, letter: char) -> Option<&str> {
    if let Some((set, rest)) = pattern.strip_prefix('[').and_then(split_set) {
        return is_in_set(set, letter).then_some(rest);
    }
    let mut letters = pattern.chars();
    let first = letters.next()?;
    (first == '?' || first == letter).then_some(letters.as_str())
}

/// What stands in brackets, and what follows. A `]` that comes first is one of the set.
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
    fn globs_stand_for_whole_texts() {
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
    fn a_pattern_may_have_to_stand_for_the_whole() {
        let pattern = |text: &str| text.parse::<Pattern>().unwrap();
        assert!(pattern("pkg.load").is_whole("pkg.load") && pattern("pkg.*").is_whole("pkg.load"));
        assert!(!pattern("pkg.load").is_whole("pkg.load_all") && !pattern("load").is_whole("pkg.load"));
    }

    #[test]
    fn a_pattern_with_an_equals_sign_stands_for_one_name() {
        let is_for = |pattern: &str, function: &str| {
            let names = FunctionNames { module: Some("libf.so"), file: Some("/srv/f.py"), function };
            pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.matches(names))
        };
        assert!(is_for("function:f", "off") && !is_for("function:=f", "off"));
        assert!(is_for("function:=f", "f") && is_for("=f", "f") && !is_for("function:=f", "A.f"));
        assert!(is_for("function:=A.f", "A.f") && is_for("function:=[f]*", "[f]*") && !is_for("function:=*", "f"));
        assert!(is_for("file:=f.py", "x") && is_for("file:=/srv/f.py", "x") && !is_for("file:=srv/f.py", "x"));
        assert!(is_for("module:=libf.so", "x") && !is_for("module:=libf", "x"));
        let whole = |pattern: &str, text: &str| pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.is_whole(text));
        assert!(whole("=f", "f") && !whole("=f", "ff") && !whole("=*", "f"));
    }

    #[test]
    fn a_long_text_of_near_matches_takes_no_time() {
        assert!(!glob(&"a*".repeat(30), &"b".repeat(10_000)));
        assert!(!glob(&format!("{}b", "*a".repeat(30)), &"a".repeat(5_000)));
    }

    #[test]
    fn a_pattern_says_what_it_looks_at() {
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
