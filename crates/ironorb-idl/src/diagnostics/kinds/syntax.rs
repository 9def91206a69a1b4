//! IDL03xx: the grammar.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn expected(&mut self, span: Span, what: &str, found: &str, previous: Span) {
        let draft = self.error(codes::EXPECTED, span, format!("expected {what}, found {found}"));
        if previous.end <= span.start {
            draft.help(format!("put {what} here or mend what stands before"));
        } else {
            draft.help("mend what stands here");
        }
    }

    pub(crate) fn missing_semicolon(&mut self, span: Span, previous: &str, found: &str) {
        self.error(codes::MISSING_SEMICOLON, span, format!("a `;` is missing, found {found}"))
            .label("`;` belongs here")
            .help(match previous {
                "}" => "definitions end with `};`, not with `}` alone".to_owned(),
                _ => format!("end the statement with `;` behind `{previous}`"),
            });
    }

    pub(crate) fn missing_close_brace(&mut self, span: Span, found: &str, open: Span, what: &str) {
        self.error(
            codes::MISSING_CLOSE_BRACE,
            span,
            format!("the `}}` that ends this {what} is missing, found {found}"),
        )
        .also(open, format!("the {what} begins here"))
        .help("close it with `};`");
    }

    pub(crate) fn extra_close_brace(&mut self, span: Span) {
        self.error(codes::EXTRA_CLOSE_BRACE, span, "this `}` closes nothing")
            .help("take it out, or add the `{` that it belongs to");
    }

    pub(crate) fn expected_definition(&mut self, span: Span, found: &str, near: Option<&str>) {
        let draft =
            self.error(codes::EXPECTED_DEFINITION, span, format!("expected a definition, found {found}"));
        match near {
            Some(near) => draft.help(format!("do you mean `{near}`?")),
            None => draft.help(
                "a definition starts with module, interface, struct, union, enum, exception, typedef, const, valuetype or native",
            ),
        };
    }

    pub(crate) fn outside_interface(&mut self, span: Span, what: &str) {
        let what = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
        self.error(
            codes::OUTSIDE_INTERFACE,
            span,
            format!("{what} stands only in an interface or valuetype"),
        )
        .help("put it between the braces of an `interface`");
    }

    pub(crate) fn outside_value(&mut self, span: Span, what: &str) {
        self.error(codes::OUTSIDE_VALUE, span, format!("`{what}` stands only in a valuetype"))
            .help("take it out, or make this a `valuetype`");
    }

    pub(crate) fn not_in_interface(&mut self, span: Span, what: &str) {
        self.error(
            codes::NOT_IN_INTERFACE,
            span,
            format!("{what} cannot be defined inside an interface or valuetype"),
        )
        .help("move it out to the module around");
    }

    pub(crate) fn components_unsupported(&mut self, span: Span, what: &str) {
        self.error(
            codes::COMPONENTS_UNSUPPORTED,
            span,
            format!("`{what}` belongs to the component model, which is not supported"),
        )
        .help("use interfaces and valuetypes; keep components in a file of their own");
    }

    pub(crate) fn nested_too_deeply(&mut self, span: Span, limit: usize) {
        self.error(
            codes::NESTED_TOO_DEEPLY,
            span,
            format!("this is nested more than {limit} deep; the rest is not read"),
        )
        .help("give inner parts names of their own, or raise the limit in the options");
    }

    pub(crate) fn keyword_in_wrong_case(&mut self, span: Span, text: &str, keyword: &str) {
        self.error(
            codes::KEYWORD_IN_WRONG_CASE,
            span,
            format!("`{text}` differs from the keyword `{keyword}` only in case"),
        )
        .help(format!(
            "write `{keyword}` for the keyword; a name must differ otherwise, or be escaped as `_{text}`"
        ));
    }

    pub(crate) fn name_like_later_keyword(&mut self, span: Span, text: &str, keyword: &str) {
        self.warning(codes::NAME_LIKE_LATER_KEYWORD, span, format!("`{text}` differs from the keyword `{keyword}` only in case"))
            .help(format!("CORBA reserves the word since 2.3 and other compilers may refuse the name; escape it as `_{text}`"));
    }

    pub(crate) fn keyword_as_name(&mut self, span: Span, keyword: &str, what: &str) {
        self.error(codes::KEYWORD_AS_NAME, span, format!("expected {what}, found the keyword `{keyword}`"))
            .help(format!("choose another name, or escape it: `_{keyword}` is the name `{keyword}`"));
    }

    pub(crate) fn anonymous_type(&mut self, span: Span, kind: &str, what: &str) {
        self.error(
            codes::ANONYMOUS_TYPE,
            span,
            format!("{what} cannot have a `{kind}` type written in place"),
        )
        .help(format!("define the {kind} before and use its name"));
    }

    pub(crate) fn exception_inheritance(&mut self, span: Span) {
        self.error(codes::EXCEPTION_INHERITANCE, span, "an exception cannot inherit")
            .help("repeat the members, or hold what they share as a struct");
    }

    pub(crate) fn not_a_member(&mut self, span: Span, keyword: &str) {
        self.error(
            codes::NOT_A_MEMBER,
            span,
            format!("`{keyword}` cannot stand inside a struct, union or exception"),
        )
        .help("move it to before the definition");
    }

    pub(crate) fn empty_enum(&mut self, span: Span) {
        self.error(codes::EMPTY_ENUM, span, "an enum needs at least one enumerator")
            .help("write, say, `enum Color { red }`");
    }

    pub(crate) fn trailing_comma(&mut self, span: Span) {
        self.warning(codes::TRAILING_COMMA, span, "a comma behind the last enumerator is not IDL")
            .help("take it out; other compilers refuse it");
    }

    pub(crate) fn enumerator_value(&mut self, span: Span) {
        self.error(codes::ENUMERATOR_VALUE, span, "enumerators cannot be given numbers")
            .help("they count from 0 in the order written; use constants where numbers matter");
    }

    pub(crate) fn missing_result_type(&mut self, span: Span, name: &str) {
        self.error(codes::MISSING_RESULT_TYPE, span, format!("the operation `{name}` has no result type"))
            .help(format!("write `void {name}(...)`"));
    }

    pub(crate) fn operation_without_parameters(&mut self, span: Span, name: &str, in_value: bool) {
        let help = if in_value {
            format!(
                "write `{name}()` for an operation, `attribute` before an attribute, `public` or `private` before state"
            )
        } else {
            format!("write `{name}()` for an operation, or `attribute` before the type for an attribute")
        };
        self.error(
            codes::OPERATION_WITHOUT_PARAMETERS,
            span,
            format!("`{name}` is neither an operation nor an attribute"),
        )
        .help(help);
    }

    pub(crate) fn void_parameter_list(&mut self, span: Span) {
        self.error(codes::VOID_PARAMETER_LIST, span, "`void` is no parameter")
            .help("an operation without parameters has empty parentheses: `()`");
    }

    pub(crate) fn missing_direction(&mut self, span: Span) {
        self.error(codes::MISSING_DIRECTION, span, "a parameter needs a direction")
            .help("write `in`, `out` or `inout` before its type");
    }

    pub(crate) fn array_not_here(&mut self, span: Span, what: &str) {
        self.error(codes::ARRAY_NOT_HERE, span, format!("{what} cannot be an array written in place"))
            .help("name the array first: `typedef long Name[3];`, then use `Name`");
    }

    pub(crate) fn empty_raises(&mut self, span: Span, keyword: &str) {
        self.error(codes::EMPTY_RAISES, span, format!("`{keyword}` names no exception"))
            .help(format!("name one, or take `{keyword} ()` out"));
    }

    pub(crate) fn readonly_with_setraises(&mut self, span: Span) {
        self.error(
            codes::READONLY_WITH_SETRAISES,
            span,
            "a readonly attribute has `raises`, not `getraises` or `setraises`",
        )
        .help("write `raises (...)`");
    }

    pub(crate) fn attribute_with_raises(&mut self, span: Span) {
        self.error(
            codes::ATTRIBUTE_WITH_RAISES,
            span,
            "an attribute that can be written has `getraises` and `setraises`, not `raises`",
        )
        .help("write `getraises (...) setraises (...)`, or make the attribute readonly");
    }

    pub(crate) fn raises_on_several_attributes(&mut self, span: Span) {
        self.error(
            codes::RAISES_ON_SEVERAL_ATTRIBUTES,
            span,
            "attributes that raise exceptions are declared one by one",
        )
        .help("give each attribute a declaration of its own");
    }

    pub(crate) fn modified_box(&mut self, span: Span) {
        self.error(codes::MODIFIED_BOX, span, "a boxed valuetype can be neither `abstract` nor `custom`")
            .help("take the word out, or give the valuetype a body in braces");
    }

    pub(crate) fn no_bitfield(&mut self, span: Span, found: &str) {
        self.error(codes::NO_BITFIELD, span, format!("expected a `bitfield`, found {found}"))
            .help("a bitset holds fields such as `bitfield<3> level;`, and `bitfield<2>;` for padding");
    }

    pub(crate) fn templates_unsupported(&mut self, span: Span) {
        self.error(codes::TEMPLATES_UNSUPPORTED, span, "template modules are not supported")
            .help("write the module out for each set of its parameters");
    }

    pub(crate) fn prefix_without_semicolon(&mut self, span: Span) {
        self.warning(codes::PREFIX_WITHOUT_SEMICOLON, span, "the `;` behind `typeprefix` is missing")
            .label("`;` belongs here")
            .help("add it; other compilers refuse the line without it");
    }

    pub(crate) fn import_of_string(&mut self, span: Span) {
        self.error(codes::IMPORT_OF_STRING, span, "`import` of a repository id in quotes is not supported")
            .help("include the file that defines it: `#include \"file.idl\"`");
    }
}
