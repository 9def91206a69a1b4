//! Tests of the analysis as its users see it.

mod extremes;
mod problems;
mod random_sets;
mod results;
mod textbook;
