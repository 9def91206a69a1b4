//! The limits of the naming service that an operator can set. Limits of names are constants of
//! [`Name`](super::Name).

/// The limits of one naming service. An operation that would exceed one is refused and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most contexts, including the root and contexts to which no name leads any more. Default 1,000,000.
    ///
    /// Worst case: some 64 bytes of disk for each.
    pub contexts_max: u64,
    /// Most bindings in all contexts together. Default 10,000,000.
    /// Worst case: `bindings_max * (Name::BYTES_MAX + reference_bytes_max)` of disk.
    /// [`Store::CACHE_BYTES_MAX`](super::Store::CACHE_BYTES_MAX) bounds the memory, independently of their
    /// number.
    pub bindings_max: u64,
    /// Longest bound reference in bytes. Default 65,536.
    pub reference_bytes_max: usize,
    /// Most live binding iterators. When one more is needed, the service reclaims the least recently used
    /// one, because clients may forget to call `destroy`. Default 1,000.
    ///
    /// Worst case: `iterators_max * Name::BYTES_MAX` of memory (32 MB by default).
    pub iterators_max: usize,
    /// Most bytes of ids and kinds in one result of `list` or `next_n`, with 32 bytes more for each binding.
    /// A result has at least one binding. Default 1,048,576.
    pub page_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            contexts_max: 1_000_000,
            bindings_max: 10_000_000,
            reference_bytes_max: 64 * 1024,
            iterators_max: 1_000,
            page_bytes_max: 1024 * 1024,
        }
    }
}
