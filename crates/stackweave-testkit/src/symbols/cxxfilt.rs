//! Binutils' demangler.

use super::llvm_symbolizer::query_by_file;
use super::tool::Tool;

/// Returns the names as `c++filt` spells them; unchanged if it is not installed.
pub fn demangle<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let count = names.clone().count();
    let questions: String = names.clone().flat_map(|name| [name, "\n"]).collect();
    let answer = Tool::find(&["c++filt"]).and_then(|tool| query_by_file(&tool, &[], &questions));
    match answer.map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()) {
        Ok(lines) if lines.len() == count => lines,
        _ => names.map(str::to_owned).collect(),
    }
}
