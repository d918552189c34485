//! The locations of stacks.
//!
//! The format lists all locations of each sample, so a recursion of n calls would need n² locations. But a location
//! counts once in a sample, however often it is listed: beyond [`FULLY_LISTED`] frames, locations that are already on
//! the stack are left out, which changes no self or total cost. Only the nesting of calls beyond that depth is lost.

use stackweave_profile::{RecordedCost, RecordedCosts, RecordedStack, WordMap};

use super::tables::ProfileTables;

/// The outermost frames of a stack, up to this number, are always listed.
const FULLY_LISTED: u32 = 1024;

/// The locations of the stacks of one reading. Stacks share the locations of their callers.
#[derive(Debug, Default)]
pub(super) struct Chains {
    known: WordMap<RecordedStack, StackLocations>,
    links: Vec<ChainLink>,
    /// Frames that are not entered yet, with the stacks that end with them, innermost first.
    pending: Vec<(u32, RecordedStack)>,
}

/// The locations of a stack. Stacks that differ only in omitted locations are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StackLocations {
    /// The innermost link, from 1; 0 if there is none.
    link: u32,
    /// The location of the innermost visible frame; 0 if there is none.
    innermost: u64,
    is_library: bool,
    /// Whether a location was left out.
    pub(super) is_cut: bool,
}

#[derive(Clone, Copy, Debug)]
struct ChainLink {
    location: u64,
    /// The next link towards the outermost; 0 if there is none.
    callers: u32,
    /// The number of links up to the outermost, including this one.
    length: u32,
}

impl Chains {
    /// Returns the ids of the locations of a chain, innermost first.
    pub(super) fn locations(&self, chain: StackLocations, tables: &mut ProfileTables<'_>) -> Vec<u64> {
        if chain.link == 0 {
            return vec![tables.unknown_location()];
        }
        let mut locations = Vec::new();
        if self.link(chain.link).is_none_or(|link| link.location != chain.innermost) {
            locations.push(chain.innermost);
        }
        locations.extend(self.from(chain.link).map(|link| link.location));
        locations
    }

    /// Returns the chain of a cost. New frames are entered, starting with the outermost.
    pub(super) fn chain(
        &mut self,
        (costs, cost): (&RecordedCosts<'_>, RecordedCost),
        tables: &mut ProfileTables<'_>,
    ) -> StackLocations {
        let mut chain = StackLocations::default();
        let mut next = cost.stack;
        while let Some((frame, callers)) = costs.innermost(next) {
            if let Some(known) = self.known.get(&next) {
                chain = *known;
                break;
            }
            self.pending.push((frame, next));
            next = callers;
        }
        while let Some((frame, stack)) = self.pending.pop() {
            if let Some(location) = tables.location(cost.process, frame, &mut chain.is_library) {
                chain.innermost = location;
                let callers = chain.link;
                chain.link = self.enter(callers, location);
                chain.is_cut |= chain.link == callers;
            }
            self.known.insert(stack, chain);
        }
        chain
    }

    /// Returns the link of a location inside callers: a new one, or that of the callers if the location is left out.
    fn enter(&mut self, callers: u32, location: u64) -> u32 {
        let length = self.link(callers).map_or(0, |link| link.length);
        if length >= FULLY_LISTED && self.from(callers).any(|link| link.location == location) {
            return callers;
        }
        self.links.push(ChainLink { location, callers, length: length + 1 });
        u32::try_from(self.links.len()).unwrap_or(0)
    }

    fn link(&self, link: u32) -> Option<&ChainLink> {
        self.links.get(usize::try_from(link).ok()?.checked_sub(1)?)
    }

    /// Returns the links from this one to the outermost.
    fn from(&self, link: u32) -> impl Iterator<Item = &ChainLink> {
        core::iter::successors(self.link(link), |link| self.link(link.callers))
    }
}
