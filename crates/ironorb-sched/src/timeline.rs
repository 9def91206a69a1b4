//! Stub.
use crate::description::Description;
use crate::model::Model;
use serde::Serialize;

/// A run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Timeline {}

impl Timeline {
    pub(crate) fn of(_model: &Model, _all: &Description) -> Self {
        Timeline {}
    }
}
