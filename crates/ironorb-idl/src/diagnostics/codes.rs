//! The list of all kinds of diagnostics: number, name, what it means, IDL that has it and IDL without it.

use super::{Code, Severity};

/// What a [`Code`] means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: Code,
    /// The severity. A [`Severity::Warning`] can be silenced or made an error. That of an incomplete
    /// declaration depends on its use (IDL0412).
    pub severity: Severity,
    /// The mistake and the reason, in sentences.
    pub text: &'static str,
    /// An example of IDL with the mistake; empty where no short one exists, such as for the limits.
    pub wrong: &'static str,
    /// The example without the mistake.
    pub mended: &'static str,
}

macro_rules! codes {
    ($($number:literal $severity:ident $name:ident $text:literal $wrong:literal $mended:literal)*) => {
        $(pub(super) const $name: Code = Code($number);)*

        /// All codes in the order of their numbers.
        pub(super) const ALL: &[Explanation] = &[
            $(Explanation { code: $name, severity: Severity::$severity, text: $text, wrong: $wrong, mended: $mended }),*
        ];
    };
}

codes! {
    // IDL01xx: files, the preprocessor, pragmas and limits.
    101 Error CANNOT_READ_MAIN
        "The file named on the command line, or by a build script, cannot be opened or read."
        ""
        ""
    102 Error MISSING_INCLUDE
        "An `#include` names a file that stands neither beside the including file nor in an include directory. Add its directory (`-I DIR`, or `include_dir` in a build script)."
        "#include \"absent.idl\""
        "#include \"color.idl\""
    103 Error UNREADABLE_INCLUDE
        "An included file exists but cannot be read: it is no regular file, larger than the limit, or the permission is missing."
        ""
        ""
    104 Error INCLUDE_TOO_DEEP
        "Included files include further files deeper than the limit allows. Include fewer files in a row."
        ""
        ""
    105 Error TOO_MANY_INCLUDES
        "More `#include` lines are obeyed than the limit allows. Guard files against being read again."
        ""
        ""
    106 Error TOO_MANY_TOKENS
        "The text has more tokens than the limit allows, after its macros are expanded. Split the file."
        ""
        ""
    107 Error MACRO_EXPANDS_TOO_FAR
        "Macros expand to more tokens than the limit allows, mostly because one doubles itself again and again."
        ""
        ""
    108 Error TOO_MUCH_READ
        "The files read come to more bytes than the limit allows. A file counts each time that it is included: guard it."
        ""
        ""
    109 Error INCLUDE_CIRCLE
        "Files include each other in a circle, or one includes itself. `#pragma once` or an include guard ends the circle."
        "#include \"main.idl\""
        "#pragma once\n#include \"main.idl\""
    110 Error MALFORMED_DIRECTIVE
        "A line that starts with `#` lacks a part, such as the name behind `#define`. The help shows its form."
        "#define"
        "#define LIMIT 10"
    111 Error UNKNOWN_DIRECTIVE
        "A line starts with `#` and a word that is no directive of the preprocessor."
        "#incldue \"color.idl\""
        "#include \"color.idl\""
    112 Warning EXTRA_TOKENS
        "Text behind `#endif`, `#else` or a name has no meaning. Make it a comment."
        "#ifdef LIMIT extra\n#endif"
        "#ifdef LIMIT // extra\n#endif"
    113 Error CONDITIONAL_WITHOUT_IF
        "`#else`, `#elif` or `#endif` stands where no `#if` is open."
        "#endif"
        "#ifdef LIMIT\n#endif"
    114 Error BRANCH_AFTER_ELSE
        "`#else` is the last branch of a condition; a further branch comes after it."
        "#if 1\n#else\n#elif 1\n#endif"
        "#if 1\n#elif 1\n#else\n#endif"
    115 Error UNTERMINATED_CONDITIONAL
        "A condition is open at the end of its file."
        "#ifndef GUARD"
        "#ifndef GUARD\n#endif"
    116 Warning MACRO_REDEFINED
        "A macro is defined again with another meaning. `#undef` it first if that is meant."
        "#define SIZE 1\n#define SIZE 2"
        "#define SIZE 1\n#undef SIZE\n#define SIZE 2"
    117 Error UNTERMINATED_MACRO_CALL
        "The arguments of a macro start with `(` and never end."
        "#define TWICE(x) x x\nconst long a = TWICE(1"
        "#define ONE(x) x\nconst long a = ONE(1);"
    118 Error WRONG_MACRO_ARGUMENTS
        "A macro is called with more or fewer arguments than it has parameters."
        "#define SUM(a, b) a + b\nconst long c = SUM(1);"
        "#define SUM(a, b) a + b\nconst long c = SUM(1, 2);"
    119 Error BAD_PASTE
        "`##` joins two tokens to a text that is no single token."
        "#define JOIN(a, b) a ## b\nconst long c = JOIN(1, +) 2;"
        "#define JOIN(a, b) a ## b\nconst long c = JOIN(1, 2);"
    120 Error CONDITION_SYNTAX
        "The condition of an `#if` is no expression of whole numbers."
        "#if 1 +\n#endif"
        "#if 1 + 1\n#endif"
    121 Error USER_ERROR
        "The text itself asks to stop with `#error`, mostly because a macro is not defined that it needs."
        "#error define VERSION"
        "// VERSION is defined"
    122 Warning USER_WARNING
        "The text itself warns with `#warning`."
        "#warning this file is old"
        "// This file is old."
    123 Warning PRAGMA_CASE
        "`#pragma` knows its words in one spelling only; in another it has no effect."
        "#pragma Prefix \"example.org\""
        "#pragma prefix \"example.org\""
    124 Note REPLACES_BUILTIN
        "The include path has a file of the name of a built-in one, such as `orb.idl`, and it is read instead. What it lacks comes from the built-in file. Nothing is wrong."
        ""
        ""
    130 Error INVALID_PREFIX
        "The text of `#pragma prefix` or `typeprefix` cannot begin repository ids."
        "#pragma prefix \"/example\""
        "#pragma prefix \"example.org\""
    131 Error INVALID_VERSION
        "The version of a definition is two numbers with a point between them."
        "struct S { long a; };\n#pragma version S 2"
        "struct S { long a; };\n#pragma version S 2.0"
    132 Error INVALID_REPOSITORY_ID
        "A repository id is a format, a colon and a name."
        "struct S { long a; };\n#pragma ID S \"S\""
        "struct S { long a; };\n#pragma ID S \"IDL:example.org/S:1.0\""
    133 Error REPOSITORY_ID_SET_TWICE
        "Two pragmas give one definition different repository ids or versions."
        "struct S { long a; };\n#pragma version S 1.1\n#pragma version S 1.2"
        "struct S { long a; };\n#pragma version S 1.2"
    134 Error PREFIX_DIFFERS
        "A definition stands under another prefix than its declaration, so that the two have different repository ids."
        "struct S;\n#pragma prefix \"example.org\"\nstruct S { long a; };"
        "#pragma prefix \"example.org\"\nstruct S;\nstruct S { long a; };"
    135 Warning PREFIX_BEFORE_MODULE
        "`typeprefix` stands before the module that it names, as in the OMG's own files of CORBA 3. It is obeyed, but other compilers know no such module yet."
        "typeprefix M \"example.org\";\nmodule M { typedef long L; };"
        "module M { typedef long L; };\ntypeprefix M \"example.org\";"

    // IDL02xx: characters and literals.
    201 Error UNTERMINATED_COMMENT
        "A comment begins with `/*` and has no `*/`."
        "/* a comment"
        "/* a comment */"
    202 Error UNTERMINATED_LITERAL
        "A string or character literal has no closing quote on its line."
        "const string S = \"open;"
        "const string S = \"closed\";"
    203 Error MALFORMED_NUMBER
        "A number has letters or points where it can have none."
        "const long L = 12ab;"
        "const long L = 0x12ab;"
    204 Error INTEGER_LITERAL_TOO_LARGE
        "A whole number is larger than 18446744073709551615, the largest of `unsigned long long`."
        "const unsigned long long L = 999999999999999999999999999999999999999999;"
        "const unsigned long long L = 18446744073709551615;"
    205 Error FLOAT_LITERAL_TOO_LARGE
        "A floating-point number is larger than its type holds."
        "const double D = 1e999;"
        "const double D = 1e99;"
    206 Error NUL_IN_STRING
        "A string ends where NUL stands when it is sent, so it cannot contain one. Data that may is a `sequence<octet>`."
        "const string S = \"a\\0b\";"
        "const string S = \"a b\";"
    207 Error NOT_ONE_CHARACTER
        "A character literal in single quotes holds one character."
        "const char C = 'ab';"
        "const string C = \"ab\";"
    208 Error CHARACTER_TOO_WIDE
        "A `char` holds a character of ISO 8859-1; others need `wchar`."
        "const char C = '€';"
        "const wchar C = L'€';"
    209 Error UNICODE_ESCAPE_IN_NARROW
        "`\\u` gives a character of Unicode and stands in wide literals only."
        "const string S = \"\\u20ac\";"
        "const wstring S = L\"\\u20ac\";"
    210 Error UNKNOWN_ESCAPE
        "A backslash stands before a letter that makes no escape sequence."
        "const string S = \"\\d\";"
        "const string S = \"\\\\d\";"
    211 Error ESCAPE_IS_NO_CHARACTER
        "An escape sequence gives a number that is no character, such as one half of a surrogate pair."
        "const wchar C = L'\\ud800';"
        "const wchar C = L'\\u20ac';"
    212 Error STRAY_CHARACTER
        "A character stands in the text that no part of IDL begins with, such as a typographic quote."
        "const string S = “text”;"
        "const string S = \"text\";"
    213 Error NAME_TOO_LONG
        "A name is longer than the limit. Names are joined to repository ids, so long ones multiply."
        ""
        ""

    // IDL03xx: the grammar.
    301 Error EXPECTED
        "Something else stands where the grammar asks for a certain part."
        "struct S long a; };"
        "struct S { long a; };"
    302 Error MISSING_SEMICOLON
        "A statement has no semicolon at its end. Definitions in braces end with `};`."
        "struct S { long a; }\nstruct T { long b; };"
        "struct S { long a; };\nstruct T { long b; };"
    303 Error MISSING_CLOSE_BRACE
        "A module, interface or type has no closing brace."
        "module M { typedef long L;"
        "module M { typedef long L; };"
    304 Error EXTRA_CLOSE_BRACE
        "A closing brace has no opening one."
        "typedef long L; };"
        "typedef long L;"
    305 Error EXPECTED_DEFINITION
        "A statement begins with a word that begins no definition."
        "sturct S { long a; };"
        "struct S { long a; };"
    306 Error OUTSIDE_INTERFACE
        "An operation or attribute stands outside of an interface."
        "void ping();"
        "interface I { void ping(); };"
    307 Error OUTSIDE_VALUE
        "State and factories stand in a valuetype only."
        "public long a;"
        "valuetype V { public long a; };"
    308 Error NOT_IN_INTERFACE
        "Modules, interfaces and valuetypes cannot stand inside an interface or valuetype."
        "interface I { interface J { void f(); }; };"
        "interface J { void f(); };"
    309 Error COMPONENTS_UNSUPPORTED
        "Components, homes, ports and event types belong to the CORBA component model, which is not supported."
        "component C { };"
        "interface C { };"
    310 Error NESTED_TOO_DEEPLY
        "Modules, types or expressions nest deeper than the limit allows."
        ""
        ""
    311 Error KEYWORD_IN_WRONG_CASE
        "Keywords are written in lower case, and a name must differ from them in more than case."
        "Interface I { };"
        "interface I { };"
    312 Error KEYWORD_AS_NAME
        "A keyword stands where a name is needed. An underscore before it makes it a name."
        "struct S { long attribute; };"
        "struct S { long _attribute; };"
    313 Error ANONYMOUS_TYPE
        "A struct, union or enum is written in place where a name of a type is needed."
        "interface I { void f(in struct S { long a; } s); };"
        "struct S { long a; };\ninterface I { void f(in S s); };"
    314 Error EXCEPTION_INHERITANCE
        "Exceptions have no bases."
        "exception A { };\nexception B : A { };"
        "exception A { };\nexception B { };"
    315 Error NOT_A_MEMBER
        "A word stands among members that begins no member."
        "struct S { const long L = 1; long a; };"
        "const long L = 1;\nstruct S { long a; };"
    316 Error EMPTY_ENUM
        "An enum has at least one enumerator."
        "enum E { };"
        "enum E { one };"
    317 Warning TRAILING_COMMA
        "A comma stands behind the last enumerator. It is accepted here, and refused by other compilers."
        "enum E { one, };"
        "enum E { one };"
    318 Error ENUMERATOR_VALUE
        "Enumerators count from 0 in the order written and cannot be given numbers."
        "enum E { one = 1 };"
        "const long ONE = 1;"
    319 Error MISSING_RESULT_TYPE
        "An operation has no type of its result."
        "interface I { ping(); };"
        "interface I { void ping(); };"
    320 Error OPERATION_WITHOUT_PARAMETERS
        "A type and a name stand in an interface without what makes them an operation or attribute."
        "interface I { long size; };"
        "interface I { attribute long size; };"
    321 Error VOID_PARAMETER_LIST
        "An operation without parameters has empty parentheses."
        "interface I { void ping(void); };"
        "interface I { void ping(); };"
    322 Error MISSING_DIRECTION
        "Each parameter says whether it goes `in`, `out` or both ways."
        "interface I { void put(long a); };"
        "interface I { void put(in long a); };"
    323 Error ARRAY_NOT_HERE
        "A parameter, attribute or constant cannot have dimensions of its own."
        "interface I { void put(in long a[3]); };"
        "typedef long Three[3];\ninterface I { void put(in Three a); };"
    324 Error EMPTY_RAISES
        "A list of exceptions is empty."
        "interface I { void f() raises (); };"
        "interface I { void f(); };"
    325 Error READONLY_WITH_SETRAISES
        "A readonly attribute has `raises` only, as it is never set."
        "exception E { };\ninterface I { readonly attribute long a getraises (E); };"
        "exception E { };\ninterface I { readonly attribute long a raises (E); };"
    326 Error ATTRIBUTE_WITH_RAISES
        "An attribute that can be set says by `getraises` and `setraises` which access raises what."
        "exception E { };\ninterface I { attribute long a raises (E); };"
        "exception E { };\ninterface I { attribute long a getraises (E); };"
    327 Error RAISES_ON_SEVERAL_ATTRIBUTES
        "Exceptions are declared for one attribute at a time."
        "exception E { };\ninterface I { readonly attribute long a, b raises (E); };"
        "exception E { };\ninterface I { readonly attribute long a raises (E); };"
    328 Error MODIFIED_BOX
        "A boxed valuetype has neither `abstract` nor `custom`."
        "abstract valuetype B long;"
        "valuetype B long;"
    329 Error IMPORT_OF_STRING
        "`import` of a repository id in quotes is not supported. Include the file that has the definition."
        "import \"IDL:Color:1.0\";"
        "#include \"color.idl\""
    330 Warning NAME_LIKE_LATER_KEYWORD
        "A name differs from a later keyword only in case. Files older than the keyword have such names; other compilers may refuse them."
        "typedef long Factory;\nstruct Local { long a; };"
        "struct _Local { long a; };"
    331 Error NO_BITFIELD
        "A bitset holds bitfields only."
        "bitset B { long a; };"
        "bitset B { bitfield<3> a; };"
    332 Warning PREFIX_WITHOUT_SEMICOLON
        "The line of a `typeprefix` has no semicolon, as in the OMG's own files of CORBA 3. Other compilers refuse it."
        "module M { typedef long L; };\ntypeprefix M \"example.org\"\nmodule N { typedef long L; };"
        "module M { typedef long L; };\ntypeprefix M \"example.org\";"
    333 Error TEMPLATES_UNSUPPORTED
        "Template modules of IDL 4 are not supported. Write the module out for each set of parameters."
        "module M<typename T> { typedef sequence<T> List; };"
        "module M { typedef sequence<long> List; };"

    // IDL04xx: names.
    401 Error UNKNOWN_NAME
        "A name is used that nothing in this scope, its bases or the scopes around defines before."
        "typedef Amount Price;"
        "typedef long Amount;\ntypedef Amount Price;"
    402 Error UNKNOWN_NAME_IN
        "The scope before `::` has no such name."
        "module M { typedef long L; };\ntypedef M::K N;"
        "module M { typedef long L; };\ntypedef M::L N;"
    403 Error WRONG_CASE
        "A name is spelled in another case than in its declaration."
        "typedef long Amount;\ntypedef amount Price;"
        "typedef long Amount;\ntypedef Amount Price;"
    404 Error REDEFINITION
        "One scope defines a name twice. Only modules can be opened again, and forward declarations be completed. In module `CORBA`, a definition may repeat the built-in one in the same way."
        "typedef long A;\ntypedef short A;"
        "typedef long A;\ntypedef short B;"
    405 Error DIFFERS_ONLY_IN_CASE
        "Two names of one scope differ only in case, which languages without case could not tell apart."
        "typedef long amount;\ntypedef short Amount;"
        "typedef long amount;\ntypedef short Price;"
    406 Error SAME_NAME_AS_SCOPE
        "A definition has the name of the scope that it stands in."
        "module M { typedef long M; };"
        "module M { typedef long N; };"
    407 Error CLASHES_WITH_USE
        "A scope uses a name of an outer scope and then defines it for something else, so that one name would have two meanings."
        "typedef long Id;\ninterface I { Id get(); typedef string Id; };"
        "typedef long Id;\ninterface I { Id get(); typedef string Key; };"
    408 Error AMBIGUOUS_NAME
        "Two bases bring different definitions of one name."
        "interface A { typedef long T; };\ninterface B { typedef short T; };\ninterface C : A, B { T get(); };"
        "interface A { typedef long T; };\ninterface B { typedef short T; };\ninterface C : A, B { A::T get(); };"
    409 Error ENUMERATOR_IN_ENUM
        "Enumerators belong to the scope around their enum."
        "enum E { one };\nconst E FIRST = E::one;"
        "enum E { one };\nconst E FIRST = one;"
    410 Error NOT_YET_DEFINED
        "A name is looked up in a definition that is only declared so far."
        "interface I;\ntypedef I::T U;\ninterface I { typedef long T; };"
        "interface I { typedef long T; };\ntypedef I::T U;"
    411 Error HOLDS_NO_NAMES
        "What stands before `::` has no names inside."
        "typedef long L;\ntypedef L::M N;"
        "module L { typedef long M; };\ntypedef L::M N;"
    412 Warning NEVER_COMPLETED
        "A struct or union is declared but never defined. If it is used, no code can be made for it."
        "struct S;\ntypedef sequence<S> List;"
        "struct S;\ntypedef sequence<S> List;\nstruct S { List inner; };"
    413 Warning NEVER_DEFINED
        "An interface or valuetype is declared but never defined. References to it can be passed on but not called."
        "interface I;"
        "interface I { };"
    414 Warning NAMED_LIKE_TYPE
        "A member, parameter, operation or attribute is named like a type that its scope uses. The standard forbids it and several compilers refuse it, so that the file is less portable."
        "typedef long Id;\nstruct S { Id id; };"
        "typedef long Id;\nstruct S { Id key; };"
    415 Warning MEMBER_LIKE_SCOPE
        "A member differs from its own struct, union or exception only in case. The standard forbids it since CORBA 2.3."
        "struct Right { string right; };"
        "struct Right { string name; };"
    416 Error UNKNOWN_PARAMETER
        "An annotation is given a parameter that its declaration does not have."
        "@annotation note { long level; };\n@note(height = 1) struct S { long a; };"
        "@annotation note { long level; };\n@note(level = 1) struct S { long a; };"
    417 Error MISSING_PARAMETER
        "An annotation is used without a parameter that has no default."
        "@annotation note { long level; };\n@note struct S { long a; };"
        "@annotation note { long level default 0; };\n@note struct S { long a; };"
    418 Error TOO_MANY_PARAMETERS
        "An annotation declares more parameters than the limit allows; each use of it has them all."
        ""
        ""
    419 Error TOO_MUCH_TEXT
        "Names, constants and annotations come to more bytes than the limit allows."
        ""
        ""

    // IDL05xx: types, members and annotations.
    501 Error NOT_A_TYPE
        "A name of something else stands where a type is needed."
        "exception E { };\nstruct S { E error; };"
        "struct E { };\nstruct S { E error; };"
    502 Error VOID_NOT_HERE
        "`void` is the result of an operation and no type of data."
        "struct S { void a; };"
        "struct S { octet a; };"
    503 Error CONTAINS_ITSELF
        "A struct or union holds itself in place, which would never end. A sequence may hold it."
        "struct S { S inner; };"
        "struct S { sequence<S> inner; };"
    504 Error INCOMPLETE_TYPE
        "A struct or union is used in place before its definition."
        "struct S;\nstruct T { S s; };\nstruct S { long a; };"
        "struct S { long a; };\nstruct T { S s; };"
    505 Error NO_MEMBERS
        "Unions, bitsets and bitmasks have at least one member."
        "union U switch (long) { };"
        "union U switch (long) { case 1: long a; };"
    506 Error FIXED_WITHOUT_DIGITS
        "A fixed-point type of data says how many digits it has."
        "struct S { fixed price; };"
        "struct S { fixed<10, 2> price; };"
    507 Error FIXED_TOO_MANY_DIGITS
        "A fixed-point number has at most 31 digits."
        "typedef fixed<40, 2> F;"
        "typedef fixed<31, 2> F;"
    508 Error FIXED_SCALE_TOO_LARGE
        "A fixed-point number cannot have more digits behind the point than it has in all."
        "typedef fixed<4, 6> F;"
        "typedef fixed<6, 4> F;"
    510 Error ILLEGAL_DISCRIMINATOR
        "The discriminator of a union is an integer, character, boolean, octet or enum."
        "union U switch (string) { case \"a\": long a; };"
        "union U switch (long) { case 1: long a; };"
    511 Error DUPLICATE_LABEL
        "Two cases of a union have one label."
        "union U switch (long) { case 1: long a; case 1: long b; };"
        "union U switch (long) { case 1: long a; case 2: long b; };"
    512 Error SECOND_DEFAULT
        "A union has at most one `default`."
        "union U switch (long) { default: long a; default: long b; };"
        "union U switch (long) { case 1: long a; default: long b; };"
    513 Error DEFAULT_WITHOUT_VALUES
        "All values of the discriminator have a case, so `default` stands for none."
        "union U switch (boolean) { case TRUE: long a; case FALSE: long b; default: long c; };"
        "union U switch (boolean) { case TRUE: long a; case FALSE: long b; };"
    514 Error NOT_A_BASE
        "A struct inherits from a struct, and a bitset from a bitset, only."
        "enum E { one };\nstruct S : E { long a; };"
        "struct E { long one; };\nstruct S : E { long a; };"
    515 Error TOO_MANY_INHERITED
        "The structs of the unit inherit more members in all than the limit allows."
        ""
        ""
    516 Error ILLEGAL_KEY
        "The keys of a map are compared: integers, characters, booleans, strings and enums can be."
        "typedef map<any, long> M;"
        "typedef map<string, long> M;"
    517 Error TOO_MANY_BITS
        "The fields of a bitset share 64 bits."
        "bitset B { bitfield<60> a; bitfield<5> b; };"
        "bitset B { bitfield<60> a; bitfield<4> b; };"
    518 Error ILLEGAL_BITFIELD
        "A bitfield has an integer, octet or boolean type."
        "bitset B { bitfield<3, float> a; };"
        "bitset B { bitfield<3, octet> a; };"
    519 Error BITFIELD_WIDER_THAN_TYPE
        "A bitfield has more bits than its type."
        "bitset B { bitfield<9, octet> a; };"
        "bitset B { bitfield<8, octet> a; };"
    520 Error BAD_BIT_BOUND
        "`@bit_bound` gives a number of bits: 1 to 64 of a bitmask, 1 to 32 of an enum."
        "@bit_bound(65) bitmask B { one };"
        "@bit_bound(16) bitmask B { one };"
    521 Error POSITION_OUT_OF_RANGE
        "A flag has a position that its bitmask has no bit for."
        "@bit_bound(8) bitmask B { @position(8) one };"
        "@bit_bound(8) bitmask B { @position(7) one };"
    522 Error POSITION_TAKEN
        "Two flags of a bitmask have one position."
        "bitmask B { @position(1) one, @position(1) two };"
        "bitmask B { @position(1) one, @position(2) two };"
    523 Error ONE_VALUE_EXPECTED
        "An annotation of the standard that takes one value is given none or several."
        "struct S { @default long a; };"
        "struct S { @default(1) long a; };"
    524 Error DEFAULT_OF_NO_CONSTANT
        "`@default` stands on a member whose type no constant can have."
        "struct S { @default(1) sequence<long> a; };"
        "struct S { @default(1) long a; };"
    525 Error BIT_BOUND_TOO_SMALL
        "The enum has more enumerators than the bits of its `@bit_bound` can tell apart."
        "@bit_bound(1) enum E { one, two, three };"
        "@bit_bound(2) enum E { one, two, three };"
    526 Warning UNKNOWN_ANNOTATION
        "An annotation is neither one of the standard nor declared, so it has no effect. Often it is a typing error."
        "struct S { @defualt(5) long a; };"
        "struct S { @default(5) long a; };"
    527 Warning ANNOTATION_WITHOUT_EFFECT
        "An annotation of the standard changes nothing in CORBA: every member is sent, and an enumerator is sent as its place in the enum."
        "struct S { @optional long a; };"
        "struct S { sequence<long, 1> a; };"
    528 Warning EMPTY_MODULE
        "A module has no definition. The grammar asks for one, and other compilers refuse the module."
        "module M { };"
        "module M { typedef long L; };"
    529 Error TIMING_NOT_HERE
        "`@rt` is the timing of an operation or attribute of an interface that is called remotely."
        "@rt(wcet = \"2ms\") struct S { long a; };"
        "struct S { long a; };\ninterface I { @rt(wcet = \"2ms\") void f(in S s); };"
    530 Error UNKNOWN_TIMING
        "`@rt` has `period`, `wcet`, `deadline`, `criticality`, `importance` and `probability`, each with its name."
        "interface I { @rt(wect = \"2ms\") void f(); };"
        "interface I { @rt(wcet = \"2ms\") void f(); };"
    531 Error TIMING_TWICE
        "An operation has one timing, which says each thing once."
        "interface I { @rt(wcet = \"2ms\", wcet = \"3ms\") void f(); };"
        "interface I { @rt(wcet = \"3ms\") void f(); };"
    532 Error NOT_A_TIME
        "The times of `@rt` are strings with a number and a unit: ns, us, ms or s. They are more than 0 and at most 1,000,000 s."
        "interface I { @rt(wcet = 2) void f(); };"
        "interface I { @rt(wcet = \"2ms\") void f(); };"
    533 Error NOT_A_LEVEL
        "The criticality and the importance of an operation are very_low, low, medium, high or very_high."
        "interface I { @rt(criticality = urgent) void f(); };"
        "interface I { @rt(criticality = very_high) void f(); };"
    534 Error NOT_A_PROBABILITY
        "The share of calls that must meet their deadline is a number between 0 and 1. If all must, it is left out."
        "interface I { @rt(deadline = \"5ms\", probability = 99) void f(); };"
        "interface I { @rt(deadline = \"5ms\", probability = 0.99) void f(); };"
    535 Error WCET_BEYOND_DEADLINE
        "A servant may run longer than the caller waits, so that a call which takes its whole `wcet` is always late."
        "interface I { @rt(wcet = \"5ms\", deadline = \"2ms\") void f(); };"
        "interface I { @rt(wcet = \"2ms\", deadline = \"5ms\") void f(); };"
    536 Error PROBABILITY_WITHOUT_DEADLINE
        "`probability` is the share of calls that must meet the deadline, so there must be one."
        "interface I { @rt(probability = 0.99) void f(); };"
        "interface I { @rt(deadline = \"5ms\", probability = 0.99) void f(); };"
    537 Error CACHED_NOT_HERE
        "`@cached` stands before an attribute of an interface that is neither local nor abstract, or before such an interface; and without values before an operation that clients run over the cached attributes."
        "interface I { @cached(lag = \"1ms\") long f(); };"
        "interface I { @cached(lag = \"1ms\") readonly attribute long f; };"
    538 Error UNKNOWN_CACHED
        "`@cached` says how old a value may be that a client holds (`lag`), how many writes it may miss (`updates`), or that it misses none (`linearizable`); `group` names attributes that belong together."
        "interface I { @cached(log = \"1ms\") attribute long a; };"
        "interface I { @cached(lag = \"1ms\") attribute long a; };"
    539 Error CACHED_TWICE
        "An attribute has one lag, one number of updates and one group."
        "interface I { @cached(lag = \"1ms\", lag = \"2ms\") attribute long a; };"
        "interface I { @cached(lag = \"2ms\") attribute long a; };"
    540 Error NOT_A_LAG
        "The lag of `@cached` is a string with a number and a unit: ns, us, ms or s. It is more than 0 and at most 1,000,000 s; or it is \"0\", and changes are sent at once."
        "interface I { @cached(lag = 5) attribute long a; };"
        "interface I { @cached(lag = \"5ms\") attribute long a; };"
    541 Error CACHED_RAISES
        "A client that holds a value reads it without the server, which could raise the exception."
        "exception E { };\ninterface I { @cached(lag = \"1ms\") attribute long a getraises (E); };"
        "exception E { };\ninterface I { @cached(lag = \"1ms\") attribute long a setraises (E); };"
    542 Error NOT_UPDATES
        "`updates` is how many writes a read may miss: a whole number from 0 to 1,000,000."
        "interface I { @cached(updates = \"few\") attribute long a; };"
        "interface I { @cached(updates = 3) attribute long a; };"
    543 Error CACHED_BOTH
        "A read of a linearizable attribute gives the value that it has at that moment, so that no other bound says more."
        "interface I { @cached(linearizable, lag = \"1ms\") attribute long a; };"
        "interface I { @cached(linearizable) attribute long a; };"
    544 Error CACHED_MODES
        "A client holds the cached attributes of an interface as one state of one version, and is told of its changes in one way: all are linearizable, or all are sent at once, and all allow the same number of missed writes. Their lags may differ."
        "interface I { @cached(linearizable) attribute long a; @cached(lag = \"1ms\") attribute long b; };"
        "interface I { @cached(lag = \"5ms\") attribute long a; @cached(lag = \"1ms\") attribute long b; };"
    545 Error CACHED_READ
        "An operation with `@cached` is a function of the cached attributes: it has only `in` parameters, is not oneway, raises nothing, and stands in an interface with cached attributes."
        "interface I { @cached(lag = \"1ms\") attribute long a; @cached long half(out long rest); };"
        "interface I { @cached(lag = \"1ms\") attribute long a; @cached long half(); };"
    546 Error NOT_A_GROUP
        "A group has a name, and two attributes or more, which a client always holds at one version."
        "interface I { @cached(lag = \"1ms\", group = \"g\") attribute long a; };"
        "interface I { @cached(lag = \"1ms\", group = \"g\") attribute long a, b; };"
    547 Error IDEMPOTENT_NOT_HERE
        "`@idempotent` stands before an operation or attribute of an interface that is called remotely. It is said of each one: an interface as a whole is not idempotent."
        "@idempotent interface I { void set(in long value); };"
        "interface I { @idempotent void set(in long value); };"
    548 Error IDEMPOTENT_ALONE
        "An operation is idempotent or not: there is nothing more to say, and no need to say it twice."
        "interface I { @idempotent(TRUE) void set(in long value); };"
        "interface I { @idempotent void set(in long value); };"
    549 Error PARALLEL_NOT_HERE
        "`@parallel` stands once before an `in` or `inout` parameter that is a sequence, of an operation that is called remotely, has a reply, and is not run by clients over cached attributes."
        "interface I { void set(@parallel(block) in long value); };"
        "interface I { void set(@parallel(block) in sequence<long> values); };"
    550 Error NOT_A_DISTRIBUTION
        "`@parallel` says which elements of the sequence a part gets: with `block` those that follow one another, with `cyclic` each in its turn."
        "interface I { void set(@parallel in sequence<long> values); };"
        "interface I { void set(@parallel(block) in sequence<long> values); };"
    551 Error DISTRIBUTIONS_DIFFER
        "The parallel parameters of an operation have one length, and a part gets the same places of each."
        "interface I { void add(@parallel(block) in sequence<long> a, @parallel(cyclic) in sequence<long> b); };"
        "interface I { void add(@parallel(cyclic) in sequence<long> a, @parallel(cyclic) in sequence<long> b); };"
    552 Error NOT_JOINED
        "Each part of an object gives its results, and the caller gets one. Sequences are put together; of other results, and of an `inout` sequence that each part gets whole, `@reduce` says how."
        "interface I { long long total(@parallel(block) in sequence<long> values); };"
        "interface I { @reduce(sum) long long total(@parallel(block) in sequence<long> values); };"
    553 Error REDUCE_NOT_HERE
        "`@reduce` stands once before an operation, for its return value, or before an `out` or `inout` parameter. The operation has `@parallel` parameters; what comes back of these is put together."
        "interface I { @reduce(sum) long total(in sequence<long> values); };"
        "interface I { @reduce(sum) long total(@parallel(block) in sequence<long> values); };"
    554 Error NOT_A_REDUCTION
        "`@reduce` names how results become one: `sum`, `product`, `min`, `max`, `and`, `or`, `first` or `equal`."
        "interface I { @reduce(mean) long total(@parallel(block) in sequence<long> values); };"
        "interface I { @reduce(sum) long total(@parallel(block) in sequence<long> values); };"
    555 Error REDUCTION_DOES_NOT_FIT
        "Numbers have a sum, a product, a minimum and a maximum; booleans and whole numbers are joined by `and` and `or`. So are sequences of them, element by element. `equal` is for these, texts and enumerators, and `first` for all types."
        "interface I { @reduce(sum) string list(@parallel(block) in sequence<long> values); };"
        "interface I { @reduce(first) string list(@parallel(block) in sequence<long> values); };"

    // IDL06xx: constants.
    601 Error NOT_A_CONSTANT_TYPE
        "A constant has a basic type, a string, a fixed-point number or an enum."
        "struct S { long a; };\nconst S C = 1;"
        "const long C = 1;"
    602 Error NOT_A_CONSTANT
        "A name of something else stands where a value is needed."
        "typedef long L;\nconst long C = L;"
        "const long L = 1;\nconst long C = L;"
    603 Error OUT_OF_RANGE
        "A value is too small or too large for its type."
        "const octet O = 256;"
        "const octet O = 255;"
    604 Error NOT_POSITIVE
        "A bound, a dimension or a number of digits is at least 1."
        "typedef sequence<long, 0> L;"
        "typedef sequence<long> L;"
    605 Error NEGATIVE
        "A scale cannot be negative."
        "typedef fixed<4, -1> F;"
        "typedef fixed<4, 1> F;"
    606 Error WRONG_VALUE_TYPE
        "A value of one kind stands where a type of another is needed."
        "const long L = \"text\";"
        "const string L = \"text\";"
    607 Error OTHER_ENUM
        "The value of an enum constant is an enumerator of that enum."
        "enum A { one };\nenum B { two };\nconst A C = two;"
        "enum A { one };\nconst A C = one;"
    608 Error OPERATOR_NOT_FOR
        "An operator is used with operands that it does not take."
        "const string S = -\"a\";"
        "const long S = -1;"
    609 Error MIXED_OPERANDS
        "The two sides of an operator have types that do not go together."
        "const double D = 1.0 + 1.5d;"
        "const double D = 1.0 + 1.5;"
    610 Error MIXED_STRINGS
        "A wide and a narrow string literal stand side by side, as if they were one."
        "const wstring S = L\"a\" \"b\";"
        "const wstring S = L\"a\" L\"b\";"
    611 Error DIVISION_BY_ZERO
        "A division, or a remainder, by zero."
        "const long L = 1 / 0;"
        "const long L = 1 / 1;"
    612 Error SHIFT_OUT_OF_RANGE
        "A shift goes by 0 to 63 bits."
        "const long L = 1 << 64;"
        "const long L = 1 << 6;"
    613 Error CONSTANT_OVERFLOW
        "A value on the way is larger than any integer type holds."
        "const unsigned long long L = 18446744073709551615 * 18446744073709551615 * 18446744073709551615;"
        "const unsigned long long L = 4294967295 * 4294967295;"
    614 Error STRING_TOO_LONG
        "A string is longer than the bound of its type."
        "const string<2> S = \"abc\";"
        "const string<3> S = \"abc\";"
    615 Error FIXED_OUT_OF_RANGE
        "A fixed-point constant has more digits before the point than its type."
        "typedef fixed<3, 1> F;\nconst F C = 1234.5d;"
        "typedef fixed<5, 1> F;\nconst F C = 1234.5d;"

    // IDL07xx: interfaces.
    701 Error OWN_BASE
        "A definition is named among its own bases."
        "interface I : I { };"
        "interface I { };"
    702 Error DUPLICATE_BASE
        "A base is named twice."
        "interface A { };\ninterface B : A, A { };"
        "interface A { };\ninterface B : A { };"
    703 Error NOT_AN_INTERFACE
        "An interface inherits from interfaces, and a valuetype supports interfaces, only."
        "struct S { long a; };\ninterface I : S { };"
        "interface S { };\ninterface I : S { };"
    704 Error BASE_NOT_DEFINED
        "A base must be defined, not only declared, before what inherits from it."
        "interface A;\ninterface B : A { };\ninterface A { };"
        "interface A { };\ninterface B : A { };"
    705 Error BASE_IS_LOCAL
        "An interface that can be remote cannot inherit from a local one."
        "local interface A { };\ninterface B : A { };"
        "local interface A { };\nlocal interface B : A { };"
    706 Error BASE_IS_NOT_ABSTRACT
        "What is abstract inherits from abstract definitions only."
        "interface A { };\nabstract interface B : A { };"
        "abstract interface A { };\nabstract interface B : A { };"
    707 Error INTERFACE_KIND_DIFFERS
        "Two declarations of an interface differ in `local` or `abstract`."
        "local interface I;\ninterface I { };"
        "local interface I;\nlocal interface I { };"
    708 Error TOO_MANY_BASES
        "A definition has more direct and indirect bases than the limit allows."
        ""
        ""
    709 Error INHERITED_CLASH
        "Two bases bring operations or attributes of one name; there is no overloading."
        "interface A { void f(); };\ninterface B { void f(); };\ninterface C : A, B { };"
        "interface A { void f(); };\ninterface B { void g(); };\ninterface C : A, B { };"
    710 Error REDEFINES_INHERITED
        "An operation or attribute of a base cannot be defined again."
        "interface A { void f(); };\ninterface B : A { void f(); };"
        "interface A { void f(); };\ninterface B : A { void g(); };"
    711 Error ONEWAY_WITH_RESULT
        "A oneway call has no reply, so it has no result."
        "interface I { oneway long f(); };"
        "interface I { oneway void f(); };"
    712 Error ONEWAY_WITH_OUT
        "A oneway call has no reply, so its parameters go in only."
        "interface I { oneway void f(out long a); };"
        "interface I { oneway void f(in long a); };"
    713 Error ONEWAY_WITH_RAISES
        "A oneway call has no reply, so it raises no exceptions."
        "exception E { };\ninterface I { oneway void f() raises (E); };"
        "exception E { };\ninterface I { void f() raises (E); };"
    714 Error NOT_AN_EXCEPTION
        "`raises` names exceptions only."
        "struct S { long a; };\ninterface I { void f() raises (S); };"
        "exception S { long a; };\ninterface I { void f() raises (S); };"
    715 Warning RAISED_TWICE
        "An exception is named twice in one list."
        "exception E { };\ninterface I { void f() raises (E, E); };"
        "exception E { };\ninterface I { void f() raises (E); };"
    716 Error BAD_CONTEXT_NAME
        "The name of a context property has letters, digits, points and underscores, and may end with `*`."
        "interface I { void f() context (\"1\"); };"
        "interface I { void f() context (\"one\"); };"
    717 Error LOCAL_IN_REMOTE
        "A local interface stays in its process, so a remote interface cannot pass it on."
        "local interface L { };\ninterface I { void f(in L l); };"
        "local interface L { };\nlocal interface I { void f(in L l); };"
    718 Error INHERITANCE_TOO_COSTLY
        "Looking names up in so many bases would take too long. Derive fewer interfaces from those with many bases."
        ""
        ""
    719 Warning NATIVE_IN_REMOTE
        "A native type means something in one process only, so a remote interface cannot pass it on."
        "native Handle;\ninterface I { Handle get(); };"
        "native Handle;\nlocal interface I { Handle get(); };"

    // IDL08xx: valuetypes.
    801 Error NOT_A_VALUE
        "A valuetype inherits from valuetypes and supports interfaces."
        "interface I { };\nvaluetype V : I { };"
        "interface I { };\nvaluetype V supports I { };"
    802 Error VALUE_KIND_DIFFERS
        "Two declarations of a valuetype differ in `abstract`."
        "abstract valuetype V;\nvaluetype V { };"
        "abstract valuetype V;\nabstract valuetype V { };"
    803 Error CUSTOM_FORWARD
        "`custom` stands at the definition of a valuetype, not at a forward declaration."
        "custom valuetype V;\ncustom valuetype V { };"
        "valuetype V;\ncustom valuetype V { };"
    804 Error ABSTRACT_CUSTOM
        "An abstract valuetype has no state, so its marshalling cannot be custom."
        "abstract custom valuetype V { };"
        "custom valuetype V { };"
    805 Error CONCRETE_BASE_NOT_FIRST
        "A valuetype has at most one base with state, which is named first."
        "valuetype A { };\nabstract valuetype B { };\nvaluetype C : B, A { };"
        "valuetype A { };\nabstract valuetype B { };\nvaluetype C : A, B { };"
    806 Error SECOND_CONCRETE_INTERFACE
        "A valuetype supports at most one interface that is not abstract."
        "interface A { };\ninterface B { };\nvaluetype V supports A, B { };"
        "interface A { };\nabstract interface B { };\nvaluetype V supports A, B { };"
    807 Error CUSTOM_TRUNCATABLE
        "A receiver cuts a truncatable valuetype down to its base, which it cannot do with custom marshalling."
        "valuetype A { };\ncustom valuetype B : truncatable A { };"
        "valuetype A { };\nvaluetype B : truncatable A { };"
    808 Error TRUNCATABLE_TO_ABSTRACT
        "A receiver cuts a truncatable valuetype down to its base, which must have state."
        "abstract valuetype A { };\nvaluetype B : truncatable A { };"
        "valuetype A { };\nvaluetype B : truncatable A { };"
    809 Error ABSTRACT_WITH_STATE
        "An abstract valuetype has no state."
        "abstract valuetype V { public long a; };"
        "valuetype V { public long a; };"
    810 Error ABSTRACT_WITH_FACTORY
        "An abstract valuetype has no factories, as it is never made."
        "abstract valuetype V { factory make(); };"
        "valuetype V { factory make(); };"
    811 Error FACTORY_PARAMETER_NOT_IN
        "A factory has `in` parameters only."
        "valuetype V { factory make(out long a); };"
        "valuetype V { factory make(in long a); };"
    812 Error BOX_OF_VALUE
        "A boxed valuetype holds data, not another valuetype."
        "valuetype V { };\nvaluetype B V;"
        "valuetype B long;"
}
