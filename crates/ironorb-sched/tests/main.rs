//! Tests of the analysis as its users see it.

mod random_sets;
mod textbook;
