//! Prepares the sources that are modelled: as they are, but with loom's atomics and cells, and with small tables.
//!
//! Loom's atomics can't be made at compile time, so constant functions become plain ones; nor can they be made of zeros, so new
//! memory is filled with values. Each edit names the text that it replaces, and fails the build when that is gone.

use std::path::Path;
use std::{env, fs};

type Edit = (&'static str, &'static str);

/// In nearly every source.
const ATOMICS: Edit = ("std::sync::atomic", "crate::atomic");
/// Loom takes sequentially consistent loads for acquiring ones, which may see old values. One that changes nothing sees the last.
const SEQUENTIAL_LOADS: Edit = (".load(Ordering::SeqCst)", ".fetch_add(0, Ordering::SeqCst)");
const BUCKET: Edit = ("#[derive(Debug)]\n#[repr(C", "#[derive(Debug, Default)]\n#[repr(C");
const ZERO_BUCKET: Edit =
    ("impl ZeroIsValid for Bucket {}", "impl ZeroIsValid for Bucket {}\ncrate::new_memory::zero!(Bucket);");

const STORE: &[(&str, &[Edit])] = &[
    (
        "address_map",
        &[
            ATOMICS,
            ("SLOTS: usize = 8;", "SLOTS: usize = 2;"),
            ("SLOTS_IN_LINE: usize = 4;", "SLOTS_IN_LINE: usize = 1;"),
            ("FIRST_BUCKETS: usize = 1 << 11;", "FIRST_BUCKETS: usize = 1;"),
            ("MORE_TABLES: usize = 15;", "MORE_TABLES: usize = 1;"),
            BUCKET,
            ("impl ZeroIsValid for Slot {}", "impl ZeroIsValid for Slot {}\ncrate::new_memory::zero!(Slot);"),
        ],
    ),
    (
        "blob_bytes",
        &[
            ATOMICS,
            ("1 << 16;", "1 << 6;"),
            ("BLOCKS: usize = 21;", "BLOCKS: usize = 2;"),
            ("struct Byte", "#[derive(Default)]\nstruct Byte"),
            ("impl ZeroIsValid for Byte {}", "impl ZeroIsValid for Byte {}\ncrate::new_memory::zero!(Byte);"),
        ],
    ),
    (
        "blob_index",
        &[
            ATOMICS,
            ("SLOTS: usize = 8;", "SLOTS: usize = 2;"),
            ("FIRST_BUCKETS: usize = 1 << 10;", "FIRST_BUCKETS: usize = 1;"),
            ("MORE_TABLES: usize = 16;", "MORE_TABLES: usize = 1;"),
            BUCKET,
            ZERO_BUCKET,
        ],
    ),
    ("blob_table", &[ATOMICS]),
    ("cascade", &[]),
    ("frame_numbers", &[ATOMICS]),
    (
        "id_table",
        &[
            ATOMICS,
            ("FIRST_LENGTH: usize = 1 << 12;", "FIRST_LENGTH: usize = 1 << 2;"),
            ("BLOCKS: usize = 21;", "BLOCKS: usize = 3;"),
        ],
    ),
    (
        "lazy_block",
        &[
            ATOMICS,
            ("use memmap2::{MmapMut, MmapOptions};", "use crate::new_memory::NewMemory;"),
            ("Option<MmapMut>", "Option<NewMemory<T>>"),
            (
                "MmapOptions::new().len(bytes).no_reserve_swap().map_anon().ok()?",
                "NewMemory::<T>::new(bytes / size_of::<T>())",
            ),
            ("trait ZeroIsValid: Sync {}", "trait ZeroIsValid: Sync + crate::new_memory::Zero {}"),
            ("[const { Self::new(0) }; N]", "std::array::from_fn(|_| Self::new(0))"),
        ],
    ),
    (
        "stack_index",
        &[
            ATOMICS,
            ("SLOTS: usize = 10;", "SLOTS: usize = 2;"),
            ("FIRST_BUCKETS: usize = 1 << 13;", "FIRST_BUCKETS: usize = 1;"),
            ("MORE_TABLES: usize = 15;", "MORE_TABLES: usize = 2;"),
            BUCKET,
            ZERO_BUCKET,
        ],
    ),
    ("stack_nodes", &[ATOMICS]),
    ("stack_table", &[ATOMICS]),
];

const LIVE: &[(&str, &[Edit])] = &[
    (
        "chunk",
        &[
            ATOMICS,
            ("use std::cell::Cell", "use loom::cell::Cell"),
            ("HEAD: usize = 64;", "HEAD: usize = 1024;"),
            (
                "const _: () = assert!(size_of::<Chunk>() == HEAD);",
                "const _: () = assert!(size_of::<Chunk>() <= HEAD);",
            ),
            ("(CHUNK - HEAD) / WORD;", "4;"),
            ("cast::<Self>();\n", "cast::<Self>();\n        super::new_chunk::fill(chunk);\n"),
        ],
    ),
    ("futex", &[]),
    ("lane", &[ATOMICS, ("use std::cell::Cell", "use loom::cell::Cell")]),
    ("pool", &[ATOMICS, SEQUENTIAL_LOADS, ("*self.newest.get_mut()", "self.newest.with_mut(|newest| *newest)")]),
    ("tally", &[ATOMICS]),
];

const BEHIND_SYSTEM_CALLS: &str = "/// What the writer sleeps by.";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    prepare("../crates/stackweave-store/src", STORE);
    prepare("../crates/stackweave-recording/src/live", LIVE);
}

fn prepare(folder: &str, sources: &[(&str, &[Edit])]) {
    let out = env::var_os("OUT_DIR").expect("set by cargo");
    for (name, edits) in sources {
        let path = Path::new(folder).join(name).with_extension("rs");
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = edits.iter().fold(without_tests(&text), |text, (from, to)| {
            assert!(text.contains(from), "{} has no {from:?} any more: models/build.rs has to follow", path.display());
            text.replace(from, to)
        });
        fs::write(Path::new(&out).join(name).with_extension("rs"), text.replace("const fn", "fn")).expect("writable");
    }
}

/// The source without its tests, and without what is about the whole file: it is included in a module. Of `futex.rs` only what
/// stands behind the calls of the kernel.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let start = text.find(BEHIND_SYSTEM_CALLS).unwrap_or(0);
    let lines = text[start..end].lines().filter(|line| !line.starts_with("//!"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
