//! IDL01xx: files, the preprocessor, pragmas and limits.

use std::path::Path;

use crate::diagnostics::{Diagnostics, codes};
use crate::source::Span;

impl Diagnostics {
    pub(crate) fn cannot_read_main(&mut self, span: Span, path: &Path, why: &str) {
        self.error(codes::CANNOT_READ_MAIN, span, format!("cannot read `{}`: {why}", path.display()))
            .help("check the path and the permission to read it");
    }

    pub(crate) fn missing_include(&mut self, span: Span, name: &str, searched: &[String]) {
        self.set_lacks_include(true);
        let places = if searched.is_empty() {
            "no include directory was given".into()
        } else {
            format!("searched {}", searched.join(", "))
        };
        self.error(codes::MISSING_INCLUDE, span, format!("the included file `{name}` is not there"))
            .label(places)
            .help("add the directory that holds it to the include directories");
    }

    pub(crate) fn replaces_builtin(&mut self, span: Span, name: &str, path: &str) {
        self.note(
            codes::REPLACES_BUILTIN,
            span,
            format!("`{name}` is {path}, which is read in place of the built-in file"),
        );
    }

    pub(crate) fn unreadable_include(&mut self, span: Span, path: &Path, why: &str) {
        self.error(
            codes::UNREADABLE_INCLUDE,
            span,
            format!("cannot read the included file `{}`: {why}", path.display()),
        )
        .help("check that it is a text file that you may read");
    }

    pub(crate) fn include_too_deep(&mut self, span: Span, limit: usize) {
        self.error(codes::INCLUDE_TOO_DEEP, span, format!("files include each other more than {limit} deep"))
            .help("include fewer files in a row, or raise the limit in the options");
    }

    /// The files of the circle, the first one again at the end.
    pub(crate) fn include_circle(&mut self, span: Span, files: &[String]) {
        let shown = match files {
            [own, _] => format!("{own} includes itself"),
            [first @ .., _, _, _] if files.len() > CIRCLE_SHOWN_MAX => format!(
                "files include each other in a circle: {} -> ... -> {}",
                first[..CIRCLE_SHOWN_MAX / 2].join(" -> "),
                files[files.len() - 2..].join(" -> "),
            ),
            _ => format!("files include each other in a circle: {}", files.join(" -> ")),
        };
        self.error(codes::INCLUDE_CIRCLE, span, shown).help(
            "begin each of them with `#pragma once`, or guard it: #ifndef NAME, #define NAME ... #endif",
        );
    }

    pub(crate) fn too_many_includes(&mut self, span: Span, limit: usize) {
        self.error(codes::TOO_MANY_INCLUDES, span, format!("more than {limit} files are included"))
            .help("guard files against being included again: #ifndef NAME, #define NAME ... #endif");
    }

    pub(crate) fn too_many_tokens(&mut self, span: Span, limit: usize) {
        self.error(
            codes::TOO_MANY_TOKENS,
            span,
            format!("the text has more than {limit} tokens after its macros are expanded"),
        )
        .help("split the file, or raise the limit in the options");
    }

    pub(crate) fn macro_expands_too_far(&mut self, span: Span, limit: usize) {
        self.error(codes::MACRO_EXPANDS_TOO_FAR, span, format!("macros expand to more than {limit} tokens"))
            .help("does a macro double itself? raise the limit in the options if all is meant");
    }

    pub(crate) fn malformed_directive(&mut self, span: Span, what: &str, form: &str) {
        self.error(codes::MALFORMED_DIRECTIVE, span, what.to_owned()).help(format!("the form is {form}"));
    }

    pub(crate) fn unknown_directive(&mut self, span: Span, name: &str, near: Option<&str>) {
        let draft = self.error(codes::UNKNOWN_DIRECTIVE, span, format!("`#{name}` is no directive"));
        match near {
            Some(near) => draft.help(format!("do you mean `#{near}`?")),
            None => draft.help("the directives are #include, #define, #undef, #if, #ifdef, #ifndef, #elif, #else, #endif, #pragma, #error, #warning and #line"),
        };
    }

    pub(crate) fn extra_tokens(&mut self, span: Span, directive: &str) {
        self.warning(codes::EXTRA_TOKENS, span, format!("text behind `#{directive}` is ignored"))
            .help("make it a comment");
    }

    pub(crate) fn conditional_without_if(&mut self, span: Span, directive: &str) {
        self.error(codes::CONDITIONAL_WITHOUT_IF, span, format!("`#{directive}` without an `#if` before it"))
            .help("add the #if, #ifdef or #ifndef, or take this line out");
    }

    pub(crate) fn branch_after_else(&mut self, span: Span, directive: &str, first: Span) {
        self.error(codes::BRANCH_AFTER_ELSE, span, format!("`#{directive}` comes after `#else`"))
            .also(first, "the #else is here")
            .help("`#else` is the last branch of an `#if`");
    }

    pub(crate) fn unterminated_conditional(&mut self, span: Span) {
        self.error(codes::UNTERMINATED_CONDITIONAL, span, "this condition has no `#endif`")
            .label("it starts here")
            .help("add `#endif` before the end of the file");
    }

