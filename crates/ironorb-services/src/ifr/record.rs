//! The stored form of a definition.
//!
//! Definitions refer to each other by number. Records contain nothing derived: TypeCodes, scoped names and
//! descriptions are computed from records on demand, so that a change of one definition shows in all its
//! users.

use ironorb::Any;
use ironorb::giop::{Malformed, MalformedKind, Marshal, Misuse, Reader, Unmarshal, Writer};
use ironorb::ifr::corba::{AttributeMode, DefinitionKind, OperationMode, ParameterMode, PrimitiveKind};

/// The number of a definition in its store. It is never reused after the definition is destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionNumber(u64);

impl DefinitionNumber {
    /// The repository itself, which contains the definitions at file scope.
    pub const REPOSITORY: DefinitionNumber = DefinitionNumber(0);

    /// The definition with this number, which need not exist.
    pub const fn from_number(number: u64) -> Self {
        DefinitionNumber(number)
    }

    /// The number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The basic type of this kind, which every store has.
    pub const fn primitive(kind: PrimitiveKind) -> Self {
        DefinitionNumber(1 + kind as u64)
    }

    /// True for the repository and the basic types. They cannot be changed or destroyed.
    pub fn is_permanent(self) -> bool {
        self.0 < FIRST_FREE_NUMBER
    }
}

/// The first number for other definitions. Lower numbers belong to the repository and the basic types; some
/// are reserved.
pub(super) const FIRST_FREE_NUMBER: u64 = 64;

macro_rules! record {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name { $($(#[$field_meta])* pub $field: $ty,)* }

        impl Marshal for $name {
            fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
                $(self.$field.marshal(w)?;)*
                Ok(())
            }
        }

        impl Unmarshal for $name {
            fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok($name { $($field: r.get()?,)* })
            }
        }
    )*};
}

record! {
    /// One definition.
    Record {
        /// The repository id; empty for anonymous definitions.
        id: String,
        /// The name; empty for basic types and for types such as `sequence<long>`.
        name: String,
        /// The version, usually `1.0`.
        version: String,
        /// The container. Without meaning for anonymous definitions.
        container: DefinitionNumber,
        /// The kind of the definition, and its contents.
        body: Body,
    }
    /// A member of a struct or exception, or an argument of an initializer.
    Member {
        /// The name.
        name: String,
        /// The type.
        ty: DefinitionNumber,
    }
    /// One label of a union with its member. The labels of one member follow one another.
    Case {
        /// The member's name.
        name: String,
        /// True for the default case, whose label has no meaning.
        is_default: bool,
        /// The label as a number, as TypeCodes have it.
        label: i64,
        /// The member's type.
        ty: DefinitionNumber,
    }
    /// An attribute.
    Attribute {
        /// The type.
        ty: DefinitionNumber,
        /// Whether the attribute can be set.
        mode: AttributeMode,
        /// The exceptions of the getter.
        get_exceptions: Vec<DefinitionNumber>,
        /// The exceptions of the setter.
        set_exceptions: Vec<DefinitionNumber>,
    }
    /// A parameter of an operation.
    Parameter {
        /// The name.
        name: String,
        /// The type.
        ty: DefinitionNumber,
        /// The direction.
        mode: ParameterMode,
    }
    /// An operation.
    Operation {
        /// The type of the result; the basic type `void` for none.
        result: DefinitionNumber,
        /// Whether the operation is oneway.
        mode: OperationMode,
        /// The parameters, in order.
        parameters: Vec<Parameter>,
        /// The exceptions.
        exceptions: Vec<DefinitionNumber>,
        /// The names of the context clause.
        contexts: Vec<String>,
    }
    /// An initializer of a value type.
    Initializer {
        /// The name.
        name: String,
        /// The arguments.
        members: Vec<Member>,
        /// The exceptions.
        exceptions: Vec<DefinitionNumber>,
    }
    /// A value type.
    Value {
        /// Whether the value is `abstract`.
        is_abstract: bool,
        /// Whether the value is `custom`.
        is_custom: bool,
        /// Whether the value is `truncatable` to its base.
        is_truncatable: bool,
        /// The base with state, if any.
        base: Vec<DefinitionNumber>,
        /// Abstract bases.
        abstract_bases: Vec<DefinitionNumber>,
        /// Supported interfaces.
        supported: Vec<DefinitionNumber>,
        /// Initializers.
        initializers: Vec<Initializer>,
    }
}

