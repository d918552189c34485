//! The call sites of allocations, as numbers.
//!
//! Hot file: allocates only for a new call site, and never loses a known one.

use crate::account::Account;
use crate::figures::CallSite;
use crate::small_account::SmallAccount;

/// The number of a call site in its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallSiteId(pub(crate) u32);

#[derive(Clone, Copy, Debug)]
struct Record {
    site: CallSite,
    figures: SmallAccount,
}

/// Call sites in the order of their first allocation. The first one stands for all that could not be stored separately,
/// for lack of memory.
#[derive(Debug)]
pub(crate) struct CallSites {
    records: Vec<Record>,
    /// Figures that are too large for their record.
    large: Vec<Account>,
    /// Indexes of records, by hash; 0 for none. At least a quarter stays empty.
    index: Vec<u32>,
    last: (CallSite, CallSiteId),
    pub(crate) is_incomplete: bool,
    /// The number of further failures before memory is requested again.
    patience: u32,
}

const FIRST_INDEX: usize = 256;
/// After a failure, memory is requested again after this many call sites.
const PATIENCE: u32 = 1 << 12;

impl CallSites {
    pub(crate) fn new() -> Self {
        let nowhere = Record { site: CallSite::default(), figures: SmallAccount::default() };
        Self {
            records: vec![nowhere],
            large: Vec::new(),
            index: vec![0; FIRST_INDEX],
            last: (CallSite::default(), CallSiteId(0)),
            is_incomplete: false,
            patience: 0,
        }
    }

    /// Returns the number of a call site, which is new if the call site is.
    #[inline]
    pub(crate) fn intern(&mut self, site: CallSite) -> CallSiteId {
        if site != self.last.0 {
            self.last = (site, self.look_up(site));
        }
        self.last.1
    }

    fn look_up(&mut self, site: CallSite) -> CallSiteId {
        if site == CallSite::default() {
            return CallSiteId(0);
        }
        let mut slot = self.home(site);
        loop {
            match self.index[slot] {
                0 => return self.add(slot, site),
                number if self.records[number as usize].site == site => return CallSiteId(number),
                _ => slot = (slot + 1) & (self.index.len() - 1),
            }
        }
    }

    #[cold]
    fn add(&mut self, slot: usize, site: CallSite) -> CallSiteId {
        self.patience = self.patience.saturating_sub(1);
        let number = u32::try_from(self.records.len()).ok().filter(|_| self.patience == 0 && self.has_room());
        let Some(number) = number else {
            self.is_incomplete = true;
            self.patience = if self.patience == 0 { PATIENCE } else { self.patience };
            return CallSiteId(0);
        };
        self.records.push(Record { site, figures: SmallAccount::default() });
        if is_crowded(self.records.len(), self.index.len()) {
            self.grow_index();
        } else {
            self.index[slot] = number;
        }
        CallSiteId(number)
    }

    /// Makes room for one more record, and for the index that it needs.
    fn has_room(&mut self) -> bool {
        let is_crowded = is_crowded(self.records.len() + 1, self.index.len());
        let index = if is_crowded { self.index.len() } else { 0 };
        self.records.try_reserve(1).is_ok() && self.index.try_reserve(index).is_ok()
    }

    fn grow_index(&mut self) {
        let length = self.index.len() * 2;
        self.index.clear();
        self.index.resize(length, 0);
        for (number, site) in (1..).zip(self.records[1..].iter().map(|record| record.site)) {
            let mut slot = self.home(site);
            while self.index[slot] != 0 {
                slot = (slot + 1) & (length - 1);
            }
            self.index[slot] = number;
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
    fn home(&self, site: CallSite) -> usize {
        let halves = [
            u64::from(site.stack) << 32 | u64::from(site.thread),
            u64::from(site.allocator) << 32 | u64::from(site.tag),
        ];
        let product = u128::from(halves[0] ^ 0x9e37_79b9_7f4a_7c15) * u128::from(halves[1] ^ 0xd1b5_4a32_d192_ed03);
        (product as u64 ^ (product >> 64) as u64) as usize & (self.index.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, site: CallSiteId) -> CallSite {
        self.records[site.0 as usize].site
    }

    /// Changes the figures of a call site.
    #[inline]
    pub(crate) fn update(&mut self, site: CallSiteId, change: impl FnOnce(&mut Account)) {
        let record = &mut self.records[site.0 as usize];
        match record.figures.get() {
            Err(large) => change(&mut self.large[large]),
            Ok(mut account) => {
                change(&mut account);
                match SmallAccount::of(&account) {
                    Some(small) => record.figures = small,
                    None => self.move_out(site, account),
                }
            }
        }
    }

    #[cold]
    fn move_out(&mut self, site: CallSiteId, account: Account) {
        let number = u32::try_from(self.large.len()).ok().filter(|_| self.large.try_reserve(1).is_ok());
        let Some(number) = number else {
            self.is_incomplete = true;
            return;
        };
        self.large.push(account);
        self.records[site.0 as usize].figures = SmallAccount::elsewhere(number);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallSite, Account)> {
        let account = |record: &Record| record.figures.get().unwrap_or_else(|large| self.large[large]);
        self.records.iter().map(move |record| (record.site, account(record)))
    }

    pub(crate) fn bytes_used(&self) -> usize {
        let accounts = self.records.capacity() * size_of::<Record>() + self.large.capacity() * size_of::<Account>();
        accounts + self.index.capacity() * size_of::<u32>()
    }
}

/// Returns whether this many records need a larger index.
fn is_crowded(records: usize, index: usize) -> bool {
    records * 4 > index * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: u32) -> CallSite {
        CallSite { stack: number / 7, thread: number % 7, allocator: number % 3, tag: number / 1000 }
    }

    #[test]
    fn a_call_site_keeps_its_number() {
        let mut sites = CallSites::new();
        let numbers: Vec<CallSiteId> = (0..10_000).map(|number| sites.intern(site(number))).collect();
        assert!((0..10_000).all(|number| sites.intern(site(number)) == numbers[number as usize]));
        assert!((0..10_000).all(|number| sites.get(numbers[number as usize]) == site(number)));
        assert!(!sites.is_incomplete);
    }

    #[test]
    fn the_default_call_site_is_the_first() {
        let mut sites = CallSites::new();
        assert_eq!(sites.intern(site(50)), CallSiteId(1));
        assert_eq!(sites.intern(CallSite::default()), CallSiteId(0));
    }

    #[test]
    fn figures_that_grow_large_stay_with_their_call_site() {
        let mut sites = CallSites::new();
        let ids: Vec<CallSiteId> = (1..=3).map(|number| sites.intern(site(number))).collect();
        for round in 1..=100_000 {
            sites.update(ids[1], |account| account.allocations += 1);
            sites.update(ids[round % 2 * 2], |account| account.bytes += 1);
        }
        let figures: Vec<(u64, u64)> = sites.iter().map(|(_, account)| (account.allocations, account.bytes)).collect();
        assert_eq!(figures, [(0, 0), (0, 50_000), (100_000, 0), (0, 50_000)]);
        assert_eq!(sites.large.len(), 1);
    }
}
