//! The numbers that a section has assigned to strings, modules, frames and stacks.

use std::collections::HashMap;

use stackweave_core::StackId;

/// One number for each sort of definitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) strings: u32,
    pub(super) modules: u32,
    pub(super) frames: u32,
    pub(super) stacks: u32,
}

impl Numbers {
    const fn all(self) -> [u32; 4] {
        [self.strings, self.modules, self.frames, self.stacks]
    }

    /// Returns the higher number of each sort.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            strings: self.strings.max(other.strings),
            modules: self.modules.max(other.modules),
            frames: self.frames.max(other.frames),
            stacks: self.stacks.max(other.stacks),
        }
    }
}

/// The numbers after `base`, up to `last`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AssignedNumbers {
    pub(super) base: Numbers,
    pub(super) last: Numbers,
}

impl AssignedNumbers {
    /// Returns whether both contain a common number.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let bases = self.base.all().into_iter().zip(other.base.all());
        let lasts = self.last.all().into_iter().zip(other.last.all());
        bases.zip(lasts).any(|((one, two), (one_last, two_last))| one.max(two) < one_last.min(two_last))
    }
}

/// The numbers of stacks, by their ids in the process.
#[derive(Debug)]
pub(super) enum StackNumbers {
    /// By id, with 0 for none. For all stacks of a process.
    Dense(Vec<u32>),
    /// For some stacks of a process.
    Sparse(HashMap<u32, u32>),
}

impl StackNumbers {
    /// Returns the number of a stack; 0 if it has none.
    #[inline]
    pub(super) fn get(&self, id: u64) -> u32 {
        match self {
            Self::Dense(numbers) => usize::try_from(id).ok().and_then(|index| numbers.get(index)).copied(),
            Self::Sparse(numbers) => u32::try_from(id).ok().and_then(|id| numbers.get(&id)).copied(),
        }
        .unwrap_or(0)
    }

    pub(super) fn set(&mut self, id: StackId, number: u32) {
        match self {
            Self::Dense(numbers) => {
                let index = id.get() as usize;
                if numbers.len() <= index {
                    numbers.resize(index + 1, 0);
                }
                numbers[index] = number;
            }
            Self::Sparse(numbers) => drop(numbers.insert(id.get(), number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(base: u32, last: u32) -> AssignedNumbers {
        let numbers = |stacks| Numbers { stacks, ..Numbers::default() };
        AssignedNumbers { base: numbers(base), last: numbers(last) }
    }

    #[test]
    fn ranges_overlap_only_if_both_contain_a_number() {
        assert!(!assigned(0, 5).overlaps(&assigned(5, 9)) && !assigned(5, 9).overlaps(&assigned(0, 5)));
        assert!(assigned(0, 6).overlaps(&assigned(5, 9)) && assigned(5, 9).overlaps(&assigned(0, 6)));
        assert!(!assigned(0, 6).overlaps(&assigned(3, 3)), "an empty range");
    }

    #[test]
    fn stacks_have_their_assigned_numbers() {
        for mut numbers in [StackNumbers::Dense(Vec::new()), StackNumbers::Sparse(HashMap::new())] {
            numbers.set(StackId::new(7).unwrap(), 3);
            assert_eq!([0, 6, 7, 8, u64::MAX].map(|id| numbers.get(id)), [0, 0, 3, 0, 0]);
        }
    }
}