macro_rules! bodies {
    ($($tag:literal $kind:ident => $(#[$meta:meta])* $variant:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty),* })*) => {
        /// The kind of a definition, with its references to other definitions.
        #[derive(Clone, Debug)]
        pub enum Body {
            $($(#[$meta])* $variant { $($(#[$field_meta])* $field: $ty),* },)*
        }

        impl Body {
            /// The standard's kind of the definition.
            pub fn kind(&self) -> DefinitionKind {
                match self { $(Body::$variant { .. } => DefinitionKind::$kind,)* }
            }
        }

        impl Marshal for Body {
            fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
                match self {
                    $(Body::$variant { $($field),* } => {
                        w.write_u8($tag);
                        $($field.marshal(w)?;)*
                    })*
                }
                Ok(())
            }
        }

        impl Unmarshal for Body {
            fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
                match r.read_u8()? {
                    $($tag => Ok(Body::$variant { $($field: r.get()?),* }),)*
                    _ => Err(r.malformed(MalformedKind::NoSuchEnumerator)),
                }
            }
        }
    };
}

bodies! {
    0 DkRepository => /** All that stands at file scope. */ Repository {}
    1 DkPrimitive => /** A basic type. */ Primitive { /** Which. */ kind: PrimitiveKind }
    2 DkModule => /** A module. */ Module {}
    3 DkConstant => /** A constant. */ Constant { /** Its type. */ ty: DefinitionNumber, /** Its value. */ value: Any }
    4 DkStruct => /** A struct. */ Struct { /** Its members. */ members: Vec<Member> }
    5 DkException => /** An exception. */ Exception { /** Its members. */ members: Vec<Member> }
    6 DkUnion => /** A union. */ Union {
        /** What it switches on. */ discriminator: DefinitionNumber, /** Its cases. */ cases: Vec<Case> }
    7 DkEnum => /** An enum. */ Enum { /** Its names. */ enumerators: Vec<String> }
    8 DkAlias => /** A typedef. */ Alias { /** Of what. */ original: DefinitionNumber }
    9 DkNative => /** A native type. */ Native {}
    10 DkString => /** A bounded string. */ String { /** In characters. */ bound: u32 }
    11 DkWstring => /** A bounded wide string. */ WString { /** In characters. */ bound: u32 }
    12 DkFixed => /** A fixed. */ Fixed { /** 1 to 31. */ digits: u16, /** How many are after the point. */ scale: i16 }
    13 DkSequence => /** A sequence. */ Sequence {
        /** In elements; 0 for none. */ bound: u32, /** Of what. */ element: DefinitionNumber }
    14 DkArray => /** An array of one dimension. */ Array {
        /** In elements. */ length: u32, /** Of what. */ element: DefinitionNumber }
    15 DkAttribute => /** An attribute. */ Attribute { /** The attribute. */ attribute: Attribute }
    16 DkOperation => /** An operation. */ Operation { /** The operation. */ operation: Operation }
    17 DkInterface => /** An interface. */ Interface { /** Its direct bases. */ bases: Vec<DefinitionNumber> }
    18 DkAbstractInterface => /** An abstract interface. */ AbstractInterface {
        /** Its direct bases. */ bases: Vec<DefinitionNumber> }
    19 DkLocalInterface => /** A local interface. */ LocalInterface {
        /** Its direct bases. */ bases: Vec<DefinitionNumber> }
    20 DkValue => /** A value type. */ Value { /** The value type. */ value: Value }
    21 DkValueMember => /** A state member of a value type. */ ValueMember {
        /** Its type. */ ty: DefinitionNumber, /** Whether it is public. */ is_public: bool }
    22 DkValueBox => /** A boxed value. */ ValueBox { /** Of what. */ original: DefinitionNumber }
    23 DkStruct => /** The struct of `key` and `value` that a map is a sequence of; it has no name. */ Pair {
        /** The two. */ members: Vec<Member> }
}

impl Marshal for DefinitionNumber {
    fn marshal(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        self.0.marshal(w)
    }
}

impl Unmarshal for DefinitionNumber {
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        r.get().map(DefinitionNumber)
    }
}

impl Record {
    /// The standard's kind of the definition.
    pub fn kind(&self) -> DefinitionKind {
        self.body.kind()
    }
}

impl Body {
    /// The direct bases of an interface; `None` for other definitions.
    pub(super) fn interface_bases(&self) -> Option<&Vec<DefinitionNumber>> {
        match self {
            Body::Interface { bases }
            | Body::AbstractInterface { bases }
            | Body::LocalInterface { bases } => Some(bases),
            _ => None,
        }
    }

    /// True for a type without a name. It lives as long as a definition uses it.
    pub(super) fn is_anonymous(&self) -> bool {
        matches!(
            self,
            Body::String { .. }
                | Body::WString { .. }
                | Body::Fixed { .. }
                | Body::Sequence { .. }
                | Body::Array { .. }
                | Body::Pair { .. }
        )
    }

    /// True for kinds that can be the type of a member.
    pub(super) fn is_type(&self) -> bool {
        self.is_anonymous()
            || self.interface_bases().is_some()
            || matches!(
                self,
                Body::Primitive { .. }
                    | Body::Struct { .. }
                    | Body::Union { .. }
                    | Body::Enum { .. }
                    | Body::Alias { .. }
                    | Body::Native {}
                    | Body::Value { .. }
                    | Body::ValueBox { .. }
            )
    }

    /// Every definition that this one refers to, some more than once.
    pub(super) fn uses(&self) -> Vec<DefinitionNumber> {
        let of = |members: &[Member]| members.iter().map(|member| member.ty).collect::<Vec<_>>();
        match self {
            Body::Constant { ty, .. } | Body::ValueMember { ty, .. } => vec![*ty],
            Body::Struct { members } | Body::Exception { members } | Body::Pair { members } => of(members),
            Body::Union { discriminator, cases } => {
                std::iter::once(*discriminator).chain(cases.iter().map(|case| case.ty)).collect()
            }
            Body::Alias { original } | Body::ValueBox { original } => vec![*original],
            Body::Sequence { element, .. } | Body::Array { element, .. } => vec![*element],
            Body::Attribute { attribute } => {
                let exceptions = attribute.get_exceptions.iter().chain(&attribute.set_exceptions);
                std::iter::once(attribute.ty).chain(exceptions.copied()).collect()
            }
            Body::Operation { operation } => std::iter::once(operation.result)
                .chain(operation.parameters.iter().map(|parameter| parameter.ty))
                .chain(operation.exceptions.iter().copied())
                .collect(),
            Body::Value { value } => {
                let bases = value.base.iter().chain(&value.abstract_bases).chain(&value.supported);
                let mut used: Vec<_> = bases.copied().collect();
                for initializer in &value.initializers {
                    used.extend(of(&initializer.members));
                    used.extend(&initializer.exceptions);
                }
                used
            }
            _ => self.interface_bases().cloned().unwrap_or_default(),
        }
    }
}
