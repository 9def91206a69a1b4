//! The list of all cases that are left out, each with its reason. A case that is left out and not listed
//! fails the run, and so does a listed case that does not exist.

use ironorb::giop::Version;

use crate::peer::Peer;
use crate::results::Side;

/// The reason why cases are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Its number in `docs/interop.md`. Numbers are never reused.
    pub number: u32,
    /// One sentence.
    pub text: &'static str,
}

/// The circumstances of a run.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// The peer; `None` where IronORB is both client and server.
    pub peer: Option<Peer>,
    /// What IronORB is.
    pub side: Side,
    /// The GIOP version of the calls.
    pub version: Version,
    /// Whether the reference offers code sets to choose from.
    pub code_sets: bool,
}

/// The cases, or groups of cases (`big` is `big/...`), that are left out, each with the reason.
pub fn skips(of: &Circumstances) -> Vec<(&'static str, Reason)> {
    let applies = |skip: &&Skip| {
        skip.peers.iter().any(|peer| Some(*peer) == of.peer)
            && skip.sides.contains(&of.side)
            && skip.versions.contains(&of.version)
            && (skip.code_sets.is_none() || skip.code_sets == Some(of.code_sets))
    };
    let mut skips = Vec::new();
    for skip in SKIPS.iter().filter(applies) {
        for case in skip.cases {
            // One reason is enough.
            if !skips.iter().any(|(other, _)| other == case) {
                skips.push((*case, skip.reason));
            }
        }
    }
    skips
}

/// All reasons.
pub fn reasons() -> impl Iterator<Item = Reason> {
    let mut all: Vec<Reason> = SKIPS.iter().map(|skip| skip.reason).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

struct Skip {
    reason: Reason,
    peers: &'static [Peer],
    sides: &'static [Side],
    versions: &'static [Version],
    /// Applies only where the reference offers code sets (true), or does not (false).
    code_sets: Option<bool>,
    cases: &'static [&'static str],
}

/// Leaves cases out, with and without code sets.
const fn skip(
    reason: Reason,
    peers: &'static [Peer],
    sides: &'static [Side],
    versions: &'static [Version],
    cases: &'static [&'static str],
) -> Skip {
    Skip { reason, peers, sides, versions, code_sets: None, cases }
}

impl Skip {
    const fn with_code_sets(self) -> Skip {
        Skip { code_sets: Some(true), ..self }
    }

    const fn without_code_sets(self) -> Skip {
        Skip { code_sets: Some(false), ..self }
    }
}

const fn reason(number: u32, text: &'static str) -> Reason {
    Reason { number, text }
}

const OMNI: &[Peer] = &[Peer::OmniOrb];
const JAC: &[Peer] = &[Peer::JacOrb];
const EVERY_PEER: &[Peer] = &Peer::ALL;
/// IronORB serves.
const SERVER: &[Side] = &[Side::Server];
/// IronORB calls.
const CLIENT: &[Side] = &[Side::Client];
const BOTH: &[Side] = &[Side::Server, Side::Client];
const EVERY_VERSION: &[Version] = &[Version::V1_0, Version::V1_1, Version::V1_2];
const SINCE_1_1: &[Version] = &[Version::V1_1, Version::V1_2];
const V1_0: &[Version] = &[Version::V1_0];
const V1_1: &[Version] = &[Version::V1_1];
const V1_2: &[Version] = &[Version::V1_2];

const NO_CODE_SETS: Reason =
    reason(1, "the reference is a corbaloc, which offers no code sets to choose from");
const GIOP_1_0: Reason = reason(2, "GIOP 1.0 has no wide characters and negotiates no code sets");
const CONTEXT: Reason = reason(3, "a servant of JacORB 3.9 does not receive contexts");
const OMNI_LONG_STRINGS: Reason =
    reason(4, "omniORB 4.2 breaks a string across GIOP 1.1 fragments wrongly, against itself as well");
