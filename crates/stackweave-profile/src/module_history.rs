//! Which module an address lies in, or lay in before it was unloaded.
//!
//! An address that was captured says nothing of the time when it was. So one that lies in a loaded module is taken for
//! that module's, and one that does not, for the last module's that was seen there. Wrong names follow only where
//! nobody looked at the right time, and can't be known here:
//!
//! - a library that came and went between two looks was never seen: its addresses have no module, or that of a
//!   library seen there before;
//! - an address that was captured in one library, and first resolved when another was loaded in its place, gets the
//!   other's name; so does one whose library was unloaded and replaced by generated code;
//! - a library without a build id that was rebuilt and loaded again at its place looks the same as before.

use std::ops::Range;
use std::sync::Arc;

use stackweave_core::{Module, ModuleList};

/// The modules as they were last seen, and those before them.
#[derive(Debug, Default)]
pub(crate) struct ModuleHistory {
    loaded: ModuleList,
    /// Those, and what is left of earlier ones between them.
    known: ModuleList,
}

/// What a look at the loader has changed.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) history: Arc<ModuleHistory>,
    /// Addresses that belonged to another module before, ascending.
    pub(crate) taken: Vec<Range<u64>>,
}

impl Change {
    /// Whether the address belonged to another module before.
    pub(crate) fn has_taken(&self, address: u64) -> bool {
        let after = self.taken.partition_point(|range| range.start <= address);
        self.taken[..after].last().is_some_and(|range| range.contains(&address))
    }
}

impl ModuleHistory {
    /// The modules to look addresses up in. No two overlap.
    pub(crate) fn known(&self) -> &ModuleList {
        &self.known
    }

    /// The history after these modules were found loaded; `None` if they are those that were.
    pub(crate) fn after(&self, loaded: ModuleList) -> Option<Change> {
        if loaded == self.loaded {
            return None;
        }
        let replaces = |module: &&Module| overlapping(&self.known, module).iter().any(|before| before != *module);
        let taken = loaded.as_slice().iter().filter(replaces).map(|module| module.start..module.end).collect();
        let mut known = loaded.as_slice().to_vec();
        known.extend(self.known.as_slice().iter().flat_map(|before| remains(before, &loaded)));
        let history = Self { loaded, known: ModuleList::new(known) };
        Some(Change { history: Arc::new(history), taken })
    }
}

/// The modules of the list that share an address with `module`.
fn overlapping<'a>(list: &'a ModuleList, module: &Module) -> &'a [Module] {
    let modules = list.as_slice();
    let first = modules.partition_point(|other| other.end <= module.start);
    let count = modules[first..].partition_point(|other| other.start < module.end);
    &modules[first..first + count]
}

/// The parts of a module that lie in none of `newer`.
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

    /// Looks at each list in turn; what the last look took.
    fn seen(lists: &[&[(&str, Range<u64>)]]) -> (Arc<ModuleHistory>, Vec<Range<u64>>) {
        let mut history = Arc::new(ModuleHistory::default());
        let mut taken = Vec::new();
        for list in lists {
            let modules = list.iter().map(|(name, range)| module(name, range.clone())).collect();
            if let Some(change) = history.after(ModuleList::new(modules)) {
                (history, taken) = (change.history, change.taken);
            }
        }
        (history, taken)
    }

    fn known(history: &ModuleHistory) -> Vec<(&str, Range<u64>)> {
        let modules = history.known().as_slice().iter();
        modules.inspect(|module| assert_eq!(module.bias, 0x100)).map(|m| (m.name(), m.start..m.end)).collect()
    }

    #[test]
    fn nothing_changes_while_the_modules_are_the_same() {
        let (history, _) = seen(&[&[("a", 10..20)]]);
        assert!(history.after(ModuleList::new(vec![module("a", 10..20)])).is_none());
        assert!(ModuleHistory::default().after(ModuleList::default()).is_none());
    }

    #[test]
    fn unloaded_modules_stay_known_and_take_nothing() {
        let (history, taken) = seen(&[&[("a", 10..20), ("b", 30..40)], &[("b", 30..40), ("c", 50..60)], &[]]);
        assert_eq!(known(&history), [("a", 10..20), ("b", 30..40), ("c", 50..60)]);
        assert_eq!(taken, []);
    }

    #[test]
    fn the_newer_module_wins_and_leaves_the_rest() {
        let (history, taken) = seen(&[&[("a", 10..50)], &[("b", 20..30), ("c", 30..35), ("d", 45..60)]]);
        let expected = [("a", 10..20), ("b", 20..30), ("c", 30..35), ("a", 35..45), ("d", 45..60)];
        assert_eq!(known(&history), expected);
        assert_eq!(taken, [20..30, 30..35, 45..60]);
    }

    #[test]
    fn one_that_comes_back_takes_its_place_only_from_others() {
        let (_, taken) = seen(&[&[("a", 10..20)], &[], &[("a", 10..20)]]);
        assert_eq!(taken, []);
        let (history, taken) = seen(&[&[("a", 10..20)], &[("b", 15..30)], &[("a", 10..20)]]);
        assert_eq!(taken, vec![Range { start: 10, end: 20 }]);
        assert_eq!(known(&history), [("a", 10..20), ("b", 20..30)]);
    }

    #[test]
    fn another_build_at_the_same_place_is_another_module() {
        let (history, _) = seen(&[&[("a", 10..20)]]);
        let rebuilt = Module { build_id: stackweave_core::BuildId::new(&[1]), ..module("a", 10..20) };
        let change = history.after(ModuleList::new(vec![rebuilt.clone()])).unwrap();
        assert_eq!(change.history.known().as_slice(), [rebuilt]);
        assert!(change.has_taken(10) && change.has_taken(19));
        assert!(!change.has_taken(9) && !change.has_taken(20));
    }
}
