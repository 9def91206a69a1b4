//! Every bound of the interface repository that an operator may set.

/// The limits of one repository; what exceeds one is refused, and nothing else changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most definitions, types without names included. Default 1,000,000.
    ///
    /// Worst case: `definitions_max * definition_bytes_max` of disk. Memory is bounded by
    /// [`Store::CACHE_BYTES_MAX`](super::Store::CACHE_BYTES_MAX) and some 300 bytes for each definition that a client
    /// has called.
    pub definitions_max: u64,
    /// Most bytes of one definition as it is stored: names, members, a constant's value. Default 1,048,576.
    pub definition_bytes_max: usize,
    /// Most definitions in one answer of `contents`, `lookup_name` or `describe_contents`; more is IMP_LIMIT.
    /// Default 100,000.
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
