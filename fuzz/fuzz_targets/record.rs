//! See `ironorb_fuzz::record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::record(data));
