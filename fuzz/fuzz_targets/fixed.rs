//! See `ironorb_fuzz::fixed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::fixed(data));
