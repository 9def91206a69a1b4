//! See `ironorb_fuzz::giop`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::giop(data));
