//! Checks that two symbolizers name the same functions, so that no timing of wrong results is compared.

use std::collections::HashMap;

use super::job::Chain;

/// The share of the addresses that must agree.
pub(super) const ENOUGH: f64 = 0.95;

/// Returns, for each address, the chain that most reports contain.
pub(super) fn majority(reports: &[&[Chain]]) -> Vec<Chain> {
    let length = reports.iter().map(|chains| chains.len()).max().unwrap_or_default();
    let winner = |index: usize| {
        let mut votes = HashMap::<Vec<String>, (usize, &Chain)>::new();
        for chain in reports.iter().filter_map(|chains| chains.get(index)) {
            votes.entry(essences(chain)).or_insert((0, chain)).0 += 1;
        }
        votes.into_values().max_by_key(|(count, _)| *count).map(|(_, chain)| chain.clone()).unwrap_or_default()
    };
    (0..length).map(winner).collect()
}

/// Returns the share of the addresses for which the whole chains of inlined calls agree.
pub(super) fn of_chains(chains: &[Chain], judge: &[Chain]) -> f64 {
    part(chains, judge, |one, other| essences(one) == essences(other))
}

/// Returns the share of the addresses whose only name is somewhere in the judge's chain. This is for symbolizers that
/// know no inlined calls, and name either the innermost function or the outermost.
pub(super) fn of_single_names(chains: &[Chain], judge: &[Chain]) -> f64 {
    part(chains, judge, |one, other| match one.first() {
        Some(name) => essences(other).contains(&essence(name)),
        None => other.is_empty(),
    })
}

#[expect(clippy::cast_precision_loss, reason = "counts of addresses are far below 2^52")]
fn part(chains: &[Chain], judge: &[Chain], equal: impl Fn(&Chain, &Chain) -> bool) -> f64 {
    if chains.len() != judge.len() || chains.is_empty() {
        return 0.0;
    }
    let equal = chains.iter().zip(judge).filter(|(one, other)| equal(one, other)).count();
    equal as f64 / chains.len() as f64
}

fn essences(chain: &Chain) -> Vec<String> {
    chain.iter().map(|name| essence(name)).collect()
}

/// Returns a function's unqualified name, without namespaces, template arguments, parameters, and suffixes of clones or
/// versions, all of which each demangler spells differently. Also removes leading underscores, by which aliases in the
/// C library differ.
fn essence(name: &str) -> String {
    let name = demangled(name);
    let mut kept = String::new();
    let mut depth = 0_usize;
    let mut rest = name.chars();
    while let Some(character) = rest.next() {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            '}' | '.' | '@' if depth == 0 => break,
            '{' if depth == 0 => {
                kept.push_str("{}");
                let _ = rest.find(|character| *character == '}');
            }
            _ if depth == 0 => kept.push(character),
            _ => {}
        }
        if kept.ends_with("operator") {
            return "operator".to_owned();
        }
    }
    let kept = kept.trim().trim_end_matches(" const").trim_end_matches('&').trim();
    let mut parts = kept.rsplit("::").filter(|part| !part.is_empty() && !is_rust_hash(part));
    let last = parts.next().and_then(|part| part.rsplit([' ', '*', '&']).next()).unwrap_or_default();
    last.trim_start_matches("__GI_").trim_start_matches('_').to_owned()
}

fn is_rust_hash(part: &str) -> bool {
    part.len() == 17 && part.starts_with('h') && part[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Demangles a name as this workspace does. Other demanglers leave the escapes of Rust's older mangling as they are.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.replace("$LT$", "<").replace("$GT$", ">").replace("..", "::");
    }
    let symbol = cpp_demangle::Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(names: &[&[&str]]) -> Vec<Chain> {
        names.iter().map(|chain| chain.iter().map(|&name| name.to_owned()).collect()).collect()
    }

    #[test]
    fn spellings_of_one_name_are_equal() {
        for (name, expected) in [
            ("_PyObject_Call", "PyObject_Call"),
            ("__GI___nptl_setxid", "nptl_setxid"),
            ("long_div.constprop.0", "long_div"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("void at::native::add<float>(at::Tensor const&, int)", "add"),
            ("_ZNK3foo3barIiEEiv", "bar"),
            ("foo::bar(int) const", "bar"),
            ("ns::operator<<(std::ostream&, int)", "operator"),
            ("(anonymous namespace)::run(std::function<void (int)>)", "run"),
            ("std::vector<int>::~vector()", "~vector"),
            ("f(int)::{lambda(int)#1}::operator()(int) const", "operator"),
            ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "drop"),
            ("core::ptr::drop_in_place::<alloc::string::String>", "drop_in_place"),
            ("app::main::{{closure}}::h0123456789abcdef", "{}"),
            ("app::main::{closure#0}", "{}"),
            ("_$LT$app..Thing$u20$as$u20$core..fmt..Debug$GT$::fmt::h0123456789abcdef", "fmt"),
        ] {
            assert_eq!(essence(name), expected, "{name}");
        }
    }

    #[test]
    fn agreement_is_the_equal_part() {
        let judge = chains(&[&["f", "g"], &["h"], &[], &["k"]]);
        assert!((of_chains(&judge, &judge) - 1.0).abs() < 1e-9);
        let other = chains(&[&["g"], &["h"], &[], &["x"]]);
        assert!((of_chains(&other, &judge) - 0.5).abs() < 1e-9);
        assert!((of_single_names(&other, &judge) - 0.75).abs() < 1e-9);
        assert!(of_chains(&other[1..], &judge).abs() < 1e-9);
    }

    #[test]
    fn the_majority_is_taken_address_by_address() {
        let reports = [chains(&[&["f"], &["g"]]), chains(&[&["f()"], &["x"]]), chains(&[&["y"], &["g"]])];
        let reports = reports.iter().map(Vec::as_slice).collect::<Vec<_>>();
        assert!((of_chains(&majority(&reports), &chains(&[&["f"], &["g"]])) - 1.0).abs() < 1e-9);
    }
}
