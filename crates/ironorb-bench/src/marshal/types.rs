//! The types that are marshalled in two ways.

/// Generated code with marshalling of its own.
#[allow(missing_docs)]
pub(super) mod compiled {
    include!(concat!(env!("OUT_DIR"), "/compiled/marshal.rs"));
    #[cfg(feature = "sizes")]
    include!(concat!(env!("OUT_DIR"), "/compiled/ir.rs"));
}

/// Generated code of these types that leaves marshalling to the interpreter.
#[allow(missing_docs)]
pub(super) mod interpreted {
    include!(concat!(env!("OUT_DIR"), "/interpreted/marshal.rs"));
    #[cfg(feature = "sizes")]
    include!(concat!(env!("OUT_DIR"), "/interpreted/ir.rs"));
}
