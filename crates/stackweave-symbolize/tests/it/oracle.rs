//! Tests of the oracle itself: a normalised spelling for names of different demanglers, and fixtures with the
//! expected contents.

use stackweave_testkit::symbols::library::{Language, Split};
use stackweave_testkit::symbols::module_file::LibraryFile;
use stackweave_testkit::symbols::names::canonical;
use stackweave_testkit::symbols::{SymbolizedFrame, llvm_symbolizer};

use crate::common::or_skip;

#[track_caller]
fn same(names: &[&str]) {
    let spellings: Vec<String> = names.iter().map(|name| canonical(name)).collect();
    assert!(spellings.iter().all(|spelling| *spelling == spellings[0]), "{names:?}: {spellings:?}");
}

#[track_caller]
fn different(first: &str, second: &str) {
    assert_ne!(canonical(first), canonical(second), "{first:?} and {second:?}");
}

#[test]
fn cpp_names_have_one_spelling() {
    same(&["f(int)", "f", "f(int) (.constprop.0)", "f(int) [clone .constprop.0]", "f.constprop.0", "f.part.0.cold"]);
    same(&["void a::f<int>(int) const", "a::f<int>(int) const", "a::f<int>"]);
    same(&["a::b<c<int>>::f()", "a::b<c<int> >::f()"]);
    same(&["f()::'lambda'(int)::operator()(int) const", "f()::{lambda(int)#1}::operator()(int) const"]);
    same(&["f()::'lambda0'()::operator()() const", "f()::{lambda()#2}::operator()() const"]);
    same(&["bool a::operator<<char, b<char>>(int)", "bool a::operator< <char, b<char> >(int)"]);
    same(&["std::ostream& std::operator<<<int>(int)", "std::ostream& std::operator<< <int>(int)"]);
    same(&["a<3ul, true>::f()", "a<(unsigned long)3, (bool)1>::f()", "a<3, 1>::f()"]);
    same(&["a<int, >::f()", "a<int>::f()"]);
    same(&["a::operator bool() const", "a::operator bool"]);
    same(&["std::__cxx11::x[abi:cxx11]()", "std::__cxx11::x()"]);
}

#[test]
fn rust_names_have_one_spelling() {
    same(&[
        "<core::option::Option<T> as core::fmt::Debug>::fmt",
        "_$LT$core..option..Option$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$::fmt::h0123456789abcdef",
        "<core::option::Option<T> as core::fmt::Debug>::fmt::h0123456789abcdef",
    ]);
    same(&["a::b::{{closure}}", "a::b::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef"]);
    same(&["a[0123456789abcdef]::b::{closure#0}", "a::b::{closure#0}"]);
    same(&["<a::Block<2>>::f", "<a::Block<2usize>>::f"]);
}

#[test]
fn different_names_remain_different() {
    different("_PyObject_Call", "PyObject_Call");
    different("a::f<int>()", "a::f<long>()");
    different("a::f()", "b::f()");
    different("f()::{lambda()#1}::operator()()", "f()::{lambda()#2}::operator()()");
    different("a::operator<(int)", "a::operator<<(int)");
    different("a::operator bool()", "a::operator int()");
    different("(anonymous namespace)::f()", "f()");
    different("_loop1_50_rule", "_loop1_169_rule");
}

#[test]
fn the_cpp_fixture_has_every_kind_of_function_part() {
    let file = or_skip!(Language::Cpp.build(5, Split::No));
    let module = LibraryFile::read(&file);
    if !module.functions.iter().any(|(name, _)| name.contains(".isra.")) {
        return println!("skipped: the compiler does not split functions as GCC does");
    }
    for piece in [".constprop.", ".isra.", ".part.", ".cold"] {
        assert!(module.functions.iter().any(|(name, _)| name.contains(piece)), "{piece}");
    }
}

#[test]
fn llvm_reports_inlined_calls_files_lines_and_columns() {
    let file = or_skip!(Language::C.build(5, Split::No));
    let start = LibraryFile::read(&file).function("sw_first").start;
    let answers = or_skip!(llvm_symbolizer::resolve(&file, &[start, 0x10], &[]));
    let SymbolizedFrame { function, file, line, column } = &answers[0][0];
    assert_eq!(function.as_deref(), Some("sw_first"));
    assert!(file.as_deref().is_some_and(|file| file.ends_with("symbols/c/exports.c")), "{file:?}");
    assert!(*line > 0 && *column > 0);
    assert_eq!(answers[1], [SymbolizedFrame::default()]);
}
