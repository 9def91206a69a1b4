//! Jobs step by step, thousands of them in a world of servers that fail, and the checker against records with known faults.

mod budgets;
mod cases;
mod checker;
mod delays;
mod seeds;
mod world;
