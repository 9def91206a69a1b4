//! IDL07xx: interfaces, operations and attributes.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn own_base(&mut self, span: Span, name: &str) {
        self.error(codes::OWN_BASE, span, format!("`{name}` cannot inherit from itself"))
            .help("take it out of its own bases");
    }

    pub(crate) fn duplicate_base(&mut self, span: Span, name: &str, first: Span) {
        self.error(codes::DUPLICATE_BASE, span, format!("`{name}` is inherited twice"))
            .also(first, "first named here")
            .help("name each base once");
    }

    pub(crate) fn not_an_interface(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        self.error(codes::NOT_AN_INTERFACE, span, format!("`{name}` is {kind}, not an interface"))
            .also(defined, "defined here")
            .help("name an interface");
    }

    pub(crate) fn base_not_defined(&mut self, span: Span, name: &str, declared: Span) {
        self.error(
            codes::BASE_NOT_DEFINED,
            span,
            format!("`{name}` is declared but not yet defined, so nothing can inherit from it"),
        )
        .also(declared, "declared here")
        .help("move its definition to before this one");
    }

    pub(crate) fn base_is_local(&mut self, span: Span, name: &str, defined: Span, what: &str) {
        self.error(
            codes::BASE_IS_LOCAL,
            span,
            format!("{what} cannot inherit from the local interface `{name}`"),
        )
        .also(defined, "it is local")
        .help("make this interface local as well, or the base not");
    }

    pub(crate) fn base_is_not_abstract(&mut self, span: Span, name: &str, defined: Span, what: &str) {
        self.error(
            codes::BASE_IS_NOT_ABSTRACT,
            span,
            format!("an abstract {what} inherits only from abstract ones, `{name}` is not"),
        )
        .also(defined, "defined here")
        .help("make the base abstract, or take `abstract` away here");
    }

    pub(crate) fn interface_kind_differs(
        &mut self,
        span: Span,
        name: &str,
        was: &str,
        is: &str,
        first: Span,
    ) {
        self.error(
            codes::INTERFACE_KIND_DIFFERS,
            span,
            format!("`{name}` was declared as {was} and is now {is}"),
        )
        .also(first, "declared here")
        .help("make both declarations the same");
    }

    pub(crate) fn too_many_bases(&mut self, span: Span, count: usize, limit: usize) {
        self.error(
            codes::TOO_MANY_BASES,
            span,
            format!("this has {count} direct and indirect bases, more than {limit}"),
        )
        .help("flatten the inheritance, or raise the limit in the options");
    }

    pub(crate) fn inheritance_too_costly(&mut self, span: Span, count: usize) {
        self.error(
            codes::INHERITANCE_TOO_COSTLY,
            span,
            "the interfaces and valuetypes here inherit too much in all",
        )
        .label(format!("this one has {count} bases, the most"))
        .help("let fewer of them derive from those with many bases or many operations");
    }

    pub(crate) fn inherited_clash(&mut self, span: Span, name: &str, one: (&str, Span), other: (&str, Span)) {
        self.error(
            codes::INHERITED_CLASH,
            span,
            format!("`{name}` inherits both `{}` and `{}`", one.0, other.0),
        )
        .also(one.1, format!("`{}` is declared here", one.0))
        .also(other.1, format!("`{}` is declared here", other.0))
        .help("operations and attributes are not overloaded: rename one, or do not inherit both");
    }

    pub(crate) fn redefines_inherited(
        &mut self,
        span: Span,
        name: &str,
        kind: &str,
        full: &str,
        first: Span,
    ) {
        self.error(codes::REDEFINES_INHERITED, span, format!("`{name}` redefines the inherited `{full}`"))
            .also(first, format!("it is {kind} of a base"))
            .help(
                "operations and attributes are inherited as they are: choose another name, or leave it out",
            );
    }

    pub(crate) fn oneway_with_result(&mut self, span: Span, name: &str, oneway: Span) {
        self.error(
            codes::ONEWAY_WITH_RESULT,
            span,
            format!("the oneway operation `{name}` cannot have a result"),
        )
        .also(oneway, "there is no reply to a oneway call")
        .help("make the result `void`, or take `oneway` away");
    }

    pub(crate) fn oneway_with_out(&mut self, span: Span, name: &str, parameter: &str, oneway: Span) {
        self.error(
            codes::ONEWAY_WITH_OUT,
            span,
            format!("the oneway operation `{name}` cannot give back `{parameter}`"),
        )
        .also(oneway, "there is no reply to a oneway call")
        .help("make the parameter `in`, or take `oneway` away");
    }

    pub(crate) fn oneway_with_raises(&mut self, span: Span, name: &str, oneway: Span) {
        self.error(
            codes::ONEWAY_WITH_RAISES,
            span,
            format!("the oneway operation `{name}` cannot raise exceptions"),
        )
        .also(oneway, "there is no reply to a oneway call")
        .help("take `raises (...)` out, or take `oneway` away");
    }

    pub(crate) fn not_an_exception(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        self.error(codes::NOT_AN_EXCEPTION, span, format!("`{name}` is {kind}, not an exception"))
            .also(defined, "defined here")
            .help("only exceptions are raised: define it with `exception`");
    }

    pub(crate) fn raised_twice(&mut self, span: Span, name: &str) {
        self.warning(codes::RAISED_TWICE, span, format!("`{name}` is named twice")).help("take one out");
    }

    pub(crate) fn bad_context_name(&mut self, span: Span, text: &str) {
        self.error(codes::BAD_CONTEXT_NAME, span, format!("\"{text}\" is no name of a context property"))
            .help("start with a letter, go on with letters, digits, `.` and `_`, and end with `*` for all that begin so");
    }

    pub(crate) fn native_in_remote(&mut self, span: Span, name: &str, interface: &str) {
        self.warning(
            codes::NATIVE_IN_REMOTE,
            span,
            format!("the native type `{name}` cannot be passed to another process"),
        )
        .help(format!("make `{interface}` a local interface, or use a type of IDL"));
    }

    pub(crate) fn local_in_remote(&mut self, span: Span, interface: &str) {
        self.error(codes::LOCAL_IN_REMOTE, span, "a local interface cannot be passed to another process")
            .label("local, or holds something local")
            .help(format!("make `{interface}` a local interface, or use another type"));
    }
}
