//! Loading definitions from IDL: what a load changes, keeps and refuses, and its cost.

use ironorb::{TcKind, TypeCode, TypeDef};
use ironorb_idl::model::Model;
use ironorb_idl::{MapLoader, Options, compile_with};
use ironorb_services::ifr::{
    Body, DefinitionNumber, InterfaceRepository, Limits, LoadError, Loaded, RepositoryError, Store,
};

fn model(text: &str) -> Model {
    let files = MapLoader::new().with("it.idl", text);
    let outcome = compile_with("it.idl".as_ref(), &Options::default(), &files);
    let diagnostics = outcome.render(false);
    outcome.model.unwrap_or_else(|| panic!("{diagnostics}"))
}

fn empty() -> InterfaceRepository {
    InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default())
}

fn with(text: &str) -> InterfaceRepository {
    let repository = empty();
    load(&repository, text);
    repository
}

#[track_caller]
fn load(repository: &InterfaceRepository, text: &str) -> Loaded {
    repository.load(&model(text)).unwrap_or_else(|e| panic!("{e}"))
}

/// The error of a refused load. The ids show that it changed nothing.
#[track_caller]
fn refused(repository: &InterfaceRepository, text: &str) -> String {
    let before = all(repository);
    let why = repository.load(&model(text)).expect_err("it is refused").to_string();
    assert_eq!(all(repository), before, "a refused load changes nothing");
    why
}

/// Every definition with its id and number, and the number of anonymous ones.
fn all(repository: &InterfaceRepository) -> Vec<(String, DefinitionNumber)> {
    let mut found = Vec::new();
    let mut waiting = vec![DefinitionNumber::REPOSITORY];
    while let Some(container) = waiting.pop() {
        for number in repository.contents(container).unwrap() {
            found.push((repository.get(number).unwrap().id, number));
            waiting.push(number);
        }
    }
    found.sort();
    found
}

fn type_of(repository: &InterfaceRepository, name: &str) -> TypeCode {
    let number = repository.lookup(DefinitionNumber::REPOSITORY, name).unwrap();
    repository.type_code(number.unwrap_or_else(|| panic!("{name} is not there"))).unwrap()
}

