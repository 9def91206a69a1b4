//! The Rust that is generated from `idl/bank.idl`.

ironorb::include_idl!("bank");
