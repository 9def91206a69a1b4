//! IDL0547 to IDL0555: operations that may be carried out twice, and those that parts of an object carry out together.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn idempotent_not_here(&mut self, span: Span) {
        self.error(codes::IDEMPOTENT_NOT_HERE, span, "`@idempotent` has no meaning here")
            .help("write it before an operation or attribute of an interface that is called remotely");
    }

    pub(crate) fn idempotent_alone(&mut self, span: Span) {
        self.error(codes::IDEMPOTENT_ALONE, span, "`@idempotent` takes no values, and stands once")
            .help("write `@idempotent void set(in long value);`");
    }

    pub(crate) fn parallel_not_here(&mut self, span: Span) {
        self.error(codes::PARALLEL_NOT_HERE, span, "`@parallel` has no meaning here")
            .help("write it before an `in` or `inout` sequence of an operation that is called remotely and has a reply");
    }

    pub(crate) fn not_a_distribution(&mut self, span: Span) {
        self.error(codes::NOT_A_DISTRIBUTION, span, "this is no distribution of elements")
            .help("write `@parallel(block)` or `@parallel(cyclic)`");
    }

    pub(crate) fn distributions_differ(&mut self, span: Span, first: Span) {
        self.error(
            codes::DISTRIBUTIONS_DIFFER,
            span,
            "the parallel parameters of an operation are distributed alike",
        )
        .also(first, "unlike this one")
        .help("write `block` or `cyclic` at all of them");
    }

    pub(crate) fn not_joined(&mut self, span: Span) {
        self.error(codes::NOT_JOINED, span, "the parts' results do not become one")
            .help("say how, as in `@reduce(sum)`: before the operation for its return value, or before the parameter");
    }

    pub(crate) fn reduce_not_here(&mut self, span: Span) {
        self.error(codes::REDUCE_NOT_HERE, span, "`@reduce` has no meaning here")
            .help("write it before an operation with `@parallel` parameters and a return value, or before an `out` or `inout` parameter that has no `@parallel`");
    }

    pub(crate) fn not_a_reduction(&mut self, span: Span, known: &[&str]) {
        self.error(codes::NOT_A_REDUCTION, span, "this names no reduction")
            .help(format!("the reductions are {}", known.join(", ")));
    }

    pub(crate) fn reduction_does_not_fit(&mut self, span: Span, ty: Span) {
        self.error(codes::REDUCTION_DOES_NOT_FIT, span, "values of this type cannot be reduced so")
            .also(ty, "of this result")
            .help("`first` is for all types, `equal` for numbers, texts and enumerators, `and` and `or` for booleans and whole numbers, the others for numbers");
    }
}
