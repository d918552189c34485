//! Where a function is, as people read it.

use std::path::Path;

use stackweave_profile::{FrameKind, Function, FunctionTable, ProfileFrame};

use crate::text::style::printable;

/// A frame's name, and its place: the file without its folders and the line, or the module.
pub(crate) fn name_and_place(functions: &FunctionTable, frame: ProfileFrame) -> (String, String) {
    let function = functions.function(frame.function);
    let file = file(function);
    let file = file.rsplit('/').next().unwrap_or_default();
    (printable(function.full_name()), place(file, frame.line.or(line(function))))
}

/// The same, with the folders: as seen from `folder`, if one is said, and without those that hold Python's libraries.
pub(crate) fn name_and_path(function: &Function, folder: Option<&Path>) -> (String, String) {
    let path = file(function);
    let path = folder.map_or(path, |folder| seen_from(path, folder));
    (printable(function.full_name()), place(path, line(function)))
}

fn seen_from<'a>(path: &'a str, folder: &Path) -> &'a str {
    if let Some(inside) = Path::new(path).strip_prefix(folder).ok().and_then(Path::to_str) {
        return inside;
    }
    if let Some((_, inside)) = ["/site-packages/", "/dist-packages/"].iter().find_map(|name| path.rsplit_once(name)) {
        return inside;
    }
    match path.split_once("/lib/python3.").and_then(|(_, version)| version.split_once('/')) {
        Some((version, inside)) if version.bytes().all(|byte| byte.is_ascii_digit()) => inside,
        _ => path,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_say_nothing_are_left_out() {
        let seen = |path| seen_from(path, Path::new("/srv/app"));
        assert_eq!(seen("/srv/app/models/net.py"), "models/net.py");
        assert_eq!(seen("/srv/application/net.py"), "/srv/application/net.py");
        assert_eq!(seen("/opt/v/lib/python3.12/site-packages/numpy/core.py"), "numpy/core.py");
        assert_eq!(seen("/usr/lib/python3/dist-packages/yaml/loader.py"), "yaml/loader.py");
        assert_eq!(seen("/usr/lib/python3.11/threading.py"), "threading.py");
        assert_eq!(seen("/usr/lib/python3.x/odd.py"), "/usr/lib/python3.x/odd.py");
        assert_eq!(seen("libtorch.so"), "libtorch.so");
    }
}
