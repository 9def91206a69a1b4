//! Decides which types have compiled marshalling and which leave it to the interpreter. The IDL decides with
//! `@marshal(compiled)` and `@marshal(interpreted)`, else the build.
//!
//! Reads no file and decides nothing else. The support module implements both kinds.

use std::collections::{HashMap, HashSet};

use ironorb_idl::model::{Annotation, ConstValue, DefId, DefKind, Definition, InterfaceKind, Model};
use ironorb_idl::source::Span;

use crate::layout::Layout;
use crate::select::uses;

/// How the values of one type are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Way {
    /// By code of the type's own.
    #[default]
    Compiled,
    /// By the interpreter.
    Interpreted,
    /// By the interpreter, which counts the values.
    Recorded,
}

impl Way {
    /// The words for the support macros; none for the usual kind. An interpreter must know whether there are
    /// bounds.
    pub(crate) fn words(self, bounded: bool) -> Option<&'static str> {
        match (self, bounded) {
            (Way::Compiled, _) => None,
            (Way::Interpreted, false) => Some("interpreted"),
            (Way::Interpreted, true) => Some("interpreted bounded"),
            (Way::Recorded, false) => Some("recorded"),
            (Way::Recorded, true) => Some("recorded bounded"),
        }
    }
}

/// The marshalling of every definition.
#[derive(Debug)]
pub(crate) struct Ways {
    ways: Vec<Way>,
}

/// What the build decides about types for which the IDL decides nothing.
#[derive(Debug)]
pub(crate) enum Choice {
    /// One kind for all types.
    All(Way),
    /// Types in use are compiled.
    InUse(HashSet<String>),
}

impl Choice {
    fn way_of(&self, repository_id: &str) -> Way {
        match self {
            Choice::All(way) => *way,
            Choice::InUse(ids) if ids.contains(repository_id) => Way::Compiled,
            Choice::InUse(_) => Way::Interpreted,
        }
    }
}

impl Ways {
    pub(crate) fn of(model: &Model, choice: &Choice, layout: &Layout<'_>) -> Self {
        let by_use = ways_by_use(model);
        let way = |def: &Definition| match layout.definition(def.id).sent {
            true => annotated(model, def)
                .or_else(|| by_use.get(&def.id).copied())
                .unwrap_or_else(|| choice.way_of(&def.repository_id)),
            // There is nothing to interpret: its code only refuses.
            false => Way::Compiled,
        };
        Ways { ways: model.definitions().iter().map(way).collect() }
    }

    pub(crate) fn of_definition(&self, id: DefId) -> Way {
        self.ways[id.index()]
    }
}

/// The decision of the definition's own annotation, or of the nearest scope around it.
fn annotated(model: &Model, def: &Definition) -> Option<Way> {
    let mut here = Some(def);
    while let Some(def) = here {
        if let Some(way) = own(def) {
            return Some(way);
        }
        here = def.parent.map(|parent| model.get(parent));
    }
    None
}

/// The decisions about types where they are used. An operation, an attribute, their interface or a typedef
/// decides about the types that it names. If any use wants a type compiled, it is compiled.
fn ways_by_use(model: &Model) -> HashMap<DefId, Way> {
    let mut ways = HashMap::new();
    for def in model.definitions() {
        let said = match def.kind {
            DefKind::Operation(_) | DefKind::Attribute(_) => {
                own(def).or_else(|| def.parent.and_then(|parent| own(model.get(parent))))
            }
            DefKind::Typedef(_) => own(def),
            _ => None,
        };
        let Some(way) = said else { continue };
        let mut named = uses(model, def.id);
        let mut at = 0;
        while let Some(&id) = named.get(at) {
            at += 1;
            match model.get(id).kind {
                DefKind::Typedef(_) => {
                    let more: Vec<DefId> =
                        uses(model, id).into_iter().filter(|id| !named.contains(id)).collect();
                    named.extend(more);
                }
                DefKind::Struct(_) | DefKind::Exception(_) | DefKind::Union(_) | DefKind::Enum(_) => {
                    let said = ways.entry(id).or_insert(way);
                    if way == Way::Compiled {
                        *said = way;
                    }
                }
                _ => {}
            }
        }
    }
    ways
}

/// The decision of the definition's own annotation; the last one counts.
fn own(def: &Definition) -> Option<Way> {
    def.annotations.iter().rev().find(|annotation| is_ours(annotation)).and_then(|given| value(given).ok())
}

/// A wrong use of `@marshal`.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) span: Span,
    pub(crate) what: String,
    pub(crate) help: String,
}

