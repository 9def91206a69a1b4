//! Whole programs in virtual time, under faults that follow from seeds: services and clients, each a process on a host of its
//! own. `IRONORB_SIM_SEEDS=10000` runs more seeds of each test.

mod agent;
mod cached_reads;
mod caches;
mod capture;
mod levels;
mod naming;
