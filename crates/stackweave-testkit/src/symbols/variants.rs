//! One library with its debug information in many forms. All forms have the same code, so that the truth about the
//! full library applies to each.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::Skipped;
use super::module_file::LibraryFile;
use super::tool::Tool;
use super::workshop::built;

/// A file for the symbolizer, and a file that holds the truth about it.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name in reports.
    pub name: String,
    /// The file for the symbolizer.
    pub file: PathBuf,
    /// The file for the oracle, with the same code and complete debug information.
    pub truth: PathBuf,
    /// The folders in which the symbolizer looks for separate debug files.
    pub debug_folders: Vec<PathBuf>,
    /// Whether lines and inlined calls can be known, in addition to names.
    pub has_lines: bool,
}

/// The form of a library's debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DebugInfoForm {
    /// Unchanged.
    Full,
    /// Debug sections compressed by zlib.
    Zlib,
    /// Debug sections compressed by zstd.
    Zstd,
    /// Stripped, `.gnu_debuglink` to a file beside it.
    LinkBeside,
    /// Stripped, `.gnu_debuglink` to a file in `.debug/`.
    LinkDotDebug,
    /// Stripped, `.gnu_debuglink` to a file under its own path in a debug folder.
    LinkFolder,
    /// Stripped; the debug file is in a debug folder, by build id, and nothing links to it.
    BuildId,
    /// Shared information is in a supplementary file.
    Dwz,
    /// `.symtab` and `.dynsym`, no debug sections.
    SymbolTable,
    /// `.dynsym`, and the other symbols in `.gnu_debugdata`.
    MiniDebugInfo,
    /// `.dynsym` only.
    DynamicSymbols,
}

impl DebugInfoForm {
    /// Every form.
    pub const ALL: [Self; 11] = [
        Self::Full,
        Self::Zlib,
        Self::Zstd,
        Self::LinkBeside,
        Self::LinkDotDebug,
        Self::LinkFolder,
        Self::BuildId,
        Self::Dwz,
        Self::SymbolTable,
        Self::MiniDebugInfo,
        Self::DynamicSymbols,
    ];

    /// Converts the library `full` to this form.
    ///
    /// # Panics
    /// When files cannot be copied.
    pub fn of(self, full: &Path) -> Result<Variant, Skipped> {
        let base = full.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let name = format!("{base}_{self:?}").to_lowercase();
        let file_name = full.file_name().expect("a library has a name");
        let folder = built(&name, &[full.to_owned()], |folder| self.make(full, folder, &folder.join(file_name)))?;
        let file = folder.join(file_name);
        let (truth, has_lines) = match self {
            Self::SymbolTable | Self::DynamicSymbols => (file.clone(), false),
            Self::MiniDebugInfo => (folder.join("symbols"), false),
            _ => (full.to_owned(), true),
        };
        let debug_folders = match self {
            Self::LinkFolder | Self::BuildId => vec![folder.join("debug")],
            _ => Vec::new(),
        };
        Ok(Variant { name, file, truth, debug_folders, has_lines })
    }

    fn make(self, full: &Path, folder: &Path, file: &Path) -> Result<(), Skipped> {
        fs::copy(full, file).expect("a library can be copied");
        let objcopy = |arguments: &[&str]| Tool::find(&["objcopy"])?.run(folder, arguments.iter().chain([&path(file)]));
        match self {
            Self::Full => Ok(()),
            Self::Zlib => objcopy(&["--compress-debug-sections=zlib"]).map(drop),
            Self::Zstd => objcopy(&["--compress-debug-sections=zstd"]).map(drop),
            Self::LinkBeside => link(full, folder, file, &folder.join("library.debug")),
            Self::LinkDotDebug => link(full, folder, file, &folder.join(".debug/library.debug")),
            Self::LinkFolder => {
                let inside = folder.strip_prefix("/").expect("an absolute path");
                link(full, folder, file, &folder.join("debug").join(inside).join("library.debug"))
            }
            Self::BuildId => {
                let id =
                    LibraryFile::read(full).build_id.ok_or_else(|| Skipped("the linker gave no build id".into()))?;
                let (first, rest) = id.split_at(1);
                let debug = folder.join("debug/.build-id").join(hex(first)).join(format!("{}.debug", hex(rest)));
                keep_debug(full, folder, &debug)?;
                objcopy(&["--strip-all"]).map(drop)
            }
            Self::Dwz => {
                fs::copy(file, folder.join("twin")).expect("a library can be copied");
                Tool::find(&["dwz"])?
                    .run(folder, ["-m", "shared.dwz", "-M", "shared.dwz", path(file), "twin"])
                    .map(drop)
            }
            Self::SymbolTable => objcopy(&["--strip-debug"]).map(drop),
            Self::MiniDebugInfo => mini_debug_info(folder, file),
            Self::DynamicSymbols => objcopy(&["--strip-all"]).map(drop),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths of fixtures are text")
}

fn keep_debug(full: &Path, folder: &Path, debug: &Path) -> Result<(), Skipped> {
    fs::create_dir_all(debug.parent().expect("it is in a folder")).expect("the output folder can be written");
    Tool::find(&["objcopy"])?.run(folder, ["--only-keep-debug", path(full), path(debug)]).map(drop)
}

fn link(full: &Path, folder: &Path, file: &Path, debug: &Path) -> Result<(), Skipped> {
    keep_debug(full, folder, debug)?;
    let link = format!("--add-gnu-debuglink={}", path(debug));
    Tool::find(&["objcopy"])?.run(folder, ["--strip-all", &link, path(file)])?;
    // Without the build id, the link is the only way to the file.
    Tool::find(&["objcopy"])?.run(folder, ["--remove-section=.note.gnu.build-id", path(file)]).map(drop)
}

/// Makes the section as distributions do: the symbol table without the symbols of `.dynsym`, compressed.
fn mini_debug_info(folder: &Path, file: &Path) -> Result<(), Skipped> {
    let (objcopy, xz, nm) = (Tool::find(&["objcopy"])?, Tool::find(&["xz"])?, Tool::find(&["nm"])?);
    objcopy.run(folder, ["--strip-debug", path(file), "symbols"])?;
    let first_word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let listing = |arguments: &[&str]| -> Result<Vec<String>, Skipped> {
        Ok(nm.run(folder, arguments)?.lines().filter_map(first_word).collect())
    };
    let exported = listing(&["--dynamic", "--defined-only", "--format=posix", "symbols"])?;
    let mut kept = listing(&["--defined-only", "--format=posix", "symbols"])?;
    kept.retain(|name| !exported.contains(name));
    fs::write(folder.join("kept"), kept.join("\n")).expect("the output folder can be written");
    objcopy.run(folder, ["--only-keep-debug", "symbols", "mini"])?;
    objcopy.run(folder, ["--strip-all", "--remove-section=.comment", "--keep-symbols=kept", "mini"])?;
    xz.run(folder, ["--force", "mini"])?;
    objcopy.run(folder, ["--strip-all", "--add-section=.gnu_debugdata=mini.xz", path(file)]).map(drop)
}
