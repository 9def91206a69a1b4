//! What the end-to-end tests share: an interface with a servant, raw GIOP for misbehaving peers, and the command.

ironorb::include_idl!("bulk");
ironorb::include_idl!("dynamic");
ironorb::include_idl!("probe");
ironorb::include_idl!("wires");

pub mod command;
pub mod converse;
pub mod everything;
mod exchange;
pub mod random_values;
pub mod raw;
pub mod relay;
mod servant;

pub use exchange::{Exchanging, Listening};
pub use servant::{Deriving, Hook, Hooked, Probing};

use std::time::{Duration, Instant};

/// Waits until something is so; a test that waits for ever tells nothing.
///
/// # Panics
/// After 20 s.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Compiles and runs the examples of the guide's page on interceptors.
#[cfg(doctest)]
#[doc = include_str!("../../docs/guide/interceptors.md")]
struct GuideToInterceptors;
