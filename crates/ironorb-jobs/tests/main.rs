//! Jobs of calls over sockets.

mod architectures;
mod characters;
mod counts;
mod many;
mod quorums;
mod stage;
