//! The resolved model: what a generator, a repository or a dynamic client needs to know about IDL files.
//!
//! Every name is resolved to a [`DefId`], every constant is evaluated, every type is legal and every
//! definition knows its repository id. A model exists only for input without errors, so its users
//! check nothing again.

pub use crate::caching::Caching;
pub use crate::parallel::{Distribution, Join, Parallel, Reduction};
use crate::source::Span;
pub use crate::timing::{Level, Timing};

/// Index of a definition in its [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub(crate) u32);

impl DefId {
    /// The position in [`Model::definitions`], for side tables kept by a back end.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a source file in its [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// The position in [`Model::files`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One translation unit, checked and resolved.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub(crate) files: Vec<FileInfo>,
    pub(crate) definitions: Vec<Definition>,
    pub(crate) roots: Vec<DefId>,
}

/// A file that took part in the translation unit.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// The path as it was opened.
    pub path: std::path::PathBuf,
    /// True for the file named by the user, false for those it includes.
    pub is_main: bool,
    /// True for a file built into the front end, such as `orb.idl`; no disk has it.
    pub is_builtin: bool,
    /// True for a file that was found by the name of a built-in one, such as an `orb.idl` of another ORB,
    /// and is read in its place; and for what that file includes.
    pub replaces_builtin: bool,
}

impl Model {
    /// The files read, in the order of first opening; the main file is the first.
    pub fn files(&self) -> &[FileInfo] {
        &self.files
    }

    /// All definitions; [`DefId::index`] is the position here.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The definitions at file scope in the order of their first appearance, from every file.
    pub fn roots(&self) -> &[DefId] {
        &self.roots
    }

    /// One definition.
    pub fn get(&self, id: DefId) -> &Definition {
        &self.definitions[id.index()]
    }

    /// True for a definition of the standard's own modules, which comes with an ORB: one
    /// of a built-in file, or of module `CORBA` or `IOP` in a file that is read in place of one. A
    /// generator needs only those that are used.
    pub fn is_standard(&self, id: DefId) -> bool {
        let file = &self.files[self.get(id).file.index()];
        if !file.replaces_builtin {
            return file.is_builtin;
        }
        let mut top = self.get(id);
        while let Some(parent) = top.parent {
            top = self.get(parent);
        }
        matches!(top.name.as_str(), "CORBA" | "IOP")
    }

    /// The scoped name of `id` from file scope down, e.g. `["CosNaming", "NamingContext", "NotFound"]`.
    pub fn scoped_name(&self, id: DefId) -> Vec<&str> {
        let mut names = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            let def = self.get(id);
            names.push(def.name.as_str());
            at = def.parent;
        }
        names.reverse();
        names
    }

    /// The type with all outer typedefs resolved. Elements of sequences and arrays keep theirs.
    pub fn unaliased<'m>(&'m self, ty: &'m Type) -> &'m Type {
        let mut ty = ty;
        while let Type::Named(id) = ty {
            match &self.get(*id).kind {
                DefKind::Typedef(alias) => ty = &alias.ty,
                _ => break,
            }
        }
        ty
    }

    /// All direct and indirect bases of an interface or value, each once, nearest first, without itself.
    pub fn all_bases(&self, id: DefId) -> Vec<DefId> {
        let mut found: Vec<DefId> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let add = |bases: &[DefId], found: &mut Vec<DefId>, seen: &mut std::collections::HashSet<DefId>| {
            found.extend(bases.iter().copied().filter(|&base| seen.insert(base)));
        };
        add(self.direct_bases(id), &mut found, &mut seen);
        let mut at = 0;
        while let Some(&base) = found.get(at) {
            add(self.direct_bases(base), &mut found, &mut seen);
            at += 1;
        }
        found
    }

    fn direct_bases(&self, id: DefId) -> &[DefId] {
        match &self.get(id).kind {
            DefKind::Interface(interface) => &interface.bases,
            DefKind::Value(value) => &value.bases,
            _ => &[],
        }
    }
}

