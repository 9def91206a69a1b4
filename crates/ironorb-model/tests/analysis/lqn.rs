//! Layered queueing networks.
