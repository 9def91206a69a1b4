//! Writes definitions as IDL text.
//!
//! Names of other definitions are written from file scope on, so that they mean the same in every scope.

use std::collections::{HashMap, HashSet};

use ironorb::ifr::corba::{
    AttributeMode, Contained as _, ExceptionDescription, OperationMode, ParameterMode, Repository as _,
    RepositoryRef, StructMemberSeq,
};
use ironorb::{Any, TcKind, TypeCode, WString};

use super::order::{Unit, items, needed};
use super::read::{Definition, What};

/// Writes definitions one after another.
pub(super) struct Printer {
    /// The repository, asked for the names of definitions that were not read.
    root: RepositoryRef,
    /// Scoped names, which begin with colons, by repository id.
    names: HashMap<String, String>,
    /// Definitions that can be declared before they are defined, by id: the declaration, and its modules.
    declarable: HashMap<String, (String, Vec<Module>)>,
    printed: HashSet<String>,
    out: String,
    /// The modules that are open, outermost first.
    open: Vec<Module>,
    /// The prefix of ids that is in force at the end of the text, at file scope.
    prefix: String,
    uses_known: bool,
}

#[derive(Clone, PartialEq)]
struct Module {
    name: String,
    id: String,
}

impl Printer {
    /// A printer for these definitions.
    pub(super) fn new(root: RepositoryRef, definitions: &[Definition]) -> Self {
        let mut printer = Printer {
            root,
            names: HashMap::new(),
            declarable: HashMap::new(),
            printed: HashSet::new(),
            out: String::new(),
            open: Vec::new(),
            prefix: String::new(),
            uses_known: false,
        };
        printer.learn(definitions, &mut Vec::new());
        printer
    }