/// One named thing of an IDL file.
#[derive(Debug, Clone)]
pub struct Definition {
    /// The index of the definition.
    pub id: DefId,
    /// The name as written, without the escaping underscore.
    pub name: String,
    /// The enclosing scope: a module, interface, value, struct, union, exception or bitmask; `None` at file
    /// scope.
    pub parent: Option<DefId>,
    /// The repository id, e.g. `IDL:omg.org/CosNaming/NamingContext:1.0`, after prefix, version and ID
    /// pragmas, typeid and typeprefix.
    pub repository_id: String,
    /// The place of its name; for a module, in its first opening.
    pub span: Span,
    /// The file that holds it.
    pub file: FileId,
    /// IDL 4 annotations before it, in order.
    pub annotations: Vec<Annotation>,
    /// The lines of the `//` or `/* */` comment directly above it, without comment marks.
    pub docs: Vec<String>,
    /// The kind of definition, with its contents.
    pub kind: DefKind,
}

/// The kind of a definition, with its contents.
#[derive(Debug, Clone)]
pub enum DefKind {
    /// `module`: all its openings together.
    Module(Module),
    /// `interface`, plain, abstract or local.
    Interface(Interface),
    /// An operation of an interface or value.
    Operation(Operation),
    /// One attribute name (a declaration of several names gives several definitions).
    Attribute(Attribute),
    /// `struct`.
    Struct(Struct),
    /// `union`.
    Union(Union),
    /// `enum`.
    Enum(Enum),
    /// One name of an enum; its ordinal counts from 0. Its parent is the scope around the enum.
    Enumerator {
        /// The enum.
        of: DefId,
        /// Its ordinal, from 0.
        ordinal: u32,
    },
    /// `typedef`, one declarator each.
    Typedef(Typedef),
    /// `const`.
    Constant(Constant),
    /// `exception`.
    Exception(Struct),
    /// `valuetype` (not boxed).
    Value(Value),
    /// `valuetype name type;`
    ValueBox(ValueBox),
    /// `native`.
    Native,
    /// `bitset` (IDL 4.2, 7.4.13.4.3.2).
    Bitset(Bitset),
    /// `bitmask` (IDL 4.2, 7.4.13.4.3.3).
    Bitmask(Bitmask),
    /// One flag of a bitmask, which is its parent.
    Flag {
        /// The bit, from 0 for the least significant.
        position: u8,
    },
    /// `@annotation name { ... };`. Nothing is generated for it; uses of it are checked against it.
    Annotation(AnnotationType),
}

/// The contents of a module.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// Its definitions in order, over all openings and files.
    pub items: Vec<DefId>,
}

/// Which kind of interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InterfaceKind {
    /// A plain, remotable interface.
    Remote,
    /// `abstract interface`.
    Abstract,
    /// `local interface`.
    Local,
}

/// An interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Plain, abstract or local.
    pub kind: InterfaceKind,
    /// Direct bases in order.
    pub bases: Vec<DefId>,
    /// Operations, attributes, types, constants and exceptions in order.
    pub items: Vec<DefId>,
    /// False for an interface that is declared forward but defined nowhere in the unit.
    pub defined: bool,
}

/// An operation.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `oneway`.
    pub oneway: bool,
    /// [`Type::Void`] for none.
    pub result: Type,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// Exceptions of the raises clause, in order.
    pub raises: Vec<DefId>,
    /// Strings of the context clause; `None` without such a clause.
    pub context: Option<Vec<String>>,
    /// What `@rt` says.
    pub timing: Option<Timing>,
    /// Clients run it over the cached attributes that they hold (`@cached`). All its parameters are `in`, and it raises nothing.
    pub is_cached: bool,
    /// Carrying it out twice leaves the object as carrying it out once does (`@idempotent`). So is one that clients run
    /// themselves.
    pub is_idempotent: bool,
    /// How parts of an object carry it out together (`@parallel`).
    pub parallel: Option<Parallel>,
}

