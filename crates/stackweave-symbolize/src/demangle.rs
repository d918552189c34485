//! Demangling of names.

use cpp_demangle::Symbol;

/// Returns the demangled name, or the name itself if it is not mangled. A compiler's clone of a function is
/// marked: `work(int) [clone .constprop.0]`.
pub(crate) fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // A symbol's version is not part of its name.
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let (mangled, clone) = name.find('.').map_or((name, ""), |dot| name.split_at(dot));
    match demangle_cpp(mangled) {
        Some(demangled) if clone.is_empty() => demangled,
        Some(demangled) => format!("{demangled} [clone {clone}]"),
        None => name.to_owned(),
    }
}

/// Returns whether a name is mangled.
pub(crate) fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// Demangles a C++ name. Names that exceed the demangler's own limits of nesting, which keep its stack small, are
/// not demangled.
fn demangle_cpp(name: &str) -> Option<String> {
    Symbol::new(name).ok()?.demangle().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_language_are_demangled() {
        for (mangled, expected) in [
            ("main", "main"),
            ("_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN3foo3barEi.constprop.0", "foo::bar(int) [clone .constprop.0]"),
            ("_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("_Znot_a_name", "_Znot_a_name"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), expected, "{mangled}");
        }
    }

    #[test]
    fn hostile_names_are_unchanged() {
        let nested = format!("_Z1f{}i{}", "S".repeat(50_000), "E".repeat(50_000));
        assert_eq!(demangle(&nested), nested);
        let deep = format!("_Z{}1fE", "N".repeat(100_000));
        assert_eq!(demangle(&deep), deep);
        let pointers = format!("_Z1f{}i", "P".repeat(100_000));
        assert_eq!(demangle(&pointers), pointers);
    }
}
