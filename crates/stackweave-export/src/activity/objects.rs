//! The objects that run in several spans, with their names.
//!
//! There is one entry for each address of an object. When a new object begins at the address, it replaces the entry.

use std::collections::HashMap;
use std::sync::Arc;

use crate::activity::SuspendedObject;

/// The objects of a visit, by process and address.
#[derive(Debug, Default)]
pub(super) struct SuspendedObjects {
    known: HashMap<(usize, u64), KnownObject>,
    /// The number of objects so far.
    count: u64,
}

#[derive(Debug)]
struct KnownObject {
    flow: u64,
    is_reported: bool,
    name: Option<Arc<str>>,
}

impl SuspendedObjects {
    /// Begins a span of the object at this address. The object is a new one if `is_new`.
    pub(super) fn begin(&mut self, process: usize, address: u64, is_new: bool) -> (SuspendedObject, Option<Arc<str>>) {
        if is_new {
            self.known.remove(&(process, address));
        }
        let known = self.entry(process, address);
        (SuspendedObject { address, flow: known.flow, is_first: !known.is_reported }, known.name.clone())
    }

    /// Records that a span of the object is reported.
    pub(super) fn set_reported(&mut self, process: usize, object: &mut SuspendedObject) {
        let known = self.entry(process, object.address);
        if known.flow == object.flow {
            object.is_first = !known.is_reported;
            known.is_reported = true;
        }
    }

    /// Sets the name of the object at this address.
    pub(super) fn name(&mut self, process: usize, address: u64, name: Arc<str>) {
        self.entry(process, address).name = Some(name);
    }

    fn entry(&mut self, process: usize, address: u64) -> &mut KnownObject {
        let count = &mut self.count;
        self.known.entry((process, address)).or_insert_with(|| {
            *count += 1;
            KnownObject { flow: *count, is_reported: false, name: None }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_object_does_not_inherit_from_the_one_before() {
        let mut objects = SuspendedObjects::default();
        let (first, name) = objects.begin(0, 7, true);
        assert_eq!((first.is_first, name), (true, None));
        objects.name(0, 7, "task".into());
        let (again, name) = objects.begin(0, 7, false);
        assert_eq!((again.flow, name.as_deref()), (first.flow, Some("task")));
        let (other, name) = objects.begin(0, 7, true);
        assert!(other.flow != first.flow && name.is_none());
        assert_eq!(objects.begin(1, 7, false).1, None, "addresses are those of a process");
    }

    #[test]
    fn only_the_first_reported_span_is_the_first() {
        let mut objects = SuspendedObjects::default();
        let (mut one, _) = objects.begin(0, 7, true);
        let (mut two, _) = objects.begin(0, 7, false);
        objects.set_reported(0, &mut two);
        objects.set_reported(0, &mut one);
        assert!(two.is_first && !one.is_first);
    }
}
