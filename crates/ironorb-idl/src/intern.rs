//! Identifiers as numbers: one comparison instead of a string compare, with and without regard to case.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use crate::model::Basic;

/// An interned spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u32);

impl Name {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a spelling is to the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Keyword(Kw),
    /// Differs from a keyword only in case, which makes it no legal identifier.
    NearKeyword(Kw),
    /// `_name`: the identifier `name`, whatever it spells.
    Escaped(Name),
    /// A keyword of IDL 4 only, which older files use as a name: what it is depends on what stands around.
    Word(Word),
}

pub(crate) struct Interner {
    names: HashMap<Rc<str>, Name>,
    texts: Vec<Rc<str>>,
    folds: Vec<Name>,
    classes: Vec<Class>,
}

impl Interner {
    pub(crate) fn new() -> Self {
        let mut interner =
            Self { names: HashMap::new(), texts: Vec::new(), folds: Vec::new(), classes: Vec::new() };
        for &kw in Kw::ALL {
            let name = interner.intern(kw.text());
            interner.classes[name.index()] = Class::Keyword(kw);
            let fold = interner.fold(name);
            if fold != name {
                interner.classes[fold.index()] = Class::NearKeyword(kw);
            }
        }
        for &(text, word) in Word::ALL {
            let name = interner.intern(text);
            interner.classes[name.index()] = Class::Word(word);
        }
        interner
    }

    pub(crate) fn intern(&mut self, text: &str) -> Name {
        if let Some(&name) = self.names.get(text) {
            return name;
        }
        let name = Name(self.texts.len() as u32);
        let shared: Rc<str> = Rc::from(text);
        self.names.insert(shared.clone(), name);
        self.texts.push(shared);
        self.folds.push(name);
        self.classes.push(Class::Plain);
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let fold = self.intern(&text.to_ascii_lowercase());
            self.folds[name.index()] = fold;
            if let Class::Keyword(kw) | Class::NearKeyword(kw) = self.classes[fold.index()] {
                self.classes[name.index()] = Class::NearKeyword(kw);
            }
        }
        if let Some(plain) = text.strip_prefix('_')
            && !plain.is_empty()
        {
            let plain = self.intern(plain);
            self.classes[name.index()] = Class::Escaped(plain);
        }
        name
    }

    /// The name of a spelling that occurred.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.names.get(text).copied()
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        &self.texts[name.index()]
    }

    /// The same name in lower case: equal for two names that collide in IDL.
    pub(crate) fn fold(&self, name: Name) -> Name {
        self.folds[name.index()]
    }

    pub(crate) fn class(&self, name: Name) -> Class {
        self.classes[name.index()]
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// A word that is a keyword in IDL 4 and a name before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Map,
    Bitset,
    Bitmask,
    Bitfield,
    /// `int8` and its kin: types where nothing else has the name.
    Integer(Basic),
}

impl Word {
    const ALL: &[(&str, Word)] = &[
        ("map", Word::Map),
        ("bitset", Word::Bitset),
        ("bitmask", Word::Bitmask),
        ("bitfield", Word::Bitfield),
        ("int8", Word::Integer(Basic::Int8)),
        ("uint8", Word::Integer(Basic::UInt8)),
        ("int16", Word::Integer(Basic::Short)),
        ("uint16", Word::Integer(Basic::UShort)),
        ("int32", Word::Integer(Basic::Long)),
        ("uint32", Word::Integer(Basic::ULong)),
        ("int64", Word::Integer(Basic::LongLong)),
        ("uint64", Word::Integer(Basic::ULongLong)),
    ];
}

macro_rules! keywords {
    ($($kw:ident $text:literal)*) => {
        /// A reserved word of IDL 3.5 without components.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kw { $($kw),* }

        impl Kw {
            const ALL: &[Kw] = &[$(Kw::$kw),*];

            pub(crate) fn text(self) -> &'static str {
                match self { $(Kw::$kw => $text),* }
            }
        }
    };
}

keywords! {
    Abstract "abstract" Any "any" Attribute "attribute" Boolean "boolean" Case "case" Char "char"
    Const "const" Context "context" Custom "custom" Default "default" Double "double" Enum "enum"
    Exception "exception" Factory "factory" False "FALSE" Fixed "fixed" Float "float"
    GetRaises "getraises" Import "import" In "in" InOut "inout" Interface "interface" Local "local"
    Long "long" Module "module" Native "native" Object "Object" Octet "octet" Oneway "oneway" Out "out"
    Private "private" Public "public" Raises "raises" Readonly "readonly" Sequence "sequence"
    SetRaises "setraises" Short "short" String "string" Struct "struct" Supports "supports"
    Switch "switch" True "TRUE" Truncatable "truncatable" Typedef "typedef" TypeId "typeid"
    TypePrefix "typeprefix" Union "union" Unsigned "unsigned" ValueBase "ValueBase"
    ValueType "valuetype" Void "void" WChar "wchar" WString "wstring"
}

impl Kw {
    /// Reserved since CORBA 2.3 or later, so that older files use it, or its like, as a name.
    pub(crate) fn is_young(self) -> bool {
        matches!(
            self,
            Kw::Abstract
                | Kw::Custom
                | Kw::Factory
                | Kw::GetRaises
                | Kw::Import
                | Kw::Local
                | Kw::Native
                | Kw::Private
                | Kw::Public
                | Kw::SetRaises
                | Kw::Supports
                | Kw::Truncatable
                | Kw::TypeId
                | Kw::TypePrefix
                | Kw::ValueBase
                | Kw::ValueType
        )
    }
}

/// A map whose keys are small counters that no input chooses, so a cheap hash is safe.
pub(crate) type CounterMap<K, V> = HashMap<K, V, BuildHasherDefault<CounterHasher>>;

/// Mixes by multiplication.
#[derive(Default)]
pub(crate) struct CounterHasher(u64);

impl Hasher for CounterHasher {
    fn finish(&self) -> u64 {
        // The table takes its tag from the top bits and the bucket from the low ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
