//! Scenarios at level L2 beside the other levels.

mod programs;
