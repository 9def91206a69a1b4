//! See `ironorb_fuzz::idl`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::idl(data));
