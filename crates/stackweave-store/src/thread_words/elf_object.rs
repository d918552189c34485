//! A shared object without code, for the loader: it has thread-local memory, and a word for its distance from the
//! thread pointer.
//!
//! The loader can only satisfy the relocation of that word with memory at a fixed distance, in all existing and
//! future threads.

use super::COUNT;

/// The name under which the loader lists the object.
pub(super) const NAME: &core::ffi::CStr = c"stackweave-thread-words";

const ELF_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const PROGRAM_HEADERS: u64 = 4;
const SYMBOL: u64 = 24;
const RELOCATION: u64 = 24;
const DYNAMIC_ENTRY: u64 = 16;
const DYNAMIC_ENTRIES: u64 = 11;
const HASH: u64 = 16;

const DYNAMIC_AT: u64 = ELF_HEADER + PROGRAM_HEADERS * PROGRAM_HEADER;
const SYMBOLS_AT: u64 = DYNAMIC_AT + DYNAMIC_ENTRIES * DYNAMIC_ENTRY;
const RELOCATIONS_AT: u64 = SYMBOLS_AT + SYMBOL;
const HASH_AT: u64 = RELOCATIONS_AT + RELOCATION;
/// The offset of the word that the loader sets to the distance.
pub(super) const DISTANCE_AT: u64 = HASH_AT + HASH;
const STRINGS_AT: u64 = DISTANCE_AT + 8;
const STRINGS_LENGTH: u64 = 1 + NAME.to_bytes_with_nul().len() as u64;
const LENGTH: u64 = STRINGS_AT + STRINGS_LENGTH;

const PAGE: u64 = 4096;
const R_X86_64_TPOFF64: u64 = 18;
const ET_DYN: u64 = 3;
const EM_X86_64: u64 = 62;
const READ_WRITE: u64 = 6;
const READ: u64 = 4;

/// Returns the object's bytes.
pub(super) fn bytes() -> Vec<u8> {
    let mut object = ElfWriter(Vec::with_capacity(LENGTH as usize));
    object.elf_header();
    let dynamic_length = SYMBOLS_AT - DYNAMIC_AT;
    // One segment is loaded, and is not executable: a system that only allows code from trusted files does not
    // refuse it.
    object.program_header(&ElfSegment {
        kind: 1,
        flags: READ_WRITE,
        at: 0,
        in_file: LENGTH,
        in_memory: LENGTH,
        align: PAGE,
    });
    object.program_header(&ElfSegment {
        kind: 2,
        flags: READ_WRITE,
        at: DYNAMIC_AT,
        in_file: dynamic_length,
        in_memory: dynamic_length,
        align: 8,
    });
    // The thread-local memory has no bytes in the file: all words are 0 at first.
    let in_memory = (COUNT * size_of::<usize>()) as u64;
    object.program_header(&ElfSegment { kind: 7, flags: READ, at: DISTANCE_AT, in_file: 0, in_memory, align: 8 });
    // Without this header, the loader would make all stacks executable, or refuse to load the object.
    object.program_header(&ElfSegment {
        kind: 0x6474_e551,
        flags: READ_WRITE,
        at: 0,
        in_file: 0,
        in_memory: 0,
        align: 16,
    });
    object.dynamic_section();
    // The only symbol is the null symbol that every table begins with.
    object.words(&[0; 3]);
    object.words(&[DISTANCE_AT, R_X86_64_TPOFF64, 0]);
    // A hash table of one empty bucket: 1 bucket, 1 symbol, 0 in the bucket, 0 behind the symbol.
    object.words(&[1 | 1 << 32, 0]);
    object.words(&[0]);
    object.0.push(0);
    object.0.extend_from_slice(NAME.to_bytes_with_nul());
    debug_assert_eq!(object.0.len() as u64, LENGTH);
    object.0
}

/// The contents of a program header.
struct ElfSegment {
    kind: u64,
    flags: u64,
    at: u64,
    in_file: u64,
    in_memory: u64,
    align: u64,
}

