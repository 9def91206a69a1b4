//! The types, with compiled and with interpreted marshalling.

/// Generated code with compiled marshalling.
#[allow(missing_docs)]
pub(super) mod compiled {
    include!(concat!(env!("OUT_DIR"), "/compiled/marshal.rs"));
    #[cfg(feature = "sizes")]
    include!(concat!(env!("OUT_DIR"), "/compiled/ir.rs"));
}

/// Generated code with interpreted marshalling.
#[allow(missing_docs)]
pub(super) mod interpreted {
    include!(concat!(env!("OUT_DIR"), "/interpreted/marshal.rs"));
    #[cfg(feature = "sizes")]
    include!(concat!(env!("OUT_DIR"), "/interpreted/ir.rs"));
}
