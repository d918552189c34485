//! Objects that run in pieces, and what they are called.
//!
//! Kept is one entry for each address that is an object's. An address may become another object's: that one begins.

use std::collections::HashMap;
use std::sync::Arc;

use crate::activity::Object;

/// The objects of a visit, by process and address.
#[derive(Debug, Default)]
pub(super) struct Objects {
    known: HashMap<(usize, u64), Known>,
    /// How many there were.
    count: u64,
}

#[derive(Debug)]
struct Known {
    flow: u64,
    is_told: bool,
    name: Option<Arc<str>>,
}

impl Objects {
    /// A piece of the object at this address begins; the first one if `is_new`.
    pub(super) fn begin(&mut self, process: usize, address: u64, is_new: bool) -> (Object, Option<Arc<str>>) {
        if is_new {
            self.known.remove(&(process, address));
        }
        let known = self.entry(process, address);
        (Object { address, flow: known.flow, is_first: !known.is_told }, known.name.clone())
    }

    /// A span of it is told.
    pub(super) fn tell(&mut self, process: usize, object: &mut Object) {
        let known = self.entry(process, object.address);
        if known.flow == object.flow {
            object.is_first = !known.is_told;
            known.is_told = true;
        }
    }

    /// It is called so from now on.
    pub(super) fn name(&mut self, process: usize, address: u64, name: Arc<str>) {
        self.entry(process, address).name = Some(name);
    }

    fn entry(&mut self, process: usize, address: u64) -> &mut Known {
        let count = &mut self.count;
        self.known.entry((process, address)).or_insert_with(|| {
            *count += 1;
            Known { flow: *count, is_told: false, name: None }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_object_has_nothing_of_the_one_before() {
        let mut objects = Objects::default();
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
    fn only_the_first_span_that_is_told_is_the_first() {
        let mut objects = Objects::default();
        let (mut one, _) = objects.begin(0, 7, true);
        let (mut two, _) = objects.begin(0, 7, false);
        objects.tell(0, &mut two);
        objects.tell(0, &mut one);
        assert!(two.is_first && !one.is_first);
    }
}