/// Direction of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the object.
    In,
    /// From the object.
    Out,
    /// Both.
    InOut,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Direction.
    pub direction: Direction,
    /// Type.
    pub ty: Type,
    /// Name without escape.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
}

/// An attribute.
#[derive(Debug, Clone)]
pub struct Attribute {
    /// `readonly`.
    pub readonly: bool,
    /// Type.
    pub ty: Type,
    /// `getraises`, or `raises` of a readonly attribute.
    pub get_raises: Vec<DefId>,
    /// `setraises`.
    pub set_raises: Vec<DefId>,
    /// What `@rt` says of reading and of writing it.
    pub timing: Option<Timing>,
    /// How clients may cache it (`@cached`).
    pub caching: Option<Caching>,
    /// Writing it twice is as writing it once (`@idempotent`). Reading always is.
    pub is_idempotent: bool,
}

/// A struct or exception body.
#[derive(Debug, Clone)]
pub struct Struct {
    /// Members in order; there may be none. Those of the base come first, so that a user need not look at the
    /// base.
    pub members: Vec<Member>,
    /// The struct that this one inherits from (IDL 4.2, 7.4.13.4.1); its members are among `members`.
    pub base: Option<DefId>,
    /// Types defined inside the body (e.g. a struct declared in a member), in order.
    pub items: Vec<DefId>,
    /// True when the type contains itself through a sequence.
    pub recursive: bool,
    /// False for a forward declaration that is never completed (legal only while unused as a member).
    pub defined: bool,
}

/// A member of a struct or exception, or a state member of a value.
#[derive(Debug, Clone)]
pub struct Member {
    /// Name without escape.
    pub name: String,
    /// Type.
    pub ty: Type,
    /// Where the name stands.
    pub span: Span,
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// The comment above it.
    pub docs: Vec<String>,
}

/// A union.
#[derive(Debug, Clone)]
pub struct Union {
    /// The discriminator's type as written (may be an alias).
    pub discriminator: Type,
    /// Cases in order.
    pub cases: Vec<Case>,
    /// Types defined inside the body.
    pub items: Vec<DefId>,
    /// True when the labels name every value of the discriminator.
    pub exhaustive: bool,
    /// True when the type contains itself through a sequence.
    pub recursive: bool,
    /// False for a forward declaration that is never completed.
    pub defined: bool,
}

/// One member of a union with its labels.
#[derive(Debug, Clone)]
pub struct Case {
    /// Explicit labels in order; may be empty when `is_default`.
    pub labels: Vec<ConstValue>,
    /// True when `default:` is among the labels.
    pub is_default: bool,
    /// The member.
    pub member: Member,
}

/// An enum.
#[derive(Debug, Clone)]
pub struct Enum {
    /// The [`DefKind::Enumerator`] definitions in order.
    pub enumerators: Vec<DefId>,
}

/// A bitset: fields of some bits each, packed into one integer from its least significant bit on.
#[derive(Debug, Clone)]
pub struct Bitset {
    /// The bitset that this one inherits from; its fields are among `fields`, before its own.
    pub base: Option<DefId>,
    /// Fields in order; padding only moves the offsets of those behind it.
    pub fields: Vec<Bitfield>,
    /// Bits in all, with padding: 1 to 64.
    pub bits: u8,
    /// The type on the wire: the smallest of [`Basic::UInt8`], [`Basic::UShort`], [`Basic::ULong`] and
    /// [`Basic::ULongLong`] that holds all bits.
    pub storage: Basic,
}

