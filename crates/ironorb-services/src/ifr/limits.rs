//! The limits of the interface repository that an operator can set.

/// The limits of one repository. An operation that would exceed one is refused and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most definitions, anonymous types included. Default 1,000,000.
    ///
    /// Worst case: `definitions_max * definition_bytes_max` of disk.
    /// [`Store::CACHE_BYTES_MAX`](super::Store::CACHE_BYTES_MAX) bounds the memory, with some 300 bytes more
    /// for each definition that a client has called.
    pub definitions_max: u64,
    /// Longest stored form of one definition in bytes: names, members, a constant's value. Default 1,048,576.
    pub definition_bytes_max: usize,
    /// Most definitions in one result of `contents`, `lookup_name` or `describe_contents`; more raise
    /// IMP_LIMIT. Default 100,000.
    pub answer_definitions_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            definitions_max: 1_000_000,
            definition_bytes_max: 1024 * 1024,
            answer_definitions_max: 100_000,
        }
    }
}
