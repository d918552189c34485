#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackweave_fuzz::aggregation::check_input(data));