    /// Writes a unit within its modules, after the declarations that it needs.
    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        let mut modules: Vec<Module> = unit.modules.iter().map(|one| Module::of(one)).collect();
        if matches!(unit.definition.what, What::Module) {
            modules.push(Module::of(unit.definition));
            self.go_to(&modules, &modules[0].id.clone(), &modules[0].name.clone());
            return;
        }
        let mut wanted = Vec::new();
        referred_to(unit.definition, &mut wanted);
        for id in wanted {
            if self.printed.contains(&id) || id == unit.definition.id {
                continue;
            }
            if let Some((words, place)) = self.declarable.get(&id).cloned() {
                let name = words.rsplit(' ').next().unwrap_or_default().to_owned();
                self.go_to_scope_of(&place, &id, &name);
                self.line(self.open.len(), &format!("{words};"));
                self.printed.insert(id);
            }
        }
        self.go_to_scope_of(&modules, &unit.definition.id, &unit.definition.name);
        self.printed.insert(unit.definition.id.clone());
        self.definition(unit.definition, self.open.len());
    }

    /// Writes a definition without its modules and ids.
    pub(super) fn definition_alone(&mut self, definition: &Definition) {
        match &definition.what {
            What::Module => {
                self.line(0, &format!("module {} {{", escaped(&definition.name)));
                for item in &definition.items {
                    match item.what {
                        What::Module => self.line(1, &format!("module {} {{ ... }};", escaped(&item.name))),
                        _ => self.body(item, 1),
                    }
                }
                self.line(0, "};");
            }
            _ => self.body(definition, 0),
        }
    }

    /// Finishes and returns the text.
    pub(super) fn finish(mut self, uses_known: bool) -> String {
        self.go_to(&[], "", "");
        let include = if uses_known || self.uses_known { "#include <orb.idl>\n\n" } else { "" };
        format!("{include}{}", self.out)
    }

    fn learn(&mut self, definitions: &[Definition], modules: &mut Vec<Module>) {
        for definition in definitions {
            self.names.insert(definition.id.clone(), definition.scoped_name.clone());
            let name = escaped(&definition.name);
            let words = match &definition.what {
                What::Interface { lead, .. } => Some(format!("{lead}interface {name}")),
                What::Value { value, .. } if value.is_abstract => Some(format!("abstract valuetype {name}")),
                What::Value { value, .. } if value.is_custom => Some(format!("custom valuetype {name}")),
                What::Value { .. } => Some(format!("valuetype {name}")),
                What::Type(tc) if tc.kind() == TcKind::Struct => Some(format!("struct {name}")),
                What::Type(tc) if tc.kind() == TcKind::Union => Some(format!("union {name}")),
                _ => None,
            };
            // A type within another type is declared where that other type is defined.
            let is_module = matches!(definition.what, What::Module);
            if let Some(words) = words {
                self.declarable.insert(definition.id.clone(), (words, modules.clone()));
            }
            match is_module {
                true => modules.push(Module::of(definition)),
                false => {
                    definition.items.iter().for_each(|item| self.learn_names(item));
                    continue;
                }
            }
            self.learn(&definition.items, modules);
            modules.pop();
        }
    }

    fn learn_names(&mut self, definition: &Definition) {
        self.names.insert(definition.id.clone(), definition.scoped_name.clone());
        definition.items.iter().for_each(|item| self.learn_names(item));
    }

    fn go_to_scope_of(&mut self, modules: &[Module], id: &str, name: &str) {
        let (root_id, root_name) = match modules.first() {
            Some(root) => (root.id.clone(), root.name.clone()),
            None => (id.to_owned(), name.to_owned()),
        };
        self.go_to(modules, &root_id, &root_name);
    }

    /// Closes and opens modules, under the prefix that gives the outermost definition its id.
    fn go_to(&mut self, modules: &[Module], root_id: &str, root_name: &str) {
        let shared = self.open.iter().zip(modules).take_while(|(open, wanted)| open == wanted).count();
        while self.open.len() > shared {
            let module = self.open.pop();
            self.line(self.open.len(), "};");
            if let Some(module) = module.filter(|module| self.printed.insert(module.id.clone())) {
                self.id(&module.name, &module.id);
            }
        }
        if shared == 0 && !root_name.is_empty() {
            let prefix = prefix_of(root_id, root_name);
            if prefix != self.prefix {
                self.out += &format!("\n#pragma prefix \"{prefix}\"\n");
                prefix.clone_into(&mut self.prefix);
            }
        }
        for module in &modules[shared..] {
            let line = format!("module {} {{", escaped(&module.name));
            self.line(self.open.len(), &line);
            self.open.push(module.clone());
        }
    }

    /// Writes a definition, and its id where it differs from the one that IDL gives it.
    fn definition(&mut self, definition: &Definition, depth: usize) {
        self.body(definition, depth);
        self.ids_of(definition, &definition.name);
    }

    /// Writes the ids of a definition and of those in it, by names visible at the end of the text.
    fn ids_of(&mut self, definition: &Definition, name: &str) {
        if !matches!(definition.what, What::Member(_)) {
            let expected = self.expected_id(name);
            if expected != definition.id {
                self.pragma(name, &definition.id);
            }
        }
        for item in &definition.items {
            self.ids_of(item, &format!("{name}::{}", item.name));
        }
    }

    fn id(&mut self, name: &str, id: &str) {
        if self.expected_id(name) != id {
            self.pragma(name, id);
        }
    }

    fn pragma(&mut self, name: &str, id: &str) {
        let name: Vec<String> = name.split("::").map(escaped).collect();
        self.out += &format!("#pragma ID {} \"{id}\"\n", name.join("::"));
    }

    fn expected_id(&self, name: &str) -> String {
        let prefix = if self.prefix.is_empty() { None } else { Some(self.prefix.as_str()) };
        let path = prefix.into_iter().chain(self.open.iter().map(|module| module.name.as_str()));
        let path: Vec<&str> = path.chain(name.split("::")).collect();
        format!("IDL:{}:1.0", path.join("/"))
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.out += &"    ".repeat(depth);
        self.out += text;
        self.out.push('\n');
    }

    fn body(&mut self, definition: &Definition, depth: usize) {
        let name = escaped(&definition.name);
        match &definition.what {
            // `go_to` opens and closes modules.
            What::Module => {}
            What::Interface { lead, bases } => {
                let bases = self.listed(" : ", bases);
                self.block(&format!("{lead}interface {name}{bases}"), definition, depth, &[]);
            }
            What::Value { value, initializers } => {
                let lead = match (value.is_abstract, value.is_custom) {
                    (true, _) => "abstract ",
                    (_, true) => "custom ",
                    _ => "",
                };
                let base = Some(value.base_value.clone()).filter(|base| !base.is_empty());
                let bases: Vec<String> = base.into_iter().chain(value.abstract_base_values.clone()).collect();
                let truncatable = if value.is_truncatable { " : truncatable " } else { " : " };
                let bases = self.listed(truncatable, &bases);
                let supported = self.listed(" supports ", &value.supported_interfaces);
                let mut factories = Vec::new();
                for initializer in initializers {
                    let parameters = self.initializer(&initializer.members);
                    let raises = self.raised("raises", &initializer.exceptions);
                    factories.push(format!("factory {}({parameters}){raises};", escaped(&initializer.name)));
                }
                self.block(
                    &format!("{lead}valuetype {name}{bases}{supported}"),
                    definition,
                    depth,
                    &factories,
                );
            }
            What::Type(tc) => {
                let text = self.type_definition(tc, definition, depth);
                self.line(depth, &format!("{text};"));
            }
            What::Constant { ty, value } => {
                let (ty, value) = (self.constant_type(ty), self.constant(ty, value));
                self.line(depth, &format!("const {ty} {name} = {value};"));
            }
            What::Attribute(attribute) => {
                let ty = self.ty(&attribute.type_);
                let (get, set) = (&attribute.get_exceptions, &attribute.put_exceptions);
                let text = match attribute.mode {
                    AttributeMode::AttrReadonly => {
                        format!("readonly attribute {ty} {name}{}", self.raised("raises", get))
                    }
                    AttributeMode::AttrNormal => {
                        let (get, set) = (self.raised("getraises", get), self.raised("setraises", set));
                        format!("attribute {ty} {name}{get}{set}")
                    }
                };
                self.line(depth, &format!("{text};"));
            }
            What::Operation(operation) => {
                let oneway = if operation.mode == OperationMode::OpOneway { "oneway " } else { "" };
                let parameters = operation.parameters.iter().map(|parameter| {
                    let mode = match parameter.mode {
                        ParameterMode::ParamIn => "in",
                        ParameterMode::ParamOut => "out",
                        ParameterMode::ParamInout => "inout",
                    };
                    format!("{mode} {} {}", self.ty(&parameter.type_), escaped(&parameter.name))
                });
                let parameters = parameters.collect::<Vec<_>>().join(", ");
                let raises = self.raised("raises", &operation.exceptions);
                let contexts: Vec<_> = operation.contexts.iter().map(|name| format!("\"{name}\"")).collect();
                let context = match contexts.is_empty() {
                    true => String::new(),
                    false => format!(" context ({})", contexts.join(", ")),
                };
                let result = self.ty(&operation.result);
                self.line(depth, &format!("{oneway}{result} {name}({parameters}){raises}{context};"));
            }
            What::Member(member) => {
                let access = if member.access == 0 { "private" } else { "public" };
                let member = self.member(&member.type_, &member.name);
                self.line(depth, &format!("{access} {member};"));
            }
        }
    }

    /// Writes a definition that contains operations.
    fn block(&mut self, head: &str, definition: &Definition, depth: usize, more: &[String]) {
        if definition.items.is_empty() && more.is_empty() {
            return self.line(depth, &format!("{head} {{}};"));
        }
        self.line(depth, &format!("{head} {{"));
        for item in items(definition) {
            self.body(item, depth + 1);
        }
        more.iter().for_each(|line| self.line(depth + 1, line));
        self.line(depth, "};");
    }

    /// A type definition, without a semicolon.
    fn type_definition(&mut self, tc: &TypeCode, definition: &Definition, depth: usize) -> String {
        let name = escaped(&definition.name);
        let count = tc.member_count().unwrap_or_default();
        match tc.kind() {
            TcKind::Struct | TcKind::Except => {
                let word = if tc.kind() == TcKind::Struct { "struct" } else { "exception" };
                let members = self.members(tc, definition, depth);
                if members.is_empty() {
                    return format!("{word} {name} {{}}");
                }
                format!("{word} {name} {{\n{}{}}}", members.concat(), "    ".repeat(depth))
            }
            TcKind::Union => self.union(tc, definition, depth),
            TcKind::Enum => {
                let names = (0..count).filter_map(|index| tc.member_name(index).ok()).map(escaped);
                format!("enum {name} {{ {} }}", names.collect::<Vec<_>>().join(", "))
            }
            TcKind::Native => format!("native {name}"),
            TcKind::ValueBox => match tc.content_type() {
                Ok(content) => format!("valuetype {name} {}", self.ty(&content)),
                Err(_) => format!("// {name} is a box of nothing"),
            },
            _ => match tc.content_type() {
                Ok(content) => format!("typedef {}", self.member(&content, &definition.name)),
                Err(_) => format!("// {name} is {tc:?}"),
            },
        }
    }

    /// The lines of the members of a struct or exception.
    fn members(&mut self, tc: &TypeCode, definition: &Definition, depth: usize) -> Vec<String> {
        let mut inside: Vec<&Definition> = definition.items.iter().collect();
        let lead = "    ".repeat(depth + 1);
        let mut lines = Vec::new();
        for index in 0..tc.member_count().unwrap_or_default() {
            let (Ok(name), Ok(ty)) = (tc.member_name(index), tc.member_type(index)) else { continue };
            let member = self.member_or_definition(&ty, name, &mut inside, depth);
            lines.push(format!("{lead}{member};\n"));
        }
        lines
    }

    fn union(&mut self, tc: &TypeCode, definition: &Definition, depth: usize) -> String {
        let Ok(discriminator) = tc.discriminator_type() else { return String::new() };
        let mut inside: Vec<&Definition> = definition.items.iter().collect();
        let switch = match taken(&mut inside, &discriminator) {
            Some(inner) => self.type_definition(&discriminator, inner, depth + 1),
            None => self.ty(&discriminator),
        };
        let mut text = format!("union {} switch ({switch}) {{\n", escaped(&definition.name));
        let (lead, count) = ("    ".repeat(depth + 1), tc.member_count().unwrap_or_default());
        for index in 0..count {
            let (Ok(name), Ok(ty)) = (tc.member_name(index), tc.member_type(index)) else { continue };
            text += &match tc.member_label(index) {
                Ok(Some(label)) => format!("{lead}case {}:", self.label(&discriminator, label)),
                _ => format!("{lead}default:"),
            };
            // The labels of one member follow one another.
            if index + 1 < count && tc.member_name(index + 1).is_ok_and(|next| next == name) {
                text.push('\n');
                continue;
            }
            let member = self.member_or_definition(&ty, name, &mut inside, depth);
            text += &format!(" {member};\n");
        }
        text + &"    ".repeat(depth) + "}"
    }

    /// A member of a constructed type, together with the definition of its type if that stands in it.
    fn member_or_definition(
        &mut self,
        ty: &TypeCode,
        name: &str,
        inside: &mut Vec<&Definition>,
        depth: usize,
    ) -> String {
        let (element, dimensions) = element(ty);
        match taken(inside, &element) {
            Some(inner) => {
                let text = self.type_definition(&element, inner, depth + 1);
                format!("{text} {}{dimensions}", escaped(name))
            }
            None => self.member(ty, name),
        }
    }

    /// Type and name. The dimensions of an array follow the name.
    fn member(&mut self, ty: &TypeCode, name: &str) -> String {
        let (element, dimensions) = element(ty);
        format!("{} {}{dimensions}", self.ty(&element), escaped(name))
    }

    fn initializer(&mut self, members: &StructMemberSeq) -> String {
        let parameters =
            members.iter().map(|one| format!("in {} {}", self.ty(&one.type_), escaped(&one.name)));
        parameters.collect::<Vec<_>>().join(", ")
    }

    fn raised(&mut self, word: &str, exceptions: &[ExceptionDescription]) -> String {
        let ids: Vec<String> = exceptions.iter().map(|exception| exception.id.clone()).collect();
        let listed = self.listed("", &ids);
        if listed.is_empty() { listed } else { format!(" {word} ({listed})") }
    }

    fn listed(&mut self, lead: &str, ids: &[String]) -> String {
        let names: Vec<String> = ids.iter().map(|id| self.name_of(id, id)).collect();
        if names.is_empty() { String::new() } else { format!("{lead}{}", names.join(", ")) }
    }

    /// A type at its use.
    fn ty(&mut self, tc: &TypeCode) -> String {
        let word = match tc.kind() {
            TcKind::Void => "void",
            TcKind::Short => "short",
            TcKind::Long => "long",
            TcKind::UShort => "unsigned short",
            TcKind::ULong => "unsigned long",
            TcKind::LongLong => "long long",
            TcKind::ULongLong => "unsigned long long",
            TcKind::Float => "float",
            TcKind::Double => "double",
            TcKind::LongDouble => "long double",
            TcKind::Boolean => "boolean",
            TcKind::Char => "char",
            TcKind::WChar => "wchar",
            TcKind::Octet => "octet",
            TcKind::Any => "any",
            TcKind::TypeCode => {
                self.uses_known = true;
                "::CORBA::TypeCode"
            }
            TcKind::String | TcKind::WString => {
                let word = if tc.kind() == TcKind::String { "string" } else { "wstring" };
                return match tc.length() {
                    Ok(0) | Err(_) => word.to_owned(),
                    Ok(bound) => format!("{word}<{bound}>"),
                };
            }
            TcKind::Fixed => {
                let (digits, scale) = (tc.fixed_digits().unwrap_or(1), tc.fixed_scale().unwrap_or_default());
                return format!("fixed<{digits}, {scale}>");
            }
            TcKind::Sequence => return self.sequence(tc),
            _ => return self.named(tc),
        };
        word.to_owned()
    }

    fn sequence(&mut self, tc: &TypeCode) -> String {
        let Ok(content) = tc.content_type() else { return "sequence<any>".to_owned() };
        let bound = tc.length().ok().filter(|&bound| bound > 0);
        let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
        // A map is marshalled and described as a sequence of pairs without a name.
        if content.kind() == TcKind::Struct
            && content.id().is_ok_and(str::is_empty)
            && let (Ok(key), Ok(value)) = (content.member_type(0), content.member_type(1))
        {
            return format!("map<{}, {}{bound}>", self.ty(&key), self.ty(&value));
        }
        format!("sequence<{}{bound}>", self.ty(&content))
    }

    fn named(&mut self, tc: &TypeCode) -> String {
        match tc.id() {
            Ok("IDL:omg.org/CORBA/Object:1.0") => "Object".to_owned(),
            Ok("IDL:omg.org/CORBA/ValueBase:1.0") => "ValueBase".to_owned(),
            Ok(id) => self.name_of(id, tc.name().unwrap_or_default()),
            Err(_) => format!("{tc:?}"),
        }
    }

    /// The scoped name of a definition; `otherwise` if the repository does not know it.
    fn name_of(&mut self, id: &str, otherwise: &str) -> String {
        if !self.names.contains_key(id) {
            let found = self.root.lookup_id(id).ok().flatten();
            let name = found.and_then(|found| found.absolute_name().ok());
            self.names.insert(id.to_owned(), name.unwrap_or_else(|| otherwise.to_owned()));
        }
        spelled(&self.names[id])
    }

    /// The type of a constant. A `fixed` constant has its digits and scale in its value.
    fn constant_type(&mut self, tc: &TypeCode) -> String {
        if tc.kind() == TcKind::Fixed { "fixed".to_owned() } else { self.ty(tc) }
    }

    fn constant(&mut self, ty: &TypeCode, value: &Any) -> String {
        let tc = || ty.clone();
        let unknown = || format!("0 /* {value:?} */");
        let number = match ty.resolved().kind() {
            TcKind::Boolean => {
                return value
                    .extract_as::<bool>(tc())
                    .map_or_else(|_| unknown(), |yes| truth(yes).to_owned());
            }
            TcKind::Float => {
                return value.extract_as::<f32>(tc()).map_or_else(|_| unknown(), |x| format!("{x:?}"));
            }
            TcKind::Double => {
                return value.extract_as::<f64>(tc()).map_or_else(|_| unknown(), |x| format!("{x:?}"));
            }
            TcKind::String => {
                return value
                    .extract_as::<String>(tc())
                    .map_or_else(|_| unknown(), |text| quoted(&text, '"'));
            }
            TcKind::WString => {
                let text = value.extract_as::<WString>(tc());
                return text.map_or_else(|_| unknown(), |text| format!("L{}", quoted(&text.0, '"')));
            }
            TcKind::Char | TcKind::Octet => value.extract_as::<u8>(tc()).map(i64::from),
            TcKind::WChar => value.extract_as::<char>(tc()).map(|char| u32::from(char).into()),
            TcKind::Short => value.extract_as::<i16>(tc()).map(i64::from),
            TcKind::UShort => value.extract_as::<u16>(tc()).map(i64::from),
            TcKind::Long => value.extract_as::<i32>(tc()).map(i64::from),
            TcKind::ULong | TcKind::Enum => value.extract_as::<u32>(tc()).map(i64::from),
            TcKind::LongLong => value.extract_as::<i64>(tc()),
            TcKind::ULongLong => value.extract_as::<u64>(tc()).map(|bits| bits as i64),
            kind => {
                let text = format!("{value:?}");
                let text = text.strip_prefix("Any(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(&text);
                let end = if kind == TcKind::Fixed { "d" } else { "" };
                return format!("{}{end}", text.trim_end_matches(['d', 'D']));
            }
        };
        number.map_or_else(|_| unknown(), |number| self.label(ty, number))
    }

    /// A number of a type, written as IDL.
    fn label(&mut self, ty: &TypeCode, number: i64) -> String {
        let resolved = ty.resolved();
        let char = |number: i64| u32::try_from(number).ok().and_then(char::from_u32).unwrap_or_default();
        match resolved.kind() {
            TcKind::Boolean => truth(number != 0).to_owned(),
            TcKind::Char => quoted(&char(number).to_string(), '\''),
            TcKind::WChar => format!("L{}", quoted(&char(number).to_string(), '\'')),
            TcKind::ULongLong => (number as u64).to_string(),
            TcKind::Enum => {
                let name = u32::try_from(number).ok().and_then(|index| resolved.member_name(index).ok());
                let (name, own) = (escaped(name.unwrap_or_default()), self.named(&resolved));
                // Enumerators have the scope of their enum.
                own.rsplit_once("::").map_or(name.clone(), |(scope, _)| format!("{scope}::{name}"))
            }
            _ => number.to_string(),
        }
    }
}

