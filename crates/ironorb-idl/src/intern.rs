//! Turns identifiers into numbers, so that a comparison with or without regard to case is one comparison of
//! numbers.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use crate::model::Basic;

/// An interned spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name(u32);

impl Name {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The class of a spelling in the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Plain,
    Keyword(Kw),
    /// Differs from a keyword only in case, which makes it no legal identifier.
    NearKeyword(Kw),
    /// `_name`: the identifier `name`, even if that is a keyword.
    Escaped(Name),
    /// A keyword of IDL 4 only, which older files use as a name. The context decides which it is.
    Word(Word),
    /// Starts with an underscore and has not been written so far. Its class without the underscore is
    /// unknown.
    Unseen,
}

/// The table of names. All texts are in one string; a hash table has their positions.
pub(crate) struct Interner {
    text: String,
    names: Vec<Entry>,
    /// A power of two in length, at most three quarters full.
    table: Vec<Slot>,
    /// The seed, random in each run, so that no text can be made to collide.
    seed: u64,
}

/// The facts about a name.
#[derive(Clone, Copy)]
struct Entry {
    start: u32,
    end: u32,
    fold: Name,
    class: Class,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    name: u32,
}

impl Interner {
    pub(crate) fn new() -> Self {
        let mut interner = Self {
            text: String::new(),
            names: Vec::new(),
            table: vec![Slot::FREE; 1024],
            seed: RandomState::new().hash_one(0),
        };
        for &kw in Kw::ALL {
            let name = interner.intern(kw.text());
            interner.names[name.index()].class = Class::Keyword(kw);
            let fold = interner.fold(name);
            if fold != name {
                interner.names[fold.index()].class = Class::NearKeyword(kw);
            }
        }
        for &(text, word) in Word::ALL {
            let name = interner.intern(text);
            interner.names[name.index()].class = Class::Word(word);
        }
        interner
    }

    pub(crate) fn intern(&mut self, text: &str) -> Name {
        let name = self.enter(text);
        if self.class(name) == Class::Unseen {
            // Only the first underscore escapes: `__x` is the name `_x`.
            let plain = self.enter(&text[1..]);
            self.names[name.index()].class = Class::Escaped(plain);
        }
        name
    }

    /// Enters a text that is only another form of a name, and so needs no class yet.
    fn enter(&mut self, text: &str) -> Name {
        let hash = hash(self.seed, text.as_bytes());
        let slot = match self.probe(text, hash) {
            Ok(name) => return name,
            Err(slot) => slot,
        };
        let name = Name(self.names.len() as u32);
        self.table[slot] = Slot { hash, name: name.0 };
        let start = self.text.len() as u32;
        self.text.push_str(text);
        let end = self.text.len() as u32;
        let escaped = text.len() > 1 && text.starts_with('_');
        let class = if escaped { Class::Unseen } else { Class::Plain };
        self.names.push(Entry { start, end, fold: name, class });
        if self.names.len() > self.table.len() / 4 * 3 {
            self.grow();
        }
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            let fold = self.enter(&text.to_ascii_lowercase());
            self.names[name.index()].fold = fold;
            if let Class::Keyword(kw) | Class::NearKeyword(kw) = self.class(fold) {
                self.names[name.index()].class = Class::NearKeyword(kw);
            }
        }
        name
    }

    /// The name of a spelling that occurred.
    pub(crate) fn find(&self, text: &str) -> Option<Name> {
        self.probe(text, hash(self.seed, text.as_bytes())).ok()
    }

    pub(crate) fn text(&self, name: Name) -> &str {
        let entry = &self.names[name.index()];
        &self.text[entry.start as usize..entry.end as usize]
    }

    /// The name in lower case: equal for two names that collide in IDL.
    pub(crate) fn fold(&self, name: Name) -> Name {
        self.names[name.index()].fold
    }

    pub(crate) fn class(&self, name: Name) -> Class {
        self.names[name.index()].class
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name, or the slot where it belongs.
    fn probe(&self, text: &str, hash: u32) -> Result<Name, usize> {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.table[at];
            if slot.name == u32::MAX {
                return Err(at);
            }
            if slot.hash == hash && self.text(Name(slot.name)) == text {
                return Ok(Name(slot.name));
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let table = vec![Slot::FREE; self.table.len() * 2];
        let old = std::mem::replace(&mut self.table, table);
        let mask = self.table.len() - 1;
        for slot in old.into_iter().filter(|slot| slot.name != u32::MAX) {
            let mut at = slot.hash as usize & mask;
            while self.table[at].name != u32::MAX {
                at = (at + 1) & mask;
            }
            self.table[at] = slot;
        }
    }
}

impl Slot {
    const FREE: Slot = Slot { hash: 0, name: u32::MAX };
}

/// Multiplies eight bytes at a time into the seed and folds the product. A text can be made to
/// collide with another only when the seed is known.
fn hash(seed: u64, bytes: &[u8]) -> u32 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = fold(seed ^ bytes.len() as u64, MULTIPLIER);
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        state = fold(state ^ u64::from_le_bytes(*chunk), seed | 1);
    }
    let mut last = 0;
    for &byte in rest {
        last = last << 8 | u64::from(byte);
    }
    let state = fold(state ^ last, MULTIPLIER ^ seed);
    (state ^ state >> 32) as u32
}

/// Odd, with its bits spread evenly: the golden ratio as a binary fraction.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A word that is a keyword in IDL 4 and a name before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    Map,
    Bitset,
    Bitmask,
    Bitfield,
    /// `int8` and the other integer types of IDL 4, where nothing else has the name.
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
    pub(crate) fn is_later(self) -> bool {
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
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(MULTIPLIER);
    }
}
