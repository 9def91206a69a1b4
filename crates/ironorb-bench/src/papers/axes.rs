//! The axes of the figures.

use crate::chart::{Axis, Scale};
use crate::row::digits;
use crate::variant::Bytes;

pub(super) const OBJECTS: Axis = Axis { name: "objects", scale: Scale::Linear, text: whole };
pub(super) const MANY_OBJECTS: Axis = Axis { name: "objects", scale: Scale::Log10, text: whole };
pub(super) const UNITS: Axis = Axis { name: "units", scale: Scale::Log2, text: whole };
pub(super) const BUFFER: Axis = Axis { name: "buffer", scale: Scale::Log2, text: bytes };
pub(super) const CLIENTS: Axis = Axis { name: "clients", scale: Scale::Linear, text: whole };
pub(super) const LOW_CLIENTS: Axis = Axis { name: "clients of low priorities", ..CLIENTS };
pub(super) const PERCENT: Axis = Axis { name: "reads in per cent", scale: Scale::Linear, text: whole };
pub(super) const LAG: Axis = Axis { name: "lag in us", scale: Scale::Log10, text: whole };

pub(super) const MICROSECONDS: Axis = Axis { name: "us", scale: Scale::Linear, text: digits };
/// Where the papers' figures are a hundred times ours.
pub(super) const MICROSECONDS_LOG: Axis = Axis { name: "us", scale: Scale::Log10, text: digits };
pub(super) const MEGABITS: Axis = Axis { name: "Mbit/s", scale: Scale::Log10, text: digits };
pub(super) const CALLS: Axis = Axis { name: "calls/s", scale: Scale::Log10, text: digits };
pub(super) const CYCLES: Axis = Axis { name: "cycles/s", scale: Scale::Linear, text: digits };

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn bytes(number: f64) -> String {
    Bytes(number.round() as usize).to_string()
}