impl Module {
    fn of(definition: &Definition) -> Self {
        Module { name: definition.name.clone(), id: definition.id.clone() }
    }
}

/// Takes a type's definition out of the definitions within the enclosing type.
fn taken<'d>(inside: &mut Vec<&'d Definition>, ty: &TypeCode) -> Option<&'d Definition> {
    let place = inside.iter().position(|inner| ty.id() == Ok(inner.id.as_str()))?;
    Some(inside.remove(place))
}

/// The element type of an array, and the dimensions; for other types the type itself and no dimensions.
fn element(ty: &TypeCode) -> (TypeCode, String) {
    let (mut element, mut dimensions) = (ty.clone(), String::new());
    while element.kind() == TcKind::Array
        && let (Ok(length), Ok(content)) = (element.length(), element.content_type())
    {
        dimensions += &format!("[{length}]");
        element = content;
    }
    (element, dimensions)
}

/// Collects the ids of definitions that a definition refers to and that may come later.
fn referred_to(definition: &Definition, ids: &mut Vec<String>) {
    let mut needs = Vec::new();
    needed(definition, &mut needs);
    ids.extend(needs.into_iter().map(|(id, _)| id));
}

/// The prefix that gives a definition at file scope this id; empty if no prefix does.
fn prefix_of<'i>(id: &'i str, name: &str) -> &'i str {
    let path = id.strip_prefix("IDL:").and_then(|rest| rest.rsplit_once(':')).map(|(path, _)| path);
    path.and_then(|path| path.strip_suffix(name)).and_then(|rest| rest.strip_suffix('/')).unwrap_or_default()
}

