//! The module on which generated code is built; generated code names no other.
//!
//! Not for use by hand, except in bounds of generic code: its contents may change with the generator.

mod bits;
pub mod cached;
mod codec;
mod errors;
mod interface_macros;
mod interpreted_macros;
mod macros;
mod parallel_macros;
mod reference;
mod remote_operation;
mod value_macros;
mod value_support;

pub use bits::*;
pub use codec::*;
pub use errors::*;
pub use interface_macros::*;
pub use macros::*;
pub use parallel_macros::*;
pub use reference::*;
pub use remote_operation::{
    Answer, Argument, ArgumentList, Borrowed, Checked, CheckedOwnable, Copied, Elements, Lent, Nillable,
    Numbers, Octets, OwnableElements, RemoteOperation, Text, WideText, deferred, numbers::*, skeleton, stub,
};
pub use value_macros::*;
pub use value_support::*;

pub use crate::__ironorb_cached_state as cached_state;
pub use crate::base::config::OperationLookup;
pub use crate::base::marshal_profile::Use;
pub use crate::cache::{
    CachedMember, CachedMode, CachedRef, CachedState, CellRef, CellVisitor, ProxyCell, ReadOptions,
    Seen as SeenValue, Shared, Word, WordState, Words, lag_of,
};
pub use crate::driver::context::{get_context, pass_context, put_context};
pub use crate::driver::pending::Pending;
pub use crate::object::lease::LeaseCell;
pub use crate::object::operation::{Operation, OperationError, Raised, RefTo, UserException, Widen};
pub use crate::object::operation_table::{
    OperationSearch, OperationTable, operation_multiplier, operation_slot,
};
pub use crate::object::timing::Timing;
pub use crate::object::{ObjectRef, TypedRef, nil_reference};
pub use crate::orb::Orb;
pub use crate::parallel::{
    And, Concatenated, Distribution, Equal, First, Max, Min, Or, ParallelPending, ParallelRef, Product,
    Share, Sum, begin_in_parallel, call_in_parallel,
};
pub use crate::poa::PoaError;
pub use crate::poa::servant::{
    Call, Deferred, DeferredServant, InterfaceOf, InterfaceTimings, LocalSlot, Replied, Reply,
};
pub use ironorb_cache::Members;
pub use ironorb_giop::any::{Any, ExtractError};
pub use ironorb_giop::cdr::{
    AnyBitPattern, Block, BlockLayout, BlockReader, BlockWriter, LongDouble, MarshalNillable, Ownable,
    UnmarshalNillable, WString, WireImage, WireLayout, Zeroable, bounded, check_bound, nothing_in_memory,
    wire_elements_in_memory,
};
pub use ironorb_giop::fixed::Fixed;
pub use ironorb_giop::interpret::{self, Blank, Interpret, Label};
pub use ironorb_giop::typecode::{
    BadType, TypeCode, TypeDef, Typed, TypedNillable, ValueModifier, Visibility,
};
pub use ironorb_giop::url::UrlError;
pub use ironorb_giop::value::{self, Abstract, DerivesFrom, FormalValue, Link, Value, ValueBase, ValueType};
pub use ironorb_giop::{
    Malformed, MalformedKind, Marshal, Misuse, Reader, SystemException, Unmarshal, Writer,
};

pub use std::collections::BTreeMap;
use std::sync::Arc;

/// A value of an IDL `native` type, which the process defines. Two values are equal when they are the same
/// object. It is never sent.
#[derive(Debug, Clone)]
pub struct Native(pub Arc<dyn std::any::Any + Send + Sync>);

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl Eq for Native {}

impl std::hash::Hash for Native {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl Marshal for Native {
    fn marshal(&self, _: &mut Writer<'_>) -> Result<(), Misuse> {
        Err(Misuse::LocalObject)
    }
}

impl Unmarshal for Native {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Err(r.malformed(MalformedKind::LocalObject))
    }
}

impl Interpret for Native {
    fn write_as(&self, _: interpret::Type, w: &mut Writer<'_>) -> Result<(), Misuse> {
        w.put(self)
    }

    fn read_as(&mut self, _: interpret::Type, r: &mut Reader<'_>) -> Result<(), Malformed> {
        *self = r.get()?;
        Ok(())
    }
}

impl Blank for Native {
    fn blank() -> Self {
        Native(Arc::new(()))
    }
}

/// The part of a scoped name behind the last `::`, the IDL name of an item.
pub const fn last_name(scoped: &'static str) -> &'static str {
    let bytes = scoped.as_bytes();
    let mut at = bytes.len();
    while at > 0 && bytes[at - 1] != b':' {
        at -= 1;
    }
    scoped.split_at(at).1
}
