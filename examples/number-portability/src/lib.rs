//! A registry of telephone numbers, and front ends that ask it.

ironorb::include_idl!("portability");

pub mod front_end;
pub mod registry;
