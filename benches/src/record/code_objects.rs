//! Generated code objects, the same in every run.

/// The stored parts of a code object: its name, its qualified name, its filename, and its line table.
pub(super) type Parts = [Box<[u8]>; 4];

/// A generator of code objects, each different from all before.
#[derive(Debug)]
pub(super) struct CodeObjects {
    state: u64,
    next_address: u64,
}

impl CodeObjects {
    pub(super) fn new() -> Self {
        Self { state: 1, next_address: 0x7f2b_6c00_0030 }
    }

    /// Returns addresses as an allocator returns them: multiples of 16 in ascending order, with gaps for other objects.
    pub(super) fn addresses(&mut self, count: usize) -> Vec<u64> {
        let mut next = || {
            let address = self.next_address;
            self.next_address += 400 + self.below(100) * 16;
            address
        };
        (0..count).map(|_| next()).collect()
    }

    /// Returns code objects of 290 bytes on average, of which two thirds are the line table. They share a few
    /// filenames.
    pub(super) fn take(&mut self, count: usize) -> Vec<Parts> {
        (0..count).map(|_| self.one()).collect()
    }

    fn one(&mut self) -> Parts {
        let name = format!("function_{}", self.next() % 1_000_000);
        let qualname = format!("Class{}.{name}", self.below(50));
        let filename = format!("/usr/lib/python3/dist-packages/package/module_{}.py", self.below(40));
        let lines: Vec<u8> = (0..50 + self.below(300)).map(|_| self.next().to_le_bytes()[0]).collect();
        [name.into_bytes(), qualname.into_bytes(), filename.into_bytes(), lines].map(Vec::into_boxed_slice)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.state >> 33
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_objects_differ_and_are_a_few_hundred_bytes_long() {
        let mut objects = CodeObjects::new();
        let mut all = objects.take(1000);
        let bytes: usize = all.iter().flatten().map(|part| part.len()).sum();
        assert!((280_000..300_000).contains(&bytes), "{bytes}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
        let addresses = objects.addresses(1000);
        assert!(addresses.is_sorted_by(|one, next| one < next) && addresses.iter().all(|address| address % 16 == 0));
    }
}
