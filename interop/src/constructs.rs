//! Which construct each case tests: the rows of the matrix, in its order.

use crate::results::covers;

/// The construct of a case; the longest pattern that covers the case decides. `None` is a case without a row.
pub fn construct_of(case: &str) -> Option<&'static str> {
    let patterns =
        CONSTRUCTS.iter().flat_map(|(construct, cases)| cases.iter().map(move |case| (*construct, *case)));
    let covering = patterns.filter(|(_, pattern)| covers(pattern, case));
    covering.max_by_key(|(_, pattern)| pattern.len()).map(|(construct, _)| construct)
}

/// The constructs and their cases, or groups of cases (`big` is `big/...`).
pub const CONSTRUCTS: &[(&str, &[&str])] = &[
    (
        "numbers, characters, booleans, octets",
        &[
            "echo_short",
            "echo_ushort",
            "echo_long",
            "echo_ulong",
            "echo_llong",
            "echo_ullong",
            "echo_float",
            "echo_double",
            "echo_char",
            "echo_boolean",
            "echo_octet",
            "echo_height",
        ],
    ),
    (
        "parameters of every mode, constants, escaped names",
        &["nothing", "orb_name", "outs", "inouts", "mix", "sum", "constants", "default", "type"],
    ),
    ("enums", &["echo_color", "echo_single", "echo_colors"]),
    ("strings", &["echo_string", "echo_label"]),
    ("wide characters and strings", &["wide"]),
    (
        "sequences",
        &[
            "echo_shorts",
            "echo_ushorts",
            "echo_longs",
            "echo_ulongs",
            "echo_llongs",
            "echo_ullongs",
            "echo_floats",
            "echo_doubles",
            "echo_chars",
            "echo_booleans",
            "echo_octets",
            "echo_strings",
            "echo_bins",
            "echo_nameds",
            "echo_longs_seq",
            "echo_string_table",
            "echo_readings",
            "echo_nesteds",
            "echo_by_longs",
            "echo_long_arrays",
        ],
    ),
    ("bounded strings and sequences", &["echo_short_string", "echo_bounded_longs", "echo_short_strings"]),
    (
        "arrays",
        &[
            "echo_long_array",
            "echo_vector",
            "echo_matrix",
            "echo_cube",
            "echo_string_array",
            "echo_string_grid",
            "echo_bin_array",
            "echo_named_array",
            "echo_long_seq_array",
        ],
    ),
    (
        "structs",
        &[
            "echo_bin",
            "echo_sample",
            "echo_one_octet",
            "echo_all_basics",
            "echo_named",
            "echo_variable",
            "echo_nested",
            "echo_deep_pair",
        ],
    ),
    (
        "unions",
        &[
            "echo_by_short",
            "echo_by_ushort",
            "echo_by_long",
            "echo_by_ulong",
            "echo_by_llong",
            "echo_by_ullong",
            "echo_by_char",
            "echo_by_boolean",
            "echo_half_boolean",
            "echo_by_color",
            "echo_by_alias",
        ],
    ),
    ("recursive structs and unions", &["echo_tree", "echo_chain", "echo_expr"]),
    ("attributes", &["attribute"]),
    (
        "user exceptions",
        &[
            "raise_empty",
            "raise_one_of",
            "raise_detailed",
            "raise_occupied",
            "known_user_exception",
            "unknown_user_exception",
        ],
    ),
    ("system exceptions", &["raise_system", "bad_operation", "unknown_key", "destroy"]),
    (
        "object references",
        &[
            "create_node",
            "echo_node",
            "echo_object",
            "echo_nodes",
            "echo_objects",
            "echo_link",
            "echo_node_or_name",
            "id_of",
        ],
    ),
    (
        "inheritance, narrowing, identity",
        &["sprite", "widen", "narrow", "gauge", "is_a", "is_equivalent_hash"],
    ),
    ("LocateRequest, forwards", &["locate", "non_existent", "forwarded"]),
    ("callbacks", &["call_back", "hint_back", "describe_back"]),
    ("any", &["any"]),
    ("TypeCode", &["typecode"]),
    ("fixed", &["fixed"]),
    ("long double", &["long_double"]),
    ("oneway operations", &["oneway"]),
    ("context", &["context"]),
    ("dynamic invocation by the peer", &["dii_call", "bad_operation/dii"]),
    ("blocked calls, timeouts, threads", &["block", "timeout", "threads"]),
    ("messages of several MB", &["big"]),
    ("messages of 60 MB in fragments", &["big/60_mb"]),
    ("messages over the peer's limit", &["limits"]),
    ("TCP over IPv6", &["ipv6"]),
    ("a peer whose strings are ISO-8859-1", &["code_sets"]),
    ("`corbaloc:` without a version, plain keys", &["corbaloc"]),
    ("components of the peer's own in references", &["ior"]),
    ("naming services, `corbaname:`", &["naming"]),
    ("callbacks through one connection", &["bidirectional"]),
];