const OMNI_WIDE: Reason =
    reason(5, "omniORB 4.2 finds no wide code set for GIOP 1.1, against itself as well");
const OMNI_WCHAR: Reason = reason(7, "a wchar of omniORB 4.2 is one UTF-16 unit");
const JAC_ATTRIBUTES: Reason =
    reason(8, "a stub of JacORB 3.9 fails when an attribute raises a user exception");
const JAC_UNKNOWN: Reason =
    reason(9, "a stub of JacORB 3.9 makes a Java RuntimeException of a user exception that is not declared");
const JAC_UNLISTED: Reason = reason(10, "JacORB 3.9 forgets a discriminator that belongs to no member");
const JAC_NAN: Reason = reason(11, "JacORB 3.9 sends one kind of NaN for all");
const JAC_CONSTANT: Reason =
    reason(12, "JacORB 3.9's compiler makes an infinity of the constant 3.0 / 8.0 - 1e100");
const JAC_WCHAR: Reason = reason(13, "a wchar of JacORB 3.9 is one UTF-16 unit");
const JAC_BOUNDED_WSTRING: Reason =
    reason(14, "a skeleton of JacORB 3.9 reads an inout bounded wstring as a string");
const JAC_WCHAR_1_1: Reason = reason(15, "JacORB 3.9 does not align a wchar in GIOP 1.1");
const OMNI_RECURSIVE: Reason = reason(
    16,
    "omniORB 4.2 ends with an assertion over a TypeCode that is recursive through a struct in a union",
);
const JAC_RECURSIVE: Reason = reason(
    17,
    "a helper of JacORB 3.9 overflows its stack over a TypeCode that is recursive through a struct in a union",
);
const OMNI_EXCEPTION: Reason = reason(
    18,
    "omniORB 4.2 reads exceptions in anys in its own form only, and this reference does not name omniORB as its ORB",
);
const JAC_NIL: Reason = reason(19, "JacORB 3.9 forgets the type of a nil reference that it puts into an any");
const OMNI_FIXED: Reason = reason(
    20,
    "a copy of a union of omniORB 4.2 forgets the digits of its fixed, and ends with an assertion",
);
const OMNI_LONG_DOUBLE: Reason =
    reason(22, "omniORB 4.2 sends the processor's long double of 80 bits where the standard has 128");
const OMNI_JOINT: Reason = reason(
    23,
    "omniORB 4.2 writes and reads the doubles of an array that go on in another fragment of GIOP 1.1 at octet 12, right behind the header, and not at 16, where the alignment of 9.4.9 within each fragment puts them",
);
const OMNI_ANYS_1_0: Reason = reason(
    24,
    "omniORB 4.2's client finds no code set for strings in anys and TypeCodes of GIOP 1.0 and crashes, against itself as well",
);
const JAC_BOXES: Reason = reason(25, "a skeleton of JacORB 3.9 reads an inout box as if it were no value");
const OMNI_CUSTOM: Reason = reason(27, "omniORB 4.2's compiler refuses custom valuetypes");
const OMNI_CHUNKS_1_0: Reason = reason(
    28,
    "GIOP 1.0 has no values; omniORB 4.2 sends them all the same, but no chunk that is larger than its buffer",
);
const JAC_BOXES_IN_ANYS: Reason = reason(
    29,
    "where its type is not declared, JacORB 3.9 writes a box as the Java object in it, by RMI over IIOP",
);
const JAC_ABSTRACT_ANYS: Reason = reason(
    30,
    "a helper of JacORB 3.9 gives an any of an abstract interface the type of what it holds, and refuses nil",
);
const JAC_CUT_ANYS: Reason =
    reason(31, "JacORB 3.9 cuts a value in an any to a base that it knows, and writes it on as what it was");
