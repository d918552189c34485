//! The symbolizer agrees with `llvm-symbolizer`: complete chains of inlined calls with names, files and lines, at
//! thousands of addresses, for debug information in every form.
//!
//! Each test prints the extent of the agreement, and the differences.

use std::path::{Path, PathBuf};

use stackweave_testkit::scale;
use stackweave_testkit::symbols::agreement::Agreement;
use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::truth::Truth;
use stackweave_testkit::symbols::variants::{DebugInfoForm, Variant};
use stackweave_testkit::symbols::{Skipped, python_library};

/// The minimum percentage of addresses with the same complete chain.
const FLOOR: f64 = 99.5;
/// Returns how many addresses of a fixture are compared.
fn sample() -> usize {
    scale(1000, 4000)
}

fn compare(truth: &Truth, name: &str, file: &Path, debug_folders: &[PathBuf], lines: bool) -> Agreement {
    let ours = crate::common::places(file, &truth.file, &truth.addresses, debug_folders);
    Agreement::of(name, &ours, truth, lines)
}

/// Prints all agreements, and then fails if one is too small.
fn settle(agreements: Vec<Result<Agreement, Skipped>>) {
    let mut failed = Vec::new();
    for agreement in agreements {
        match agreement {
            Ok(agreement) => {
                println!("{agreement}");
                if agreement.percent() < FLOOR {
                    failed.push(format!("{} ({:.2} %)", agreement.name(), agreement.percent()));
                }
            }
            Err(skipped) => println!("{skipped}"),
        }
    }
    assert!(failed.is_empty(), "below {FLOOR} %: {}", failed.join(", "));
}

fn all_forms(language: Language, dwarf: u8) -> Vec<Result<Agreement, Skipped>> {
    let full = language.build(dwarf, Split::No).and_then(|full| Truth::about(&full, sample()));
    let full = match full {
        Ok(full) => full,
        Err(skipped) => return vec![Err(skipped)],
    };
    let compare = |variant: Variant| {
        let Variant { name, file, truth, debug_folders, has_lines } = &variant;
        let other = if *truth == full.file { None } else { Some(Truth::about(truth, sample())?) };
        Ok(compare(other.as_ref().unwrap_or(&full), name, file, debug_folders, *has_lines))
    };
    DebugInfoForm::ALL.into_iter().map(|form| form.of(&full.file).and_then(compare)).collect()
}

fn one_file(name: &str, file: Result<PathBuf, Skipped>, count: usize) -> Result<Agreement, Skipped> {
    let file = file?;
    Ok(compare(&Truth::about(&file, count)?, name, &file, &[], true))
}

fn split(language: Language) {
    let cases = [4, 5].into_iter().flat_map(|dwarf| [Split::Dwo, Split::Dwp].map(|split| (dwarf, split)));
    let compare = |(dwarf, split)| {
        let name = format!("{language:?} split into {split:?} at DWARF {dwarf}");
        one_file(&name, language.build(dwarf, split), sample())
    };
    settle(cases.map(compare).collect());
}

#[test]
fn agrees_on_cpp_at_dwarf_4() {
    settle(all_forms(Language::Cpp, 4));
}

#[test]
fn agrees_on_cpp_at_dwarf_5() {
    settle(all_forms(Language::Cpp, 5));
}

#[test]
fn agrees_on_c_at_dwarf_2_to_5() {
    settle((2..=5).flat_map(|dwarf| all_forms(Language::C, dwarf)).collect());
}

#[test]
fn agrees_on_rust_at_dwarf_4() {
    settle(all_forms(Language::Rust, 4));
}

#[test]
fn agrees_on_rust_at_dwarf_5() {
    settle(all_forms(Language::Rust, 5));
}

#[test]
fn agrees_on_rust_with_v0_names() {
    settle(vec![one_file("Rust with v0 names", Language::RustV0.build(5, Split::No), sample())]);
}

#[test]
fn agrees_on_split_cpp() {
    split(Language::Cpp);
}

#[test]
fn agrees_on_split_rust() {
    split(Language::Rust);
}

#[test]
fn agrees_on_libpython() {
    settle(vec![one_file("libpython", python_library::with_debug_information(), 2 * sample())]);
}
