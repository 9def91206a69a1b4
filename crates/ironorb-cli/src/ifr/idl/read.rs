//! Reads definitions, with everything in them, from a repository's descriptions.

use ironorb::ifr::corba::{
    AttributeDescription, ConstantDescription, Contained as _, ContainedRef, Container as _, ContainerRef,
    DefinitionKind as Kind, ExceptionDescription, ExtAttributeDef as _, ExtAttributeDefRef,
    ExtAttributeDescription, ExtInitializer, ExtValueDef as _, ExtValueDefRef, InterfaceDescription,
    ModuleDescription, OperationDescription, TypeDescription, ValueDef as _, ValueDefRef, ValueDescription,
    ValueMember,
};
use ironorb::{
    Any, CompletionStatus, MinorCode, SystemException, SystemExceptionKind, TypeCode, TypedRef as _,
};

/// A definition, as far as IDL can express it.
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) id: String,
    /// The scoped name, with leading colons.
    pub(super) scoped_name: String,
    pub(super) what: What,
    /// The definitions within this one, in the repository's order.
    pub(super) items: Vec<Definition>,
}

pub(super) enum What {
    Module,
    Interface {
        lead: &'static str,
        bases: Vec<String>,
    },
    Value {
        value: Box<ValueDescription>,
        initializers: Vec<ExtInitializer>,
    },
    /// A type that its TypeCode describes completely.
    Type(TypeCode),
    Constant {
        ty: TypeCode,
        value: Any,
    },
    Attribute(Box<ExtAttributeDescription>),
    Operation(Box<OperationDescription>),
    Member(Box<ValueMember>),
}

/// Reads the definitions in the container of this scoped name.
pub(super) fn contents(
    container: &ContainerRef,
    scope: &str,
    depth: usize,
) -> Result<Vec<Definition>, SystemException> {
    // Containers of a faulty repository may form a cycle; the depth is bounded.
    if depth > DEPTH_MAX {
        return Err(failed(SystemExceptionKind::ImpLimit, "definitions stand inside each other too deep"));
    }
    let mut found = Vec::new();
    for description in container.describe_contents(Kind::DkAll, true, -1)? {
        let Some(contained) = description.contained_object else { continue };
        found.push(read(&contained, description.kind, &description.value, scope, depth)?);
    }
    Ok(found)
}

/// Reads one definition, with everything in it.
pub(super) fn one(contained: &ContainedRef) -> Result<Definition, SystemException> {
    let described = contained.describe()?;
    let name = contained.absolute_name()?;
    let scope = name.rsplit_once("::").map_or("", |(scope, _)| scope);
    read(contained, described.kind, &described.value, scope, 0)
}

/// Whether a condition holds for any of the definitions or those within them.
pub(super) fn any(definitions: &[Definition], holds: &dyn Fn(&Definition) -> bool) -> bool {
    definitions.iter().any(|definition| holds(definition) || any(&definition.items, holds))
}

fn read(
    contained: &ContainedRef,
    kind: Kind,
    value: &Any,
    scope: &str,
    depth: usize,
) -> Result<Definition, SystemException> {
    let wrong = |_| failed(SystemExceptionKind::Marshal, "a description is not of the standard's type");
    let (name, id, what) = match kind {
        Kind::DkModule => {
            let one: ModuleDescription = value.extract().map_err(wrong)?;
            (one.name, one.id, What::Module)
        }
        Kind::DkInterface | Kind::DkAbstractInterface | Kind::DkLocalInterface => {
            let one: InterfaceDescription = value.extract().map_err(wrong)?;
            let lead = match kind {
                Kind::DkAbstractInterface => "abstract ",
                Kind::DkLocalInterface => "local ",
                _ => "",
            };
            (one.name, one.id, What::Interface { lead, bases: one.base_interfaces })
        }
        Kind::DkValue => {
            let one: ValueDescription = value.extract().map_err(wrong)?;
            let initializers = initializers(contained)?;
            (one.name.clone(), one.id.clone(), What::Value { value: Box::new(one), initializers })
        }
        Kind::DkConstant => {
            let one: ConstantDescription = value.extract().map_err(wrong)?;
            (one.name, one.id, What::Constant { ty: one.type_, value: one.value })
        }
        Kind::DkException => {
            let one: ExceptionDescription = value.extract().map_err(wrong)?;
            (one.name, one.id, What::Type(one.type_))
        }
        Kind::DkAttribute => {
            let one = attribute(contained, value.extract().map_err(wrong)?)?;
            (one.name.clone(), one.id.clone(), What::Attribute(Box::new(one)))
        }
        Kind::DkOperation => {
            let one: OperationDescription = value.extract().map_err(wrong)?;
            (one.name.clone(), one.id.clone(), What::Operation(Box::new(one)))
        }
        Kind::DkValueMember => {
            let one: ValueMember = value.extract().map_err(wrong)?;
            (one.name.clone(), one.id.clone(), What::Member(Box::new(one)))
        }
        _ => {
            let one: TypeDescription = value.extract().map_err(wrong)?;
            (one.name, one.id, What::Type(one.type_))
        }
    };
    let scoped_name = format!("{scope}::{name}");
    let items = match super::super::show::is_container(kind) {
        true => contents(&contained.object().narrow_unchecked(), &scoped_name, depth + 1)?,
        false => Vec::new(),
    };
    Ok(Definition { name, id, scoped_name, what, items })
}

/// The initializers of a value, with their exceptions. Repositories older than CORBA 3 do not report the
/// exceptions.
fn initializers(contained: &ContainedRef) -> Result<Vec<ExtInitializer>, SystemException> {
    if let Some(value) = contained.object().narrow::<ExtValueDefRef>()? {
        return value.ext_initializers();
    }
    let value: ValueDefRef = contained.object().narrow_unchecked();
    let plain = value.initializers()?.into_iter();
    Ok(plain
        .map(|one| ExtInitializer { members: one.members, exceptions: Vec::new(), name: one.name })
        .collect())
}

/// The exceptions of an attribute. Repositories older than CORBA 3 do not report them.
fn attribute(
    contained: &ContainedRef,
    plain: AttributeDescription,
) -> Result<ExtAttributeDescription, SystemException> {
    if let Some(attribute) = contained.object().narrow::<ExtAttributeDefRef>()? {
        return attribute.describe_attribute();
    }
    Ok(ExtAttributeDescription {
        name: plain.name,
        id: plain.id,
        defined_in: plain.defined_in,
        version: plain.version,
        type_: plain.type_,
        mode: plain.mode,
        get_exceptions: Vec::new(),
        put_exceptions: Vec::new(),
    })
}

fn failed(kind: SystemExceptionKind, why: &str) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, CompletionStatus::Yes).with_detail(why.to_owned())
}

/// Deepest nesting of definitions that is read.
const DEPTH_MAX: usize = 64;
