//! Prepares the modelled sources: replaces atomics and cells by loom's, and makes tables small.
//!
//! Loom's atomics cannot be created at compile time, so constant functions become plain ones. Nor can they be created from zeros, so
//! new memory is filled with values. Each edit contains the text that it replaces, and fails the build if the text is missing.

use std::path::Path;
use std::{env, fs};

type Edit = (&'static str, &'static str);

/// An edit of nearly every source.
const ATOMICS: Edit = ("std::sync::atomic", "crate::atomic");
/// Loom treats sequentially consistent loads as acquire loads, which may see old values. A read-modify-write sees the last value.
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
    ("growing_table", &[]),
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
    ("loss_counter", &[ATOMICS]),
];

const AFTER_SYSTEM_CALLS: &str = "/// The doorbell that the sleeping writer waits for.";

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
            assert!(text.contains(from), "{} no longer contains {from:?}: update models/build.rs", path.display());
            text.replace(from, to)
        });
        fs::write(Path::new(&out).join(name).with_extension("rs"), text.replace("const fn", "fn")).expect("writable");
    }
}

/// Returns the source without its tests and without inner doc comments, because it is included in a module. Of `futex.rs`, returns
/// only the part after the system calls.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests").unwrap_or(text.len());
    let start = text.find(AFTER_SYSTEM_CALLS).unwrap_or(0);
    let lines = text[start..end].lines().filter(|line| !line.starts_with("//!"));
    lines.flat_map(|line| [line, "\n"]).collect()
}
