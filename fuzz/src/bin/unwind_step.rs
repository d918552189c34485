//! Arbitrary bytes as unwind tables: see `stackweave_unwind::fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackweave_unwind::fuzzing::step(data));
