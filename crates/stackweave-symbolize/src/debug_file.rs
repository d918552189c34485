//! Where a module's bytes and its debug information are, when they are not simply in its file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::Object as _;
use stackweave_core::{BuildId, Module};

use crate::dwarf;
use crate::elf::{Elf, ElfImage};
use crate::options::Options;
use crate::shelf::Bytes;

/// The debug files of a module.
#[derive(Debug, Default)]
pub(crate) struct DebugFiles {
    /// Debug information and symbols that were split off from the file.
    pub(crate) main: Option<Arc<ElfImage>>,
    /// What `dwz` moved out of several files into one.
    pub(crate) supplement: Option<ElfImage>,
}

impl DebugFiles {
    /// Finds the debug files of the module whose file this is.
    pub(crate) fn find(image: &ElfImage, path: Option<&Path>, options: &Options) -> Self {
        let has_own = image.with(dwarf::is_in);
        let main = if has_own { None } else { find_main(image, path, options) };
        let supplement = match &main {
            Some((main, path)) => main.with(|elf| find_supplement(elf, Some(path), options)),
            None => image.with(|elf| find_supplement(elf, path, options)),
        };
        Self { main: main.map(|(main, _)| Arc::new(main)), supplement }
    }
}

fn find_main(image: &ElfImage, path: Option<&Path>, options: &Options) -> Option<(ElfImage, PathBuf)> {
    let id = image.build_id();
    let by_id = id.iter().flat_map(|id| options.debug_folders.iter().map(move |folder| by_build_id(folder, id)));
    let found = by_id.filter_map(open).find(|(image, _)| image.build_id() == id);
    found.or_else(|| image.with(|elf| find_by_link(elf, path?, options)))
}

/// The file that `.gnu_debuglink` names, in the places where gdb looks for it, if its checksum is right.
fn find_by_link(elf: &Elf<'_>, path: &Path, options: &Options) -> Option<(ElfImage, PathBuf)> {
    let (name, checksum) = elf.gnu_debuglink().ok()??;
    let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
    let folder = path.parent()?;
    let under = |debug: &PathBuf| debug.join(folder.strip_prefix("/").unwrap_or(folder)).join(name);
    let beside = [folder.join(name), folder.join(".debug").join(name)];
    let candidates = beside.into_iter().chain(options.debug_folders.iter().map(under));
    // A file that links to itself has no other.
    let candidates = candidates.filter(|candidate| candidate != path);
    candidates.filter_map(open).find(|(image, _)| crc32(image.bytes()) == checksum)
}

fn find_supplement(elf: &Elf<'_>, path: Option<&Path>, options: &Options) -> Option<ElfImage> {
    let (name, id) = elf.gnu_debugaltlink().ok()??;
    let id = BuildId::new(id);
    let name = Path::new(std::str::from_utf8(name).ok()?);
    let beside = path.and_then(Path::parent).map(|folder| folder.join(name));
    let by_id = id.iter().flat_map(|id| options.debug_folders.iter().map(move |folder| by_build_id(folder, id)));
    // Relative names of files in a build-id folder lead to `/usr/lib/debug/.dwz`.
    let in_folders = options.debug_folders.iter().filter_map(|folder| {
        let tail = name.iter().skip_while(|part| *part != ".dwz").collect::<PathBuf>();
        (!tail.as_os_str().is_empty()).then(|| folder.join(tail))
    });
    let candidates = beside.into_iter().chain(by_id).chain(in_folders);
    candidates.filter_map(open).map(|(image, _)| image).find(|image| image.build_id() == id)
}

fn by_build_id(folder: &Path, id: &BuildId) -> PathBuf {
    let id = id.to_string();
    let (first, rest) = id.split_at(2.min(id.len()));
    folder.join(".build-id").join(first).join(format!("{rest}.debug"))
}

fn open(path: PathBuf) -> Option<(ElfImage, PathBuf)> {
    ElfImage::open(&path).map(|image| (image, path))
}

/// Places under a folder of the search path where a module's file may be: its whole path, its name, its
/// build id.
pub(crate) fn places_in<'a>(folder: &'a Path, module: &'a Module) -> impl Iterator<Item = PathBuf> + 'a {
    let whole = module.path.strip_prefix("/").ok().map(|path| folder.join(path));
    let name = module.path.file_name().map(|name| folder.join(name));
    let id = module.build_id.as_ref().map(|id| folder.join(id.to_string()));
    [whole, name, id].into_iter().flatten()
}

/// Whether a module is the kernel's own, which is in no file.
pub(crate) fn is_kernels(path: &Path) -> bool {
    path.as_os_str() == "[vdso]" || path.as_os_str() == "linux-vdso.so.1"
}

/// The bytes of a module of this process, from memory.
pub(crate) fn read_from_memory(module: &Module) -> Option<ElfImage> {
    const LARGEST: u64 = 1 << 20;
    let length = module.end.checked_sub(module.start).filter(|length| *length <= LARGEST)?;
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, module.start).ok()?;
    ElfImage::parse(Bytes::Taken(bytes.into()))
}

/// The checksum that `.gnu_debuglink` holds (CRC-32, as in zlib).
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        let mut first = 0u32;
        while index < 256 {
            let mut value = first;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
            first += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, byte| crc >> 8 ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_zlibs() {
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_build_id_leads_to_its_debug_file() {
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        assert_eq!(by_build_id(Path::new("/d"), &id), Path::new("/d/.build-id/ab/cdef.debug"));
    }
}
