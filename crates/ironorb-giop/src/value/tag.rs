//! The numbers that value encoding is made of (CORBA 3.3 part 2, 9.3.4.1).

/// A null value.
pub(super) const NULL: u32 = 0;
/// The value, id or list of ids equals an earlier one, whose offset follows.
pub(super) const INDIRECTION: u32 = 0xFFFF_FFFF;
/// The smallest tag of a value. Its low octet has flags.
pub(super) const VALUE: u32 = 0x7FFF_FF00;
/// The largest tag of a value.
pub(super) const VALUE_MAX: u32 = 0x7FFF_FFFF;
/// The bits that say which type information follows.
pub(super) const TYPE_INFO: u32 = 6;
/// One repository id.
pub(super) const SINGLE_ID: u32 = 2;
/// A list of repository ids, the most derived first.
pub(super) const ID_LIST: u32 = 6;
/// A code base URL follows.
pub(super) const CODE_BASE: u32 = 1;
/// The state is chunked.
pub(super) const CHUNKED: u32 = 8;
