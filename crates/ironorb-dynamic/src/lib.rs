//! Definitions known at run time: interfaces and types from IDL or interface repositories, values as JSON,
//! mock objects with prepared JSON answers, and bridges that pass on calls of any interface.
//!
//! | to | use |
//! |---|---|
//! | know interfaces and types | [`Interfaces`] |
//! | turn values into JSON and back | [`json`] |
//! | print interfaces, operations and types as IDL | [`declaration`], [`signature`], [`definition`] |
//! | serve objects with prepared answers | [`mock`] |
//! | pass on calls of any interface | [`bridge`] |
//! | bound the cost of a look-up | [`limits`] |
//!
//! This crate generates no code. [`Interfaces::of`] and the `fetch_…` methods call objects and repositories
//! for missing definitions, and block; no other method of [`Interfaces`] calls an object. Errors in an IDL
//! file or a JSON text name their place. The cost of reading either is bounded by its size.
//!
//! ```
//! use ironorb_dynamic::{Interfaces, json};
//! use serde_json::json;
//!
//! let mut known = Interfaces::new();
//! known.add_idl_text(
//!     "bank.idl",
//!     "interface Account {
//!          exception Insufficient { long long missing; };
//!          long long withdraw(in long long amount) raises (Insufficient);
//!      };",
//!     &Default::default(),
//! )?;
//! let account = known.interface("IDL:Account:1.0").expect("it was just read");
//! let withdraw = account.find("withdraw").expect("it has this operation");
//! assert_eq!(
//!     ironorb_dynamic::signature(withdraw),
//!     "long long withdraw(in long long amount) raises (Insufficient)"
//! );
//!
//! let amount = json::from_json(&withdraw.parameters[0].type_code, &json!(250), &known, None)?;
//! assert_eq!(amount.extract::<i64>(), Ok(250));
//! let wrong = json::from_json(&withdraw.parameters[0].type_code, &json!("much"), &known, None);
//! assert_eq!(
//!     wrong.unwrap_err().to_string(),
//!     "$: expected a whole number from -9223372036854775808 to 9223372036854775807, found \"much\""
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod bridge;
mod definition_cache;
#[cfg(test)]
mod hostile;
mod interfaces;
pub mod json;
mod lower;
pub mod mock;
mod of;
mod repository;
mod text;

pub use interfaces::{Constant, DefinitionError, Interfaces};
pub use of::{Attempt, Source, UnknownInterface};
pub use text::{TypeUse, declaration, definition, signature};

/// Bounds on the cost of looking definitions up, which no repository and no object can exceed.
pub mod limits {
    pub use crate::definition_cache::{
        INTERFACES_KEPT_MAX, OBJECT_TYPES_KEPT_MAX, OBJECTS_KEPT_MAX, REPOSITORIES_FOUND_MAX, TYPES_KEPT_MAX,
    };
    pub use crate::repository::{
        BASES_MAX, DEFINITIONS_ASKED_MAX, INTERFACES_LISTED_MAX, LOOK_UP_TIME_MAX, OPERATIONS_TOLD_MAX,
    };
}
