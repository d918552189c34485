//! Binutils' demangler.

use super::llvm_symbolizer::ask;
use super::tool::Tool;

/// The names as `c++filt` spells them; as they are where it is not installed.
pub fn demangle<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let count = names.clone().count();
    let questions: String = names.clone().flat_map(|name| [name, "\n"]).collect();
    let answer = Tool::find(&["c++filt"]).and_then(|tool| ask(&tool, &[], &questions));
    match answer.map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
        Ok(lines) if lines.len() == count => lines,
        _ => names.map(str::to_owned).collect(),
    }
}
