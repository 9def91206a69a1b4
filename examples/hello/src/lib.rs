//! What `idl/bank.idl` becomes in Rust.

ironorb::include_idl!("bank");
