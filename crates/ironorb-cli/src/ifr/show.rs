//! The commands that query a repository: list, show and remove.

use std::io::{self, Write};

use ironorb::ifr::corba::{
    Contained as _, Container as _, ContainerRef, DefinitionKind as Kind, IrObject as _,
};
use ironorb::{SystemException, TypedRef as _};

use super::explain::unanswered;
use super::idl;
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
    let shown = found.id().and_then(|id| Ok((id, idl::one(&session.root, &found)?)));
    let (id, text) = shown.map_err(|e| unanswered(&format!("cannot show `{name}`"), &e))?;
    printed(write!(io::stdout().lock(), "// {id}\n{text}"))
}

pub(super) fn remove(place: &Place, name: &str) -> Result<(), Failure> {
    let session = place.open()?;
    session.find(name)?.destroy().map_err(|e| unanswered(&format!("cannot remove `{name}`"), &e))
}

/// Collects one line for each definition, indented by its depth.
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
        // Containers of a faulty repository may form a cycle; the depth is bounded.
        if recursive && is_container && depth < DEPTH_MAX {
            collect(&contained.object().narrow_unchecked(), depth + 1, recursive, lines)?;
        }
    }
    Ok(())
}

pub(super) fn is_container(kind: Kind) -> bool {
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
