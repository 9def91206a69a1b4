//! From IDL0547 on: operations that may be carried out twice.

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
}
