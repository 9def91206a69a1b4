//! Tests of the analysis as its users see it.

mod textbook;
