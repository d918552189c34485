//! Normalises names, because demanglers spell them differently.

use std::fmt::Write as _;

/// Operators that contain brackets, the longest first, and a word for each.
const OPERATORS: [(&str, &str); 12] = [
    ("()", "call"),
    ("<=>", "order"),
    ("<<=", "assign-left"),
    (">>=", "assign-right"),
    ("->*", "member"),
    ("<<", "left"),
    (">>", "right"),
    ("<=", "at-most"),
    (">=", "at-least"),
    ("->", "arrow"),
    ("<", "less"),
    (">", "more"),
];
/// Suffixes that compilers append to the names of a function's parts and copies.
const PIECES: [&str; 9] =
    [" (.", " [clone ", ".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", ".localalias"];
/// Escapes in older Rust names for characters that assemblers do not accept.
const ESCAPES: [(&str, &str); 7] =
    [("$LT$", "<"), ("$GT$", ">"), ("$LP$", "("), ("$RP$", ")"), ("$RF$", "&"), ("$BP$", "*"), ("$C$", ",")];

/// Returns the normalised name: no parameters, no return type, no white space, no suffix of a copy or part, no
/// Rust hash. Template arguments remain.
pub fn canonical(name: &str) -> String {
    let mut name = name.to_owned();
    if let Some(end) = PIECES.iter().filter_map(|piece| name.find(piece)).min() {
        name.truncate(end);
    }
    name = without_rust_escapes(&without_rust_hash(&name));
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("[abi:cxx11]", "");
    for kind in ["lambda", "unnamed"] {
        name = with_numbered_braces(&name, kind);
    }
    name = name.replace("{unnamed type#", "{unnamed#");
    own_name(&without_parameters(&with_worded_operators(&name)))
}

/// Removes `::h0123456789abcdef` at the end, and `[0123456789abcdef]` after a crate.
fn without_rust_hash(name: &str) -> String {
    let is_hash = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match name.rsplit_once("::h") {
        Some((path, hash)) if is_hash(hash, 16) => path,
        _ => name,
    };
    let mut result = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('[') {
        result.push_str(before);
        match after.split_once(']') {
            Some((hash, next)) if is_hash(hash, hash.len().clamp(12, 16)) => rest = next,
            _ => {
                result.push('[');
                rest = after;
            }
        }
    }
    result + rest
}

fn without_rust_escapes(name: &str) -> String {
    if !name.contains('$') && !name.contains("..") {
        return name.to_owned();
    }
    let mut name = name.replace("::_$", "::$");
    if name.starts_with("_$") {
        name.remove(0);
    }
    for (escape, text) in ESCAPES {
        name = name.replace(escape, text);
    }
    while let Some(start) = name.find("$u") {
        let Some(length) = name[start + 2..].find('$') else { break };
        let code = u32::from_str_radix(&name[start + 2..start + 2 + length], 16).ok();
        let Some(character) = code.and_then(char::from_u32) else { break };
        name.replace_range(start..start + length + 3, character.encode_utf8(&mut [0; 4]));
    }
    name.replace("..", "::")
}

/// Converts LLVM's `'lambda'`, `'lambda0'` to GNU's `{lambda#1}`, `{lambda#2}`.
fn with_numbered_braces(name: &str, kind: &str) -> String {
    let mut result = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once(&format!("'{kind}")) {
        let (number, next) = after.split_once('\'').unwrap_or((after, ""));
        let number = number.parse::<u32>().map_or(1, |number| number + 2);
        let _ = write!(result, "{before}{{{kind}#{number}}}");
        rest = next;
    }
    result + rest
}

fn with_worded_operators(name: &str) -> String {
    let mut result = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("operator") {
        result.push_str(before);
        result.push_str("operator");
        let found = OPERATORS.iter().find(|(sign, _)| after.starts_with(sign) && !is_less_with_arguments(sign, after));
        rest = after;
        if let Some((sign, word)) = found {
            let _ = write!(result, "{{{word}}}");
            rest = &after[sign.len()..];
        }
    }
    result + rest
}

/// Returns whether a less-than operator with template arguments is here, as LLVM writes it: `operator<<int>` is
/// the less-than of `int`.
fn is_less_with_arguments(sign: &str, after: &str) -> bool {
    sign == "<<" && after[sign.len()..].starts_with(|next: char| next.is_alphabetic() || next == '_')
}

/// Removes everything in parentheses, spaces in template arguments, and the types of numbers.
fn without_parameters(name: &str) -> String {
    let mut result = String::new();
    let (mut angles, mut rounds) = (0_u32, 0_u32);
    let mut characters = name.replace("->", "").chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(character) = characters.next() {
        match character {
            '(' => rounds += 1,
            ')' => rounds = rounds.saturating_sub(1),
            _ if rounds > 0 => {}
            ' ' if angles > 0 || characters.peek() == Some(&'<') => {}
            '0'..='9' if angles > 0 && !result.ends_with(|last: char| last.is_alphanumeric() || last == '_') => {
                result.push(character);
                while let Some(digit) = characters.next_if(char::is_ascii_digit) {
                    result.push(digit);
                }
                while characters.next_if(char::is_ascii_alphanumeric).is_some() {}
            }
            _ => {
                angles = match character {
                    '<' => angles + 1,
                    '>' => angles.saturating_sub(1),
                    _ => angles,
                };
                result.push(character);
            }
        }
    }
    for (word, number) in [("true", "1"), ("false", "0")] {
        for (open, close) in [("<", ">"), ("<", ","), (",", ">"), (",", ",")] {
            result = result.replace(&format!("{open}{word}{close}"), &format!("{open}{number}{close}"));
        }
    }
    // Some demanglers write an empty pack as an argument.
    while let Some(place) = [",,", ",>", "<,"].iter().find_map(|empty| Some((result.find(empty)?, *empty))) {
        result.remove(place.0 + usize::from(place.1 == "<,"));
    }
    result
}

/// Returns the name without the return type before it and the qualifiers behind it.
fn own_name(name: &str) -> String {
    let mut angles = 0_u32;
    let mut words = vec![String::new()];
    for character in name.chars() {
        match character {
            ' ' if angles == 0 => words.push(String::new()),
            _ => {
                angles = match character {
                    '<' => angles + 1,
                    '>' => angles.saturating_sub(1),
                    _ => angles,
                };
                words.last_mut().expect("never empty").push(character);
            }
        }
    }
    words.retain(|word| !matches!(word.as_str(), "" | "const" | "volatile" | "&" | "&&"));
    if let Some(operator) = words.iter().position(|word| word.ends_with("operator")) {
        return words[operator..].concat();
    }
    words.pop().unwrap_or_default()
}
