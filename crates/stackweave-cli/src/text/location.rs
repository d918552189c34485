//! The names and locations of functions, as text.

use std::path::Path;

use stackweave_profile::{FrameKind, Function, FunctionTable, ProfileFrame};

use crate::text::style::printable;

/// Returns the name of a frame and its location: the file without folders and the line, or the module.
pub(crate) fn name_and_location(functions: &FunctionTable, frame: ProfileFrame) -> (String, String) {
    let function = functions.function(frame.function);
    let file = file(function);
    let file = file.rsplit('/').next().unwrap_or_default();
    (printable(function.full_name()), location(file, frame.line.or(line(function))))
}

/// Returns the same with folders: relative to `folder`, if there is one, and without folders of Python's libraries.
pub(crate) fn name_and_path(function: &Function, folder: Option<&Path>) -> (String, String) {
    let path = file(function);
    let path = folder.map_or(path, |folder| relative_to(path, folder));
    (printable(function.full_name()), location(path, line(function)))
}

fn relative_to<'a>(path: &'a str, folder: &Path) -> &'a str {
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

fn location(file: &str, line: Option<u32>) -> String {
    match line {
        Some(line) if !file.is_empty() => format!("{}:{line}", printable(file)),
        _ => printable(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_libraries_are_removed() {
        let relative = |path| relative_to(path, Path::new("/srv/app"));
        assert_eq!(relative("/srv/app/models/net.py"), "models/net.py");
        assert_eq!(relative("/srv/application/net.py"), "/srv/application/net.py");
        assert_eq!(relative("/opt/v/lib/python3.12/site-packages/numpy/core.py"), "numpy/core.py");
        assert_eq!(relative("/usr/lib/python3/dist-packages/yaml/loader.py"), "yaml/loader.py");
        assert_eq!(relative("/usr/lib/python3.11/threading.py"), "threading.py");
        assert_eq!(relative("/usr/lib/python3.x/file.py"), "/usr/lib/python3.x/file.py");
        assert_eq!(relative("libtorch.so"), "libtorch.so");
    }
}
