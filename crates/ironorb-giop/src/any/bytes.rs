//! Bytes that are shared, or few.

use std::ops::Deref;
use std::sync::Arc;

/// Immutable bytes. Most values in an `any` are a number or a short text, which need no memory of their own.
#[derive(Clone)]
pub(super) enum Bytes {
    Few { length: u8, bytes: [u8; FEW_MAX] },
    Shared(Arc<[u8]>),
}

const FEW_MAX: usize = 22;

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Few { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl Default for Bytes {
    fn default() -> Self {
        Bytes::Few { length: 0, bytes: [0; FEW_MAX] }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(vec: Vec<u8>) -> Self {
        if vec.len() > FEW_MAX {
            return Bytes::Shared(vec.into());
        }
        let mut bytes = [0; FEW_MAX];
        bytes[..vec.len()].copy_from_slice(&vec);
        Bytes::Few { length: vec.len() as u8, bytes }
    }
}