fn spelled(scoped_name: &str) -> String {
    scoped_name.split("::").map(escaped).collect::<Vec<_>>().join("::")
}

/// Puts an underscore before a name that is a keyword of IDL.
fn escaped(name: &str) -> String {
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(name));
    if is_word { format!("_{name}") } else { name.to_owned() }
}

fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => out += "\\n",
            '\t' => out += "\\t",
            '\\' => out += "\\\\",
            _ if char == quote => out.extend(['\\', quote]),
            ' '..='~' => out.push(char),
            _ if u32::from(char) < 0x100 => out += &format!("\\x{:02x}", u32::from(char)),
            _ => out.push(char),
        }
    }
    out.push(quote);
    out
}

fn truth(yes: bool) -> &'static str {
    if yes { "TRUE" } else { "FALSE" }
}

/// The keywords of IDL 4.2 and of CORBA 3's components.
const WORDS: &[&str] = &[
    "abstract",
    "alias",
    "any",
    "attribute",
    "bitfield",
    "bitmask",
    "bitset",
    "boolean",
    "case",
    "char",
    "component",
    "connector",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "false",
    "finder",
    "fixed",
    "float",
    "getraises",
    "home",
    "import",
    "in",
    "inout",
    "int16",
    "int32",
    "int64",
    "int8",
    "interface",
    "local",
    "long",
    "manages",
    "map",
    "mirrorport",
    "module",
    "multiple",
    "native",
    "object",
    "octet",
    "oneway",
    "out",
    "port",
    "porttype",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "true",
    "truncatable",
    "typedef",
    "typeid",
    "typename",
    "typeprefix",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "union",
    "unsigned",
    "uses",
    "valuebase",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];
