//! What the tests against other ORBs are made of: IronORB's own side of the contract `idl/interop.idl` as
//! a servant ([`suite`]) and as a client ([`cases`]), and the programs of others as child processes
//! ([`process`], [`peer`], [`names`]). What is left out is listed in [`skips`]; what a run found is written
//! down by [`results`], for the matrix whose rows are [`constructs`].
//!
//! Nothing here knows how IronORB is made: it uses what every program can use, so that what the tests show
//! holds for every program.

pub mod cases;
pub mod constructs;
pub mod names;
pub mod ours;
pub mod peer;
pub mod peer_cache;
pub mod process;
pub mod results;
pub mod samples;
pub mod skips;
pub mod suite;
pub mod value_samples;

ironorb::include_idl!("all");
