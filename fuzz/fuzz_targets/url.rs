//! See `ironorb_fuzz::url`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::url(data));
