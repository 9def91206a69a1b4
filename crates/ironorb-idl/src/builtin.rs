//! The built-in files: `#include <orb.idl>` works without any include directory.

/// The path to show and the text of a file known under this name.
pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let file = name.rsplit('/').next().unwrap_or(name);
    match file {
        "orb.idl" | "corbaidl.idl" | "boxes.idl" | "TypeCode.idl" | "CORBA.idl" | "corba.idl" => {
            Some((ORB_PATH, ORB_TEXT))
        }
        "IOP.idl" => Some((IOP_PATH, IOP_TEXT)),
        // These are TAO's own files. Each has a part of module CORBA.
        _ if name.starts_with("tao/") && is_part_of_corba(file) => Some((ORB_PATH, ORB_TEXT)),
        _ => None,
    }
}

fn is_part_of_corba(file: &str) -> bool {
    let Some(part) = file.strip_suffix(".pidl") else { return false };
    part.ends_with("Seq") || matches!(part, "Current" | "ParameterMode" | "Policy" | "Services" | "orb_types")
}

/// True for a name of module `CORBA` that files often use without its module.
pub(crate) fn knows(name: &str) -> bool {
    matches!(
        name,
        "TypeCode" | "Identifier" | "RepositoryId" | "OctetSeq" | "StringSeq" | "Policy" | "PolicyList"
    )
}

/// True for a module at file scope of which a built-in file has a part.
pub(crate) fn is_module(name: &str) -> bool {
    matches!(name, "CORBA" | "IOP")
}

/// The name of the file with module `CORBA`.
pub(crate) const ORB: &str = "orb.idl";

/// In angle brackets, so that no file on a disk is taken for it.
const ORB_PATH: &str = "<builtin>/orb.idl";
const ORB_TEXT: &str = include_str!("builtin/orb.idl");
const IOP_PATH: &str = "<builtin>/IOP.idl";
const IOP_TEXT: &str = include_str!("builtin/iop.idl");