#[test]
fn types_without_a_kind_are_loaded_as_the_type_on_the_wire() {
    let repository = with(
        "typedef map<long, sequence<string>, 5> Names;
         struct Holder { map<string, Names> all; int8 small; uint64 big; };
         bitset Flags { bitfield<3> a; bitfield<9> b; };
         @bit_bound(8) bitmask Mask { A, B };
         const fixed RATE = 012.50d;
         const fixed ONE = 1.0d;",
    );
    let long = TypeCode::of(&TypeDef::Long);
    let strings = TypeCode::create_sequence(&TypeCode::create_string(0), 0).unwrap();
    let pair = |key, value| TypeCode::create_struct("", "", &[("key", key), ("value", value)]).unwrap();
    let names = TypeCode::create_sequence(&pair(long, strings), 5).unwrap();
    let names = TypeCode::create_alias("IDL:Names:1.0", "Names", &names).unwrap();
    assert_eq!(type_of(&repository, "Names"), names);
    let all = TypeCode::create_sequence(&pair(TypeCode::create_string(0), names), 0).unwrap();
    let holder = type_of(&repository, "Holder");
    assert_eq!(holder.member_type(0).unwrap(), all);
    assert_eq!(holder.member_type(1).unwrap().kind(), TcKind::Octet);
    assert_eq!(holder.member_type(2).unwrap().kind(), TcKind::ULongLong);
    let flags = TypeCode::create_alias("IDL:Flags:1.0", "Flags", &TypeCode::of(&TypeDef::UShort)).unwrap();
    assert_eq!(type_of(&repository, "Flags"), flags);
    let mask = TypeCode::create_alias("IDL:Mask:1.0", "Mask", &TypeCode::of(&TypeDef::Octet)).unwrap();
    assert_eq!(type_of(&repository, "Mask"), mask);
    let constant = |name| {
        let number = repository.lookup(DefinitionNumber::REPOSITORY, name).unwrap().unwrap();
        match repository.get(number).unwrap().body {
            Body::Constant { value, .. } => value.type_code().clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(constant("RATE"), TypeCode::create_fixed(3, 1).unwrap());
    assert_eq!(constant("ONE"), TypeCode::create_fixed(1, 0).unwrap());
}

#[test]
fn constants_may_be_of_types_that_the_front_end_brings_along() {
    let repository = with("#include <orb.idl>\nconst CORBA::VersionSpec V = \"2.0\";");
    let found = repository.lookup(DefinitionNumber::REPOSITORY, "V").unwrap().unwrap();
    let Body::Constant { value, .. } = repository.get(found).unwrap().body else { panic!() };
    assert_eq!(value.type_code().name().unwrap(), "VersionSpec");
    assert_eq!(value.type_code(), &type_of(&repository, "CORBA::VersionSpec"));
}

#[test]
fn the_same_text_again_changes_nothing() {
    let text = "module M {
        struct S; typedef sequence<S> Ss; struct S { Ss inner; map<long, S> by; long grid[2][3]; };
        interface Fwd; interface I { void a(in Ss s, inout string<5> t); attribute Fwd f; enum E { X, Y }; };
        interface Fwd { exception Bad { fixed<5, 2> n; }; I go() raises (Bad); };
        union U switch (I::E) { case I::X: long n; default: sequence<Fwd, 3> fs; };
        valuetype V supports I { public V next; private Ss held; factory make(in Ss s); };
        const I::E C = I::Y;
    };";
    let repository = with(text);
    let (before, types) = (all(&repository), ["M::S", "M::U", "M::V", "M::I::E", "M::Fwd::Bad"]);
    let made: Vec<_> = types.iter().map(|name| type_of(&repository, name)).collect();
    let again = load(&repository, text);
    assert_eq!((again.added, again.removed, again.updated), (0, 0, before.len()));
    assert_eq!(all(&repository), before);
    assert_eq!(types.iter().map(|name| type_of(&repository, name)).collect::<Vec<_>>(), made);
    // Anonymous types are created anew, and the old ones are removed.
    let count = |repository: &InterfaceRepository| {
        let after = repository.create(&ironorb_services::ifr::Record {
            id: "IDL:Last:1.0".to_owned(),
            name: "Last".to_owned(),
            version: "1.0".to_owned(),
            container: DefinitionNumber::REPOSITORY,
            body: Body::Native {},
        });
        let after = after.unwrap();
        let nameless = (64..after.number()).map(DefinitionNumber::from_number);
        let there = nameless.filter(|&number| repository.get(number).is_ok()).count();
        repository.destroy(after).unwrap();
        there
    };
    assert_eq!(count(&repository), count(&with(text)));
}

#[test]
fn a_changed_text_brings_definitions_up_to_date() {
    let repository = with(
        "interface I { struct Old { long n; }; void run(in Old o); attribute long size; const long MAX = 3; void Stop(); };
         enum E { A, B };
         valuetype V { public long n; public string s; };",
    );
    let number = repository.lookup_id("IDL:I:1.0").unwrap();
    // An operation becomes an attribute, and a constant an operation. A name changes its case. Definitions
    // that refer to each other are removed together. A member of a value is exchanged.
    let loaded = load(
        &repository,
        "interface I { void size(); attribute long run; void max(); void stop(); };
         enum E { A, B, C };
         valuetype V { public string s; private double d; };",
    );
    assert_eq!(loaded, Loaded { added: 5, updated: 4, removed: 6 });
    assert_eq!(repository.lookup_id("IDL:I:1.0").unwrap(), number);
    let names: Vec<String> = repository
        .contents(number.unwrap())
        .unwrap()
        .into_iter()
        .map(|number| repository.absolute_name(number).unwrap())
        .collect();
    assert_eq!(names, ["::I::size", "::I::run", "::I::max", "::I::stop"]);
    assert_eq!(type_of(&repository, "E").member_count().unwrap(), 3);
    let v = type_of(&repository, "V");
    assert_eq!([v.member_name(0).unwrap(), v.member_name(1).unwrap()], ["s", "d"]);
    for gone in ["I::MAX", "I::Old", "V::n"] {
        let found = repository.lookup(DefinitionNumber::REPOSITORY, gone).unwrap();
        // Names are found in any case.
        assert!(found.is_none() || gone == "I::MAX", "{gone}");
    }
    assert!(repository.lookup_id("IDL:I/MAX:1.0").unwrap().is_none());
}

#[test]
fn what_others_need_is_not_taken_away() {
    let repository = with("interface I { struct S { long n; }; }; module Other { typedef I::S Mine; };");
    let why = refused(&repository, "interface I { void run(); };");
    assert!(why.contains("::Other::Mine"), "{why}");
    let why = refused(&repository, "interface J {}; module Other { struct Mine { long n; }; };");
    assert!(
        why.contains("IDL:Other/Mine:1.0: the repository has a typedef, ::Other::Mine, under this id"),
        "{why}"
    );
    let why = refused(&repository, "module Other { native mine;\n#pragma ID mine \"IDL:mine:1.0\"\n};");
    assert!(why.contains("IDL:mine:1.0") && why.contains("IDL:Other/Mine:1.0"), "{why}");
    let moved = "module Else { native Mine;\n#pragma ID Mine \"IDL:Other/Mine:1.0\"\n};";
    let why = refused(&repository, moved);
    assert!(why.contains("::Other::Mine"), "{why}");
    // A newer version of a base gets an operation that a derived interface outside the text already has.
    load(&repository, "interface Base {}; interface Heir : Base { void run(); };");
    let why = refused(&repository, "interface Base { void Run(); };");
    assert!(why.to_lowercase().contains("`run` is inherited"), "{why}");
    load(&repository, "interface Base { void walk(); };");
}

#[test]
fn limits_are_kept_by_loads() {
    let limits = Limits { definitions_max: 40, ..Limits::default() };
    let repository = InterfaceRepository::new(Store::in_memory().unwrap(), limits);
    let many: String = (0..50).map(|n| format!("native N{n};")).collect();
    let why = refused(&repository, &many);
    assert!(why.contains("more than 40 definitions"), "{why}");
    let limits = Limits { definition_bytes_max: 1_000, ..Limits::default() };
    let repository = InterfaceRepository::new(Store::in_memory().unwrap(), limits);
    let wide: Vec<String> = (0..100).map(|n| format!("ENUMERATOR_{n}")).collect();
    let why = refused(&repository, &format!("enum E {{ {} }};", wide.join(", ")));
    assert!(why.contains("IDL:E:1.0") && why.contains("more than 1000 bytes"), "{why}");
}

/// Types nest as deep as TypeCodes may, and no deeper. The front end allows more.
#[test]
fn types_that_are_too_deep_are_refused_by_name() {
    let nested = |depth: usize| -> String {
        let first = "struct S0 { long n; };".to_owned();
        (1..depth).fold(first, |text, n| text + &format!("struct S{n} {{ S{} inner; }};", n - 1))
    };
    let repository = with(&nested(100));
    assert_eq!(type_of(&repository, "S99").member_count().unwrap(), 1);
    let why = refused(&repository, &nested(400));
    assert!(why.contains("IDL:S") && why.contains("deep"), "{why}");
}

/// Each of 1,000 interfaces inherits from the one before it, the most that the front end accepts: half a
/// million pairs of a derived interface and an ancestor.
#[test]
fn deep_inheritance_costs_in_proportion() {
    let chain = |count: usize| -> String {
        let first = "interface I0 { void o0(); };".to_owned();
        (1..count).fold(first, |t, n| t + &format!("interface I{n} : I{} {{ void o{n}(); }};", n - 1))
    };
    let repository = with(&chain(1_000));
    let loaded = load(&repository, &chain(1_000));
    assert_eq!((loaded.added, loaded.updated), (0, 2_000));
    let last = repository.lookup(DefinitionNumber::REPOSITORY, "I999::o0").unwrap();
    assert_eq!(repository.absolute_name(last.unwrap()).unwrap(), "::I0::o0");
}

/// A struct of 200 parts is used in each of 2,000 others. Its TypeCode is computed once, not 2,000 times. (A
/// visit for every part of every type would be 400,000 visits. The limit of one load allows that, so this
/// test checks the result.)
#[test]
fn shared_types_are_worked_out_once() {
    let members: String = (0..200).map(|n| format!("string<{}> m{n};", n + 1)).collect();
    let users: String =
        (0..2_000).map(|n| format!("struct U{n} {{ Big one; sequence<Big> more; }};")).collect();
    let repository = with(&format!("struct Big {{ {members} }};{users}"));
    assert_eq!(type_of(&repository, "U1999").member_type(0).unwrap().member_count().unwrap(), 200);
}

#[test]
fn loads_and_reads_at_once_see_all_of_a_text_or_nothing() {
    let repository = std::sync::Arc::new(with("module M { const long GENERATION = 0; };"));
    let text = |generation: u32| {
        let members: String = (0..20).map(|n| format!("long g{generation}_{n};")).collect();
        format!("module M {{ const long GENERATION = {generation}; struct S {{ {members} }}; }};")
    };
    load(&repository, &text(1));
    let writers: Vec<_> = (0..2u32)
        .map(|which| {
            let repository = repository.clone();
            std::thread::spawn(move || {
                for n in 1..15 {
                    load(&repository, &text(which * 100 + n));
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let repository = repository.clone();
            std::thread::spawn(move || {
                for _ in 0..200 {
                    let s = type_of(&repository, "M::S");
                    let generation = s.member_name(0).unwrap().strip_suffix("_0").unwrap().to_owned();
                    for n in 0..20 {
                        assert_eq!(s.member_name(n).unwrap(), format!("{generation}_{n}"));
                    }
                }
            })
        })
        .collect();
    writers.into_iter().chain(readers).for_each(|thread| thread.join().unwrap());
    assert_eq!(all(&repository).len(), 3);
}

#[test]
fn faults_say_what_is_wrong() {
    let repository = with("interface I {};");
    let e = repository.load(&model("struct I { long n; };")).unwrap_err();
    assert!(matches!(e, LoadError::Conflict { .. }), "{e}");
    let base = repository.lookup_id("IDL:I:1.0").unwrap().unwrap();
    let e = repository.update(base, |record| {
        record.body = Body::Interface { bases: vec![base] };
        Ok(())
    });
    assert!(matches!(e, Err(RepositoryError::BadParam(_))), "{e:?}");
}