/// A named field of a bitset.
#[derive(Debug, Clone)]
pub struct Bitfield {
    /// Name without escape.
    pub name: String,
    /// The type of its value: the one written, or else `boolean` for 1 bit, [`Basic::UInt8`] up to 8,
    /// `unsigned short` up to 16, `unsigned long` up to 32 and `unsigned long long` up to 64 bits. A
    /// signed type means a two's complement number of `bits` bits.
    pub ty: Basic,
    /// The position of its least significant bit.
    pub offset: u8,
    /// Its width: 1 to 64.
    pub bits: u8,
    /// Where the name stands.
    pub span: Span,
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// The comment above it.
    pub docs: Vec<String>,
}

/// A bitmask: a set of named flags in one integer.
#[derive(Debug, Clone)]
pub struct Bitmask {
    /// The [`DefKind::Flag`] definitions in order.
    pub flags: Vec<DefId>,
    /// `@bit_bound`, 1 to 64; 32 without it.
    pub bits: u8,
    /// The type on the wire, which depends on `bits` as for a [`Bitset`].
    pub storage: Basic,
}

/// An annotation as declared by `@annotation`.
#[derive(Debug, Clone)]
pub struct AnnotationType {
    /// Parameters in order.
    pub parameters: Vec<AnnotationMember>,
    /// Enums, constants and typedefs inside the declaration.
    pub items: Vec<DefId>,
}

/// A parameter in the declaration of an annotation.
#[derive(Debug, Clone)]
pub struct AnnotationMember {
    /// Name without escape.
    pub name: String,
    /// Type; `None` for `any`, which takes every constant.
    pub ty: Option<Type>,
    /// The value when the use gives none.
    pub default: Option<ConstValue>,
    /// Where the name stands.
    pub span: Span,
}

/// A typedef.
#[derive(Debug, Clone)]
pub struct Typedef {
    /// The type, with array dimensions applied.
    pub ty: Type,
}

/// A constant.
#[derive(Debug, Clone)]
pub struct Constant {
    /// The declared type.
    pub ty: Type,
    /// The value, in range and of the variant that fits `ty`.
    pub value: ConstValue,
}

/// A valuetype.
#[derive(Debug, Clone)]
pub struct Value {
    /// `abstract valuetype`.
    pub is_abstract: bool,
    /// `custom valuetype`.
    pub custom: bool,
    /// `truncatable` before the first base.
    pub truncatable: bool,
    /// Base values; the first may be concrete, the others are abstract.
    pub bases: Vec<DefId>,
    /// Supported interfaces.
    pub supports: Vec<DefId>,
    /// State in order.
    pub state: Vec<StateMember>,
    /// Factories in order.
    pub factories: Vec<Factory>,
    /// Operations, attributes, types, constants and exceptions in order.
    pub items: Vec<DefId>,
    /// False for a value that is declared forward but defined nowhere in the unit.
    pub defined: bool,
}

/// A state member of a value.
#[derive(Debug, Clone)]
pub struct StateMember {
    /// `public` rather than `private`.
    pub public: bool,
    /// Name and type.
    pub member: Member,
}

/// An initializer of a value.
#[derive(Debug, Clone)]
pub struct Factory {
    /// Name without escape.
    pub name: String,
    /// Parameters (all `in`).
    pub parameters: Vec<Parameter>,
    /// Exceptions.
    pub raises: Vec<DefId>,
    /// Where the name stands.
    pub span: Span,
}

/// A boxed value.
#[derive(Debug, Clone)]
pub struct ValueBox {
    /// What it boxes.
    pub ty: Type,
}

