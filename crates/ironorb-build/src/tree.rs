//! A small tree in the shape of Rust. Every name and type in it is final text, so the printer decides
//! nothing.

use std::borrow::Cow;
use std::ops::Range;

use ironorb_idl::model::Timing;

use crate::hash::PerfectHash;

/// A piece of Rust. Most names and many types borrow from the model or are constants.
pub(crate) type Text<'t> = Cow<'t, str>;

/// One generated file.
#[derive(Debug)]
pub(crate) struct File<'t> {
    /// The name of the source, for the file's first line.
    pub(crate) source: String,
    /// The path of the support module.
    pub(crate) support: String,
    pub(crate) items: Vec<Item<'t>>,
}

/// An item with its documentation.
#[derive(Debug)]
pub(crate) struct Item<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) kind: ItemKind<'t>,
}

#[derive(Debug)]
pub(crate) enum ItemKind<'t> {
    Module(Module<'t>),
    Struct(Struct<'t>),
    Enum(Enum<'t>),
    Union(Union<'t>),
    Alias(Alias<'t>),
    Const { name: Text<'t>, ty: Text<'t>, value: Text<'t> },
    Interface(Interface<'t>),
    Bitset(Bitset<'t>),
    Bitmask(Bitmask<'t>),
    Value(Value<'t>),
    AbstractValue(AbstractValue<'t>),
    ValueBox(ValueBox<'t>),
    ValueFactory(ValueFactory<'t>),
    RegisterValues(RegisterValues<'t>),
    OperationErrors(Vec<OperationError<'t>>),
    Reads(Reads<'t>),
}

impl ItemKind<'_> {
    /// Whether it is a module without contents.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, ItemKind::Module(module) if module.items.is_empty())
    }
}

#[derive(Debug)]
pub(crate) struct Module<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) items: Vec<Item<'t>>,
}

/// The properties of a type besides its shape.
#[derive(Debug)]
pub(crate) struct TypeCode<'t> {
    /// The static that describes it.
    pub(crate) name: Text<'t>,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<Text<'t>>,
    pub(crate) repository_id: Text<'t>,
}

#[derive(Debug)]
pub(crate) struct Alias<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) ty: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) original: Original<'t>,
}

/// What an alias stands for.
#[derive(Debug)]
pub(crate) enum Original<'t> {
    /// The Rust type.
    Rust,
    /// A codec, if bounds must be checked, or an expression.
    Described(Described<'t>),
    Native,
}

/// A codec, and the expression of its description if the codec does not imply it.
#[derive(Debug)]
pub(crate) struct Described<'t> {
    pub(crate) codec: Text<'t>,
    pub(crate) description: Option<Text<'t>>,
}

#[derive(Debug)]
pub(crate) struct Struct<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) fields: Vec<Field<'t>>,
    /// The default value of each field, where the IDL gives some.
    pub(crate) defaults: Option<Vec<Text<'t>>>,
    /// The sizes of the groups of fields that form blocks, in order; empty where no two fields or all of them
    /// form one.
    pub(crate) groups: Vec<usize>,
    /// The scoped IDL name, when it is an exception.
    pub(crate) exception: Option<Text<'t>>,
    /// The words that say that the interpreter marshals the type, that its memory layout equals the wire's,
    /// or that its values differ in size.
    pub(crate) way: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Field<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<Text<'t>>,
    pub(crate) ty: Text<'t>,
    pub(crate) codec: Described<'t>,
}

#[derive(Debug)]
pub(crate) struct Enum<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) variants: Vec<Variant<'t>>,
    /// What says that it leaves its marshalling to the interpreter.
    pub(crate) way: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Variant<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    /// The IDL name, where it is not the Rust name.
    pub(crate) idl: Option<Text<'t>>,
}

#[derive(Debug)]
pub(crate) struct Union<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) discriminator: Described<'t>,
    pub(crate) cases: Vec<Case<'t>>,
    /// The variant of the first value, and its label where it stores one.
    pub(crate) first: (Text<'t>, Option<Text<'t>>),
    /// Whether that is the default value.
    pub(crate) has_default: bool,
    /// For the description: each label as a number with name and type of its member, in the order of the IDL.
    pub(crate) labels: Vec<(i64, Text<'t>, Described<'t>)>,
    /// The position of the default case among them.
    pub(crate) default_label: Option<usize>,
    /// What says that it leaves its marshalling to the interpreter.
    pub(crate) way: Option<&'static str>,
}

/// One variant of a union.
#[derive(Debug)]
pub(crate) struct Case<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    pub(crate) kind: CaseKind<'t>,
}

