//! See `ironorb_fuzz::cdr`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::cdr(data));
