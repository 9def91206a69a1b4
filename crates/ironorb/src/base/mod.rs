//! What all layers share and what knows none of them: locks, threads, random numbers, moments, probes, limits.

pub(crate) mod config;
pub(crate) mod discards;
pub(crate) mod forks;
pub(crate) mod gate;
pub(crate) mod growing_list;
pub(crate) mod lane;
pub(crate) mod lane_table;
pub(crate) mod lease;
pub(crate) mod locks;
pub mod marshal_profile;
pub(crate) mod memory;
pub(crate) mod memory_plan;
pub(crate) mod monitor;
pub mod probe;
pub(crate) mod randomness;
pub(crate) mod scheduling;
pub(crate) mod single_thread_lock;
pub(crate) mod spawner;
pub(crate) mod sync;
#[cfg(debug_assertions)]
pub mod testing;
pub(crate) mod thread_pool_config;
pub(crate) mod thread_settings;
pub(crate) mod time;
pub(crate) mod watch;
