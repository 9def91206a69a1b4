//! The seeds of inputs: real messages, references and IDL of the repository.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ironorb_giop::Version;
use ironorb_giop::ior::{IiopProfile, Ior, TaggedComponent};

/// Seeds for a target, in a fixed order. `root` is the repository.
pub fn of(target: &str, root: &Path) -> io::Result<Vec<Vec<u8>>> {
    let golden = files(&root.join("crates/ironorb-giop/testdata/omniorb"))?;
    let mut seeds = Vec::new();
    match target {
        "giop" => {
            for file in with_extension(&golden, "hex") {
                let messages = messages(&fs::read_to_string(file)?);
                // A whole conversation covers fragments, and a single message the rest.
                seeds.push(after(&[17], &messages.concat()));
                seeds.extend(messages.iter().map(|message| after(&[0], message)));
            }
        }
        "cdr" => {
            for file in with_extension(&golden, "hex") {
                for (i, message) in messages(&fs::read_to_string(file)?).iter().enumerate() {
                    // Little-endian GIOP 1.2 with UTF-8, and a plan of three types that differ.
                    let plan = [0b1101, 3, i as u8, (i / 20) as u8, (i * 7) as u8];
                    seeds.push(after(&plan, message.get(24..).unwrap_or_default()));
                }
            }
            seeds.extend(cdr_samples());
        }
        "typecode" | "any" => {
            for file in
                with_extension(&files(&root.join("crates/ironorb-giop/testdata/omniorb-types"))?, "hex")
            {
                for (i, bytes) in messages(&fs::read_to_string(file)?).iter().enumerate() {
                    // GIOP 1.2 with UTF-8, in alternating byte orders, as they are in the file.
                    seeds.push(after(&[0b1100 | (1 - i as u8 % 2)], bytes));
                }
            }
            seeds.extend(crate::typecode::samples(target));
        }
        "value" => seeds.extend(crate::value::samples()),
        "record" => seeds.extend(crate::record::samples()),
        "fixed" => seeds.extend(crate::typecode::samples(target)),
        "ior" => {
            seeds.extend(references(&golden)?.iter().map(|text| unhex(&text[4..])));
            seeds.push(with_sockets());
        }
        "url" => {
            seeds.extend(references(&golden)?.into_iter().map(String::into_bytes));
            seeds.extend(URLS.iter().map(|url| url.as_bytes().to_vec()));
        }
        "idl" => {
            for folder in IDL_FOLDERS {
                for file in with_extension(&files(&root.join(folder))?, "idl") {
                    seeds.extend(pieces(&fs::read(file)?));
                }
            }
            for folder in files(&root.join("crates/ironorb-build/testdata/emit"))? {
                seeds.extend(pieces(&fs::read(folder.join("in.idl"))?));
            }
            seeds.extend(IDL.iter().map(|text| text.as_bytes().to_vec()));
        }
        _ => {}
    }
    seeds.extend(found(target, root)?);
    Ok(seeds)
}

/// Inputs in which a run has found a fault: each is kept, and so is a test from then on.
fn found(target: &str, root: &Path) -> io::Result<Vec<Vec<u8>>> {
    let folder = root.join("fuzz/found").join(target);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    with_extension(&files(&folder)?, "hex")
        .map(|file| fs::read_to_string(file).map(|text| unhex(text.trim())))
        .collect()
}

/// A reference that names two Unix sockets and shared memory.
fn with_sockets() -> Vec<u8> {
    let sockets = ["/run/orb", "/tmp/s"].map(|path| TaggedComponent::new_unix_address("host", path));
    let shared = TaggedComponent::new_shared_memory_address("host", "/run/shm");
    let components: Vec<_> = sockets.into_iter().chain([shared]).map_while(Result::ok).collect();
    let profile = IiopProfile::new(Version::V1_2, "host", 0, b"key", &components);
    let ior = profile.map(|profile| Ior::with_profile("IDL:X:1.0", profile));
    unhex(&ior.unwrap_or_default().to_string()[4..])
}

