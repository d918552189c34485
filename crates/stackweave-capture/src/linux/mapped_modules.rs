//! Finds the file of an address in `/proc/self/maps`, because the loader may be what hangs. Async-signal-safe.

use core::fmt;

use crate::platform::raw_files::{RawFile, SCRATCH};

const MOST: usize = 1024;
const LONGEST_NAME: usize = 48;

/// The mapped files, as many as fit.
#[derive(Debug)]
pub(crate) struct MappedModules {
    modules: [MappedModule; MOST],
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MappedModule {
    start: u64,
    end: u64,
    inode: u64,
    name: [u8; LONGEST_NAME],
    name_length: usize,
}

const NOTHING: MappedModule = MappedModule { start: 0, end: 0, inode: 0, name: [0; LONGEST_NAME], name_length: 0 };

impl MappedModules {
    #[expect(clippy::large_stack_arrays, reason = "created once, as a static")]
    pub(crate) const fn new() -> Self {
        Self { modules: [NOTHING; MOST], length: 0 }
    }

    /// Reads the current mappings from the kernel.
    pub(crate) fn read(&mut self, scratch: &mut [u8; SCRATCH]) {
        self.length = 0;
        if let Ok(mut maps) = RawFile::open(c"/proc/self/maps") {
            maps.for_each_line(scratch, |line| self.add(line));
        }
    }

    /// Adds a line of the map; adjacent mappings of one file become one module.
    fn add(&mut self, line: &[u8]) {
        let Some(module) = parsed(line) else { return };
        if let Some(last) = self.modules[..self.length].last_mut()
            && last.inode == module.inode
            && last.name == module.name
        {
            last.end = module.end;
        } else if let Some(next) = self.modules.get_mut(self.length) {
            *next = module;
            self.length += 1;
        }
    }

    /// Writes `name+0xoffset`, or the bare address if no file is mapped there.
    pub(crate) fn write(&self, address: u64, out: &mut dyn fmt::Write) -> fmt::Result {
        let holds = |module: &&MappedModule| module.start <= address && address < module.end;
        let Some(module) = self.modules[..self.length].iter().find(holds) else {
            return write!(out, "{address:#x}");
        };
        for chunk in module.name[..module.name_length].utf8_chunks() {
            out.write_str(chunk.valid())?;
        }
        write!(out, "+{:#x}", address - module.start)
    }
}

/// Parses a line `start-end access offset device inode path`; `None` if no file is mapped there.
fn parsed(line: &[u8]) -> Option<MappedModule> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut range = fields.next()?.split(|byte| *byte == b'-');
    let mut address = || u64::from_str_radix(str::from_utf8(range.next()?).ok()?, 16).ok();
    let (start, end) = (address()?, address()?);
    let inode = str::from_utf8(fields.nth(3)?).ok()?.parse().ok()?;
    let path = fields.next()?.trim_ascii_start();
    if !path.starts_with(b"/") && path != b"[vdso]" {
        return None;
    }
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let name = &name[..name.len().min(LONGEST_NAME)];
    let mut module = MappedModule { start, end, inode, name_length: name.len(), ..NOTHING };
    module.name[..name.len()].copy_from_slice(name);
    Some(module)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(modules: &MappedModules, address: u64) -> String {
        let mut text = String::new();
        modules.write(address, &mut text).unwrap();
        text
    }

    #[test]
    fn adjacent_mappings_of_one_file_are_one_module() {
        let mut modules = MappedModules::new();
        let lines = [
            "1000-2000 r--p 00000000 08:01 7                          /usr/lib/a.so",
            "2000-4000 r-xp 00001000 08:01 7                          /usr/lib/a.so",
            "4000-5000 rw-p 00000000 00:00 0 ",
            "5000-6000 r-xp 00000000 08:01 8                          /usr/lib/with space.so (deleted)",
            "6000-7000 r-xp 00000000 08:01 9                          /usr/lib/with space.so (deleted)",
            "8000-9000 rw-p 00000000 00:00 0                          [heap]",
            "nonsense",
            "",
        ];
        for line in lines {
            modules.add(line.as_bytes());
        }
        let shown = [0x1000, 0x3fff, 0x4000, 0x5010, 0x6000, 0x8000].map(|address| written(&modules, address));
        let expected = [
            "a.so+0x0",
            "a.so+0x2fff",
            "0x4000",
            "with space.so (deleted)+0x10",
            "with space.so (deleted)+0x0",
            "0x8000",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn results_agree_with_the_loader() {
        let mut modules = Box::new(MappedModules::new());
        modules.read(&mut [0; SCRATCH]);
        for address in [libc::strlen as *const () as u64, parsed as *const () as u64] {
            let all = stackweave_unwind::modules();
            let (_, module) = all.find(address).unwrap();
            let text = written(&modules, address);
            assert!(text.ends_with(&format!("+{:#x}", address - module.start)), "{text} {module:x?}");
        }
    }
}
