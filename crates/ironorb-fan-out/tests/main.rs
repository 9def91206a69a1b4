//! Jobs step by step, thousands of them in worlds where all fails that can, and the checkers against records with known faults.

mod budgets;
mod cases;
mod checker;
mod delays;
mod driven;
mod ledgers;
mod network;
mod network_seeds;
mod seeds;
mod world;
