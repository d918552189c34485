//! The shared libpython of the interpreter on the path.

use std::path::{Path, PathBuf};

use super::Skipped;
use super::module_file::LibraryFile;
use super::tool::Tool;

const WHERE: &str =
    "import os, sysconfig as s; v = s.get_config_var; print(os.path.join(v('LIBDIR'), v('INSTSONAME')))";

/// Returns the library, if it has debug information.
pub fn with_debug_information() -> Result<PathBuf, Skipped> {
    let path = PathBuf::from(Tool::find(&["python3"])?.run(Path::new("/"), ["-c", WHERE])?.trim());
    if path.extension().is_some_and(|extension| extension == "a") || !path.is_file() {
        return Err(Skipped("the python3 on the path has no shared libpython".into()));
    }
    if !LibraryFile::read(&path).has_dwarf {
        return Err(Skipped(format!("{} has no debug information", path.display())));
    }
    Ok(path)
}
