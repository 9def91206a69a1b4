//! Interfaces and the errors of their operations.

use super::Printer;
use super::items::quoted;
use crate::hash::PerfectHash;
use crate::tree::{Interface, Method, OperationError, Remote, Text};

impl Printer {
    pub(super) fn interface(&mut self, interface: &Interface<'_>, support: &str) {
        self.trait_with_methods(&interface.name, &interface.supertraits, &interface.methods);
        if let Some(remote) = &interface.remote {
            self.blank();
            self.remote(interface, remote, support);
        } else {
            let type_code = &interface.type_code;
            let idl = type_code.idl.as_ref().map_or_else(String::new, |idl| format!(" {idl:?}"));
            self.blank();
            let head = ["dyn ", &interface.name, &idl, ": ", &type_code.name, " ="].concat();
            let whole = format!("{support}::local_interface! {{ {head} {:?} }}", type_code.repository_id);
            if self.fits(&whole) {
                self.line(&whole);
            } else {
                self.put(&[support, "::local_interface! {"]);
                self.indented(|out| out.filled(&head, &[""; 0], &quoted(&type_code.repository_id)));
                self.line("}");
            }
        }
    }

    pub(super) fn trait_with_methods(
        &mut self,
        name: &str,
        supertraits: &[Text<'_>],
        methods: &[Method<'_>],
    ) {
        self.trait_head(name, supertraits, methods);
        if !methods.is_empty() {
            self.methods(methods);
            self.line("}");
        }
    }

    pub(super) fn methods(&mut self, methods: &[Method<'_>]) {
        self.indented(|out| {
            for (at, method) in methods.iter().enumerate() {
                if at > 0 {
                    out.blank();
                }
                out.docs(&method.docs);
                out.signature(method);
            }
        });
    }

    /// Up to and with the opening brace; all of it when there are no methods.
    fn trait_head(&mut self, name: &str, supertraits: &[Text<'_>], methods: &[Method<'_>]) {
        let bounds = match supertraits {
            [] => vec!["Send", "Sync", "'static"],
            bases => bases.iter().map(|base| &**base).collect(),
        };
        let brace = if methods.is_empty() { "{}" } else { "{" };
        let head = ["pub trait ", name, ":"].concat();
        let whole = [&*head, " ", &bounds.join(" + "), " ", brace].concat();
        // rustfmt keeps eight columns free behind the bounds.
        let open = [&head, " ", &bounds.join(" + "), " {"].concat();
        if self.fits_with(&open, 8) {
            self.line(&whole);
            return;
        }
        self.line(&head);
        self.indented(|out| {
            let joined = bounds.join(" + ");
            if out.fits(&joined) {
                out.line(&joined);
            } else {
                out.line(bounds[0]);
                bounds[1..].iter().for_each(|bound| out.put(&["+ ", bound]));
            }
        });
        if methods.is_empty() {
            self.line("{");
            self.line("}");
        } else {
            self.line("{");
        }
    }

    fn signature(&mut self, method: &Method<'_>) {
        let parameters: Vec<String> = std::iter::once("&self".to_owned())
            .chain(method.parameters.iter().map(|p| [&*p.name, ": ", &p.ty].concat()))
            .collect();
        let is_wide = method.results.len() > 1 && method.results.join(", ").len() > TUPLE_WIDTH;
        let result = ["-> Result<", &tuple(&method.results), ", ", &method.error, ">"].concat();
        let head = ["fn ", &method.name, "(", &parameters.join(", "), ")"].concat();
        let whole = [&head, " ", &result, ";"].concat();
        if !is_wide && self.fits(&whole) {
            if self.fits_with(&whole, 1) {
                self.line(&whole);
            } else {
                // rustfmt asks for one column more than it uses.
                self.line(&head);
                self.put(&[&result, ";"]);
            }
            return;
        }
        self.put(&["fn ", &method.name, "("]);
        self.indented(|out| parameters.iter().for_each(|p| out.put(&[p, ","])));
        // rustfmt measures the result as if it stood alone.
        if !is_wide && self.fits(&result) {
            self.put(&[") ", &result, ";"]);
            return;
        }
        self.line(") -> Result<");
        self.indented(|out| {
            let results = [&*tuple(&method.results), ","].concat();
            if !is_wide && out.fits(&results) {
                out.line(&results);
            } else {
                out.line("(");
                out.indented(|out| method.results.iter().for_each(|ty| out.put(&[ty, ","])));
                out.line("),");
            }
            out.put(&[&method.error, ","]);
        });
        self.line(">;");
    }

    fn remote(&mut self, interface: &Interface<'_>, remote: &Remote<'_>, support: &str) {
        self.put(&[support, "::interface! {"]);
        self.indented(|out| {
            out.docs(&remote.docs);
            let type_code = &interface.type_code;
            let idl = type_code.idl.as_ref().map_or_else(String::new, |idl| format!(" {idl:?}"));
            let kind = if remote.is_abstract { "abstract " } else { "" };
            let first = ["pub ", &remote.reference, ": dyn ", &interface.name, &idl, ","].concat();
            let names = [&remote.skeleton, &remote.asynchronous, &remote.deferred].map(|name| &**name);
            let traits = [&*names.join(", "), ","].concat();
            let id = format!("{kind}{:?}", type_code.repository_id);
            let type_code = [&*type_code.name, " ="].concat();
            if !out.put_if_fits(&[&first, " ", &traits]) {
                out.filled_below(&first, &names, "");
                out.text.pop(); // nothing closes them
            }
            out.indented(|out| out.assignment(&type_code, &id));
            let bases: Vec<String> =
                remote.bases.iter().map(|(reference, base)| [reference, ": dyn ", base].concat()).collect();
            out.filled("bases [", &bases, "];");
            let operations: Vec<String> = remote
                .operations
                .iter()
                .enumerate()
                .map(|(at, (name, function))| [&at.to_string(), " \"", name, "\" => ", function].concat())
                .collect();
            let PerfectHash { slots, seed, moves } = &remote.table;
            if moves.is_empty() {
                out.filled(&format!("operations({slots}, {seed}) ["), &operations, "];");
            } else {
                let moves: Vec<String> = moves.iter().map(u16::to_string).collect();
                out.filled(&format!("operations({slots}, {seed}, ["), &moves, "]) [");
                out.filled("", &operations, "];");
            }
            interface.methods.iter().for_each(|method| out.operation(method));
        });
        self.line("}");
    }

    fn operation(&mut self, method: &Method<'_>) {
        let kind = if method.oneway { "oneway" } else { "twoway" };
        let bounds = if method.bounded { ", bounds()" } else { "" };
        let context = method.context.as_ref().map_or_else(String::new, |patterns| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("{pattern:?}")).collect();
            [", context(", &patterns.join(", "), ")"].concat()
        });
        let parameters: Vec<String> =
            method.parameters.iter().map(|p| [&*p.name, ": ", &p.ty, " = ", &p.mode].concat()).collect();
        let later = if method.oneway { String::new() } else { [" / ", &method.later].concat() };
        let head = [kind, " ", &quoted(&method.wire_name), " fn ", &method.name, &later, "("].concat();
        let end = [", ", &method.error, bounds, &context, ";"].concat();
        let codecs = &method.result_codecs;
        let (open, close) = match codecs.len() {
            1 => (String::new(), String::new()),
            _ => ([&*method.joined_codec, "<("].concat(), ")>".to_owned()),
        };
        let result = ["-> ", &open, &codecs.join(", "), &close, &end].concat();
        if self.put_list_if_fits(&[&head], &parameters, &[") ", &result]) {
            return;
        }
        let tail = [") ", &result].concat();
        if self.fits(&tail) && !parameters.is_empty() {
            self.filled(&head, &parameters, &tail);
        } else {
            self.filled(&head, &parameters, ")");
            self.indented(|out| match codecs.len() {
                2.. => out.filled(&["-> ", &open].concat(), codecs, &format!("{close}{end}")),
                _ => out.line(&result),
            });
        }
    }

    pub(super) fn operation_errors(&mut self, errors: &[OperationError<'_>], support: &str) {
        self.put(&[support, "::operation_error! {"]);
        self.indented(|out| {
            for error in errors {
                out.docs(&error.docs);
                let variants: Vec<String> =
                    error.exceptions.iter().map(|(name, ty)| [name, "(", ty, ")"].concat()).collect();
                if !out.put_list_if_fits(&["pub enum ", &error.name, " { "], &variants, &[" }"]) {
                    out.filled(&["pub enum ", &error.name, " {"].concat(), &variants, "}");
                }
            }
        });
        self.line("}");
    }
}

/// No type, one type, or a tuple.
fn tuple<'t>(types: &'t [Text<'_>]) -> Text<'t> {
    match types {
        [one] => Text::Borrowed(one),
        types => ["(", &types.join(", "), ")"].concat().into(),
    }
}

/// rustfmt's default `fn_call_width`, which holds for tuples too.
const TUPLE_WIDTH: usize = 60;