    pub(crate) fn macro_redefined(&mut self, span: Span, name: &str, first: Option<Span>) {
        let draft = self.warning(
            codes::MACRO_REDEFINED,
            span,
            format!("the macro `{name}` gets a different meaning"),
        );
        let draft = match first {
            Some(first) => draft.also(first, "it had one already"),
            None => draft,
        };
        draft.help(format!("write `#undef {name}` first if that is meant"));
    }

    pub(crate) fn unterminated_macro_call(&mut self, span: Span, name: &str) {
        self.error(
            codes::UNTERMINATED_MACRO_CALL,
            span,
            format!("the arguments of the macro `{name}` never end"),
        )
        .help("close them with `)`");
    }

    pub(crate) fn wrong_macro_arguments(
        &mut self,
        span: Span,
        name: &str,
        wants: usize,
        got: usize,
        defined: Option<Span>,
    ) {
        let draft = self.error(
            codes::WRONG_MACRO_ARGUMENTS,
            span,
            format!("the macro `{name}` takes {wants} argument(s), here are {got}"),
        );
        let draft = match defined {
            Some(defined) => draft.also(defined, "defined here"),
            None => draft,
        };
        draft.help("give as many arguments as the macro has parameters");
    }

    pub(crate) fn too_much_read(&mut self, span: Span, limit: u64) {
        self.error(
            codes::TOO_MUCH_READ,
            span,
            format!("the files read so far come to more than {limit} bytes"),
        )
        .help(
            "a file counts each time that it is included: give it include guards, or include it less often",
        );
    }

    pub(crate) fn bad_paste(&mut self, span: Span, text: &str) {
        self.error(codes::BAD_PASTE, span, format!("`##` makes `{text}`, which is no single token"))
            .help("join parts that make one name or number");
    }

    pub(crate) fn condition_syntax(&mut self, span: Span, what: &str) {
        self.error(codes::CONDITION_SYNTAX, span, format!("the condition cannot be evaluated: {what}"))
            .help("conditions are made of integers, names, defined(NAME), ( ) and the operators of C");
    }

    pub(crate) fn user_error(&mut self, span: Span, text: &str) {
        let text = if text.is_empty() { "#error" } else { text };
        self.error(codes::USER_ERROR, span, text.to_owned())
            .label("the text asks to stop here")
            .help("see the conditions around the `#error`: a macro may have to be defined, or not");
    }

    pub(crate) fn user_warning(&mut self, span: Span, text: &str) {
        let text = if text.is_empty() { "#warning" } else { text };
        self.warning(codes::USER_WARNING, span, text.to_owned());
    }

    pub(crate) fn pragma_case(&mut self, span: Span, found: &str, meant: &str) {
        self.warning(codes::PRAGMA_CASE, span, format!("`#pragma {found}` is unknown and has no effect"))
            .help(format!("do you mean `#pragma {meant}`?"));
    }

    pub(crate) fn invalid_prefix(&mut self, span: Span, prefix: &str, why: &str) {
        self.error(
            codes::INVALID_PREFIX,
            span,
            format!("`{prefix}` cannot be a prefix of repository ids: {why}"),
        )
        .help("a prefix is one or more identifiers with `/` between them, such as \"omg.org\"");
    }

    pub(crate) fn invalid_version(&mut self, span: Span, version: &str) {
        self.error(codes::INVALID_VERSION, span, format!("`{version}` is not a version"))
            .help("a version is two numbers with a point between them, such as 2.3");
    }

    pub(crate) fn invalid_repository_id(&mut self, span: Span, id: &str) {
        self.error(codes::INVALID_REPOSITORY_ID, span, format!("\"{id}\" is not a repository id")).help("a repository id is a format, a colon and a name, such as \"IDL:omg.org/CosNaming/NamingContext:1.0\"");
    }

    pub(crate) fn repository_id_set_twice(&mut self, span: Span, name: &str, has: &str, first: Option<Span>) {
        let draft = self.error(codes::REPOSITORY_ID_SET_TWICE, span, format!("`{name}` already has {has}"));
        let draft = match first {
            Some(first) => draft.also(first, "set here"),
            None => draft,
        };
        draft.help("keep one of the two");
    }

    pub(crate) fn prefix_before_module(&mut self, span: Span, name: &str) {
        self.warning(
            codes::PREFIX_BEFORE_MODULE,
            span,
            format!("`typeprefix` names the module `{name}` before it begins"),
        )
        .help("put it inside the module, or behind it; other compilers refuse it here");
    }

    pub(crate) fn prefix_differs(&mut self, span: Span, name: &str, first: Span, was: &str, is: &str) {
        self.error(
            codes::PREFIX_DIFFERS,
            span,
            format!("`{name}` is defined under the prefix \"{is}\" but was declared under \"{was}\""),
        )
        .also(first, "declared here")
        .help("give both declarations the same `#pragma prefix`");
    }
}

/// Of the files that include each other; of more, those at both ends.
const CIRCLE_SHOWN_MAX: usize = 8;
