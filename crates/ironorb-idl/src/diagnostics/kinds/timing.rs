//! IDL0529 to IDL0536: the timing of operations.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;
use crate::suggest::distance;

impl Diagnostics {
    pub(crate) fn timing_not_here(&mut self, span: Span) {
        self.error(codes::TIMING_NOT_HERE, span, "`@rt` has no meaning here")
            .help("write it before an operation or attribute of an interface that is called remotely");
    }

    /// `name` is `None` for a value without a name, and for no values at all.
    pub(crate) fn unknown_timing(&mut self, span: Span, name: Option<&str>, known: &[&str]) {
        let message = match name {
            Some(name) => format!("`@rt` has no `{name}`"),
            None => "`@rt` takes values with names".to_owned(),
        };
        let near = name.and_then(|name| known.iter().find(|known| distance(known, name) <= 2));
        let draft = self.error(codes::UNKNOWN_TIMING, span, message);
        match near {
            Some(near) => draft.help(format!("do you mean `{near}`?")),
            None => draft.help(format!("give one of {}, as in `@rt(wcet = \"2ms\")`", known.join(", "))),
        };
    }

    pub(crate) fn timing_twice(&mut self, span: Span, name: &str, first: Span) {
        self.error(codes::TIMING_TWICE, span, format!("`{name}` is given twice"))
            .also(first, "first given here")
            .help("take one out");
    }

    pub(crate) fn not_a_time(&mut self, span: Span, why: &str) {
        self.error(codes::NOT_A_TIME, span, format!("this is no time: {why}"))
            .help("write a number with one of the units ns, us, ms and s, such as `\"10ms\"`");
    }

    pub(crate) fn not_a_level(&mut self, span: Span) {
        self.error(codes::NOT_A_LEVEL, span, "this is no level")
            .help("the levels are very_low, low, medium, high and very_high");
    }

    pub(crate) fn not_a_probability(&mut self, span: Span) {
        self.error(codes::NOT_A_PROBABILITY, span, "this is no probability").help(
            "write a number between 0 and 1, such as 0.99; leave it out if every call must meet its deadline",
        );
    }

    pub(crate) fn wcet_beyond_deadline(&mut self, span: Span, deadline: Span) {
        self.error(codes::WCET_BEYOND_DEADLINE, span, "`wcet` is longer than `deadline`")
            .also(deadline, "the deadline is here")
            .help("no call that takes its whole `wcet` could be in time: give a longer `deadline`, or a shorter `wcet`");
    }

    pub(crate) fn probability_without_deadline(&mut self, span: Span) {
        self.error(codes::PROBABILITY_WITHOUT_DEADLINE, span, "`probability` is given without `deadline`")
            .help("say with `deadline` within which time that share of the calls must end");
    }
}
