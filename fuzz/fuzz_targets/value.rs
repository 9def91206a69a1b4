//! See `ironorb_fuzz::value`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::value(data));
