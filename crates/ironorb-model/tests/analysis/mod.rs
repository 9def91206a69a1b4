//! What is computed without simulation, beside what small Markov chains and formulas say.

mod bounds;
mod chains;
mod fork_join;
mod levels;
mod lqn;
mod mva;
mod plan;
mod scenarios;
