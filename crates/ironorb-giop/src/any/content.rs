//! The stored value of an `any`.

use std::ops::Deref;
use std::sync::Arc;

use super::CANONICAL;
use crate::cdr::{Environment, Reader};

/// Immutable bytes, shared or stored inline, and the environment of references and values in them.
///
/// Most values in an `any` are a number or a very short text, which need no allocation. An `any` itself is
/// small, because a peer can send a sequence of them in four bytes each.
#[derive(Clone)]
pub(crate) enum Content {
    Few { length: u8, bytes: [u8; FEW_MAX] },
    Shared(Arc<Stored>),
}

pub(crate) struct Stored {
    bytes: Vec<u8>,
    environment: Option<Arc<dyn Environment>>,
}

const FEW_MAX: usize = 14;

impl Content {
    /// Bytes that are few enough to be stored inline.
    pub(crate) fn few<const N: usize>(few: [u8; N]) -> Content {
        const { assert!(N <= FEW_MAX) };
        let mut bytes = [0; FEW_MAX];
        bytes[..N].copy_from_slice(&few);
        Content::Few { length: N as u8, bytes }
    }

    pub(crate) fn new(mut bytes: Vec<u8>, environment: Option<Arc<dyn Environment>>) -> Content {
        if bytes.len() > FEW_MAX || environment.is_some() {
            bytes.shrink_to_fit();
            return Content::Shared(Arc::new(Stored { bytes, environment }));
        }
        let mut few = [0; FEW_MAX];
        few[..bytes.len()].copy_from_slice(&bytes);
        Content::Few { length: bytes.len() as u8, bytes: few }
    }

    /// A reader at an offset in the content. Alignment counts from the start of the content.
    pub(crate) fn reader_at(&self, at: usize) -> Reader<'_> {
        let r = Reader::at(self, at, CANONICAL);
        match self.environment() {
            Some(environment) => r.with_environment(&**environment),
            None => r,
        }
    }

    pub(crate) fn environment(&self) -> Option<&Arc<dyn Environment>> {
        match self {
            Content::Few { .. } => None,
            Content::Shared(stored) => stored.environment.as_ref(),
        }
    }
}

impl Deref for Content {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Content::Few { length, bytes } => &bytes[..usize::from(*length)],
            Content::Shared(stored) => &stored.bytes,
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Content::few([])
    }
}
