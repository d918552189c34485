//! The libraries that test the symbolizer, with names, lines and inlined calls.

use std::path::{Path, PathBuf};

use super::Skipped;
use super::tool::Tool;
use super::workshop::{built, sources};

/// The language of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C: exported and static functions, one file.
    C,
    /// C++: templates, lambdas, clones, noreturn calls; files in two compilation directories.
    Cpp,
    /// Rust: generics and closures, and the standard library; names in rustc's older mangling.
    Rust,
    /// Rust with names in rustc's `v0` mangling.
    RustV0,
}

/// The place where the compiler puts the debug information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Into the library.
    No,
    /// Into a `.dwo` file beside each object.
    Dwo,
    /// Into `.dwo` files that are packed into one `.dwp` file beside the library, and removed.
    Dwp,
}

impl Language {
    const fn name(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Rust => "rust",
            Self::RustV0 => "rust_v0",
        }
    }

    const fn file_name(self) -> &'static str {
        match self {
            Self::C => "libexports.so",
            Self::Cpp => "libshapes.so",
            Self::Rust | Self::RustV0 => "libgenerics.so",
        }
    }

    /// Builds the library with this version of DWARF, and returns its path.
    pub fn build(self, dwarf: u8, split: Split) -> Result<PathBuf, Skipped> {
        let kind = match split {
            Split::No => "full",
            Split::Dwo => "dwo",
            Split::Dwp => "dwp",
        };
        let name = format!("{}_{dwarf}_{kind}", self.name());
        let file = self.file_name().to_owned();
        let inputs: Vec<PathBuf> =
            self.sources().iter().chain(self.headers()).map(|input| sources().join(input)).collect();
        let folder = built(&name, &inputs, |folder| match self {
            Self::C | Self::Cpp => compile(self, dwarf, split, folder, &file),
            Self::Rust | Self::RustV0 => rustc(self, dwarf, split, folder, &file),
        })?;
        Ok(folder.join(file))
    }

    const fn sources(self) -> &'static [&'static str] {
        match self {
            Self::C => &["c/exports.c"],
            Self::Cpp => &["cpp/shapes.cpp", "cpp/clones.cpp", "cpp/deep/noreturn.cpp"],
            Self::Rust | Self::RustV0 => &["rust/generics.rs"],
        }
    }

    const fn headers(self) -> &'static [&'static str] {
        match self {
            Self::Cpp => &["cpp/include/shapes/shape.hpp"],
            _ => &[],
        }
    }
}

/// Compiles every source in its own folder, under its bare name, so that the compilation directory matters.
fn compile(language: Language, dwarf: u8, split: Split, folder: &Path, file: &str) -> Result<(), Skipped> {
    let compiler = Tool::find(if language == Language::C { &["cc", "gcc"] } else { &["c++", "g++"] })?;
    let mut flags = vec!["-O2".to_owned(), "-fPIC".to_owned(), format!("-gdwarf-{dwarf}")];
    if language == Language::Cpp {
        flags.push("-std=c++17".to_owned());
    }
    if split != Split::No {
        flags.push("-gsplit-dwarf".to_owned());
    }
    let mut objects = Vec::new();
    for source in language.sources() {
        let source = sources().join(source);
        let (within, name) = (source.parent().expect("it is in a folder"), source.file_name().expect("it has a name"));
        let object = folder.join(name).with_extension("o");
        let mut arguments: Vec<_> = flags.iter().map(Into::into).collect();
        arguments.extend(["-Iinclude".into(), "-c".into(), name.to_owned(), "-o".into(), object.clone().into()]);
        compiler.run(within, &arguments)?;
        objects.push(object);
    }
    let mut arguments = vec![PathBuf::from("-shared"), "-Wl,--build-id".into(), "-o".into(), file.into()];
    arguments.extend(objects.iter().cloned());
    compiler.run(folder, &arguments)?;
    if split == Split::Dwp {
        pack(folder, file)?;
        for object in &objects {
            std::fs::remove_file(object.with_extension("dwo")).expect("the compiler wrote it");
        }
    }
    Ok(())
}

/// Packs the split debug information. Binutils' packer does not know DWARF 5, and may crash on it.
fn pack(folder: &Path, file: &str) -> Result<(), Skipped> {
    let output = format!("{file}.dwp");
    let pack = |name: &str| Tool::find(&[name])?.run(folder, ["-e", file, "-o", &output]);
    pack("llvm-dwp").or_else(|_| pack("dwp")).map(drop)
}

fn rustc(language: Language, dwarf: u8, split: Split, folder: &Path, file: &str) -> Result<(), Skipped> {
    let split = match split {
        Split::No => "off",
        Split::Dwo => "unpacked",
        Split::Dwp => "packed",
    };
    let mut arguments: Vec<String> =
        ["--edition=2024", "--crate-type=cdylib", "-g", "-O", "-Clink-arg=-Wl,--build-id"].map(Into::into).into();
    arguments.push(format!("-Cdwarf-version={dwarf}"));
    arguments.push(format!("-Csplit-debuginfo={split}"));
    // The older mangling is the default of stable compilers, and no option selects it.
    if language == Language::RustV0 {
        arguments.push("-Csymbol-mangling-version=v0".to_owned());
    }
    arguments.extend(["-o".to_owned(), folder.join(file).to_string_lossy().into_owned(), "generics.rs".to_owned()]);
    Tool::find(&["rustc"])?.run(&sources().join("rust"), &arguments).map(drop)
}
