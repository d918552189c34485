//! Comparison of two stacks, with a readable description of their difference.

use std::ffi::{CStr, c_void};
use std::fmt::Write as _;

use stackweave_unwind::CodeAddress;

use crate::oracles::libgcc::function_start;

/// Whether a comparison includes only addresses, or their kinds (exact or return address) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Compares addresses only, because the other unwinder does not know kinds.
    Addresses,
    /// Compares addresses and kinds.
    AddressesAndKinds,
}

/// Returns the index of the first different frame of two stacks that two calls in one function captured: the first
/// frames must be in the same function, and all others equal. Async-signal-safe.
pub fn first_difference(ours: &[CodeAddress], expected: &[CodeAddress], compare: Compare) -> Option<usize> {
    let (Some(our_first), Some(expected_first)) = (ours.first(), expected.first()) else {
        return (ours.len() != expected.len()).then_some(0);
    };
    if our_first != expected_first && function_start(*our_first) != function_start(*expected_first) {
        return Some(0);
    }
    difference_from(1, ours, expected, compare)
}

/// Returns the index of the first frame that is not equal, including the first frame. Async-signal-safe.
pub fn first_unequal(ours: &[CodeAddress], expected: &[CodeAddress], compare: Compare) -> Option<usize> {
    difference_from(0, ours, expected, compare)
}

fn difference_from(start: usize, ours: &[CodeAddress], expected: &[CodeAddress], compare: Compare) -> Option<usize> {
    let same = |a: CodeAddress, b: CodeAddress| match compare {
        Compare::Addresses => a.address() == b.address(),
        Compare::AddressesAndKinds => a == b,
    };
    let common = ours.len().min(expected.len());
    let within = (start..common).find(|&index| !same(ours[index], expected[index]));
    within.or_else(|| (ours.len() != expected.len()).then_some(common))
}

/// Compares two stacks that two calls in one function captured.
///
/// # Errors
/// Describes the first different frame, and shows both stacks around it.
pub fn same_root_side(ours: &[CodeAddress], expected: &[CodeAddress]) -> Result<(), String> {
    match first_difference(ours, expected, Compare::Addresses) {
        None => Ok(()),
        Some(index) => Err(explain(ours, expected, index)),
    }
}

/// Returns both stacks around the frame at `index` as text, one line per frame.
pub fn explain(ours: &[CodeAddress], expected: &[CodeAddress], index: usize) -> String {
    const AROUND: usize = 12;
    let mut text = format!("frame {index} differs ({} frames here, {} expected)\n", ours.len(), expected.len());
    let end = ours.len().max(expected.len()).min(index + AROUND);
    for i in index.saturating_sub(AROUND)..end {
        let (here, there) = (ours.get(i), expected.get(i));
        if here == there {
            let _ = writeln!(text, "  {i:3}   {}", here.map_or_else(String::new, |a| describe(*a)));
        } else {
            let show = |a: Option<&CodeAddress>| a.map_or_else(|| "none".to_owned(), |a| describe(*a));
            let _ = writeln!(text, "  {i:3} ! got      {}\n      ! expected {}", show(here), show(there));
        }
    }
    text
}

/// Describes an address: its module, its offset there, and the nearest exported symbol.
pub fn describe(address: CodeAddress) -> String {
    let mut text = format!("{address:?}");
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let pointer = std::ptr::with_exposed_provenance::<c_void>(usize::try_from(address.lookup()).unwrap_or(0));
    // SAFETY: any address may be passed; `info` is valid memory for the result.
    if unsafe { libc::dladdr(pointer, &raw mut info) } == 0 {
        text.push_str(" in no module");
        return text;
    }
    // SAFETY: `dladdr` returns C strings that live as long as their module.
    let name = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy();
    let file = name(info.dli_fname);
    let offset = address.address().wrapping_sub(info.dli_fbase as u64);
    let _ = write!(text, " {}+{offset:#x}", file.rsplit('/').next().unwrap_or(&file));
    if !info.dli_sname.is_null() {
        let _ = write!(text, " {}+{:#x}", name(info.dli_sname), address.address() - info.dli_saddr as u64);
    }
    text
}
