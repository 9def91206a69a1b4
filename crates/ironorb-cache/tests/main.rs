//! The machines under a network that loses, doubles and reorders, and the checker against histories of known faults.

mod cases;
mod checker;
mod histories;
mod holders;
mod limits;
mod model;
mod places;
mod untold;
