//! Interfaces and the errors of their operations.

use std::fmt;
use std::ops::Range;

use ironorb_idl::model::Timing;

use super::items::quoted;
use super::{Printer, ROOT_ALLOW};
use crate::hash::PerfectHash;
use crate::tree::{
    Base, Cached, Interface, Method, OperationError, Parallel, ParallelMethod, Parameter, Reads, Remote, Text,
};

impl Printer {
    pub(super) fn interface(&mut self, interface: &Interface<'_>, support: &str) {
        if interface.has_defaults && !interface.methods.is_empty() {
            self.trait_with_defaults(interface, support);
        } else if let Some(cached) = &interface.cached {
            self.trait_head(&interface.name, &interface.supertraits, false);
            self.indented(|out| {
                out.cell(cached, support);
                if !interface.methods.is_empty() {
                    out.blank();
                }
            });
            self.methods(&interface.methods);
            self.line("}");
        } else {
            self.trait_with_methods(&interface.name, &interface.supertraits, &interface.methods);
        }
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
        self.trait_head(name, supertraits, methods.is_empty());
        if !methods.is_empty() {
            self.methods(methods);
            self.line("}");
        }
    }

    /// Prints a trait whose methods a servant may leave out.
    fn trait_with_defaults(&mut self, interface: &Interface<'_>, support: &str) {
        self.line("#[allow(unused_variables)]");
        self.trait_head(&interface.name, &interface.supertraits, false);
        self.indented(|out| {
            if let Some(cached) = &interface.cached {
                out.cell(cached, support);
            }
            for (at, method) in interface.methods.iter().enumerate() {
                if at > 0 || interface.cached.is_some() {
                    out.blank();
                }
                out.docs(&method.docs);
                let outcome = Outcome::of("Result", method);
                out.function(&method.name, &parameters(method), &[], Some(&outcome), " {");
                out.indented(|out| out.put(&["Err(", support, "::operation_left_out().into())"]));
                out.line("}");
            }
        });
        self.line("}");
    }