/// Labels are Rust patterns; those in `unless` belong to other cases.
#[derive(Debug)]
pub(crate) enum CaseKind<'t> {
    One { label: Text<'t>, ty: Text<'t>, codec: Text<'t> },
    Many { labels: Vec<Text<'t>>, ty: Text<'t>, codec: Text<'t> },
    Default { unless: Vec<Text<'t>>, ty: Text<'t>, codec: Text<'t> },
    Rest { unless: Vec<Text<'t>> },
}

/// Fields packed into one number.
#[derive(Debug)]
pub(crate) struct Bitset<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    /// The type of the number.
    pub(crate) storage: Text<'t>,
    pub(crate) fields: Vec<Bitfield<'t>>,
}

#[derive(Debug)]
pub(crate) struct Bitfield<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    pub(crate) ty: Text<'t>,
    pub(crate) offset: u8,
    pub(crate) bits: u8,
}

/// Flags in one number.
#[derive(Debug)]
pub(crate) struct Bitmask<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    /// The type of the number.
    pub(crate) storage: Text<'t>,
    /// Each with its bit.
    pub(crate) flags: Vec<(Variant<'t>, u8)>,
}

#[derive(Debug)]
pub(crate) struct OperationError<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    /// Variant and type of each exception.
    pub(crate) exceptions: Vec<(Text<'t>, Text<'t>)>,
}

#[derive(Debug)]
pub(crate) struct Interface<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) supertraits: Vec<Text<'t>>,
    pub(crate) methods: Vec<Method<'t>>,
    /// Whether a servant may leave methods out.
    pub(crate) has_defaults: bool,
    /// Its cached attributes, if there are any. Their getters are not among the methods.
    pub(crate) cached: Option<Cached<'t>>,
    pub(crate) type_code: TypeCode<'t>,
    /// `None` for a local interface.
    pub(crate) remote: Option<Remote<'t>>,
}

/// The cached attributes of an interface.
#[derive(Debug)]
pub(crate) struct Cached<'t> {
    /// The type of their state, and its documentation.
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) state: Text<'t>,
    /// The type that changes it in a cell.
    pub(crate) update: Text<'t>,
    /// `words` or `shared`: how clients keep it.
    pub(crate) storage: &'static str,
    /// How clients are told of changes: `pushed` or `missed`, and how many writes they may miss. `None`: when they ask.
    pub(crate) mode: Option<(&'static str, u32)>,
    pub(crate) members: Vec<CachedMember<'t>>,
    /// The operations that clients run over the state, and the trait of these.
    pub(crate) reads: Option<Reads<'t>>,
}

/// Operations that are functions of a state.
#[derive(Debug)]
pub(crate) struct Reads<'t> {
    /// The trait: its name in its module, its path elsewhere.
    pub(crate) path: Text<'t>,
    pub(crate) methods: Vec<Method<'t>>,
}

/// A cached attribute.
#[derive(Debug)]
pub(crate) struct CachedMember<'t> {
    /// Its getter.
    pub(crate) method: Method<'t>,
    /// The reference's method that reads it with options.
    pub(crate) with: Text<'t>,
    /// 0 where the lag is the session's term.
    pub(crate) lag_nanos: u128,
}

#[derive(Debug, Default)]
pub(crate) struct Method<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    /// The method that calls it asynchronously.
    pub(crate) later: Text<'t>,
    pub(crate) parameters: Vec<Parameter<'t>>,
    /// Types of the return value and of what goes out, in order.
    pub(crate) results: Vec<Text<'t>>,
    pub(crate) result_codecs: Vec<Text<'t>>,
    /// The codec that joins no results or several.
    pub(crate) joined_codec: Text<'t>,
    pub(crate) error: Text<'t>,
    pub(crate) oneway: bool,
    /// Whether a bound must be checked in a parameter or result.
    pub(crate) bounded: bool,
    /// The names that the context after the arguments may contain, if there is one.
    pub(crate) context: Option<&'t [String]>,
    /// What `@rt` says.
    pub(crate) timing: Option<Timing>,
    /// Whether the text must say that it may be carried out twice. What reads cached or other attributes is known to.
    pub(crate) is_idempotent: bool,
    /// The operation name in the request.
    pub(crate) wire_name: Text<'t>,
}

#[derive(Debug)]
pub(crate) struct Parameter<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) ty: Text<'t>,
    /// How the parameter is passed: a type of the support module.
    pub(crate) way: Text<'t>,
}

