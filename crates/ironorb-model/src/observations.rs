//! What a run has shown.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::Digest;

/// What a run of one scenario with one seed has shown after its warm-up.
#[derive(Debug, Clone)]
pub struct Observations {
    /// How long was observed.
    pub span: Duration,
    /// By class, in the scenario's order.
    pub classes: Vec<ClassObservations>,
    /// Processors, locks, thread pools and links, in an order that depends on the scenario alone.
    pub resources: Vec<ResourceObservations>,
    /// GIOP messages that were sent, over all links, from the beginning of the run on.
    pub messages: u64,
    /// Octets of these messages.
    pub octets: u64,
    /// Invocations that were begun from the beginning of the run on, nested ones too.
    pub calls: u64,
    /// Events of the kernel, from the beginning of the run on.
    pub events: u64,
    /// What happened, in its order.
    pub digest: Digest,
}

/// What one class of clients has seen.
#[derive(Debug, Clone)]
pub struct ClassObservations {
    /// The class's name.
    pub name: String,
    /// Cycles (jobs, or single calls) that ended.
    pub completed: u64,
    /// Cycles that ended with an exception.
    pub failed: u64,
    /// Response times of cycles, in nanoseconds.
    pub response: Histogram<u64>,
    /// How old what cached reads returned was, in nanoseconds; empty without caches.
    pub staleness: Histogram<u64>,
    /// Reads that a cache answered.
    pub cache_hits: u64,
    /// Reads that asked the server although the class caches.
    pub cache_misses: u64,
}

/// What one resource has done.
#[derive(Debug, Clone)]
pub struct ResourceObservations {
    /// For example `cpu of registry[0]`, `threads of accounts`, `link front -> registry`.
    pub name: String,
    /// From 0 to 1: the busy part of its units' time.
    pub utilisation: f64,
    /// The mean number of those that waited.
    pub queue_mean: f64,
    /// The greatest number of those that waited.
    pub queue_max: u64,
    /// Octets that it carried, for links.
    pub octets: u64,
}
