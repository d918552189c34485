//! Runs `llvm-symbolizer` for many addresses at once.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use super::tool::Tool;
use super::{Skipped, SymbolizedFrame};

/// Resolves each address of `file` to a chain of inlined calls, innermost first.
///
/// # Panics
/// When it does not return a result for each address.
pub fn resolve(
    file: &Path,
    addresses: &[u64],
    debug_folders: &[PathBuf],
) -> Result<Vec<Vec<SymbolizedFrame>>, Skipped> {
    let tool = Tool::find(&["llvm-symbolizer"])?;
    let mut arguments = vec!["--inlines".to_owned(), "--demangle".to_owned(), "--output-style=LLVM".to_owned()];
    arguments.extend(debug_folders.iter().map(|folder| format!("--debug-file-directory={}", folder.display())));
    let mut questions = String::new();
    for address in addresses {
        let _ = writeln!(questions, "CODE \"{}\" {address:#x}", file.display());
    }
    let text = query_by_file(&tool, &arguments, &questions)?;
    let answers = parse(&text);
    assert_eq!(answers.len(), addresses.len(), "llvm-symbolizer answers every question about {}", file.display());
    Ok(answers)
}

/// Runs the tool with `questions` as its input. The input is a file, because a pipe could fill up while no thread
/// reads the output.
pub(super) fn query_by_file(tool: &Tool, arguments: &[String], questions: &str) -> Result<String, Skipped> {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("stackweave-questions-{}-{serial}", std::process::id()));
    fs::write(&path, questions).expect("the temporary directory can be written");
    let input = Stdio::from(File::open(&path).expect("it was just written"));
    let answer = tool.run_with_input(Path::new("/"), arguments, input);
    let _ = fs::remove_file(&path);
    answer
}

/// Parses the output: two lines for each function, its name and its location, and an empty line after each result.
fn parse(text: &str) -> Vec<Vec<SymbolizedFrame>> {
    let mut answers = Vec::new();
    let mut places = Vec::new();
    let mut lines = text.lines();
    while let Some(function) = lines.next() {
        if function.is_empty() {
            answers.push(std::mem::take(&mut places));
        } else {
            places.push(place(function, lines.next().unwrap_or_default()));
        }
    }
    answers
}

fn place(function: &str, location: &str) -> SymbolizedFrame {
    let mut parts = location.rsplitn(3, ':');
    let column = parts.next().and_then(|column| column.parse().ok()).unwrap_or(0);
    let line = parts.next().and_then(|line| line.parse().ok()).unwrap_or(0);
    let known = |text: &str| (!text.is_empty() && text != "??").then(|| text.to_owned());
    SymbolizedFrame { function: known(function), file: parts.next().and_then(known), line, column }
}