struct ElfWriter(Vec<u8>);

impl ElfWriter {
    fn words(&mut self, words: &[u64]) {
        self.0.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn elf_header(&mut self) {
        self.0.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        // Type, machine and version; no entry point; program headers follow; no section headers.
        self.words(&[ET_DYN | EM_X86_64 << 16 | 1 << 32, 0, ELF_HEADER, 0]);
        // Flags (4 bytes), then sizes and counts of 2 bytes each.
        self.words(&[ELF_HEADER << 32 | PROGRAM_HEADER << 48, PROGRAM_HEADERS | 64 << 16]);
    }

    fn program_header(&mut self, segment: &ElfSegment) {
        let &ElfSegment { kind, flags, at, in_file, in_memory, align } = segment;
        self.words(&[kind | flags << 32, at, at, at, in_file, in_memory, align]);
    }

    fn dynamic_section(&mut self) {
        const STATIC_TLS: u64 = 0x10;
        let entries: [[u64; 2]; DYNAMIC_ENTRIES as usize] = [
            [14, 1], // the name, in the strings
            [4, HASH_AT],
            [5, STRINGS_AT],
            [6, SYMBOLS_AT],
            [10, STRINGS_LENGTH],
            [11, SYMBOL],
            [7, RELOCATIONS_AT],
            [8, RELOCATION],
            [9, RELOCATION],
            [30, STATIC_TLS],
            [0, 0],
        ];
        self.words(entries.as_flattened());
    }
}

#[cfg(test)]
mod tests {
    use object::elf;
    use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _, Rela as _};
    use object::{Endianness, Object as _};

    use super::*;

    #[test]
    fn another_reader_finds_64_bytes_of_thread_local_memory_and_no_code() {
        let bytes = bytes();
        let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
        let endian = file.endian();
        assert_eq!(file.kind(), object::ObjectKind::Dynamic);
        let headers = file.elf_program_headers();
        let tls: Vec<_> = headers.iter().filter(|header| header.p_type(endian) == elf::PT_TLS).collect();
        assert_eq!(
            tls.iter().map(|header| (header.p_filesz(endian), header.p_memsz(endian))).collect::<Vec<_>>(),
            [(0, 64)]
        );
        assert!(headers.iter().all(|header| header.p_flags(endian) & elf::PF_X == elf::ProgramFlags(0)));
        assert!(headers.iter().any(|header| header.p_type(endian) == elf::PT_GNU_STACK));
    }

    #[test]
    fn another_reader_finds_the_name_the_flag_and_the_relocation() {
        let bytes = bytes();
        let file = ElfFile64::<Endianness>::parse(&*bytes).unwrap();
        let endian = file.endian();
        let dynamic = file.elf_program_headers().iter().find_map(|header| header.dynamic(endian, &*bytes).unwrap());
        let dynamic = dynamic.unwrap();
        let value = |tag: elf::DynamicTag| {
            let entry = dynamic.iter().find(|entry| entry.d_tag(endian) == tag).unwrap();
            entry.d_val(endian)
        };
        assert_eq!(value(elf::DT_FLAGS), elf::DF_STATIC_TLS.0);
        let strings = &bytes[value(elf::DT_STRTAB) as usize..][..value(elf::DT_STRSZ) as usize];
        assert_eq!(&strings[value(elf::DT_SONAME) as usize..], NAME.to_bytes_with_nul());
        let relocation = &bytes[value(elf::DT_RELA) as usize..][..value(elf::DT_RELASZ) as usize];
        let (relocation, rest) = object::from_bytes::<elf::Rela64<Endianness>>(relocation).unwrap();
        assert!(rest.is_empty());
        assert_eq!(relocation.r_offset(endian), DISTANCE_AT);
        assert_eq!(relocation.r_type(endian, false), elf::R_X86_64_TPOFF64);
    }
}
