//! The resolved model as text: complete, stable, made to be read and compared.

use std::fmt::Write as _;

use crate::model::{
    Annotation, Basic, ConstValue, DefId, DefKind, Direction, InterfaceKind, Member, Model, Operation,
    Parameter, Type,
};

/// Every definition with its repository id, types and values resolved.
pub fn dump(model: &Model) -> String {
    let mut dumper = Dumper { model, out: String::new(), depth: 0 };
    for file in model.files() {
        let kind = match (file.is_main, file.is_builtin) {
            (true, _) => "file",
            (_, true) => "builtin",
            _ => "include",
        };
        dumper.line(&format!("{kind} {}", file.path.display()));
    }
    dumper.items(model.roots());
    dumper.out
}

/// A value as it would be written.
pub(crate) fn value_text(model: &Model, value: &ConstValue) -> String {
    match value {
        ConstValue::Integer(value) => value.to_string(),
        ConstValue::Float(value) => format!("{value:?}"),
        ConstValue::LongDouble(bits) => format!("long double 0x{bits:032x}"),
        ConstValue::Char(char) => format!("'{}'", (*char as char).escape_default()),
        ConstValue::WChar(char) => format!("L'{}'", char.escape_default()),
        ConstValue::Boolean(true) => "TRUE".into(),
        ConstValue::Boolean(false) => "FALSE".into(),
        ConstValue::String(text) => format!("\"{}\"", text.escape_debug()),
        ConstValue::WString(text) => format!("L\"{}\"", text.escape_debug()),
        ConstValue::Fixed(text) => format!("{text}d"),
        ConstValue::Enumerator(id) => model.scoped_name(*id).join("::"),
    }
}

struct Dumper<'m> {
    model: &'m Model,
    out: String,
    depth: usize,
}

