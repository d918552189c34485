#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| stackweave_fuzz::unwind_step::check_input(data));
