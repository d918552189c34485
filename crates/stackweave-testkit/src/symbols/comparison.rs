//! The differences between two results for an address.

use std::collections::HashMap;

use super::names::canonical;
use super::{SymbolizedFrame, cxxfilt};

/// The first difference between two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// There is no result.
    Nothing,
    /// A different number of inlined calls.
    Depth,
    /// The same function in another scope, or one with the same name.
    Scope,
    /// A name that is not demangled.
    Mangled,
    /// The same function with different template arguments.
    TemplateArguments,
    /// A different function.
    Function,
    /// A different file.
    File,
    /// A different line.
    Line,
}

/// Compares results, and remembers which names are the same.
#[derive(Debug)]
pub struct Comparison {
    lines: bool,
    names: HashMap<(String, String), Option<Difference>>,
}

impl Comparison {
    /// Creates a comparison of whole chains; without `lines`, of only the outermost names.
    pub fn new(lines: bool) -> Self {
        Self { lines, names: HashMap::new() }
    }

    /// Returns the first difference, and the index of its frame.
    pub fn first_difference(
        &mut self,
        ours: &[SymbolizedFrame],
        expected: &[SymbolizedFrame],
    ) -> Option<(Difference, usize)> {
        let function = |place: Option<&SymbolizedFrame>| place.and_then(|place| place.function.clone());
        if ours.is_empty() || (function(ours.last()).is_none() && function(expected.last()).is_some()) {
            return Some((Difference::Nothing, 0));
        }
        if !self.lines {
            let names = (function(ours.last())?, function(expected.last())?);
            return self.between_names(names).map(|difference| (difference, ours.len() - 1));
        }
        if ours.len() != expected.len() {
            return Some((Difference::Depth, 0));
        }
        let pairs = || ours.iter().zip(expected).enumerate();
        for (frame, (ours, expected)) in pairs() {
            let difference = match (function(Some(ours)), function(Some(expected))) {
                (Some(ours), Some(expected)) => self.between_names((ours, expected)),
                (ours, expected) => (ours != expected).then_some(Difference::Function),
            };
            if let Some(difference) = difference {
                return Some((difference, frame));
            }
        }
        let file = pairs().find(|(_, (ours, expected))| !is_same_file(ours, expected));
        let line = || pairs().find(|(_, (ours, expected))| ours.line != expected.line);
        file.map(|(frame, _)| (Difference::File, frame)).or_else(|| line().map(|(frame, _)| (Difference::Line, frame)))
    }

    fn between_names(&mut self, names: (String, String)) -> Option<Difference> {
        if names.0 == names.1 {
            return None;
        }
        *self
            .names
            .entry(names)
            .or_insert_with_key(|(ours, expected)| between_canonical(&canonical(ours), &canonical_of_oracle(expected)))
    }
}

/// Returns the canonical form of a name of the oracle. Older LLVMs do not demangle names that contain expressions, so a
/// demangled name is not wrong there.
fn canonical_of_oracle(name: &str) -> String {
    let plain = name.starts_with("_Z").then(|| cxxfilt::demangle([name].into_iter()).concat());
    canonical(plain.as_deref().unwrap_or(name))
}

fn between_canonical(ours: &str, expected: &str) -> Option<Difference> {
    let last = |name: &str| without_arguments(name).rsplit("::").next().map(str::to_owned);
    if ours == expected {
        None
    } else if ours.starts_with("_Z") || ours.starts_with("_R") {
        Some(Difference::Mangled)
    } else if without_arguments(ours) == without_arguments(expected) {
        Some(Difference::TemplateArguments)
    } else if last(ours) == last(expected) {
        Some(Difference::Scope)
    } else {
        Some(Difference::Function)
    }
}

fn without_arguments(name: &str) -> String {
    let mut angles = 0_u32;
    let mut result = String::new();
    for character in name.chars() {
        match character {
            '<' => angles += 1,
            '>' => angles = angles.saturating_sub(1),
            _ if angles == 0 => result.push(character),
            _ => {}
        }
    }
    result
}

fn is_same_file(ours: &SymbolizedFrame, expected: &SymbolizedFrame) -> bool {
    match (&ours.file, &expected.file) {
        (Some(ours), Some(expected)) => plain(ours) == plain(expected),
        // Where there is only a symbol, newer LLVMs return the file's name without its folder.
        (None, Some(file)) => expected.line == 0 && !file.contains('/'),
        (ours, expected) => ours == expected,
    }
}

fn plain(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect()
}