    /// Prints the method that gives the cell of the cached attributes.
    fn cell(&mut self, cached: &Cached<'_>, support: &str) {
        self.line("/// Where the cached attributes are: a servant returns `(&self.cell).into()`.");
        let result = ["-> ", support, "::CellRef<'_, ", &cached.state, ">;"].concat();
        if !self.put_if_fits(&["fn cell(&self) ", &result]) {
            self.line("fn cell(");
            self.indented(|out| out.line("&self,"));
            self.put(&[") ", &result]);
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

    /// Prints a trait up to the opening brace, or all of it when it has no methods.
    fn trait_head(&mut self, name: &str, supertraits: &[Text<'_>], is_empty: bool) {
        let bounds = match supertraits {
            [] => vec!["Send", "Sync", "'static"],
            bases => bases.iter().map(|base| &**base).collect(),
        };
        let brace = if is_empty { "{}" } else { "{" };
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
        if is_empty {
            self.line("{");
            self.line("}");
        } else {
            self.line("{");
        }
    }

    fn signature(&mut self, method: &Method<'_>) {
        self.function(&method.name, &parameters(method), &[], Some(&Outcome::of("Result", method)), ";");
    }

    /// Prints a trait's function up to `end`. `reply` is an additional parameter.
    fn function(
        &mut self,
        name: &str,
        parameters: &[String],
        reply: &[Outcome<'_>],
        outcome: Option<&Outcome<'_>>,
        end: &str,
    ) {
        let is_wide = reply.iter().chain(outcome).any(Outcome::is_wide);
        let all: Vec<String> =
            parameters.iter().cloned().chain(reply.iter().map(|reply| format!("reply: {reply}"))).collect();
        let result = outcome.map_or_else(String::new, |outcome| format!("-> {outcome}"));
        let head = ["fn ", name, "(", &all.join(", "), ")"].concat();
        let whole = [&*head, if outcome.is_some() { " " } else { "" }, &result, end].concat();
        if !is_wide && self.fits(&whole) {
            if outcome.is_none() || end != ";" || self.fits_with(&whole, 1) {
                self.line(&whole);
            } else {
                // rustfmt requires one column more than it uses.
                self.line(&head);
                self.put(&[&result, ";"]);
            }
            return;
        }
        self.put(&["fn ", name, "("]);
        self.indented(|out| {
            parameters.iter().for_each(|p| out.put(&[p, ","]));
            reply.iter().for_each(|reply| out.outcome("reply: ", reply, ","));
        });
        match outcome {
            // rustfmt measures the result type on its own.
            Some(_) if !is_wide && self.fits(&result) => self.put(&[") ", &result, end]),
            Some(outcome) => self.broken_outcome(") -> ", outcome, end),
            None => self.put(&[")", end]),
        }
    }

    fn outcome(&mut self, before: &str, outcome: &Outcome<'_>, after: &str) {
        if outcome.is_wide() || !self.put_if_fits(&[before, &outcome.to_string(), after]) {
            self.broken_outcome(before, outcome, after);
        }
    }

    fn broken_outcome(&mut self, before: &str, outcome: &Outcome<'_>, after: &str) {
        self.put(&[before, outcome.wrapper, "<"]);
        self.indented(|out| {
            let results = [&*tuple(outcome.results), ","].concat();
            if !outcome.is_wide() && out.fits(&results) {
                out.line(&results);
            } else {
                out.line("(");
                out.indented(|out| outcome.results.iter().for_each(|ty| out.put(&[ty, ","])));
                out.line("),");
            }
            out.put(&[outcome.error, ","]);
        });
        self.put(&[">", after]);
    }

    /// Prints the items besides the trait: the reference, and the traits of asynchronous calls and of
    /// servants that answer later. A macro makes their bodies.
    fn remote(&mut self, interface: &Interface<'_>, remote: &Remote<'_>, support: &str) {
        self.docs(&remote.docs);
        self.allowed();
        self.line("#[derive(Debug, Clone, PartialEq, Eq, Hash)]");
        let proxy = interface
            .cached
            .as_ref()
            .map_or_else(String::new, |cached| [", ", support, "::ProxyCell<", &cached.state, ">"].concat());
        let contents = [support, "::Reference<dyn ", &interface.name, &proxy, ">"].concat();
        if !self.put_if_fits(&["pub struct ", &remote.reference, "(", &contents, ");"]) {
            self.put(&["pub struct ", &remote.reference, "("]);
            self.indented(|out| {
                if !out.put_if_fits(&[&contents, ","]) {
                    out.put(&[support, "::Reference<"]);
                    out.indented(|out| {
                        out.put(&["dyn ", &interface.name, ","]);
                        if !proxy.is_empty() {
                            out.put(&[&proxy[2..], ","]);
                        }
                    });
                    out.line(">,");
                }
            });
            self.line(");");
        }
        self.blank();
        if let Some(cached) = &interface.cached {
            self.cached_state(cached, &interface.type_code.repository_id, support);
            self.blank();
        }
        self.asynchronous(interface, remote, support);
        self.blank();
        self.deferred(interface, remote, support);
        self.blank();
        self.bodies(interface, remote, support);
        if let Some(parallel) = &remote.parallel {
            self.blank();
            self.parallel(interface, remote, parallel, support);
        }
    }

    /// Prints the trait of the operations that parts of an object carry out together. A macro makes its bodies.
    fn parallel(
        &mut self,
        interface: &Interface<'_>,
        remote: &Remote<'_>,
        parallel: &Parallel<'_>,
        support: &str,
    ) {
        let name = &interface.name;
        self.put(&["/// The operations of [`", name, "`] that parts of an object carry out together."]);
        self.allowed();
        self.put(&["pub trait ", &parallel.name, " {"]);
        let pending = [support, "::ParallelPending"].concat();
        self.indented(|out| {
            for (at, ParallelMethod { method, .. }) in parallel.methods.iter().enumerate() {
                if at > 0 {
                    out.blank();
                }
                let of = ["`](", name, "::", &method.name, ")"].concat();
                out.put(&["/// Calls [`", &method.name, &of, " of all parts, each with its share."]);
                out.signature(method);
                out.blank();
                out.put(&["/// Begins the calls that `", &method.name, "` makes."]);
                let outcome = Outcome::of(&pending, method);
                out.function(&method.later, &parameters(method), &[], Some(&outcome), ";");
            }
        });
        self.line("}");
        self.blank();
        self.put(&[support, "::parallel! {"]);
        self.indented(|out| {
            let head = [&parallel.name, ": dyn ", name].concat();
            out.put(&[&head, ", ", &remote.asynchronous, ";"]);
            for ParallelMethod { method, ways, distribution, joins } in &parallel.methods {
                let with_way = |(way, p): (&&str, &Parameter<'_>)| [way, " ", &p.name, ": ", &p.ty].concat();
                let parameters: Vec<String> = ways.iter().zip(&method.parameters).map(with_way).collect();
                let is_shared = |way: &&str| way.starts_with("shared");
                let shared: Vec<&str> = ways
                    .iter()
                    .zip(&method.parameters)
                    .filter(|(way, _)| is_shared(way))
                    .map(|(_, p)| &*p.name)
                    .collect();
                let head = ["fn ", &method.name, " / ", &method.later, "("].concat();
                let value = ["-> ", &tuple(&method.results), ", ", &method.error].concat();
                let joined =
                    ["= ", distribution, " [", &shared.join(", "), "] ", &tuple(joins), ";"].concat();
                if !out.put_list_if_fits(&[&head], &parameters, &[")"]) {
                    out.filled(&head, &parameters, ")");
                }
                out.indented(|out| {
                    if !out.put_if_fits(&[&value, " ", &joined]) {
                        out.line(&value);
                        out.line(&joined);
                    }
                });
            }
        });
        self.line("}");
    }

    /// Prints the state of cached attributes. A macro makes the items.
    fn cached_state(&mut self, cached: &Cached<'_>, repository_id: &str, support: &str) {
        let count = cached.members.len().to_string();
        self.put(&[support, "::cached_state! {"]);
        self.indented(|out| {
            out.docs(&cached.docs);
            let mode = cached.mode.map_or_else(String::new, |(mode, missed)| format!("{mode} {missed} "));
            let of = [cached.storage, " ", &count, " ", &mode, &quoted(repository_id), " {"].concat();
            let state = [&*cached.state, ","].concat();
            if !out.put_if_fits(&[&state, " ", &cached.update, ": ", &of]) {
                out.line(&state);
                out.put(&[&cached.update, ": ", &of]);
            }
            out.indented(|out| {
                for (place, member) in cached.members.iter().enumerate() {
                    let method = &member.method;
                    out.docs(&method.docs);
                    let plain = method.name.trim_start_matches("r#").trim_end_matches('_');
                    let names = [&*method.name, " / set_", plain, " / ", plain, "_mut: "].concat();
                    let types =
                        [&*tuple(&method.results), " = ", &method.result_codecs.join(""), ";"].concat();
                    if !out.put_if_fits(&[&place.to_string(), " ", &names, &types]) {
                        out.put(&[&place.to_string(), " ", names.trim_end()]);
                        out.indented(|out| out.line(&types));
                    }
                }
            });
            out.line("}");
        });
        self.line("}");
    }

    /// Prints what the implementation of an interface must know of its cached attributes.
    fn cached_operations(&mut self, cached: &Cached<'_>, first: usize, support: &str) {
        let lags = cached.members.iter().map(|member| member.lag_nanos).filter(|lag| *lag > 0);
        let lag = lags.min().unwrap_or_default();
        let whole = [" / cached_state(", &lag.to_string(), ") {"].concat();
        let state = ["cached ", cached.storage, " ", &cached.state].concat();
        if !self.put_if_fits(&[&state, &whole]) {
            self.line(&state);
            self.line(whole.trim_start());
        }
        self.indented(|out| {
            for (place, member) in cached.members.iter().enumerate() {
                let (method, at) = (&member.method, first + place);
                let number = [&at.to_string(), " ", &number(at, support), ": "].concat();
                let names = [&*method.name, " / ", &method.later, " / ", &member.with].concat();
                let of_state = format!("({place} {}, {})", method.name, member.lag_nanos);
                let head = [&number, &quoted(&method.wire_name), " fn"].concat();
                if !out.put_if_fits(&[&head, " ", &names, &of_state]) {
                    out.line(&head);
                    out.put(&[&names, &of_state]);
                }
                let value = tuple(&method.results);
                let codec = match method.result_codecs.as_slice() {
                    [codec] if *codec != value => [" = ", codec].concat(),
                    _ => String::new(),
                };
                let bounds = if method.bounded { ", bounds()" } else { "" };
                let timing = method.timing.as_ref().map_or_else(String::new, timing);
                out.indented(|out| out.put(&["-> ", &value, &codec, bounds, &timing, ";"]));
            }
        });
        self.line("}");
    }

    /// Prints the operations that clients run over cached attributes, for the implementation of an interface.
    fn read_operations(&mut self, reads: &Reads<'_>, first: usize, support: &str) {
        self.put(&["reads ", &reads.path, " {"]);
        self.indented(|out| {
            for (place, method) in reads.methods.iter().enumerate() {
                out.operation(first + place, method, support);
            }
        });
        self.line("}");
    }

    /// Prints the trait of the operations that clients run over cached attributes.
    pub(super) fn reads(&mut self, reads: &Reads<'_>) {
        self.put(&["pub trait ", &reads.path, " {"]);
        self.indented(|out| {
            for (at, method) in reads.methods.iter().enumerate() {
                if at > 0 {
                    out.blank();
                }
                out.docs(&method.docs);
                let end = ["-> ", &tuple(&method.results), ";"].concat();
                let parameters = parameters(method);
                if out.put_if_fits(&["fn ", &method.name, "(", &parameters.join(", "), ") ", &end]) {
                    continue;
                }
                out.put(&["fn ", &method.name, "("]);
                out.indented(|out| parameters.iter().for_each(|p| out.put(&[p, ","])));
                out.put(&[") ", &end]);
            }
        });
        self.line("}");
    }

    /// Prints the allowed lints of an item at the top of a file.
    fn allowed(&mut self) {
        if self.depth == 0 {
            self.line(ROOT_ALLOW);
        }
    }

    fn asynchronous(&mut self, interface: &Interface<'_>, remote: &Remote<'_>, support: &str) {
        let name = &interface.name;
        self.put(&["/// The operations of [`", name, "`], called without waiting for the reply."]);
        self.allowed();
        let cached = interface.cached.iter().flat_map(|cached| &cached.members);
        let reads = interface.cached.iter().filter_map(|cached| cached.reads.as_ref());
        let reads = reads.flat_map(|reads| &reads.methods);
        let twoway: Vec<(&Text<'_>, &Method<'_>)> = interface
            .methods
            .iter()
            .filter(|method| !method.oneway)
            .map(|method| (name, method))
            .chain(cached.map(|member| (&remote.reference, &member.method)))
            .chain(reads.map(|method| (&remote.reference, method)))
            .collect();
        let supertrait = [support, "::RefTo<dyn ", name, ">"].concat();
        self.trait_head(&remote.asynchronous, &[supertrait.into()], twoway.is_empty());
        if twoway.is_empty() {
            return;
        }
        let pending = [support, "::Pending"].concat();
        self.indented(|out| {
            for (at, &(owner, method)) in twoway.iter().enumerate() {
                if at > 0 {
                    out.blank();
                }
                out.put(&["/// Begins [`", &method.name, "`](", owner, "::", &method.name, ")."]);
                out.function(
                    &method.later,
                    &parameters(method),
                    &[],
                    Some(&Outcome::of(&pending, method)),
                    ";",
                );
            }
        });
        self.line("}");
    }

    fn deferred(&mut self, interface: &Interface<'_>, remote: &Remote<'_>, support: &str) {
        self.put(&[
            "/// A servant of [`",
            &interface.name,
            "`] that answers later, from any thread; activated as",
        ]);
        self.line("/// `Deferred(servant)`. The operations of base interfaces are traits of their own.");
        self.allowed();
        let is_empty = interface.methods.is_empty() && interface.cached.is_none();
        self.trait_head(&remote.deferred, &[], is_empty);
        if is_empty {
            return;
        }
        let reply = [support, "::Reply"].concat();
        self.indented(|out| {
            if let Some(cached) = &interface.cached {
                out.cell(cached, support);
            }
            for (at, method) in interface.methods.iter().enumerate() {
                if at > 0 || interface.cached.is_some() {
                    out.blank();
                }
                out.docs(&method.docs);
                let reply = (!method.oneway).then(|| Outcome::of(&reply, method));
                out.function(&method.name, &parameters(method), reply.as_slice(), None, ";");
            }
        });
        self.line("}");
    }

    fn bodies(&mut self, interface: &Interface<'_>, remote: &Remote<'_>, support: &str) {
        self.put(&[support, "::interface! {"]);
        self.indented(|out| {
            let type_code = &interface.type_code;
            let idl = type_code.idl.as_ref().map_or_else(String::new, |idl| format!(" {idl:?}"));
            let kind = if remote.is_abstract { "abstract " } else { "" };
            let first = [&remote.reference, ": dyn ", &interface.name, &idl, ","].concat();
            let names = [&remote.skeleton, &remote.asynchronous, &remote.deferred].map(|name| &**name);
            let traits = [&*names.join(", "), ","].concat();
            let id = format!("{kind}{:?}", type_code.repository_id);
            let type_code = [&*type_code.name, " ="].concat();
            if !out.put_if_fits(&[&first, " ", &traits]) {
                out.filled_below(&first, &names, "");
                out.text.pop(); // nothing closes them
            }
            out.indented(|out| out.assignment(&type_code, &id));
            out.bases(&remote.bases);
            out.operation_names(remote);
            if !remote.own.is_empty() {
                out.put(&["own ", &range(&remote.own), ";"]);
            }
            if let Some(cached) = &interface.cached {
                let first = interface.methods.len();
                out.cached_operations(cached, first, support);
                if let Some(reads) = &cached.reads {
                    out.read_operations(reads, first + cached.members.len(), support);
                }
            }
            interface.methods.iter().enumerate().for_each(|(at, method)| {
                out.operation(at, method, support);
            });
        });
        self.line("}");
    }

    fn bases(&mut self, bases: &[Base<'_>]) {
        if bases.is_empty() {
            self.line("bases []");
            return;
        }
        self.line("bases [");
        self.indented(|out| {
            for base in bases {
                let names = [&base.reference, ": dyn ", &base.name, ","].concat();
                let numbers = match base.operations.is_empty() {
                    true => String::new(),
                    false => [", ", &range(&base.operations)].concat(),
                };
                let rest = [&base.deferred, ", ", &quoted(&base.repository_id), &numbers, ";"].concat();
                if !out.put_if_fits(&[&names, " ", &rest]) {
                    out.line(&names);
                    out.indented(|out| out.line(&rest));
                }
            }
        });
        self.line("]");
    }

    fn operation_names(&mut self, remote: &Remote<'_>) {
        let names: Vec<String> = remote.operations.iter().map(|name| format!("{name:?}")).collect();
        let PerfectHash { slots, seed, moves } = &remote.table;
        if moves.is_empty() {
            self.filled(&format!("operations({slots}, {seed}) ["), &names, "];");
        } else {
            let moves: Vec<String> = moves.iter().map(u16::to_string).collect();
            self.filled(&format!("operations({slots}, {seed}, ["), &moves, "]) [");
            self.filled("", &names, "];");
        }
    }

    fn operation(&mut self, at: usize, method: &Method<'_>, support: &str) {
        let kind = if method.oneway { "oneway" } else { "twoway" };
        let bounds = if method.bounded { ", bounds()" } else { "" };
        let context = method.context.as_ref().map_or_else(String::new, |patterns| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| format!("{pattern:?}")).collect();
            [", context(", &patterns.join(", "), ")"].concat()
        });
        let parameters: Vec<String> =
            method.parameters.iter().map(|p| [&*p.name, ": ", &p.ty, " = ", &p.way].concat()).collect();
        let later = if method.oneway { String::new() } else { [" / ", &method.later].concat() };
        let number = [&at.to_string(), " ", &number(at, support), ": "].concat();
        let head = [&number, kind, " ", &quoted(&method.wire_name), " fn ", &method.name, &later, "("];
        let head = head.concat();
        let timing = method.timing.as_ref().map_or_else(String::new, timing);
        let idempotent = if method.is_idempotent { ", idempotent()" } else { "" };
        let end = [", ", &method.error, bounds, &context, &timing, idempotent, ";"].concat();
        let value = tuple(&method.results);
        let codec = match method.result_codecs.as_slice() {
            [codec] if *codec == value => String::new(),
            [codec] => [" = ", codec].concat(),
            codecs => [" = ", &method.joined_codec, "<(", &codecs.join(", "), ")>"].concat(),
        };
        let result = ["-> ", &value, &codec, &end].concat();
        if self.put_list_if_fits(&[&head], &parameters, &[") ", &result]) {
            return;
        }
        let tail = [") ", &result].concat();
        if self.fits(&tail) && !parameters.is_empty() {
            self.filled(&head, &parameters, &tail);
            return;
        }
        self.filled(&head, &parameters, ")");
        self.indented(|out| {
            if out.put_if_fits(&[&result]) {
                return;
            }
            match method.result_codecs.as_slice() {
                [_] => {
                    out.put(&["-> ", &value]);
                    out.put(&[codec.trim_start(), &end]);
                }
                codecs => {
                    out.filled("-> (", &method.results, ")");
                    out.filled(&["= ", &method.joined_codec, "<("].concat(), codecs, &[")>", &end].concat());
                }
            }
        });
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

/// What a function gives, or hands on: a type with what an operation gives and what it raises.
struct Outcome<'m> {
    wrapper: &'m str,
    results: &'m [Text<'m>],
    error: &'m str,
}

impl<'m> Outcome<'m> {
    fn of(wrapper: &'m str, method: &'m Method<'m>) -> Self {
        Outcome { wrapper, results: &method.results, error: &method.error }
    }

    /// Whether rustfmt gives each type of the tuple a line.
    fn is_wide(&self) -> bool {
        self.results.len() > 1 && self.results.join(", ").len() > TUPLE_WIDTH
    }
}

impl fmt::Display for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<{}, {}>", self.wrapper, tuple(self.results), self.error)
    }
}

/// The parameters of a method in the trait.
fn parameters(method: &Method<'_>) -> Vec<String> {
    std::iter::once("&self".to_owned())
        .chain(method.parameters.iter().map(|p| [&*p.name, ": ", &p.ty].concat()))
        .collect()
}

/// The timing of an operation: times in nanoseconds, levels from 1 to 5, and 0 for what is not given.
fn timing(timing: &Timing) -> String {
    let times =
        [timing.period, timing.wcet, timing.deadline].map(|time| time.map_or(0, |time| time.as_nanos()));
    let [period, wcet, deadline] = times.map(|nanos| nanos.to_string());
    let levels =
        [timing.criticality, timing.importance].map(|level| level.map_or(0, |level| level as u8 + 1));
    let [criticality, importance] = levels;
    let probability = timing.probability.unwrap_or_default();
    format!(", timing({period}, {wcet}, {deadline}, {criticality}, {importance}, {probability:?})")
}

/// The number of an operation, as a type.
fn number(at: usize, support: &str) -> String {
    match (at / NUMBERS, at % NUMBERS) {
        (0, digit) => format!("{support}::N{digit}"),
        (more, digit) => format!("({}, {support}::N{digit})", number(more, support)),
    }
}

fn range(numbers: &Range<usize>) -> String {
    format!("{}..={}", numbers.start, numbers.end - 1)
}

/// No type, one type, or a tuple.
fn tuple<'t>(types: &'t [Text<'_>]) -> Text<'t> {
    match types {
        [one] => Text::Borrowed(one),
        types => ["(", &types.join(", "), ")"].concat().into(),
    }
}

/// How many numbers the support module has.
const NUMBERS: usize = 64;

/// rustfmt's default `fn_call_width`, which holds for tuples too.
const TUPLE_WIDTH: usize = 60;
