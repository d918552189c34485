//! The modules of addresses, including modules that were unloaded.
//!
//! A captured address does not contain the time of its capture. So an address in a loaded module is assigned to that
//! module, and any other address to the last module that was seen there. Names are wrong only if the loader was not
//! queried at the right time, which can't be detected here:
//!
//! - a library that was loaded and unloaded between two queries was never seen: its addresses have no module, or that
//!   of a library that was seen there before;
//! - an address that was captured in one library, and first resolved when another one was loaded at its place, gets the
//!   other's name; so does one whose library was unloaded and replaced by generated code;
//! - a library without a build id that was rebuilt and loaded again at the same place looks unchanged.

use std::ops::Range;
use std::sync::Arc;

use stackweave_core::{Module, ModuleList};

/// The modules as of the last query, and earlier ones.
#[derive(Debug, Default)]
pub(crate) struct ModuleHistory {
    loaded: ModuleList,
    /// The loaded modules, and the parts of earlier ones that do not overlap them.
    known: ModuleList,
}

/// The changes since the last query.
#[derive(Debug)]
pub(crate) struct ModuleChanges {
    pub(crate) history: Arc<ModuleHistory>,
    /// Addresses that belonged to another module before, in ascending order.
    pub(crate) reassigned: Vec<Range<u64>>,
}

impl ModuleChanges {
    /// Returns whether the address belonged to another module before.
    pub(crate) fn is_reassigned(&self, address: u64) -> bool {
        let after = self.reassigned.partition_point(|range| range.start <= address);
        self.reassigned[..after].last().is_some_and(|range| range.contains(&address))
    }
}

impl ModuleHistory {
    /// Returns the modules to look addresses up in, without overlaps.
    pub(crate) fn known(&self) -> &ModuleList {
        &self.known
    }

    /// Returns the history after a query that found these modules; `None` if they are unchanged.
    pub(crate) fn after(&self, loaded: ModuleList) -> Option<ModuleChanges> {
        if loaded == self.loaded {
            return None;
        }
        let replaces = |module: &&Module| overlapping(&self.known, module).iter().any(|before| before != *module);
        let reassigned = loaded.as_slice().iter().filter(replaces).map(|module| module.start..module.end).collect();
        let mut known = loaded.as_slice().to_vec();
        known.extend(self.known.as_slice().iter().flat_map(|before| remains(before, &loaded)));
        let history = Self { loaded, known: ModuleList::new(known) };
        Some(ModuleChanges { history: Arc::new(history), reassigned })
    }
}

/// Returns the modules of the list that overlap `module`.
fn overlapping<'a>(list: &'a ModuleList, module: &Module) -> &'a [Module] {
    let modules = list.as_slice();
    let first = modules.partition_point(|other| other.end <= module.start);
    let count = modules[first..].partition_point(|other| other.start < module.end);
    &modules[first..first + count]
}

/// Returns the parts of a module that do not overlap any of `newer`.
fn remains(module: &Module, newer: &ModuleList) -> Vec<Module> {
    let part = |start, end| Module { start, end, ..module.clone() };
    let mut parts = Vec::new();
    let mut start = module.start;
    for over in overlapping(newer, module) {
        if start < over.start {
            parts.push(part(start, over.start));
        }
        start = start.max(over.end);
    }
    if start < module.end {
        parts.push(part(start, module.end));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, range: Range<u64>) -> Module {
        Module { path: name.into(), build_id: None, bias: 0x100, start: range.start, end: range.end }
    }

    /// Queries each list in turn; returns the changes of the last query.
    fn after_queries(lists: &[&[(&str, Range<u64>)]]) -> (Arc<ModuleHistory>, Vec<Range<u64>>) {
        let mut history = Arc::new(ModuleHistory::default());
        let mut reassigned = Vec::new();
        for list in lists {
            let modules = list.iter().map(|(name, range)| module(name, range.clone())).collect();
            if let Some(change) = history.after(ModuleList::new(modules)) {
                (history, reassigned) = (change.history, change.reassigned);
            }
        }
        (history, reassigned)
    }

    fn known(history: &ModuleHistory) -> Vec<(&str, Range<u64>)> {
        let modules = history.known().as_slice().iter();
        modules.inspect(|module| assert_eq!(module.bias, 0x100)).map(|m| (m.name(), m.start..m.end)).collect()
    }

    #[test]
    fn equal_modules_are_no_change() {
        let (history, _) = after_queries(&[&[("a", 10..20)]]);
        assert!(history.after(ModuleList::new(vec![module("a", 10..20)])).is_none());
        assert!(ModuleHistory::default().after(ModuleList::default()).is_none());
    }

    #[test]
    fn unloaded_modules_stay_known() {
        let (history, reassigned) =
            after_queries(&[&[("a", 10..20), ("b", 30..40)], &[("b", 30..40), ("c", 50..60)], &[]]);
        assert_eq!(known(&history), [("a", 10..20), ("b", 30..40), ("c", 50..60)]);
        assert_eq!(reassigned, []);
    }

    #[test]
    fn the_newer_module_replaces_only_the_overlap() {
        let (history, reassigned) = after_queries(&[&[("a", 10..50)], &[("b", 20..30), ("c", 30..35), ("d", 45..60)]]);
        let expected = [("a", 10..20), ("b", 20..30), ("c", 30..35), ("a", 35..45), ("d", 45..60)];
        assert_eq!(known(&history), expected);
        assert_eq!(reassigned, [20..30, 30..35, 45..60]);
    }

    #[test]
    fn a_module_that_is_loaded_again_replaces_only_others() {
        let (_, reassigned) = after_queries(&[&[("a", 10..20)], &[], &[("a", 10..20)]]);
        assert_eq!(reassigned, []);
        let (history, reassigned) = after_queries(&[&[("a", 10..20)], &[("b", 15..30)], &[("a", 10..20)]]);
        assert_eq!(reassigned, vec![Range { start: 10, end: 20 }]);
        assert_eq!(known(&history), [("a", 10..20), ("b", 20..30)]);
    }

    #[test]
    fn another_build_at_the_same_place_is_another_module() {
        let (history, _) = after_queries(&[&[("a", 10..20)]]);
        let rebuilt = Module { build_id: stackweave_core::BuildId::new(&[1]), ..module("a", 10..20) };
        let change = history.after(ModuleList::new(vec![rebuilt.clone()])).unwrap();
        assert_eq!(change.history.known().as_slice(), [rebuilt]);
        assert!(change.is_reassigned(10) && change.is_reassigned(19));
        assert!(!change.is_reassigned(9) && !change.is_reassigned(20));
    }
}
