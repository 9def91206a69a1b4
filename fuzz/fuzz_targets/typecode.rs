//! See `ironorb_fuzz::typecode`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ironorb_fuzz::typecode(data));
