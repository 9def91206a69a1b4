//! The numbers that value encoding is made of (CORBA 3.3 part 2, 9.3.4.1).

/// No value.
pub(super) const NULL: u32 = 0;
/// The value, id or list of ids is the same as one before; an offset follows.
pub(super) const INDIRECTION: u32 = 0xFFFF_FFFF;
/// The smallest tag of a value; flags in its low octet.
pub(super) const VALUE: u32 = 0x7FFF_FF00;
/// The largest.
pub(super) const VALUE_MAX: u32 = 0x7FFF_FFFF;
/// Which type information follows.
pub(super) const TYPE_INFO: u32 = 6;
/// One repository id.
pub(super) const SINGLE_ID: u32 = 2;
/// A list of repository ids, the most derived first.
pub(super) const ID_LIST: u32 = 6;
/// A code base URL follows.
pub(super) const CODE_BASE: u32 = 1;
/// The state is chunked.
pub(super) const CHUNKED: u32 = 8;
