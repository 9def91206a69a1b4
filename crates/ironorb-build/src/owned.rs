//! Finds the `in` parameters that a servant may keep: sequences with the annotation `@owned`.

use ironorb_idl::model::{
    Annotation, DefKind, Definition, Direction, InterfaceKind, Model, Operation, Parameter, Type,
};

use crate::marshalling::{Mistake, inner};

/// Whether a parameter has the annotation.
pub(crate) fn is_owned(parameter: &Parameter) -> bool {
    parameter.annotations.iter().any(is_ours)
}

/// Every `@owned` that has no meaning, in the order of the text.
pub(crate) fn check(model: &Model) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for def in model.definitions() {
        let wrong = |given: &Annotation| mistake(given, "`@owned` belongs to an `in` parameter".to_owned());
        mistakes.extend(def.annotations.iter().filter(|given| is_ours(given)).map(wrong));
        match &def.kind {
            DefKind::Operation(operation) => mistakes.extend(of_operation(model, def, operation)),
            kind => mistakes.extend(inner(kind).filter(|given| is_ours(given)).map(wrong)),
        }
    }
    mistakes.sort_by_key(|mistake| (mistake.span.file, mistake.span.start));
    // Names of one declaration share their annotations.
    mistakes.dedup_by_key(|mistake| mistake.span);
    mistakes
}

fn of_operation<'m>(
    model: &'m Model,
    def: &'m Definition,
    operation: &'m Operation,
) -> impl Iterator<Item = Mistake> + 'm {
    operation.parameters.iter().flat_map(move |parameter| {
        let given = parameter.annotations.iter().filter(|given| is_ours(given));
        given.filter_map(move |given| Some(mistake(given, why_not(model, def, parameter, given)?)))
    })
}

/// Why the annotation of a parameter has no meaning, if it has none.
fn why_not(model: &Model, def: &Definition, parameter: &Parameter, given: &Annotation) -> Option<String> {
    if !given.parameters.is_empty() {
        return Some("`@owned` takes no parameters".to_owned());
    }
    if parameter.direction != Direction::In {
        return Some("`@owned` belongs to an `in` parameter: what goes out is owned in any case".to_owned());
    }
    if !matches!(model.unaliased(&parameter.ty), Type::Sequence { .. }) {
        return Some("`@owned` belongs to a sequence".to_owned());
    }
    let is_called = def.parent.is_some_and(|parent| is_called_remotely(model.get(parent)));
    (!is_called).then(|| "`@owned` belongs to an operation that is called remotely".to_owned())
}

fn is_called_remotely(scope: &Definition) -> bool {
    matches!(&scope.kind, DefKind::Interface(interface) if interface.kind != InterfaceKind::Local)
}

fn mistake(given: &Annotation, what: String) -> Mistake {
    let help = "write `void put(@owned in sequence<octet> data);`".to_owned();
    Mistake { span: given.span, what, help }
}

/// Whether the annotation is the generator's. One of this name that the IDL declares itself is not.
fn is_ours(annotation: &Annotation) -> bool {
    annotation.name == "owned" && annotation.of.is_none()
}
