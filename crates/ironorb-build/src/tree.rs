//! A small tree in the shape of Rust. Every name and type in it is final text; what prints it decides
//! nothing.

/// One generated file.
#[derive(Debug)]
pub(crate) struct File {
    /// What it was generated from, for its first line.
    pub(crate) source: String,
    /// The path of the support module.
    pub(crate) support: String,
    pub(crate) items: Vec<Item>,
}

/// An item with its documentation.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) docs: Vec<String>,
    pub(crate) kind: ItemKind,
}

#[derive(Debug)]
pub(crate) enum ItemKind {
    Module(Module),
    Struct(Struct),
    Enum(Enum),
    Union(Union),
    Alias(Alias),
    Const { name: String, ty: String, value: String },
    Interface(Interface),
    Bitset(Bitset),
    Bitmask(Bitmask),
    Value(Value),
    AbstractValue(AbstractValue),
    ValueBox(ValueBox),
    ValueFactory(ValueFactory),
    RegisterValues(RegisterValues),
    OperationErrors(Vec<OperationError>),
}

impl ItemKind {
    /// Whether it is a module without contents.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, ItemKind::Module(module) if module.items.is_empty())
    }
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) items: Vec<Item>,
}

/// What is said of a type besides its shape.
#[derive(Debug)]
pub(crate) struct TypeCode {
    /// The static that describes it.
    pub(crate) name: String,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<String>,
    pub(crate) repository_id: String,
}

#[derive(Debug)]
pub(crate) struct Alias {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) type_code: TypeCode,
    pub(crate) original: Original,
}

/// What an alias stands for.
#[derive(Debug)]
pub(crate) enum Original {
    /// What its Rust type says.
    Rust,
    /// A codec, where bounds are to be checked, or an expression.
    Described(Described),
    Native,
}

/// A codec, and the expression of its description where the codec cannot tell.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) codec: String,
    pub(crate) description: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) fields: Vec<Field>,
    /// The default value of each field, where the IDL gives some.
    pub(crate) defaults: Option<Vec<String>>,
    /// The scoped IDL name, when it is an exception.
    pub(crate) exception: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<String>,
    pub(crate) ty: String,
    pub(crate) codec: Described,
}

#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) variants: Vec<Variant>,
}

#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Union {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) discriminator: Described,
    pub(crate) cases: Vec<Case>,
    /// The variant of the default value, and its label where it stores one.
    pub(crate) default: Option<(String, Option<String>)>,
    /// For the description: each label as a number with name and type of its member, in the order of the IDL.
    pub(crate) labels: Vec<(i64, String, Described)>,
    /// The place of the default case among them.
    pub(crate) default_label: Option<usize>,
}

/// One variant of a union.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    pub(crate) kind: CaseKind,
}

/// Labels are Rust patterns; those in `unless` belong to other cases.
#[derive(Debug)]
pub(crate) enum CaseKind {
    One { label: String, ty: String, codec: String },
    Many { labels: Vec<String>, ty: String, codec: String },
    Default { unless: Vec<String>, ty: String, codec: String },
    Rest { unless: Vec<String> },
}

/// Fields packed into one number.
#[derive(Debug)]
pub(crate) struct Bitset {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    /// The type of the number.
    pub(crate) storage: String,
    pub(crate) fields: Vec<Bitfield>,
}

#[derive(Debug)]
pub(crate) struct Bitfield {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) offset: u8,
    pub(crate) bits: u8,
}

/// Flags in one number.
#[derive(Debug)]
pub(crate) struct Bitmask {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    /// The type of the number.
    pub(crate) storage: String,
    /// Each with its bit.
    pub(crate) flags: Vec<(Variant, u8)>,
}

#[derive(Debug)]
pub(crate) struct OperationError {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// Variant and type of each exception.
    pub(crate) exceptions: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) supertraits: Vec<String>,
    pub(crate) methods: Vec<Method>,
    pub(crate) type_code: TypeCode,
    /// `None` for a local interface.
    pub(crate) remote: Option<Remote>,
}

