//! Jobs of calls over sockets.

mod architectures;
mod characters;
mod quorums;
mod stage;