/// Every `@marshal` that has no meaning, in the order of the text.
pub(crate) fn check(model: &Model) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for def in model.definitions() {
        for annotation in def.annotations.iter().filter(|annotation| is_ours(annotation)) {
            mistakes.extend(mistake(annotation, model, def));
        }
        for annotation in inner(&def.kind).filter(|annotation| is_ours(annotation)) {
            mistakes.push(unsuitable(annotation, "a member or parameter"));
        }
    }
    mistakes.sort_by_key(|mistake| (mistake.span.file, mistake.span.start));
    // Names of one declaration share their annotations.
    mistakes.dedup_by_key(|mistake| mistake.span);
    mistakes
}

fn mistake(annotation: &Annotation, model: &Model, def: &Definition) -> Option<Mistake> {
    let what = match def.kind {
        DefKind::Interface(_) if is_local(def) && !defines_types(model, def) => {
            "a local interface without types, whose calls are never sent"
        }
        DefKind::Operation(_) | DefKind::Attribute(_)
            if def.parent.is_some_and(|parent| is_local(model.get(parent))) =>
        {
            "an operation or attribute of a local interface, which is never sent"
        }
        DefKind::Module(_)
        | DefKind::Interface(_)
        | DefKind::Operation(_)
        | DefKind::Attribute(_)
        | DefKind::Struct(_)
        | DefKind::Exception(_)
        | DefKind::Union(_)
        | DefKind::Enum(_)
        | DefKind::Typedef(_) => return value(annotation).err(),
        DefKind::Value(_) | DefKind::ValueBox(_) => "a valuetype, whose state is always compiled",
        DefKind::Bitset(_) | DefKind::Bitmask(_) => "a bitset or bitmask, which is a number",
        DefKind::Constant(_) => "a constant",
        DefKind::Native => "a native type",
        DefKind::Enumerator { .. } | DefKind::Flag { .. } => "an enumerator",
        DefKind::Annotation(_) => "an annotation",
    };
    Some(unsuitable(annotation, what))
}

fn is_local(def: &Definition) -> bool {
    matches!(&def.kind, DefKind::Interface(interface) if interface.kind == InterfaceKind::Local)
}

/// Whether there are types that take the decision of this scope.
fn defines_types(model: &Model, scope: &Definition) -> bool {
    model.definitions().iter().any(|def| {
        def.parent == Some(scope.id)
            && matches!(
                def.kind,
                DefKind::Struct(_)
                    | DefKind::Exception(_)
                    | DefKind::Union(_)
                    | DefKind::Enum(_)
                    | DefKind::Typedef(_)
            )
    })
}

fn unsuitable(annotation: &Annotation, what: &str) -> Mistake {
    Mistake {
        span: annotation.span,
        what: format!("`@marshal` means nothing on {what}"),
        help: "put it on a type, an operation, an interface or a module".to_owned(),
    }
}

/// The decision of one annotation.
fn value(annotation: &Annotation) -> Result<Way, Mistake> {
    let wrong = |what: String| Mistake {
        span: annotation.span,
        what,
        help: "write `@marshal(compiled)` or `@marshal(interpreted)`".to_owned(),
    };
    let [parameter] = annotation.parameters.as_slice() else {
        return Err(wrong(format!(
            "`@marshal` takes one parameter, and is given {}",
            annotation.parameters.len()
        )));
    };
    if let Some(name) = parameter.name.as_deref().filter(|&name| name != "value") {
        return Err(wrong(format!("`@marshal` has no parameter `{name}`")));
    }
    match &parameter.value {
        ConstValue::String(word) if word == "compiled" => Ok(Way::Compiled),
        ConstValue::String(word) if word == "interpreted" => Ok(Way::Interpreted),
        ConstValue::String(word) => Err(wrong(format!("`@marshal` has no value `{word}`"))),
        _ => Err(wrong("`@marshal` takes a word, not a number".to_owned())),
    }
}

/// Whether the annotation is the generator's. One of this name that the IDL declares itself is not.
fn is_ours(annotation: &Annotation) -> bool {
    annotation.name == "marshal" && annotation.of.is_none()
}

/// The annotations of the parts of a definition that are no definitions themselves.
pub(crate) fn inner(kind: &DefKind) -> impl Iterator<Item = &Annotation> {
    let mut lists: Vec<&[Annotation]> = Vec::new();
    match kind {
        DefKind::Struct(s) | DefKind::Exception(s) => {
            lists.extend(s.members.iter().map(|member| member.annotations.as_slice()));
        }
        DefKind::Union(u) => lists.extend(u.cases.iter().map(|case| case.member.annotations.as_slice())),
        DefKind::Value(value) => {
            lists.extend(value.state.iter().map(|state| state.member.annotations.as_slice()));
        }
        DefKind::Operation(operation) => {
            lists.extend(operation.parameters.iter().map(|parameter| parameter.annotations.as_slice()));
        }
        DefKind::Bitset(bitset) => {
            lists.extend(bitset.fields.iter().map(|field| field.annotations.as_slice()));
        }
        _ => {}
    }
    lists.into_iter().flatten()
}
