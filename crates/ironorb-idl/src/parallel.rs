//! What the annotations `@parallel` and `@reduce` say.

/// How the parts of an object carry an operation out together, from `@parallel(block)` on its parameters and `@reduce(sum)` on its
/// results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parallel {
    /// How the elements are distributed, which is the same for all parallel parameters.
    pub distribution: Distribution,
    /// The parallel parameters, by their places: sequences of which each part gets a share. The others are sent whole to each part.
    pub shared: Vec<usize>,
    /// How the results of the parts become one: of the return value, if there is one, and of each `inout` and `out` parameter, in
    /// order.
    pub joins: Vec<Join>,
}

/// Which elements of a sequence a part gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// The first part gets the first elements, and so on.
    Block,
    /// Elements are dealt out in turn.
    Cyclic,
}

/// How the results of parts become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Join {
    /// The sequences are put together as the parallel parameters were taken apart.
    Concatenated,
    /// The values become one, by `@reduce`.
    Reduced(Reduction),
}

/// What `@reduce` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum of numbers.
    Sum,
    /// The product of numbers.
    Product,
    /// The least number.
    Min,
    /// The greatest number.
    Max,
    /// Whether all are true; of whole numbers, the bits that all have.
    And,
    /// Whether one is true; of whole numbers, the bits that one has.
    Or,
    /// What the first part gives.
    First,
    /// What all parts give alike.
    Equal,
}

impl Distribution {
    /// All with their names in IDL.
    pub(crate) const NAMED: [(&'static str, Distribution); 2] =
        [("block", Distribution::Block), ("cyclic", Distribution::Cyclic)];
}

impl Reduction {
    /// All with their names in IDL.
    pub(crate) const NAMED: [(&'static str, Reduction); 8] = [
        ("sum", Reduction::Sum),
        ("product", Reduction::Product),
        ("min", Reduction::Min),
        ("max", Reduction::Max),
        ("and", Reduction::And),
        ("or", Reduction::Or),
        ("first", Reduction::First),
        ("equal", Reduction::Equal),
    ];
}
