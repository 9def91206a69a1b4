//! The kinds of types and their numbers.

macro_rules! kinds {
    ($($number:literal $name:ident $text:literal)*) => {
        /// What kind of type a [`TypeCode`](super::TypeCode) describes: the standard's `TCKind`
        /// (CORBA 3.3 part 1, 8.11.1; the numbers are in part 2, 9.3.5.1).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum TcKind { $(#[doc = $text] $name = $number,)* }

        impl TcKind {
            /// The kind with this number. `None` if there is none.
            pub fn from_number(number: u32) -> Option<TcKind> {
                match number { $($number => Some(TcKind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    0 Null "nothing"
    1 Void "no result"
    2 Short "`short`"
    3 Long "`long`"
    4 UShort "`unsigned short`"
    5 ULong "`unsigned long`"
    6 Float "`float`"
    7 Double "`double`"
    8 Boolean "`boolean`"
    9 Char "`char`"
    10 Octet "`octet`"
    11 Any "`any`"
    12 TypeCode "`CORBA::TypeCode`"
    13 Principal "`Principal` of GIOP 1.0"
    14 ObjRef "a reference to an interface"
    15 Struct "`struct`"
    16 Union "`union`"
    17 Enum "`enum`"
    18 String "`string`"
    19 Sequence "`sequence`"
    20 Array "an array of one dimension"
    21 Alias "`typedef`"
    22 Except "`exception`"
    23 LongLong "`long long`"
    24 ULongLong "`unsigned long long`"
    25 LongDouble "`long double`"
    26 WChar "`wchar`"
    27 WString "`wstring`"
    28 Fixed "`fixed`"
    29 Value "`valuetype`"
    30 ValueBox "a boxed value"
    31 Native "`native`"
    32 AbstractInterface "an abstract interface"
    33 LocalInterface "a local interface"
    34 Component "a component"
    35 Home "the home of a component"
    36 Event "`eventtype`, in everything else a value type"
}

impl TcKind {
    /// The standard's number.
    #[inline]
    pub fn number(self) -> u32 {
        self as u32
    }
}
