//! Binutils' `addr2line`: a second oracle, and a replacement for the symbolizer when the tests themselves are
//! tested.

use std::fmt::Write as _;
use std::path::Path;

use super::llvm_symbolizer::query_by_file;
use super::tool::Tool;
use super::{Skipped, SymbolizedFrame};

/// Resolves each address of `file` to a chain of inlined calls, innermost first. It reports no columns.
///
/// # Panics
/// When it does not return a result for each address.
pub fn resolve(file: &Path, addresses: &[u64]) -> Result<Vec<Vec<SymbolizedFrame>>, Skipped> {
    let tool = Tool::find(&["addr2line"])?;
    let arguments = ["-a", "-f", "-i", "-C", "-e"].map(str::to_owned).into_iter();
    let arguments: Vec<String> = arguments.chain([file.display().to_string()]).collect();
    let mut questions = String::new();
    for address in addresses {
        let _ = writeln!(questions, "{address:#x}");
    }
    let text = query_by_file(&tool, &arguments, &questions)?;
    let answers = parse(&text);
    assert_eq!(answers.len(), addresses.len(), "addr2line answers every question");
    Ok(answers)
}

/// Parses the output: the address, then two lines for each function, its name and its location.
fn parse(text: &str) -> Vec<Vec<SymbolizedFrame>> {
    let mut answers: Vec<Vec<SymbolizedFrame>> = Vec::new();
    let mut lines = text.lines();
    while let Some(first) = lines.next() {
        if first.starts_with("0x") {
            answers.push(Vec::new());
        } else if let Some(places) = answers.last_mut() {
            places.push(place(first, lines.next().unwrap_or_default()));
        }
    }
    answers
}

fn place(function: &str, location: &str) -> SymbolizedFrame {
    let location = location.split(" (discriminator").next().unwrap_or_default();
    let (file, line) = location.rsplit_once(':').unwrap_or((location, ""));
    let known = |text: &str| (text != "??").then(|| text.to_owned());
    SymbolizedFrame { function: known(function), file: known(file), line: line.parse().unwrap_or(0), column: 0 }
}
