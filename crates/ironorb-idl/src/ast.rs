//! The syntax tree: names are unresolved, constants unevaluated, and every part has its place.

use crate::intern::Name;
use crate::lex::{LiteralId, Punct};
use crate::model::{Basic, Direction, InterfaceKind};
use crate::source::Span;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ident {
    pub(crate) name: Name,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct ScopedName {
    pub(crate) absolute: bool,
    pub(crate) first: Ident,
    pub(crate) rest: Vec<Ident>,
    pub(crate) span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct Ast {
    pub(crate) items: Vec<Item>,
    /// The items of the built-in file, which supply what another ORB's file lacks.
    pub(crate) supplement: Vec<Item>,
    /// Folded names in text that was skipped after an error: whether they are defined is unknown.
    pub(crate) lost: Vec<Name>,
}

#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) lead: Lead,
    pub(crate) kind: ItemKind,
}

/// The comments and annotations before a definition, member or parameter.
#[derive(Debug)]
pub(crate) struct Lead {
    /// Index of the first token; comments are found by it.
    pub(crate) token: u32,
    pub(crate) annotations: Vec<Annotation>,
}

impl Lead {
    /// The empty lead of a definition inside a type.
    pub(crate) const NONE: Lead = Lead { token: Self::NO_TOKEN, annotations: Vec::new() };
    pub(crate) const NO_TOKEN: u32 = u32::MAX;
}

#[derive(Debug)]
pub(crate) struct Annotation {
    /// Keywords are names here.
    pub(crate) name: ScopedName,
    pub(crate) arguments: Vec<(Option<Ident>, Expr)>,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum ItemKind {
    /// Index of a pragma or file border.
    Event(usize),
    Module {
        name: Ident,
        items: Vec<Item>,
    },
    Interface(Interface),
    Value(Value),
    ValueBox {
        name: Ident,
        ty: TypeSpec,
    },
    Struct(Struct),
    Union(Union),
    Enum(Enum),
    Exception(Struct),
    Typedef {
        ty: TypeSpec,
        declarators: Vec<Declarator>,
    },
    Const {
        ty: TypeSpec,
        name: Ident,
        value: Expr,
    },
    Native(Ident),
    Operation(Operation),
    Attribute(Attribute),
    State {
        public: bool,
        member: Member,
    },
    Factory(Factory),
    TypeId {
        name: ScopedName,
        id: Expr,
    },
    TypePrefix {
        name: ScopedName,
        prefix: Expr,
    },
    Import(ScopedName),
    Bitset(Bitset),
    Bitmask(Bitmask),
    Annotation(AnnotationType),
}

#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) kind: InterfaceKind,
    pub(crate) name: Ident,
    pub(crate) bases: Vec<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) items: Option<Vec<Item>>,
}

#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) name: Ident,
    pub(crate) is_abstract: bool,
    pub(crate) custom: bool,
    pub(crate) truncatable: Option<Span>,
    pub(crate) bases: Vec<ScopedName>,
    pub(crate) supports: Vec<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) items: Option<Vec<Item>>,
}

/// A struct or an exception.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    /// `None` for a forward declaration.
    pub(crate) members: Option<Vec<Member>>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) lead: Lead,
    pub(crate) ty: TypeSpec,
    pub(crate) declarators: Vec<Declarator>,
}

#[derive(Debug)]
pub(crate) struct Declarator {
    pub(crate) name: Ident,
    pub(crate) dimensions: Vec<Expr>,
}

#[derive(Debug)]
pub(crate) struct Union {
    pub(crate) name: Ident,
    pub(crate) body: Option<UnionBody>,
}

#[derive(Debug)]
pub(crate) struct UnionBody {
    pub(crate) discriminator: TypeSpec,
    pub(crate) cases: Vec<Case>,
}

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) lead: Lead,
    pub(crate) labels: Vec<Label>,
    pub(crate) ty: TypeSpec,
    pub(crate) declarator: Declarator,
}

#[derive(Debug)]
pub(crate) enum Label {
    Default(Span),
    Value(Expr),
}

#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) name: Ident,
    pub(crate) enumerators: Vec<(Lead, Ident)>,
}

#[derive(Debug)]
pub(crate) struct Bitset {
    pub(crate) name: Ident,
    pub(crate) base: Option<ScopedName>,
    pub(crate) fields: Vec<Bitfield>,
}

#[derive(Debug)]
pub(crate) struct Bitfield {
    pub(crate) lead: Lead,
    pub(crate) bits: Expr,
    pub(crate) ty: Option<TypeSpec>,
    /// None for padding.
    pub(crate) names: Vec<Ident>,
}

#[derive(Debug)]
pub(crate) struct Bitmask {
    pub(crate) name: Ident,
    pub(crate) flags: Vec<(Lead, Ident)>,
}

/// The declaration of an annotation.
#[derive(Debug)]
pub(crate) struct AnnotationType {
    pub(crate) name: Ident,
    pub(crate) members: Vec<AnnotationMember>,
    /// Enums, constants and typedefs.
    pub(crate) items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct AnnotationMember {
    /// How many of the items stand before it.
    pub(crate) after: usize,
    /// `None` for `any`.
    pub(crate) ty: Option<TypeSpec>,
    pub(crate) name: Ident,
    pub(crate) default: Option<Expr>,
}

#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) oneway: Option<Span>,
    pub(crate) result: TypeSpec,
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Option<Raises>,
    /// Runs of string literals.
    pub(crate) context: Option<Vec<Expr>>,
}

#[derive(Debug)]
pub(crate) struct Raises {
    pub(crate) span: Span,
    pub(crate) names: Vec<ScopedName>,
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) lead: Lead,
    pub(crate) direction: Direction,
    pub(crate) direction_span: Span,
    pub(crate) ty: TypeSpec,
    pub(crate) name: Ident,
}

#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) readonly: bool,
    pub(crate) ty: TypeSpec,
    pub(crate) names: Vec<Ident>,
    pub(crate) get_raises: Option<Raises>,
    pub(crate) set_raises: Option<Raises>,
}

#[derive(Debug)]
pub(crate) struct Factory {
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) raises: Option<Raises>,
}

#[derive(Debug)]
pub(crate) struct TypeSpec {
    pub(crate) kind: TypeKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum TypeKind {
    Void,
    Basic(Basic),
    String { wide: bool, bound: Option<Expr> },
    Fixed(Option<Box<(Expr, Expr)>>),
    Sequence { element: Box<TypeSpec>, bound: Option<Expr> },
    Map { key: Box<TypeSpec>, value: Box<TypeSpec>, bound: Option<Expr> },
    Named(ScopedName),
    Struct(Box<Struct>),
    Union(Box<Union>),
    Enum(Box<Enum>),
    Bitset(Box<Bitset>),
    Bitmask(Box<Bitmask>),
}

/// A constant expression in postfix order, so that its evaluation needs no recursion.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) ops: Vec<ExprOp>,
    pub(crate) span: Span,
}

#[derive(Debug, Clone)]
pub(crate) enum ExprOp {
    Literal(LiteralId, Span),
    Boolean(bool, Span),
    Name(ScopedName),
    Unary(Punct, Span),
    Binary(Punct, Span),
}