/// Words of a target's grammar.
pub fn words(target: &str) -> &'static [&'static str] {
    match target {
        "idl" => IDL_WORDS,
        "url" => &[
            "corbaloc:",
            "corbaname:",
            "IOR:",
            "rir:",
            "iiop:",
            "uiop:",
            "omniunix:",
            "|",
            ":",
            ",",
            "/",
            "#",
            "@",
            "1.2@",
            "[::1]",
            "%",
            "%00",
        ],
        // A TypeCode's kinds, and indirections that go back a little.
        "typecode" | "any" => {
            &["\0\0\0\x0F", "\0\0\0\x13", "\0\0\0\x15", "\x0F\0\0\0", "\x13\0\0\0", "\x1D\0\0\0"]
        }
        // Tags, end tags, and indirections that go back a little.
        "value" => &[
            "\0\0\0\x04",
            "\0\0\0\x0AIDL:I:1.0\0",
            "\0\0\0\x0AIDL:N:1.0\0",
            "\0\0\0\x0AIDL:B:1.0\0",
            "\0\0\0\x02",
        ],
        "fixed" => &["-", ".", "d", "99999999999999999999"],
        "giop" => &["GIOP\x01\x02", "GIOP\x01\x01", "GIOP\x01\x00"],
        _ => &[],
    }
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

fn with_extension<'a>(files: &'a [PathBuf], extension: &'a str) -> impl Iterator<Item = &'a PathBuf> {
    files.iter().filter(move |file| file.extension().is_some_and(|found| found == extension))
}

/// The messages of a golden file. The README beside these files describes their format.
fn messages(text: &str) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    for line in text.lines() {
        match (line.as_bytes().first(), messages.last_mut()) {
            (Some(b'#') | None, _) => {}
            (Some(b'>'), _) => messages.push(Vec::new()),
            (_, Some(message)) => message.extend(unhex(line)),
            (_, None) => {}
        }
    }
    messages
}

fn references(golden: &[PathBuf]) -> io::Result<Vec<String>> {
    let mut references = Vec::new();
    for file in with_extension(golden, "txt") {
        let text = fs::read_to_string(file)?;
        references.extend(text.lines().filter(|line| line.starts_with("IOR:")).map(str::to_owned));
    }
    Ok(references)
}

/// Lengths of strings and sequences that agree with their contents, for each type of the plan.
fn cdr_samples() -> Vec<Vec<u8>> {
    let wide = [0, 0, 0, 4, 0xFE, 0xFF, 0, b'a'];
    let wide_marks = [0, 0, 0, 8, 0xFE, 0xFF, 0xFE, 0xFF, 0xFF, 0xFE, 0, b'a'];
    let strings = [0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, b'x', 0, 0, 0, 0, 0, 0, 0];
    let exception = after(&[0, 0, 0, 7], b"IDL:x\0\0\0\0\0\0\x02\0\0\0\x01");
    let doubles = after(&[0, 0, 0, 2, 0, 0, 0, 0], &[0x40; 16]);
    let contexts = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0, 0, 5, 1, 0, 1, 0, 1, 1, 9];
    let capsule = [0, 0, 0, 8, 1, 0, 0, 0, 2, 0, 0, 0];
    vec![
        after(&[0b1100, 1, 10], &wide),
        after(&[0b1100, 1, 10], &wide_marks),
        after(&[0b1100, 1, 14], &strings),
        after(&[0b1100, 1, 18], &exception),
        after(&[0b1100, 1, 12], &doubles),
        after(&[0b1100, 1, 17], &contexts),
        after(&[0b1100, 1, 79], &capsule),
        after(&[0b1100, 1, 13], &[0, 0, 0, 0]),
    ]
}

