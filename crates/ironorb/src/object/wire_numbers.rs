//! The numbers of IronORB's own that other processes see, in its range of the OMG's vendor numbers. `docs/wire.md` lists
//! them with their bytes.

/// The service context that says how long the caller still waits.
pub(crate) const DEADLINE_CONTEXT: u32 = 0x494F_5202;

/// The priority of the best-effort lane's address among those of lanes in TAO's component, where it is -1 without one.
pub(crate) const FOR_BEST_EFFORT: i16 = -2;

/// The service context that a trace continues with.
pub(crate) const TRACE_CONTEXT: u32 = 0x494F_5203;

/// The service context that a distributable thread travels with.
pub(crate) const SCHEDULING_CONTEXT: u32 = 0x494F_5204;

/// The service context by which a client that caches asks for the end of the server's log, and in which a reply tells it.
pub(crate) const CACHE_CONTEXT: u32 = 0x494F_5205;

/// The service context of a oneway whose results another client waits for.
#[allow(unreachable_pub)] // the module of interceptors exports it
pub const FORWARD_CONTEXT: u32 = 0x494F_5207;

/// The component of a reference to an element of an extent that says how references to the others are made of it.
pub(crate) const EXTENT_COMPONENT: u32 = 0x494F_5206;

/// The service context that tells a part which share of a call's arguments it has.
pub(crate) const SHARE_CONTEXT: u32 = 0x494F_5209;