/// A type as used by a member, parameter, typedef, constant or element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `void`, only as a result.
    Void,
    /// A basic type.
    Basic(Basic),
    /// `string` or `string<N>`.
    String {
        /// The bound in characters.
        bound: Option<u32>,
    },
    /// `wstring` or `wstring<N>`.
    WString {
        /// The bound in characters.
        bound: Option<u32>,
    },
    /// `fixed<digits, scale>`. The bare `fixed` of a constant has the digits and scale of its value.
    Fixed {
        /// Digits and scale; always there in a model.
        spec: Option<(u16, i16)>,
    },
    /// `sequence<T>` or `sequence<T, N>`.
    Sequence {
        /// Element type.
        element: Box<Type>,
        /// The bound in elements.
        bound: Option<u32>,
    },
    /// `map<K, V>` or `map<K, V, N>`. On the wire it is a sequence of pairs.
    Map {
        /// Key type.
        key: Box<Type>,
        /// Value type.
        value: Box<Type>,
        /// The bound in entries.
        bound: Option<u32>,
    },
    /// An array; `T a[3][4]` is one array with dimensions `[3, 4]`.
    Array {
        /// Element type.
        element: Box<Type>,
        /// Dimensions, outermost first, each at least 1.
        dimensions: Vec<u32>,
    },
    /// A struct, union, enum, typedef, interface, value, value box, native, bitset or bitmask by name.
    Named(DefId),
}

/// A basic type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Basic {
    /// `short` or `int16`, 16 bits.
    Short,
    /// `unsigned short` or `uint16`.
    UShort,
    /// `long` or `int32`, 32 bits.
    Long,
    /// `unsigned long` or `uint32`.
    ULong,
    /// `long long` or `int64`, 64 bits.
    LongLong,
    /// `unsigned long long` or `uint64`.
    ULongLong,
    /// `float`, 32 bits.
    Float,
    /// `double`, 64 bits.
    Double,
    /// `long double`, 128 bits.
    LongDouble,
    /// `char`, 8 bits.
    Char,
    /// `wchar`.
    WChar,
    /// `boolean`.
    Boolean,
    /// `octet`.
    Octet,
    /// `int8`: a number from -128 to 127 in one octet. CORBA has no TypeCode for it; it is described as
    /// `octet`, which no conversion between code sets touches.
    Int8,
    /// `uint8`: on the wire and in TypeCodes an `octet`, but meant as a number.
    UInt8,
    /// `any`.
    Any,
    /// `Object`.
    Object,
    /// `ValueBase`.
    ValueBase,
    /// `CORBA::TypeCode`.
    TypeCode,
}

impl Basic {
    /// True for the types of whole numbers, `octet` among them.
    pub fn is_integer(self) -> bool {
        matches!(
            self,
            Basic::Short
                | Basic::UShort
                | Basic::Long
                | Basic::ULong
                | Basic::LongLong
                | Basic::ULongLong
                | Basic::Octet
                | Basic::Int8
                | Basic::UInt8
        )
    }
}

/// An evaluated constant.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstValue {
    /// A value of any integer type or octet, or the bits of a bitmask. The declared type says which.
    Integer(i128),
    /// `float` or `double`; rounded to the declared type.
    Float(f64),
    /// `long double`: the bits of an IEEE 754 binary128, rounded once from the decimal text.
    LongDouble(u128),
    /// `char`, in ISO 8859-1.
    Char(u8),
    /// `wchar`.
    WChar(char),
    /// `boolean`.
    Boolean(bool),
    /// `string`.
    String(String),
    /// `wstring`.
    WString(String),
    /// `fixed`, as decimal text without the trailing `d`, e.g. `-12.50`.
    Fixed(String),
    /// An enumerator.
    Enumerator(DefId),
}

/// An IDL 4 annotation, e.g. `@range(min = 0, max = 10)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Annotation {
    /// The scoped name as written, without `@`.
    pub name: String,
    /// The [`DefKind::Annotation`] that declares it, when the text has one; its parameters then have the
    /// declared types.
    pub of: Option<DefId>,
    /// Parameters in order.
    pub parameters: Vec<AnnotationParameter>,
    /// Where it stands.
    pub span: Span,
}

/// A parameter of an annotation.
#[derive(Debug, Clone, PartialEq)]
pub struct AnnotationParameter {
    /// `None` for the single unnamed parameter.
    pub name: Option<String>,
    /// The value; names that do not resolve to a constant are kept as their text in a `String`.
    pub value: ConstValue,
}
