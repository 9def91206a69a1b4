//! IDL04xx: names and what they mean.

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn unknown_parameter(&mut self, span: Span, name: &str, annotation: &str, declared: Span) {
        self.error(codes::UNKNOWN_PARAMETER, span, format!("`@{annotation}` has no parameter for `{name}`"))
            .also(declared, "declared here")
            .help("take it out, or use a parameter of the declaration");
    }

    pub(crate) fn too_many_parameters(&mut self, span: Span, limit: usize) {
        self.error(codes::TOO_MANY_PARAMETERS, span, format!("an annotation has at most {limit} parameters"))
            .help("divide it into several");
    }

    pub(crate) fn too_much_text(&mut self, span: Span, limit: usize) {
        self.error(
            codes::TOO_MUCH_TEXT,
            span,
            format!("the names and constants up to here come to more than {limit} bytes"),
        )
        .help("shorten names, constants and annotations, or divide the file");
    }

    pub(crate) fn missing_parameter(&mut self, span: Span, name: &str, annotation: &str, declared: Span) {
        self.error(codes::MISSING_PARAMETER, span, format!("`@{annotation}` needs a value for `{name}`"))
            .also(declared, "declared here, without a default")
            .help(format!("write `{name} = ...` in the parentheses"));
    }

    pub(crate) fn unknown_name(&mut self, span: Span, name: &str, help: Option<String>) {
        let help =
            help.unwrap_or_else(|| "define it before its first use, or include the file that does".into());
        self.error(codes::UNKNOWN_NAME, span, format!("nothing named `{name}` is known here")).help(help);
    }

    pub(crate) fn unknown_name_in(&mut self, span: Span, name: &str, within: &str, help: Option<String>) {
        let help =
            help.unwrap_or_else(|| format!("see the definition of `{within}` for the names that it has"));
        self.error(codes::UNKNOWN_NAME_IN, span, format!("`{within}` has nothing named `{name}`")).help(help);
    }

    pub(crate) fn wrong_case(&mut self, span: Span, used: &str, declared: &str, first: Span) {
        self.error(codes::WRONG_CASE, span, format!("`{used}` is declared as `{declared}`"))
            .also(first, "declared here")
            .help(format!(
                "write `{declared}`: names must be spelled as declared, and cannot differ only in case"
            ));
    }

    /// `builtin`: the first definition stands in a built-in file.
    pub(crate) fn redefinition(&mut self, span: Span, name: &str, kind: &str, first: Span, builtin: bool) {
        let help = match builtin {
            true => {
                "the first is built in: define it in the same way, or add the directory of your own `orb.idl` \
                 to the include directories, which is read in place of the built-in one"
            }
            false if span == first => {
                "the file is included twice: begin it with `#pragma once`, or guard it with `#ifndef NAME`, \
                 `#define NAME` and `#endif`"
            }
            false => "give one of the two another name",
        };
        self.error(codes::REDEFINITION, span, format!("`{name}` is defined twice in this scope"))
            .also(first, format!("first defined here, as {kind}"))
            .help(help);
    }

    pub(crate) fn differs_only_in_case(&mut self, span: Span, name: &str, old: &str, first: Span) {
        self.error(codes::DIFFERS_ONLY_IN_CASE, span, format!("`{name}` differs from `{old}` only in case"))
            .also(first, format!("`{old}` is defined here"))
            .help("names of one scope must differ in more than case");
    }

    pub(crate) fn same_name_as_scope(&mut self, span: Span, name: &str, kind: &str, scope: Span) {
        self.error(codes::SAME_NAME_AS_SCOPE, span, format!("`{name}` is the name of the {kind} itself"))
            .also(scope, format!("the {kind}"))
            .help(format!("nothing directly inside can have the name of the {kind}; choose another"));
    }

    pub(crate) fn member_like_scope(&mut self, span: Span, name: &str, outer: &str, kind: &str, scope: Span) {
        self.warning(
            codes::MEMBER_LIKE_SCOPE,
            span,
            format!("the member `{name}` differs from its {kind} `{outer}` only in case"),
        )
        .also(scope, format!("the {kind}"))
        .help("the standard forbids it since CORBA 2.3, and other compilers refuse it: rename the member");
    }

    pub(crate) fn clashes_with_use(&mut self, span: Span, name: &str, full: &str, used: Span, defined: Span) {
        self.error(codes::CLASHES_WITH_USE, span, format!("`{name}` already means `{full}` in this scope"))
            .also(used, "used here with that meaning")
            .also(defined, format!("`{full}` is defined here"))
            .help(format!("choose another name, or write `::{full}` where it is used"));
    }

    /// `kind`: "parameter", "member", "operation" or "attribute".
    pub(crate) fn named_like_type(&mut self, span: Span, kind: &str, name: &str, full: &str, used: Span) {
        self.warning(
            codes::NAMED_LIKE_TYPE,
            span,
            format!("the {kind} `{name}` is named like `{full}`, which its scope uses"),
        )
        .also(used, "used here")
        .help(format!("other compilers refuse this: rename the {kind}, or write `::{full}` here"));
    }

    pub(crate) fn ambiguous_name(&mut self, span: Span, name: &str, places: &[(Span, String)]) {
        let mut draft = self.error(codes::AMBIGUOUS_NAME, span, format!("`{name}` is ambiguous"));
        for (place, shown) in places {
            draft = draft.also(*place, format!("this may be meant: `{shown}`"));
        }
        let first = places.first().map_or("", |(_, shown)| shown);
        draft.help(format!("say which one, such as `{first}`"));
    }

    pub(crate) fn enumerator_in_enum(
        &mut self,
        span: Span,
        name: &str,
        of: &str,
        known: bool,
        defined: Span,
    ) {
        let draft = self
            .error(codes::ENUMERATOR_IN_ENUM, span, format!("`{of}` is an enum and no scope for `{name}`"))
            .also(defined, "the enum");
        if known {
            let outer = of.rsplit_once("::").map_or(String::new(), |(outer, _)| format!("{outer}::"));
            draft.help(format!("enumerators belong to the scope around their enum: write `{outer}{name}`"));
        } else {
            draft.help("enumerators belong to the scope around their enum");
        }
    }

    pub(crate) fn not_yet_defined(&mut self, span: Span, name: &str, declared: Span) {
        self.error(codes::NOT_YET_DEFINED, span, format!("`{name}` is declared but not yet defined here"))
            .also(declared, "declared here")
            .help("move its definition to before this use");
    }

    pub(crate) fn holds_no_names(&mut self, span: Span, name: &str, kind: &str, defined: Span) {
        self.error(codes::HOLDS_NO_NAMES, span, format!("`{name}` is {kind}, which has no names inside"))
            .also(defined, "defined here")
            .help("take this part of the name away");
    }

    pub(crate) fn never_completed(&mut self, span: Span, kind: &str, name: &str, used: bool) {
        if used {
            self.error(
                codes::NEVER_COMPLETED,
                span,
                format!("the {kind} `{name}` is declared and used but never defined"),
            )
            .help(format!("define it: `{kind} {name} {{ ... }};`"));
        } else {
            self.warning(
                codes::NEVER_COMPLETED,
                span,
                format!("the {kind} `{name}` is declared but never defined"),
            )
            .help("define it, or take the declaration out");
        }
    }

    pub(crate) fn never_defined(&mut self, span: Span, kind: &str, name: &str) {
        self.warning(
            codes::NEVER_DEFINED,
            span,
            format!("the {kind} `{name}` is declared but never defined"),
        )
        .help("define it, or include the file that does");
    }
}