impl Dumper<'_> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn items(&mut self, items: &[DefId]) {
        for &id in items {
            self.definition(id);
        }
    }

    fn nested(&mut self, work: impl FnOnce(&mut Self)) {
        self.depth += 1;
        work(self);
        self.depth -= 1;
    }

    fn definition(&mut self, id: DefId) {
        let model = self.model;
        let definition = model.get(id);
        self.docs(&definition.docs);
        self.annotations(&definition.annotations);
        let (name, repository_id) = (&definition.name, &definition.repository_id);
        let head = |text: String| format!("{text}  [{repository_id}]");
        match &definition.kind {
            DefKind::Module(module) => {
                self.line(&head(format!("module {name}")));
                self.nested(|dumper| dumper.items(&module.items));
            }
            DefKind::Interface(interface) => {
                let kind = match interface.kind {
                    InterfaceKind::Remote => "",
                    InterfaceKind::Abstract => "abstract ",
                    InterfaceKind::Local => "local ",
                };
                let forward = if interface.defined { "" } else { " (forward)" };
                let bases = self.names(" : ", &interface.bases);
                self.line(&head(format!("{kind}interface {name}{bases}{forward}")));
                self.nested(|dumper| dumper.items(&interface.items));
            }
            DefKind::Operation(operation) => {
                let text = self.operation(name, operation);
                self.line(&head(text));
                self.nested(|dumper| dumper.parameters(&operation.parameters));
            }
            DefKind::Attribute(attribute) => {
                let readonly = if attribute.readonly { "readonly " } else { "" };
                let word = if attribute.readonly { " raises " } else { " getraises " };
                let get = self.names(word, &attribute.get_raises);
                let set = self.names(" setraises ", &attribute.set_raises);
                let ty = self.ty(&attribute.ty);
                self.line(&head(format!("{readonly}attribute {ty} {name}{get}{set}")));
            }
            DefKind::Struct(body) => {
                let recursive = if body.recursive { " (recursive)" } else { "" };
                let forward = if body.defined { "" } else { " (forward)" };
                let base = self.names(" : ", body.base.as_slice());
                self.line(&head(format!("struct {name}{base}{recursive}{forward}")));
                self.nested(|dumper| {
                    dumper.items(&body.items);
                    dumper.members(&body.members);
                });
            }
            DefKind::Exception(body) => {
                self.line(&head(format!("exception {name}")));
                self.nested(|dumper| {
                    dumper.items(&body.items);
                    dumper.members(&body.members);
                });
            }
            DefKind::Union(union) => {
                let recursive = if union.recursive { " (recursive)" } else { "" };
                let forward = if union.defined { "" } else { " (forward)" };
                let exhaustive = if union.exhaustive { " (exhaustive)" } else { "" };
                let discriminator = self.ty(&union.discriminator);
                self.line(&head(format!(
                    "union {name} switch {discriminator}{exhaustive}{recursive}{forward}"
                )));
                self.nested(|dumper| {
                    dumper.items(&union.items);
                    for case in &union.cases {
                        let mut labels: Vec<String> = case
                            .labels
                            .iter()
                            .map(|label| format!("case {}", value_text(model, label)))
                            .collect();
                        if case.is_default {
                            labels.push("default".into());
                        }
                        dumper.member(&case.member, &format!("{}: ", labels.join(", ")));
                    }
                });
            }
            DefKind::Enum(body) => {
                self.line(&head(format!("enum {name}")));
                self.nested(|dumper| dumper.items(&body.enumerators));
            }
            DefKind::Enumerator { ordinal, .. } => self.line(&head(format!("{ordinal} {name}"))),
            DefKind::Typedef(typedef) => {
                let ty = self.ty(&typedef.ty);
                self.line(&head(format!("typedef {name} = {ty}")));
            }
            DefKind::Constant(constant) => {
                let (ty, value) = (self.ty(&constant.ty), value_text(model, &constant.value));
                self.line(&head(format!("const {ty} {name} = {value}")));
            }
            DefKind::Value(value) => {
                let kind = match (value.is_abstract, value.custom) {
                    (true, _) => "abstract ",
                    (_, true) => "custom ",
                    _ => "",
                };
                let colon = if value.truncatable { " : truncatable " } else { " : " };
                let bases = self.names(colon, &value.bases);
                let supports = self.names(" supports ", &value.supports);
                let forward = if value.defined { "" } else { " (forward)" };
                self.line(&head(format!("{kind}valuetype {name}{bases}{supports}{forward}")));
                self.nested(|dumper| {
                    for state in &value.state {
                        dumper.member(&state.member, if state.public { "public " } else { "private " });
                    }
                    for factory in &value.factories {
                        let raises = dumper.names(" raises ", &factory.raises);
                        dumper.line(&format!("factory {}{raises}", factory.name));
                        dumper.nested(|dumper| dumper.parameters(&factory.parameters));
                    }
                    dumper.items(&value.items);
                });
            }
            DefKind::ValueBox(boxed) => {
                let ty = self.ty(&boxed.ty);
                self.line(&head(format!("valuetype {name} = box {ty}")));
            }
            DefKind::Bitset(body) => {
                let (base, storage) = (self.names(" : ", body.base.as_slice()), basic_text(body.storage));
                self.line(&head(format!("bitset {name}{base} ({} bits in {storage})", body.bits)));
                self.nested(|dumper| {
                    for field in &body.fields {
                        dumper.docs(&field.docs);
                        dumper.annotations(&field.annotations);
                        let (from, to) = (field.offset, field.offset + field.bits - 1);
                        dumper.line(&format!("{from}..{to} {} {}", basic_text(field.ty), field.name));
                    }
                });
            }
            DefKind::Bitmask(body) => {
                self.line(&head(format!(
                    "bitmask {name} ({} bits in {})",
                    body.bits,
                    basic_text(body.storage)
                )));
                self.nested(|dumper| dumper.items(&body.flags));
            }
            DefKind::Flag { position } => self.line(&head(format!("{position} {name}"))),
            DefKind::Annotation(body) => {
                self.line(&head(format!("annotation {name}")));
                self.nested(|dumper| {
                    dumper.items(&body.items);
                    for parameter in &body.parameters {
                        let ty = parameter.ty.as_ref().map_or("any".to_owned(), |ty| dumper.ty(ty));
                        let default = parameter.default.as_ref();
                        let default = default.map(|value| format!(" default {}", value_text(model, value)));
                        dumper.line(&format!("{ty} {}{}", parameter.name, default.unwrap_or_default()));
                    }
                });
            }
            DefKind::Native => self.line(&head(format!("native {name}"))),
        }
    }

    fn operation(&self, name: &str, operation: &Operation) -> String {
        let mut text = String::new();
        if operation.oneway {
            text.push_str("oneway ");
        }
        let raises = self.names(" raises ", &operation.raises);
        let _ = write!(text, "{} {name}{raises}", self.ty(&operation.result));
        if let Some(context) = &operation.context {
            let names: Vec<String> = context.iter().map(|name| format!("\"{name}\"")).collect();
            let _ = write!(text, " context {}", names.join(", "));
        }
        text
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            self.annotations(&parameter.annotations);
            let direction = match parameter.direction {
                Direction::In => "in",
                Direction::Out => "out",
                Direction::InOut => "inout",
            };
            let ty = self.ty(&parameter.ty);
            self.line(&format!("{direction} {ty} {}", parameter.name));
        }
    }

    fn members(&mut self, members: &[Member]) {
        for member in members {
            self.member(member, "");
        }
    }

    fn member(&mut self, member: &Member, before: &str) {
        self.docs(&member.docs);
        self.annotations(&member.annotations);
        let ty = self.ty(&member.ty);
        self.line(&format!("{before}{ty} {}", member.name));
    }

    fn docs(&mut self, docs: &[String]) {
        for line in docs {
            self.line(format!("// {line}").trim_end());
        }
    }

    fn annotations(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            let parameters = annotation.parameters.iter().map(|parameter| {
                let value = value_text(self.model, &parameter.value);
                match &parameter.name {
                    Some(name) => format!("{name} = {value}"),
                    None => value,
                }
            });
            let parameters: Vec<String> = parameters.collect();
            let parameters =
                if parameters.is_empty() { String::new() } else { format!("({})", parameters.join(", ")) };
            self.line(&format!("@{}{parameters}", annotation.name));
        }
    }

    fn names(&self, before: &str, ids: &[DefId]) -> String {
        if ids.is_empty() {
            return String::new();
        }
        let names: Vec<String> = ids.iter().map(|&id| self.model.scoped_name(id).join("::")).collect();
        format!("{before}{}", names.join(", "))
    }

    fn ty(&self, ty: &Type) -> String {
        let bounded = |word: &str, bound: &Option<u32>| match bound {
            Some(bound) => format!("{word}<{bound}>"),
            None => word.to_owned(),
        };
        match ty {
            Type::Void => "void".into(),
            Type::Basic(basic) => basic_text(*basic).into(),
            Type::String { bound } => bounded("string", bound),
            Type::WString { bound } => bounded("wstring", bound),
            Type::Fixed { spec: Some((digits, scale)) } => format!("fixed<{digits}, {scale}>"),
            Type::Fixed { spec: None } => "fixed".into(),
            Type::Sequence { element, bound: Some(bound) } => {
                format!("sequence<{}, {bound}>", self.ty(element))
            }
            Type::Sequence { element, bound: None } => format!("sequence<{}>", self.ty(element)),
            Type::Map { key, value, bound } => {
                let bound = bound.map_or(String::new(), |bound| format!(", {bound}"));
                format!("map<{}, {}{bound}>", self.ty(key), self.ty(value))
            }
            Type::Array { element, dimensions } => {
                let dimensions: String =
                    dimensions.iter().map(|dimension| format!("[{dimension}]")).collect();
                format!("{}{dimensions}", self.ty(element))
            }
            Type::Named(id) => self.model.scoped_name(*id).join("::"),
        }
    }
}

fn basic_text(basic: Basic) -> &'static str {
    match basic {
        Basic::Short => "short",
        Basic::UShort => "unsigned short",
        Basic::Long => "long",
        Basic::ULong => "unsigned long",
        Basic::LongLong => "long long",
        Basic::ULongLong => "unsigned long long",
        Basic::Float => "float",
        Basic::Double => "double",
        Basic::LongDouble => "long double",
        Basic::Char => "char",
        Basic::WChar => "wchar",
        Basic::Boolean => "boolean",
        Basic::Octet => "octet",
        Basic::Int8 => "int8",
        Basic::UInt8 => "uint8",
        Basic::Any => "any",
        Basic::Object => "Object",
        Basic::ValueBase => "ValueBase",
        Basic::TypeCode => "CORBA::TypeCode",
    }
}
