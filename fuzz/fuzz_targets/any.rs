//! See `ironorb_fuzz::any`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::any(data));