/// The additional items of an interface that can be called remotely.
#[derive(Debug)]
pub(crate) struct Remote<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) reference: Text<'t>,
    pub(crate) skeleton: Text<'t>,
    /// The traits of asynchronous calls and of servants that answer later.
    pub(crate) asynchronous: Text<'t>,
    pub(crate) deferred: Text<'t>,
    /// The operations that parts of an object carry out together, if there are any, and their trait.
    pub(crate) parallel: Option<Parallel<'t>>,
    /// Whether valuetypes may be passed in place of its references.
    pub(crate) is_abstract: bool,
    /// Every direct and indirect base.
    pub(crate) bases: Vec<Base<'t>>,
    pub(crate) table: PerfectHash,
    /// The names of the operations in requests: the interface's own, then those of each base.
    pub(crate) operations: Vec<Text<'t>>,
    /// The numbers of the interface's own.
    pub(crate) own: Range<usize>,
}

/// Operations that parts of an object carry out together.
#[derive(Debug)]
pub(crate) struct Parallel<'t> {
    /// The trait.
    pub(crate) name: Text<'t>,
    pub(crate) methods: Vec<ParallelMethod<'t>>,
}

/// An operation that parts of an object carry out together.
#[derive(Debug)]
pub(crate) struct ParallelMethod<'t> {
    /// Its parameters are borrowed, also where servants may keep them.
    pub(crate) method: Method<'t>,
    /// What a part gets of each parameter, for the macro.
    pub(crate) ways: Vec<&'static str>,
    pub(crate) distribution: &'static str,
    /// How each result is joined: a type of the support module.
    pub(crate) joins: Vec<Text<'t>>,
}

/// A base of an interface that can be called remotely.
#[derive(Debug)]
pub(crate) struct Base<'t> {
    pub(crate) reference: Text<'t>,
    pub(crate) name: Text<'t>,
    pub(crate) deferred: Text<'t>,
    pub(crate) repository_id: Text<'t>,
    /// The numbers of its operations among those of the derived interface.
    pub(crate) operations: Range<usize>,
}

/// A valuetype with state.
#[derive(Debug)]
pub(crate) struct Value<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) derives: Vec<&'static str>,
    /// `plain`, `custom` or `truncatable`.
    pub(crate) modifier: &'static str,
    /// The field that holds the state of the concrete base, and the base's type and description.
    pub(crate) base: Option<(Text<'t>, Text<'t>, Text<'t>)>,
    /// The concrete bases, nearest first.
    pub(crate) bases: Vec<Text<'t>>,
    /// The number of them to which a receiver may truncate a value.
    pub(crate) truncatable: usize,
    /// The traits of the abstract bases; true for those without operations.
    pub(crate) abstract_bases: Vec<(Text<'t>, bool)>,
    /// The further traits of the value: those of operations and of supported interfaces.
    pub(crate) views: Vec<Text<'t>>,
    /// State members; true for the public ones.
    pub(crate) fields: Vec<(Field<'t>, bool)>,
    /// The default value of each field, beginning with that of the base, where the IDL gives some.
    pub(crate) defaults: Option<Vec<Text<'t>>>,
    pub(crate) operations: Option<Operations<'t>>,
}

/// The trait of the operations of a valuetype.
#[derive(Debug)]
pub(crate) struct Operations<'t> {
    pub(crate) docs: Vec<Text<'t>>,
    pub(crate) name: Text<'t>,
    pub(crate) supertraits: Vec<Text<'t>>,
    pub(crate) methods: Vec<Method<'t>>,
}

/// An abstract valuetype: a trait of values.
#[derive(Debug)]
pub(crate) struct AbstractValue<'t> {
    pub(crate) operations: Operations<'t>,
    pub(crate) type_code: TypeCode<'t>,
    /// The traits of its bases, direct and indirect.
    pub(crate) bases: Vec<Text<'t>>,
}

/// A boxed value.
#[derive(Debug)]
pub(crate) struct ValueBox<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) type_code: TypeCode<'t>,
    pub(crate) derives: Vec<&'static str>,
    pub(crate) ty: Text<'t>,
    pub(crate) content: Described<'t>,
}

/// The trait of the factories of a valuetype.
#[derive(Debug)]
pub(crate) struct ValueFactory<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) methods: Vec<Method<'t>>,
}

/// A function that registers valuetypes with an ORB.
#[derive(Debug)]
pub(crate) struct RegisterValues<'t> {
    pub(crate) name: Text<'t>,
    pub(crate) values: Vec<Text<'t>>,
    /// The registering functions of inner modules.
    pub(crate) others: Vec<Text<'t>>,
}