const JAC_TRUNCATION: Reason = reason(
    32,
    "JacORB 3.9 loses its place after a value that it cuts to a base inside a sequence, against itself as well",
);
const JAC_VALUE_BASE: Reason = reason(33, "JacORB 3.9's compiler ends over a ValueBase that is a member");
const NO_LONG_DOUBLE: Reason = reason(21, "Java has no long double");

const SKIPS: &[Skip] = &[
    skip(
        OMNI_ANYS_1_0,
        OMNI,
        SERVER,
        V1_0,
        &["any", "typecode", "later/deferred_dii", "value_any/not_known_there"],
    ),
    skip(GIOP_1_0, EVERY_PEER, SERVER, V1_0, &["echo_string/utf8", "wide"]),
    skip(GIOP_1_0, EVERY_PEER, SERVER, V1_0, WIDE_ANYS),
    skip(OMNI_WIDE, OMNI, BOTH, V1_1, WIDE_ANYS),
    skip(
        OMNI_WIDE,
        OMNI,
        SERVER,
        V1_1,
        &[
            "typecode/echo/wchar",
            "typecode/type_of/wchar",
            "typecode/are_equivalent/wchar",
            "typecode/echo_typecodes",
        ],
    ),
    skip(NO_CODE_SETS, EVERY_PEER, SERVER, SINCE_1_1, &["echo_string/utf8"]).without_code_sets(),
    skip(NO_CODE_SETS, EVERY_PEER, BOTH, SINCE_1_1, &["wide"]).without_code_sets(),
    skip(CONTEXT, JAC, CLIENT, EVERY_VERSION, &["context/values"]),
    skip(OMNI_LONG_STRINGS, OMNI, BOTH, V1_1, &["echo_string/long", "big/one_string"]),
    skip(OMNI_WIDE, OMNI, BOTH, V1_1, &["wide"]),
    skip(OMNI_WCHAR, OMNI, CLIENT, V1_2, &["wide/echo_wchar/beyond_the_bmp"]).with_code_sets(),
    skip(JAC_ATTRIBUTES, JAC, SERVER, EVERY_VERSION, &["attribute/guarded", "attribute/locked"]),
    skip(JAC_UNKNOWN, JAC, SERVER, EVERY_VERSION, &["unknown_user_exception"]),
    skip(JAC_UNLISTED, JAC, SERVER, EVERY_VERSION, &["echo_by_ulong/unlisted"]),
    skip(
        JAC_UNLISTED,
        JAC,
        CLIENT,
        EVERY_VERSION,
        &[
            "echo_by_short/other_label",
            "echo_by_ushort/other_label",
            "echo_by_long/other_label",
            "echo_by_longs/other_label",
            "echo_by_ulong/other_label",
            "echo_by_llong/other_label",
            "echo_by_char/other_label",
            "echo_expr/other_label",
        ],
    ),
    skip(JAC_UNLISTED, JAC, CLIENT, SINCE_1_1, &["wide/echo_wide_union/other_label"]).with_code_sets(),
    skip(
        JAC_NAN,
        JAC,
        CLIENT,
        EVERY_VERSION,
        &["echo_float/nan", "echo_double/nan", "echo_floats/nan", "echo_doubles/nan"],
    ),
    skip(JAC_CONSTANT, JAC, CLIENT, EVERY_VERSION, &["constants"]),
    skip(JAC_WCHAR, JAC, CLIENT, V1_2, &["wide/echo_wchar/beyond_the_bmp"]).with_code_sets(),
    skip(JAC_BOUNDED_WSTRING, JAC, CLIENT, SINCE_1_1, &["wide/echo_short_wstring"]).with_code_sets(),
    skip(JAC_WCHAR_1_1, JAC, BOTH, V1_1, &["wide/echo_wide_struct"]).with_code_sets(),
    skip(OMNI_RECURSIVE, OMNI, BOTH, EVERY_VERSION, RECURSIVE),
    skip(JAC_RECURSIVE, JAC, BOTH, EVERY_VERSION, RECURSIVE),
    skip(
        OMNI_EXCEPTION,
        OMNI,
        CLIENT,
        EVERY_VERSION,
        &["any/check/empty", "any/check/refused", "any/echo/empty", "any/echo/refused"],
    )
    .without_code_sets(),
    skip(
        JAC_NIL,
        JAC,
        SERVER,
        EVERY_VERSION,
        &["any/check/node", "typecode/type_of/node", "typecode/are_equivalent/node"],
    ),
    skip(
        JAC_NIL,
        JAC,
        CLIENT,
        EVERY_VERSION,
        &["any/make/node", "typecode/type_of/node", "typecode/are_equivalent/node"],
    ),
    skip(OMNI_FIXED, OMNI, CLIENT, EVERY_VERSION, &["fixed/echo_by_price"]),
    skip(OMNI_LONG_DOUBLE, OMNI, SERVER, EVERY_VERSION, &["long_double/half"]),
    skip(OMNI_LONG_DOUBLE, OMNI, CLIENT, EVERY_VERSION, &["long_double"]),
    skip(OMNI_JOINT, OMNI, BOTH, V1_1, &["big/edges"]),
    skip(
        JAC_BOXES,
        JAC,
        CLIENT,
        EVERY_VERSION,
        &["box/echo_string", "box/echo_long", "box/echo_longs", "box/echo_bin"],
    ),
    skip(OMNI_CUSTOM, OMNI, CLIENT, EVERY_VERSION, &["custom"]),
    skip(OMNI_CHUNKS_1_0, OMNI, BOTH, V1_0, &["value/chunks/long"]),
    skip(
        JAC_BOXES_IN_ANYS,
        JAC,
        SERVER,
        EVERY_VERSION,
        &[
            "value_any/check/boxed_bin",
            "value_any/echo/boxed_bin",
            "value_any/check/boxed_longs",
            "value_any/echo/boxed_longs",
            "value_any/check/boxed_string",
            "value_any/echo/boxed_string",
        ],
    ),
    skip(
        JAC_BOXES_IN_ANYS,
        JAC,
        CLIENT,
        EVERY_VERSION,
        &[
            "value/base/pass_box",
            "value_any/make/boxed_bin",
            "value_any/echo/boxed_bin",
            "value_any/make/boxed_longs",
            "value_any/echo/boxed_longs",
            "value_any/make/boxed_string",
            "value_any/echo/boxed_string",
        ],
    ),
    skip(
        JAC_ABSTRACT_ANYS,
        JAC,
        SERVER,
        EVERY_VERSION,
        &["value_any/check/card", "value_any/echo/card", "value_any/check/nobody", "value_any/echo/nobody"],
    ),
    skip(JAC_ABSTRACT_ANYS, JAC, CLIENT, EVERY_VERSION, &["value_any/make/card", "value_any/make/nobody"]),
    skip(JAC_CUT_ANYS, JAC, CLIENT, EVERY_VERSION, &["value_any/not_known_there"]),
    skip(JAC_TRUNCATION, JAC, CLIENT, EVERY_VERSION, &["value/chunks/kinds"]),
    skip(JAC_VALUE_BASE, JAC, CLIENT, EVERY_VERSION, &["value/base/member"]),
    skip(NO_LONG_DOUBLE, JAC, CLIENT, EVERY_VERSION, &["long_double"]),
];

const WIDE_ANYS: &[&str] = &[
    "any/make/wchar",
    "any/check/wchar",
    "any/echo/wchar",
    "any/make/wstring",
    "any/check/wstring",
    "any/echo/wstring",
];

/// Cases of a union that contains itself within a struct.
const RECURSIVE: &[&str] = &[
    "any/make/expr",
    "any/check/expr",
    "any/echo/expr",
    "typecode/echo/expr",
    "typecode/type_of/expr",
    "typecode/are_equivalent/expr",
];
