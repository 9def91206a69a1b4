//! `ironorb ifr export` writes IDL that compiles to the same definitions.

use std::collections::BTreeSet;

use ironorb_services::ifr::{Body, DefinitionNumber, InterfaceRepository, Limits, Store};
use ironorb_tests::command::run;

/// Every kind of definition in a repository, in an order that `export` has to find: types that refer to each
/// other through sequences and interfaces, across modules that are opened again; names that are words of
/// IDL; repository ids of other forms than the scoped name.
const EVERYTHING: &str = r#"
#include <orb.idl>
module M {
    struct Str { long n; sequence<string<4>> t; };
    enum E { A, B, _struct };
    union U switch (E) { case A: case B: long n; default: Str inner; };
    union Chars switch (char) { case 'a': case '\'': long n; };
    union Flags switch (boolean) { case TRUE: octet on; case FALSE: string off; };
    union Inside switch (enum Which { ONE, TWO }) { case ONE: Str some[2]; case TWO: long n; };
    typedef map<long, Str, 7> Ms;
    const string T = "a\n\"b\\";
    exception X { Str why; };
    exception Nothing {};
    valuetype V { public long n; factory make(in long n) raises (X); factory nothing(); long size(); };
    interface I { attribute Str it getraises (X) setraises (X, Nothing); Str go(in E k) raises (X); oneway void poke(); };
#pragma ID I "IDL:M/I:2.5"
};
#pragma prefix "example.org"
module N {
    interface Fwd; struct Node; typedef sequence<Node> Nodes;
    struct Node { Nodes kids; Fwd next; long grid[2][3]; enum Inner { P, Q } which; };
    interface Fwd : ::M::I {
        M::Str again(in Nodes ns, out Object o, inout any _any) context ("a", "b");
        readonly attribute long _interface raises (::M::X);
        typedef wstring<4> W; const W LW = L"x\x41"; struct Own { W text; }; Own get();
    };
    const fixed F = 12.5d; const char C = '\''; const double D = 1e300; const ::M::E EE = ::M::B; const octet O = 7;
    const long double LD = 1.25; const unsigned long long BIG = 18446744073709551615; const boolean YES = TRUE;
    const long long SMALL = -9223372036854775808; const wchar WC = L'x'; const float FL = -0.1;
    valuetype V : truncatable ::M::V supports Fwd { private Node n; public ValueBase any_value; };
    custom valuetype Cu { public V held; };
    abstract valuetype Av {}; valuetype Con : Av {};
    valuetype Box sequence<long>; native Nat; module Empty { interface Only {}; };
    abstract interface Ab {}; local interface Lo : Ab { void x(in CORBA::TypeCode t); };
    interface One; interface Two { void take(in One other); }; interface One : Two { Two give(); };
    bitset Bits { bitfield<3> a; }; typedef int8 Tiny;
};
module M { typedef N::Nodes Again; };
interface Odd { void run(); };
#pragma ID Odd "DCE:d62207a2-011e-11ce-88b4-0800090b5d3e:3"
"#;

#[test]
fn exported_idl_compiles_to_the_same_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (first, second) = (path("first.redb"), path("second.redb"));
    std::fs::write(path("all.idl"), EVERYTHING).unwrap();
    run(["ifr", "load", "--store", &first, &path("all.idl")]).expect();
    let exported = run(["ifr", "export", "--store", &first]).expect();
    println!("{exported}");
    std::fs::write(path("again.idl"), &exported).unwrap();
    run(["ifr", "load", "--store", &second, &path("again.idl")]).expect();
    let (before, after) = (facts(&first), facts(&second));
    assert!(before.len() > 60, "only {} definitions", before.len());
    let different: Vec<_> = before.symmetric_difference(&after).collect();
    assert!(different.is_empty(), "{different:#?}");
}

/// The definitions of a store: id, kind, name and type.
fn facts(store: &str) -> BTreeSet<String> {
    let repository = InterfaceRepository::new(Store::open(store).unwrap(), Limits::default());
    let mut facts = BTreeSet::new();
    let mut waiting = vec![DefinitionNumber::REPOSITORY];
    while let Some(container) = waiting.pop() {
        for number in repository.contents(container).unwrap() {
            let record = repository.get(number).unwrap();
            let name = repository.absolute_name(number).unwrap();
            let (kind, ty) = (record.kind(), text(&repository, number));
            let more = details(&repository, &record.body);
            facts.insert(format!("{} {kind:?} {name} {} {ty} {more}", record.id, record.version));
            waiting.push(number);
        }
    }
    facts
}

fn text(repository: &InterfaceRepository, number: DefinitionNumber) -> String {
    repository.type_code(number).map_or_else(|_| String::new(), |type_code| format!("{type_code:?}"))
}

/// The details of a definition that its TypeCode lacks.
fn details(repository: &InterfaceRepository, body: &Body) -> String {
    let text = |number| text(repository, number);
    let texts = |numbers: &[DefinitionNumber]| numbers.iter().map(|&number| text(number)).collect::<Vec<_>>();
    match body {
        Body::Constant { ty, value } => format!("{} {value:?}", text(*ty)),
        Body::Attribute { attribute } => format!(
            "{:?} {} {:?} {:?}",
            attribute.mode,
            text(attribute.ty),
            texts(&attribute.get_exceptions),
            texts(&attribute.set_exceptions)
        ),
        Body::Operation { operation } => {
            let parameters = operation.parameters.iter();
            let parameters: Vec<_> = parameters.map(|p| (&p.name, text(p.ty), p.mode)).collect();
            let (mode, result) = (operation.mode, text(operation.result));
            let exceptions = texts(&operation.exceptions);
            format!("{mode:?} {result} {parameters:?} {exceptions:?} {:?}", operation.contexts)
        }
        Body::ValueMember { ty, is_public } => format!("{is_public} {}", text(*ty)),
        Body::Interface { bases } | Body::LocalInterface { bases } => format!("{:?}", texts(bases)),
        Body::Value { value } => {
            let initializers = value.initializers.iter();
            let initializers: Vec<_> =
                initializers.map(|i| (&i.name, i.members.len(), texts(&i.exceptions))).collect();
            let (base, others) = (texts(&value.base), texts(&value.abstract_bases));
            let (supported, cut) = (texts(&value.supported), value.is_truncatable);
            format!("{base:?} {others:?} {supported:?} {initializers:?} {cut}")
        }
        _ => String::new(),
    }
}
