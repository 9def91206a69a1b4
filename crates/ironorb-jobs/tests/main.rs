//! Jobs of calls over sockets.

mod architectures;
mod quorums;
mod stage;
