//! A thread's rules by address: four to a cache line, each naming the one that followed it last time.
//!
//! The chain of a plain walk is address, rule, CFA, return address, and each waits for the one before.
//! A guess at the next entry, checked against the address once that has arrived, lets the processor
//! run ahead: 2 ns a frame in place of 5.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::rule::{Rule, TAG_BITS};

const ENTRIES: usize = 1 << TAG_BITS;
const WAYS: usize = 4;

/// An address (as [`CodeAddress`](stackweave_core::CodeAddress) bits; 0: empty) and its rule, whose
/// tag is the index of the entry that is likely to come next.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    address: u64,
    rule: Rule,
}

/// Four entries in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct RuleCache {
    entries: [Entry; ENTRIES],
    /// The entry of the last walk's first frame.
    first: Guess,
}

/// Which entry a frame is likely to have, as an offset into the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guess(usize);

impl Guess {
    /// No entry: a rule that is not in the cache.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

impl Rule {
    /// The entry that followed this one last time.
    #[inline(always)]
    pub(crate) fn guess(self) -> Guess {
        Guess(self.tag_times_16())
    }
}

impl RuleCache {
    /// The guess for a walk's first frame.
    #[inline(always)]
    pub(crate) fn first_guess(&self) -> Guess {
        self.first
    }

    /// The rule of the guessed entry, if that is the one for `address`.
    #[inline(always)]
    pub(crate) fn guessed(&self, guess: Guess, address: u64) -> Option<Rule> {
        debug_assert!(guess.0.is_multiple_of(size_of::<Entry>()) && guess.0 < size_of_val(&self.entries));
        // SAFETY: every guess but `NONE`, which is never asked for, is a multiple of an entry's size and
        // below 2^16, the size of all entries.
        let entry = unsafe { &*self.entries.as_ptr().byte_add(guess.0) };
        (entry.address == address).then_some(entry.rule)
    }

    /// The entry for `address`.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<(Guess, Rule)> {
        let set = Self::set(address);
        (set..set + WAYS)
            .find(|index| self.entries[*index].address == address)
            .map(|index| (Guess(index * size_of::<Entry>()), self.entries[index].rule))
    }

    /// Notes that `next` followed `before`, or was a walk's first (`before` is [`Guess::NONE`]).
    #[inline]
    pub(crate) fn predict(&mut self, before: Guess, next: Guess) {
        if next == Guess::NONE {
            return;
        }
        match self.entries.get_mut(before.0 / size_of::<Entry>()) {
            Some(entry) => entry.rule = entry.rule.with_tag(next.0 / size_of::<Entry>()),
            None => self.first = next,
        }
    }

    /// Puts a rule in, in place of the oldest of its set.
    pub(crate) fn insert(&mut self, address: u64, rule: Rule) -> Guess {
        let set = Self::set(address);
        let ways = &mut self.entries[set..set + WAYS];
        ways.rotate_right(1);
        ways[0] = Entry { address, rule: rule.with_tag(set) };
        Guess(set * size_of::<Entry>())
    }

    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.address = 0;
        }
    }

    #[inline(always)]
    fn set(address: u64) -> usize {
        const SETS_LOG2: u32 = TAG_BITS - 2;
        (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS_LOG2)) as usize * WAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::rule::Kind;

    fn empty() -> Box<RuleCache> {
        // SAFETY: all zero bytes are an empty cache.
        unsafe { Box::<RuleCache>::new_zeroed().assume_init() }
    }

    #[test]
    fn entries_share_cache_lines() {
        assert_eq!(size_of::<Entry>() * WAYS, 64);
        assert_eq!(align_of::<RuleCache>(), 64);
        assert_eq!(size_of::<Entry>(), 16, "a guess is a tag times 16");
    }

    #[test]
    fn what_was_inserted_is_found_until_cleared() {
        let mut cache = empty();
        let rule = Rule::with_offsets(Kind::Sp, 48, -16);
        for address in (0x1000..0x1100).step_by(5) {
            cache.insert(address, rule);
            let (_, found) = cache.find(address).unwrap();
            assert_eq!((found.kind(), found.cfa_offset()), (Kind::Sp, 48));
        }
        assert!(cache.find(0x999).is_none());
        cache.clear();
        assert!((0x1000..0x1100).all(|address| cache.find(address).is_none()));
    }

    #[test]
    fn prediction_is_checked_against_the_address() {
        let mut cache = empty();
        let first = cache.insert(0x1000, Rule::of(Kind::End));
        let second = cache.insert(0x2000, Rule::of(Kind::End));
        cache.predict(first, second);
        let (_, rule) = cache.find(0x1000).unwrap();
        assert_eq!(rule.guess(), second);
        assert!(cache.guessed(rule.guess(), 0x2000).is_some());
        assert!(cache.guessed(rule.guess(), 0x3000).is_none());
        cache.predict(Guess::NONE, second);
        assert_eq!(cache.first_guess(), second);
        cache.predict(second, Guess::NONE);
    }
}
