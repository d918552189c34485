#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackweave_fuzz::recording::check_input(data));
