//! Every bound of the naming service that an operator may set. Those of names are constants of [`Name`](super::Name).

/// The limits of one naming service; what exceeds one is refused, and nothing else changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most contexts, the root included, those that no name leads to any more included. Default 1,000,000.
    ///
    /// Worst case: some 64 bytes of disk for each.
    pub contexts_max: u64,
    /// Most bindings in all contexts together. Default 10,000,000.
    ///
    /// Worst case: `bindings_max * (Name::BYTES_MAX + reference_bytes_max)` of disk. Memory is bounded by
    /// [`Store::CACHE_BYTES_MAX`](super::Store::CACHE_BYTES_MAX) however many there are.
    pub bindings_max: u64,
    /// Most bytes in one bound reference. Default 65,536.
    pub reference_bytes_max: usize,
    /// Most binding iterators alive at a time; when one more is needed, that unused for longest is given up, so that
    /// clients which forget `destroy` cost nothing for ever. Default 1,000.
    ///
    /// Worst case: `iterators_max * Name::BYTES_MAX` of memory (32 MB by default).
    pub iterators_max: usize,
    /// Most bytes of ids and kinds in one answer of `list` or `next_n`, each binding counted with 32 bytes on top.
    /// An answer holds one binding at least. Default 1,048,576.
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
