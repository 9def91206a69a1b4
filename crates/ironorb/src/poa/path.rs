//! The path of an adapter as names.

use super::Poa;

impl Poa {
    /// The names of the adapters, from the root's child to this adapter; empty for the root.
    pub(crate) fn adapter_name(&self) -> Vec<String> {
        names(&self.0.path)
    }
}

/// The names of a path.
pub(super) fn names(path: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((name, after)) = after.split_at_checked(length) else { break };
        names.push(String::from_utf8_lossy(name).into_owned());
        rest = after;
    }
    names
}
