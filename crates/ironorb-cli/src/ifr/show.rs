//! The commands that ask a repository: list, show and remove.

use std::io::{self, Write};

use ironorb::ifr::corba::{
    AttributeDescription, AttributeMode, ConstantDescription, Contained as _, ContainedRef, Container as _,
    ContainerRef, DefinitionKind as Kind, ExceptionDescription, InterfaceDef as _, InterfaceDefRef,
    IrObject as _, OperationDescription, OperationMode, ParameterMode, TypeDescription, ValueDef as _,
    ValueDefRef, ValueMember,
};
use ironorb::{Any, SystemException, TypeCode, TypedRef as _};

use super::explain::unanswered;
use super::place::Place;
use crate::failure::{Failure, printed};

pub(super) fn list(place: &Place, name: Option<&str>, recursive: bool) -> Result<(), Failure> {
    let session = place.open()?;
    let mut lines = Vec::new();
    collect(&session.container(name)?, 0, recursive, &mut lines)
        .map_err(|e| unanswered("cannot list definitions", &e))?;
    let mut out = io::stdout().lock();
    printed(lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}

pub(super) fn show(place: &Place, name: &str) -> Result<(), Failure> {
    let session = place.open()?;
    let found = session.find(name)?;
    let lines = shown(&found).map_err(|e| unanswered(&format!("cannot show `{name}`"), &e))?;
    let mut out = io::stdout().lock();
    printed(lines.iter().try_for_each(|line| writeln!(out, "{line}")))
}

pub(super) fn remove(place: &Place, name: &str) -> Result<(), Failure> {
    let session = place.open()?;
    session.find(name)?.destroy().map_err(|e| unanswered(&format!("cannot remove `{name}`"), &e))
}

/// One line for each definition, indented by its depth.
fn collect(
    container: &ContainerRef,
    depth: usize,
    recursive: bool,
    lines: &mut Vec<String>,
) -> Result<(), SystemException> {
    for description in container.describe_contents(Kind::DkAll, true, -1)? {
        let Some(contained) = description.contained_object else { continue };
        let is_container = is_container(description.kind);
        let name = contained.name()?;
        let lead = "  ".repeat(depth);
        let end = if is_container { "::" } else { "" };
        lines.push(format!("{lead}{name}{end}  ({})", noun(description.kind)));
        // A repository whose containers lead back to themselves is not followed for ever.
        if recursive && is_container && depth < DEPTH_MAX {
            collect(&contained.object().narrow_unchecked(), depth + 1, recursive, lines)?;
        }
    }
    Ok(())
}

fn shown(contained: &ContainedRef) -> Result<Vec<String>, SystemException> {
    let described = contained.describe()?;
    let mut lines = vec![
        format!("{} {}", noun(described.kind), contained.absolute_name()?),
        format!("  id {}", contained.id()?),
    ];
    match described.kind {
        Kind::DkInterface | Kind::DkAbstractInterface | Kind::DkLocalInterface => {
            let interface: InterfaceDefRef = contained.object().narrow_unchecked();
            let full = interface.describe_interface()?;
            lines.extend(full.base_interfaces.iter().map(|base| format!("  inherits {base}")));
            lines.extend(full.attributes.iter().map(attribute));
            lines.extend(full.operations.iter().map(operation));
        }
        Kind::DkValue => {
            let value: ValueDefRef = contained.object().narrow_unchecked();
            let full = value.describe_value()?;
            lines.extend(full.members.iter().map(member));
            lines.extend(full.attributes.iter().map(attribute));
            lines.extend(full.operations.iter().map(operation));
        }
        Kind::DkModule => {
            let container: ContainerRef = contained.object().narrow_unchecked();
            collect(&container, 1, false, &mut lines)?;
        }
        _ => lines.extend(of_value(&described.value)),
    }
    Ok(lines)
}

/// What a description says, where all is in it.
fn of_value(value: &Any) -> Option<String> {
    if let Ok(constant) = value.extract::<ConstantDescription>() {
        let value = format!("{:?}", constant.value);
        let value = value.strip_prefix("Any(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&value);
        return Some(format!("  {} = {value}", of_type(&constant.type_)));
    }
    if let Ok(one) = value.extract::<OperationDescription>() {
        return Some(operation(&one));
    }
    if let Ok(one) = value.extract::<AttributeDescription>() {
        return Some(attribute(&one));
    }
    if let Ok(one) = value.extract::<ValueMember>() {
        return Some(member(&one));
    }
    let described = value.extract::<TypeDescription>().map(|ty| ty.type_);
    let described = described.or_else(|_| value.extract::<ExceptionDescription>().map(|e| e.type_)).ok()?;
    Some(format!("  {described:?}"))
}

fn attribute(attribute: &AttributeDescription) -> String {
    let readonly = if attribute.mode == AttributeMode::AttrReadonly { "readonly " } else { "" };
    format!("  {readonly}attribute {} {};", of_type(&attribute.type_), attribute.name)
}

fn operation(operation: &OperationDescription) -> String {
    let oneway = if operation.mode == OperationMode::OpOneway { "oneway " } else { "" };
    let parameters = operation.parameters.iter().map(|parameter| {
        let mode = match parameter.mode {
            ParameterMode::ParamIn => "in",
            ParameterMode::ParamOut => "out",
            ParameterMode::ParamInout => "inout",
        };
        format!("{mode} {} {}", of_type(&parameter.type_), parameter.name)
    });
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    let listed = |word: &str, names: Vec<String>| match names.is_empty() {
        true => String::new(),
        false => format!(" {word} ({})", names.join(", ")),
    };
    let raises = listed("raises", operation.exceptions.iter().map(|e| e.name.clone()).collect());
    let contexts = listed("context", operation.contexts.iter().map(|name| format!("\"{name}\"")).collect());
    let result = of_type(&operation.result);
    format!("  {oneway}{result} {}({parameters}){raises}{contexts};", operation.name)
}

fn member(member: &ValueMember) -> String {
    let access = if member.access == 0 { "private" } else { "public" };
    format!("  {access} {} {};", of_type(&member.type_), member.name)
}

/// A type by its name, if it has one.
fn of_type(type_code: &TypeCode) -> String {
    match type_code.name() {
        Ok(name) if !name.is_empty() => name.to_owned(),
        _ => format!("{type_code:?}"),
    }
}

fn is_container(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::DkModule
            | Kind::DkInterface
            | Kind::DkAbstractInterface
            | Kind::DkLocalInterface
            | Kind::DkValue
            | Kind::DkStruct
            | Kind::DkUnion
            | Kind::DkException
    )
}

fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::DkAttribute => "attribute",
        Kind::DkConstant => "const",
        Kind::DkException => "exception",
        Kind::DkInterface => "interface",
        Kind::DkModule => "module",
        Kind::DkOperation => "operation",
        Kind::DkAlias => "typedef",
        Kind::DkStruct => "struct",
        Kind::DkUnion => "union",
        Kind::DkEnum => "enum",
        Kind::DkValue => "valuetype",
        Kind::DkValueBox => "boxed valuetype",
        Kind::DkValueMember => "state member",
        Kind::DkNative => "native",
        Kind::DkAbstractInterface => "abstract interface",
        Kind::DkLocalInterface => "local interface",
        _ => "definition",
    }
}

const DEPTH_MAX: usize = 64;
