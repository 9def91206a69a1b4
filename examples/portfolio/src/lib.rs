//! Price servers, and a front end that asks all of them in time.

ironorb::include_idl!("portfolio");

pub mod exchange;
pub mod front_end;