#[derive(Debug, Default)]
pub(crate) struct Method {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    /// The method that calls it asynchronously.
    pub(crate) later: String,
    pub(crate) parameters: Vec<Parameter>,
    /// Types of the return value and of what goes out, in order.
    pub(crate) results: Vec<String>,
    pub(crate) result_codecs: Vec<String>,
    /// The codec that joins no results or several.
    pub(crate) joined_codec: String,
    pub(crate) error: String,
    pub(crate) oneway: bool,
    /// Whether a bound is to be checked in what goes in or comes out.
    pub(crate) bounded: bool,
    /// What the context that follows the arguments may hold, if one does.
    pub(crate) context: Option<Vec<String>>,
    /// The operation name in the request.
    pub(crate) wire_name: String,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) ty: String,
    /// How it travels: a word that the support macros know, with a type where they ask for one.
    pub(crate) mode: String,
}

/// What an interface has besides its trait when it can be called remotely.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) docs: Vec<String>,
    pub(crate) reference: String,
    pub(crate) skeleton: String,
    /// The traits of asynchronous calls and of servants that answer later.
    pub(crate) asynchronous: String,
    pub(crate) deferred: String,
    /// Whether values may stand where its references do.
    pub(crate) is_abstract: bool,
    /// Reference type and trait of every direct and indirect base.
    pub(crate) bases: Vec<(String, String)>,
    pub(crate) slots: usize,
    pub(crate) seed: u64,
    /// Operation name and skeleton function, in the order of their positions.
    pub(crate) operations: Vec<(String, String)>,
}

/// A valuetype with state.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    pub(crate) derives: Vec<&'static str>,
    /// `plain`, `custom` or `truncatable`.
    pub(crate) modifier: &'static str,
    /// The field that holds the state of the concrete base, and the base's type and description.
    pub(crate) base: Option<(String, String, String)>,
    /// The concrete bases, nearest first.
    pub(crate) bases: Vec<String>,
    /// To how many of them a receiver may cut a value down.
    pub(crate) truncatable: usize,
    /// The traits of the abstract bases; true for those without operations.
    pub(crate) abstract_bases: Vec<(String, bool)>,
    /// The other traits by which a value may be seen: of operations and of supported interfaces.
    pub(crate) views: Vec<String>,
    /// State members; true for the public ones.
    pub(crate) fields: Vec<(Field, bool)>,
    /// The default value of each field, that of the base before them, where the IDL gives some.
    pub(crate) defaults: Option<Vec<String>>,
    pub(crate) operations: Option<Operations>,
}

/// The trait of the operations of a valuetype.
#[derive(Debug)]
pub(crate) struct Operations {
    pub(crate) docs: Vec<String>,
    pub(crate) name: String,
    pub(crate) supertraits: Vec<String>,
    pub(crate) methods: Vec<Method>,
}

/// An abstract valuetype: a trait that values are seen by.
#[derive(Debug)]
pub(crate) struct AbstractValue {
    pub(crate) operations: Operations,
    pub(crate) type_code: TypeCode,
    /// The traits of its bases, direct and indirect.
    pub(crate) bases: Vec<String>,
}

/// A boxed value.
#[derive(Debug)]
pub(crate) struct ValueBox {
    pub(crate) name: String,
    pub(crate) type_code: TypeCode,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) ty: String,
    pub(crate) content: Described,
}

/// The trait of the factories of a valuetype.
#[derive(Debug)]
pub(crate) struct ValueFactory {
    pub(crate) name: String,
    pub(crate) methods: Vec<Method>,
}

/// A function that makes valuetypes known to an ORB.
#[derive(Debug)]
pub(crate) struct RegisterValues {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
    /// The same functions of modules inside.
    pub(crate) others: Vec<String>,
}
