//! IDL0537 to IDL0546: cached attributes.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;
use crate::suggest::distance;

impl Diagnostics {
    pub(crate) fn cached_not_here(&mut self, span: Span) {
        self.error(codes::CACHED_NOT_HERE, span, "`@cached` has no meaning here")
            .help("write it before an attribute of an interface, before the interface, or without values before an operation");
    }

    /// `name` is `None` for a value without a name, and for no values at all.
    pub(crate) fn unknown_cached(&mut self, span: Span, name: Option<&str>, known: &[&str]) {
        let message = match name {
            Some(name) => format!("`@cached` has no `{name}`"),
            None => "`@cached` takes values with names".to_owned(),
        };
        let near = name.and_then(|name| known.iter().find(|known| distance(known, name) <= 1));
        let draft = self.error(codes::UNKNOWN_CACHED, span, message);
        match near {
            Some(near) => draft.help(format!("do you mean `{near}`?")),
            None => draft.help("say how old a value may be, as in `@cached(lag = \"10ms\")`"),
        };
    }

    pub(crate) fn cached_twice(&mut self, span: Span, name: &str, first: Span) {
        self.error(codes::CACHED_TWICE, span, format!("`{name}` is given twice"))
            .also(first, "first given here")
            .help("take one out");
    }

    pub(crate) fn not_a_lag(&mut self, span: Span, why: &str) {
        self.error(codes::NOT_A_LAG, span, format!("this is no lag: {why}"))
            .help("write a number with one of the units ns, us, ms and s, such as `\"10ms\"`, or `\"0\"` to have changes sent at once");
    }

    pub(crate) fn not_updates(&mut self, span: Span) {
        self.error(codes::NOT_UPDATES, span, "this is no number of writes")
            .help("write a whole number from 0 to 1,000,000, such as `updates = 3`");
    }

    pub(crate) fn cached_both(&mut self, span: Span, linearizable: Span) {
        self.error(codes::CACHED_BOTH, span, "a linearizable attribute has no other bound")
            .also(linearizable, "linearizable here")
            .help("take one out: a linearizable read is never old and misses no write");
    }

    pub(crate) fn cached_modes(&mut self, span: Span, first: Span) {
        self.error(codes::CACHED_MODES, span, "the cached attributes of an interface differ in how they are kept up to date")
            .also(first, "unlike this one")
            .help("a client holds them as one state: give all of them `linearizable`, `lag = \"0\"` or the same `updates`, or none");
    }

    pub(crate) fn cached_read(&mut self, span: Span, why: &str) {
        self.error(codes::CACHED_READ, span, format!("clients cannot run this operation: {why}"))
            .help("take out `@cached`, or give the operation `in` parameters, a result, and cached attributes to read");
    }

    pub(crate) fn not_a_group(&mut self, span: Span, why: &str) {
        self.error(codes::NOT_A_GROUP, span, format!("this is no group: {why}"))
            .help("give two or more attributes of the interface the same name, as in `group = \"position\"`");
    }

    pub(crate) fn cached_raises(&mut self, span: Span) {
        self.error(codes::CACHED_RAISES, span, "a cached attribute raises an exception when it is read")
            .help("take the exceptions out, or `@cached`: a value that a client holds cannot raise one");
    }
}
