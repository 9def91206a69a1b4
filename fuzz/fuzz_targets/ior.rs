//! See `ironorb_fuzz::ior`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::ior(data));
