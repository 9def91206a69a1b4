//! Jobs of calls over sockets.

mod architectures;
mod characters;
mod counts;
mod quorums;
mod stage;
