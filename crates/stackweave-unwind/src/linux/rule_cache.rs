//! A thread's cache of rules by address: four per cache line, each naming the one that followed it last time.
//!
//! The chain of dependencies in a plain walk is address, rule, CFA, return address. A guess of the next entry,
//! which is checked against the address once that is known, lets the processor run ahead: 2 ns per frame instead
//! of 5.
//!
//! The first access of a thread to a page of memory is expensive, so the cache begins with one page and grows as
//! it fills.
//!
//! Hot file: no allocation, no lock, async-signal-safe.

use crate::platform::rule::{Rule, TAG_BITS};

const CAPACITY: usize = 1 << TAG_BITS;
const WAYS: usize = 4;

/// An address (as [`CodeAddress`](stackweave_core::CodeAddress) bits; 0: empty) and its rule, whose tag is the
/// index of the entry that is likely to follow.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct CachedRule {
    address: u64,
    rule: Rule,
}

/// Four entries in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct RuleCache {
    entries: [CachedRule; CAPACITY],
    /// The entry of the last walk's first frame.
    first: Guess,
    /// Number of sets in use, less one: a power of two, less one. 0 until the first insertion.
    mask: usize,
    /// Number of rules that were inserted since the cache last grew.
    inserted: usize,
}

/// One page.
const FIRST_SETS: usize = 4096 / size_of::<CachedRule>() / WAYS;
const MAX_SETS: usize = CAPACITY / WAYS;
const GROWTH: usize = 4;

/// The entry that a frame is likely to have, as an offset into the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Guess(usize);

impl Guess {
    /// No entry: a rule that is not in the cache.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

impl Rule {
    /// Returns the entry that followed this one last time.
    #[inline(always)]
    pub(crate) fn guess(self) -> Guess {
        Guess(self.tag_times_16())
    }
}

impl RuleCache {
    /// Returns the guess for a walk's first frame.
    #[inline(always)]
    pub(crate) fn first_guess(&self) -> Guess {
        self.first
    }

    /// Returns the rule of the guessed entry, if it is for `address`.
    #[inline(always)]
    pub(crate) fn guessed(&self, guess: Guess, address: u64) -> Option<Rule> {
        debug_assert!(guess.0.is_multiple_of(size_of::<CachedRule>()) && guess.0 < size_of_val(&self.entries));
        // SAFETY: every guess but `NONE`, which is never looked up, is a multiple of an entry's size and below
        // 2^16, the size of all entries.
        let entry = unsafe { &*self.entries.as_ptr().byte_add(guess.0) };
        (entry.address == address).then_some(entry.rule)
    }

    /// Returns the entry for `address`.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<(Guess, Rule)> {
        let set = self.set(address);
        (set..set + WAYS)
            .find(|index| self.entries[*index].address == address)
            .map(|index| (Guess(index * size_of::<CachedRule>()), self.entries[index].rule))
    }

    /// Notes that `next` followed `before`, or was a walk's first entry (`before` is [`Guess::NONE`]).
    #[inline]
    pub(crate) fn predict(&mut self, before: Guess, next: Guess) {
        if next == Guess::NONE {
            return;
        }
        match self.entries.get_mut(before.0 / size_of::<CachedRule>()) {
            Some(entry) => entry.rule = entry.rule.with_tag(next.0 / size_of::<CachedRule>()),
            None => self.first = next,
        }
    }

    /// Inserts a rule, and replaces the oldest of its set.
    pub(crate) fn insert(&mut self, address: u64, rule: Rule) -> Guess {
        let is_half_full = self.inserted > self.mask / 2 * WAYS;
        if self.mask == 0 || (is_half_full && self.mask + 1 < MAX_SETS) {
            self.grow();
        }
        self.inserted += 1;
        let set = self.set(address);
        let ways = &mut self.entries[set..set + WAYS];
        ways.rotate_right(1);
        ways[0] = CachedRule { address, rule: rule.with_tag(set) };
        Guess(set * size_of::<CachedRule>())
    }

    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries[..(self.mask + 1) * WAYS] {
            entry.address = 0;
        }
    }

    /// Uses more sets, and moves the existing rules to where they now belong.
    fn grow(&mut self) {
        let old = if self.mask == 0 { 0 } else { (self.mask + 1) * WAYS };
        self.mask = if self.mask == 0 { FIRST_SETS } else { (self.mask + 1) * GROWTH }.min(MAX_SETS) - 1;
        for index in 0..old {
            let CachedRule { address, rule } = self.entries[index];
            let set = self.set(address);
            if address != 0 && set / WAYS != index / WAYS {
                self.entries[index].address = 0;
                self.entries[set..set + WAYS].rotate_right(1);
                self.entries[set] = CachedRule { address, rule };
            }
        }
        self.inserted = 0;
    }

    #[inline(always)]
    fn set(&self, address: u64) -> usize {
        ((address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & self.mask) * WAYS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::rule::RuleKind;

    fn empty() -> Box<RuleCache> {
        // SAFETY: all zero bytes are an empty cache.
        unsafe { Box::<RuleCache>::new_zeroed().assume_init() }
    }

    #[test]
    fn entries_share_cache_lines() {
        assert_eq!(size_of::<CachedRule>() * WAYS, 64);
        assert_eq!(align_of::<RuleCache>(), 64);
        assert_eq!(size_of::<CachedRule>(), 16, "a guess is a tag times 16");
    }

    #[test]
    fn inserted_rules_are_found_until_cleared() {
        let mut cache = empty();
        let rule = Rule::with_offsets(RuleKind::Sp, 48, -16);
        for address in (0x1000..0x1100).step_by(5) {
            cache.insert(address, rule);
            let (_, found) = cache.find(address).unwrap();
            assert_eq!((found.kind(), found.cfa_offset()), (RuleKind::Sp, 48));
        }
        assert!(cache.find(0x999).is_none());
        cache.clear();
        assert!((0x1000..0x1100).all(|address| cache.find(address).is_none()));
    }

    #[test]
    fn rules_survive_growth() {
        let mut cache = empty();
        let addresses = || (1..2000u64).map(|index| index * 0x1235);
        for address in addresses() {
            cache.insert(address, Rule::with_offsets(RuleKind::Sp, address.cast_signed() & !7 | 8, 0));
        }
        assert_eq!(cache.mask + 1, MAX_SETS);
        let found = addresses()
            .filter(|address| cache.find(*address).is_some_and(|(_, rule)| rule.cfa_offset() == *address & !7 | 8));
        assert!(found.count() > 1900);
        cache.clear();
        assert!(addresses().all(|address| cache.find(address).is_none()));
    }

    #[test]
    fn prediction_is_checked_against_the_address() {
        let mut cache = empty();
        let first = cache.insert(0x1000, Rule::of(RuleKind::End));
        let second = cache.insert(0x2000, Rule::of(RuleKind::End));
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
