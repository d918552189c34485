//! The figures of a call site in 28 bytes, as long as they are small.
//!
//! A program with a million stacks has only a few blocks in most of them.
//!
//! Hot file: no allocation, no lock.

use crate::account::Account;

/// Marks that the call site has an [`Account`] elsewhere, whose index is in `bytes`. Not the number of a peak.
const ELSEWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SmallAccount {
    bytes: u32,
    live_bytes: u32,
    peak_bytes: u32,
    temporary_bytes: u32,
    peak: u32,
    allocations: u16,
    live_blocks: u16,
    peak_blocks: u16,
    temporary: u16,
}

impl SmallAccount {
    /// Returns the figures in this form; `None` if they are too large.
    #[inline]
    pub(crate) fn of(account: &Account) -> Option<Self> {
        let peak = u32::try_from(account.peak).ok().filter(|peak| *peak != ELSEWHERE)?;
        Some(Self {
            bytes: u32::try_from(account.bytes).ok()?,
            live_bytes: u32::try_from(account.live_bytes).ok()?,
            peak_bytes: u32::try_from(account.peak_bytes).ok()?,
            temporary_bytes: u32::try_from(account.temporary_bytes).ok()?,
            peak,
            allocations: u16::try_from(account.allocations).ok()?,
            live_blocks: u16::try_from(account.live_blocks).ok()?,
            peak_blocks: u16::try_from(account.peak_blocks).ok()?,
            temporary: u16::try_from(account.temporary).ok()?,
        })
    }

    /// Returns a reference to an account with this index.
    pub(crate) fn elsewhere(number: u32) -> Self {
        Self { bytes: number, peak: ELSEWHERE, ..Self::default() }
    }

    /// Returns the figures, or the index of the account with them.
    #[inline]
    pub(crate) fn get(&self) -> Result<Account, usize> {
        if self.peak == ELSEWHERE {
            return Err(self.bytes as usize);
        }
        Ok(Account {
            allocations: self.allocations.into(),
            bytes: self.bytes.into(),
            live_blocks: self.live_blocks.into(),
            live_bytes: self.live_bytes.into(),
            peak_blocks: self.peak_blocks.into(),
            peak_bytes: self.peak_bytes.into(),
            peak: self.peak.into(),
            temporary: self.temporary.into(),
            temporary_bytes: self.temporary_bytes.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_figures_are_kept_and_large_ones_do_not_fit() {
        let account = Account {
            allocations: 65_535,
            bytes: u64::from(u32::MAX),
            live_blocks: 3,
            live_bytes: 4,
            peak_blocks: 5,
            peak_bytes: 6,
            peak: u64::from(u32::MAX) - 1,
            temporary: 8,
            temporary_bytes: 9,
        };
        assert_eq!(SmallAccount::of(&account).unwrap().get(), Ok(account));
        let larger: [fn(&mut Account); 4] = [
            |account| account.allocations += 1,
            |account| account.bytes += 1,
            |account| account.live_blocks = u64::MAX,
            |account| account.peak += 1,
        ];
        for change in larger {
            let mut account = account;
            change(&mut account);
            assert!(SmallAccount::of(&account).is_none(), "{account:?}");
        }
        assert_eq!(SmallAccount::elsewhere(70_000).get(), Err(70_000));
        assert_eq!(size_of::<SmallAccount>(), 28);
    }
}
