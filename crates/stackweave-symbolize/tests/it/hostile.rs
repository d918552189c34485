//! Thousands of truncated and corrupted files lead to a reason, never to a panic, a hang or unbounded memory.
//!
//! Each form is tested in a child process with limited memory and time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use stackweave_core::{CodeAddress, Module, ModuleList};
use stackweave_symbolize::{Symbolizer, SymbolizerOptions};
use stackweave_testkit::symbols::Skipped;
use stackweave_testkit::symbols::damage::{changes, lying_unwind_tables, truncations};
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::variants::DebugInfoForm;
use stackweave_testkit::{child, processor_time, scale};

use crate::common::{Scratch, or_skip};

/// The address space of a child: the mappings of a test program, and more.
const MEMORY: u64 = 2 << 30;
const SECONDS: u32 = 200;
/// The maximum processor time for one file of a few kilobytes, without optimisation.
const LONGEST: Duration = Duration::from_secs(5);
/// Files with more bytes than this are large.
const LARGE: usize = 64 << 10;
const ADDRESSES: usize = 24;

/// The position where this process panicked. The symbolizer catches its own panics, but they are still faults.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Files that belong together, one of which is damaged.
struct Victim {
    library: PathBuf,
    /// The damaged file, if it is not the library.
    companion: Option<PathBuf>,
    debug_folders: Vec<PathBuf>,
    addresses: Vec<CodeAddress>,
}

impl Victim {
    /// Creates it. `truth` has the same code as the library, and the names of all functions.
    fn new(library: &Path, truth: &Path, companion: Option<&Path>) -> Self {
        let addresses = LibraryFile::read(truth).sample(ADDRESSES).into_iter().map(crate::common::exact);
        Self {
            library: library.to_owned(),
            companion: companion.map(Path::to_owned),
            debug_folders: Vec::new(),
            addresses: addresses.take(2 * ADDRESSES).collect(),
        }
    }

    /// Resolves addresses with every damaged copy. Returns the number of copies, and the faults.
    fn suffer(&self, scratch: &Scratch) -> (usize, Vec<String>) {
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let library = scratch.copy(&self.library, &name(&self.library));
        let target = self.companion.as_ref().map_or_else(|| library.clone(), |file| scratch.path().join(name(file)));
        let whole = fs::read(self.companion.as_ref().unwrap_or(&self.library)).unwrap();
        let count = if whole.len() > LARGE { scale(15, 60) } else { scale(75, 300) };
        let (mut tried, mut faults) = (0, Vec::new());
        for (label, bytes) in truncations(&whole).chain(changes(&whole, count)).chain(lying_unwind_tables(&whole)) {
            // Use a new file each time: the previous one may still be mapped.
            let _ = fs::remove_file(&target);
            fs::write(&target, bytes).unwrap();
            let start = processor_time();
            self.resolve(&library);
            tried += 1;
            let taken = processor_time().saturating_sub(start);
            if taken > LONGEST {
                faults.push(format!("{label}: took {taken:?}"));
            }
            let panics = std::mem::take(&mut *PANICS.lock().unwrap());
            faults.extend(panics.into_iter().take(1).map(|panic| format!("{label}: {panic}")));
        }
        (tried, faults)
    }

    fn resolve(&self, library: &Path) {
        let mut options = SymbolizerOptions::default();
        options.debug_folders.clone_from(&self.debug_folders);
        let module = Module { path: library.to_owned(), build_id: None, bias: 0, start: 0, end: u64::MAX };
        let answers = Symbolizer::new(options).resolve(&self.addresses, &ModuleList::new(vec![module]));
        assert_eq!(answers.len(), self.addresses.len());
    }
}

/// Runs the test `name` again in a child, which prints its faults. Fails if there are any.
fn in_child(name: &str, victims: impl FnOnce() -> Result<Vec<(String, Victim)>, Skipped>) {
    if child::role().is_some() {
        std::panic::set_hook(Box::new(|panic| PANICS.lock().unwrap().push(panic.to_string().replace('\n', " "))));
        let victims = victims().unwrap();
        for (label, victim) in victims {
            println!("trying {label}");
            let (tried, faults) = victim.suffer(&Scratch::new(name));
            println!("{label}: {tried} files, {} faults", faults.len());
            faults.iter().take(5).for_each(|fault| println!("  fault: {fault}"));
        }
        println!("all tried");
        return;
    }
    // Build the files here: compilers need more memory than the child has.
    or_skip!(victims());
    let mut command = child::command(&child::own_executable(), name, "hostile");
    let output = child::run_for(child::limit_memory(&mut command, MEMORY), SECONDS);
    let text = child::text(&output);
    println!("{text}");
    let ended = output.status.success() && text.contains("all tried");
    assert!(ended, "the child did not finish: a hang, a crash or too much memory");
    assert!(!text.contains("fault: "), "damaged files are not handled correctly");
}

#[test]
fn damaged_libraries_give_a_reason() {
    in_child("hostile::damaged_libraries_give_a_reason", || {
        let mut victims = Vec::new();
        for dwarf in [4, 5] {
            let full = Language::C.build(dwarf, Split::No)?;
            for form in DebugInfoForm::ALL {
                match form.of(&full) {
                    Ok(variant) => victims.push((variant.name, Victim::new(&variant.file, &full, None))),
                    Err(skipped) => println!("{form:?}: {skipped}"),
                }
            }
        }
        Ok(victims)
    });
}

#[test]
fn damaged_inlined_calls_give_a_reason() {
    in_child("hostile::damaged_inlined_calls_give_a_reason", || {
        let victim = |dwarf| {
            let full = Language::Cpp.build(dwarf, Split::No)?;
            Ok((format!("C++ at DWARF {dwarf}"), Victim::new(&full, &full, None)))
        };
        [4, 5].into_iter().map(victim).collect()
    });
}

#[test]
fn damaged_companions_give_a_reason() {
    in_child("hostile::damaged_companions_give_a_reason", || {
        let mut victims = Vec::new();
        let full = Language::C.build(5, Split::No)?;
        for dwarf in [4, 5] {
            if let Ok(library) = Language::C.build(dwarf, Split::Dwp) {
                let package = library.with_extension("so.dwp");
                victims.push((format!("package at DWARF {dwarf}"), Victim::new(&library, &library, Some(&package))));
            }
        }
        if let Ok(variant) = DebugInfoForm::Dwz.of(&full) {
            let shared = variant.file.with_file_name("shared.dwz");
            victims.push(("supplementary file".to_owned(), Victim::new(&variant.file, &full, Some(&shared))));
        }
        if let Ok(variant) = DebugInfoForm::LinkBeside.of(&full) {
            let debug = variant.file.with_file_name("library.debug");
            victims.push(("linked debug file".to_owned(), Victim::new(&variant.file, &full, Some(&debug))));
        }
        Ok(victims)
    });
}