/// Pieces of a text, small enough for a mutation to matter, cut where a definition ends.
fn pieces(text: &[u8]) -> Vec<Vec<u8>> {
    const PIECE_BYTES: usize = 3000;
    let mut pieces = vec![Vec::new()];
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if let Some(piece) = pieces.last_mut() {
            piece.extend_from_slice(line);
            if piece.len() > PIECE_BYTES && line.starts_with(b"  }") {
                pieces.push(Vec::new());
            }
        }
    }
    pieces
}

fn after(head: &[u8], tail: &[u8]) -> Vec<u8> {
    [head, tail].concat()
}

fn unhex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

const URLS: &[&str] = &[
    "corbaloc:omniunix:1.2@/run/orb:,:1.2@h:1/k",
    "corbaloc:uiop:/tmp/a%20b|k",
    "corbaloc::localhost/NameService",
    "corbaloc:iiop:1.2@host.example:2810,:1.1@[fe80::1%eth0]:1,iiop:b/a%20key%ff/with;all?&=+$,-_!~*'().",
    "corbaloc:rir:/RootPOA",
    "corbaname::localhost:2809#bank/main.account",
    "corbaname:rir:#a%5c.b/c.d",
];

const IDL_FOLDERS: &[&str] =
    &["idl", "interop/idl", "crates/ironorb-idl/testdata/ok", "crates/ironorb-idl/testdata/errors"];

const IDL: &[&str] = &[
    "#include \"other.idl\"\n#define N 4\n#if N > 3 && defined(X)\n#else\nconst long C = N << 2;\n#endif\n\0const octet O = 1;",
    "module a { interface I; struct S; typedef sequence<S> Ss; struct S { Ss next; }; interface I { void f(); }; };",
    "union U switch (char) { case 'a': case '\\x41': long l; default: sequence<string<4>, 2> s; };",
    "valuetype V { public long x; private V y; factory make(in long x); }; abstract interface A {}; valuetype B long;",
    "@topic @key(1) struct P { @id(3) fixed<5,2> f; any a; TypeCode t; wstring<8> w; long double d[2][3]; };",
    "exception E { long why; }; interface J { oneway void f(in long x); long g() raises (E) context (\"a*\"); readonly attribute Object o; };",
];

const IDL_WORDS: &[&str] = &[
    "map<",
    "bitset ",
    "bitmask ",
    "bitfield<",
    "int8 ",
    "uint64 ",
    "@annotation ",
    "@bit_bound(8) ",
    "@position(3) ",
    "__LINE__",
    "__FILE__",
    "#x",
    "##",
    "long double ",
    "1e4000",
    "0.1d",
    "module ",
    "interface ",
    "struct ",
    "union ",
    "switch (",
    "case ",
    "default:",
    "enum ",
    "typedef ",
    "sequence<",
    "string<",
    "const ",
    "exception ",
    "valuetype ",
    "abstract ",
    "local ",
    "custom ",
    "truncatable ",
    "attribute ",
    "readonly ",
    "oneway ",
    "raises (",
    "context (",
    "in ",
    "out ",
    "inout ",
    "fixed<",
    "any",
    "Object",
    "native ",
    "import ",
    "typeid ",
    "typeprefix ",
    "long ",
    "long long ",
    "unsigned ",
    "::",
    "{",
    "}",
    ";",
    "(",
    ")",
    "<",
    ">",
    "<<",
    ">>",
    "/*",
    "*/",
    "//",
    "\"",
    "'",
    "L'",
    "\\",
    "#include \"other.idl\"\n",
    "#include \"main.idl\"\n",
    "#define A A A\n",
    "#define F(x) x x\n",
    "#if ",
    "#else\n",
    "#endif\n",
    "#pragma prefix \"p\"\n",
    "#pragma ID A \"IDL:a:1.0\"\n",
    "#pragma version A 1.1\n",
    "##",
    "@",
    "@annotation ",
    "-9223372036854775808",
    "18446744073709551616",
    "1e400",
    "0x",
    "\u{0}",
];
