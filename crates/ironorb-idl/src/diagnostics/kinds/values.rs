//! IDL08xx: valuetypes.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn not_a_value(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        let help = match kind {
            "an interface" => "a valuetype supports interfaces: write `supports` instead of `:`",
            "a boxed valuetype" => "nothing inherits from a box; define a valuetype with members",
            _ => "name a valuetype",
        };
        self.error(codes::NOT_A_VALUE, span, format!("`{name}` is {kind}, not a valuetype to inherit from"))
            .also(defined, "defined here")
            .help(help);
    }

    pub(crate) fn value_kind_differs(&mut self, span: Span, name: &str, first: Span) {
        self.error(codes::VALUE_KIND_DIFFERS, span, format!("only one declaration of `{name}` is abstract"))
            .also(first, "declared here")
            .help("make both declarations the same");
    }

    pub(crate) fn custom_forward(&mut self, span: Span) {
        self.error(codes::CUSTOM_FORWARD, span, "a forward declaration cannot be `custom`")
            .help("write `custom` at the definition only");
    }

    pub(crate) fn abstract_custom(&mut self, span: Span) {
        self.error(codes::ABSTRACT_CUSTOM, span, "a valuetype cannot be both abstract and custom")
            .help("an abstract valuetype has no state to marshal");
    }

    pub(crate) fn concrete_base_not_first(&mut self, span: Span, name: &str, defined: Span) {
        self.error(
            codes::CONCRETE_BASE_NOT_FIRST,
            span,
            format!("`{name}` has state, so it must be the first and only such base"),
        )
        .also(defined, "defined here")
        .help("name it first; all further bases must be abstract");
    }

    pub(crate) fn second_concrete_interface(&mut self, span: Span, name: &str, first: Span) {
        self.error(
            codes::SECOND_CONCRETE_INTERFACE,
            span,
            format!("`{name}` is the second interface supported that is not abstract"),
        )
        .also(first, "the first is here")
        .help("a valuetype supports at most one interface that is not abstract");
    }

    pub(crate) fn custom_truncatable(&mut self, span: Span) {
        self.error(codes::CUSTOM_TRUNCATABLE, span, "a custom valuetype cannot be truncatable")
            .help("take `truncatable` or `custom` away");
    }

    pub(crate) fn truncatable_to_abstract(&mut self, span: Span, base: &str) {
        self.error(
            codes::TRUNCATABLE_TO_ABSTRACT,
            span,
            format!("`truncatable` needs a base with state, `{base}` is abstract"),
        )
        .help("take `truncatable` away");
    }

    pub(crate) fn abstract_with_state(&mut self, span: Span) {
        self.error(codes::ABSTRACT_WITH_STATE, span, "an abstract valuetype has no state")
            .help("take the member out, or `abstract` away");
    }

    pub(crate) fn abstract_with_factory(&mut self, span: Span) {
        self.error(codes::ABSTRACT_WITH_FACTORY, span, "an abstract valuetype has no factories")
            .help("take the factory out, or `abstract` away");
    }

    pub(crate) fn factory_parameter_not_in(&mut self, span: Span) {
        self.error(codes::FACTORY_PARAMETER_NOT_IN, span, "a factory has only `in` parameters")
            .help("write `in`");
    }

    pub(crate) fn box_of_value(&mut self, span: Span) {
        self.error(codes::BOX_OF_VALUE, span, "a valuetype cannot be boxed again")
            .help("use the valuetype itself");
    }
}
