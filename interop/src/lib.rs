//! The parts of the tests against other ORBs: IronORB's side of the contract `idl/interop.idl` as a servant
//! ([`suite`]) and as a client ([`cases`]), and the programs of other ORBs as child processes ([`process`],
//! [`peer`], [`names`]). [`tao`] and [`witness`] are both sides of the tests of real time, and [`packets`] shows how packets are
//! marked. [`skips`] lists the cases that are left out. [`results`] records a run for the matrix, whose rows are in
//! [`constructs`].
//!
//! This crate uses IronORB's public API only, so its results hold for every program.

pub mod cases;
pub mod constructs;
pub mod names;
pub mod ours;
pub mod packets;
pub mod peer;
pub mod peer_cache;
pub mod process;
pub mod results;
pub mod samples;
pub mod skips;
pub mod suite;
pub mod tao;
pub mod value_samples;
pub mod witness;

ironorb::include_idl!("all");
ironorb::include_idl!("witness");
