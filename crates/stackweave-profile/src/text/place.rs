//! Where a function is, as people read it.

use crate::aggregate::{Function, FunctionTable, ProfileFrame};
use crate::frame::FrameKind;
use crate::text::style::printable;

/// A frame's name, and its place: the file without its folders and the line, or the module.
pub(crate) fn name_and_place(functions: &FunctionTable, frame: ProfileFrame) -> (String, String) {
    let function = functions.function(frame.function);
    let file = file(function);
    let file = file.rsplit('/').next().unwrap_or_default();
    (printable(function.full_name()), place(file, frame.line.or(line(function))))
}

/// The same, with the folders.
pub(crate) fn name_and_path(function: &Function) -> (String, String) {
    (printable(function.full_name()), place(file(function), line(function)))
}

fn line(function: &Function) -> Option<u32> {
    function.first_line.filter(|_| function.kind != FrameKind::Native)
}

fn file(function: &Function) -> &str {
    let is_native = function.kind == FrameKind::Native;
    let text = if is_native { function.module_name() } else { function.filename.as_ref() };
    text.map_or("", |text| text)
}

fn place(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) if !file.is_empty() => format!("{}:{line}", printable(file)),
        _ => printable(file),
    }
}
