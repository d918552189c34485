#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackweave_fuzz::symbolize_file::check_input(data));
