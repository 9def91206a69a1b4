//! The rules of JSON by example, and the errors for JSON that breaks them.

use ironorb::giop::Misuse;
use ironorb::giop::any::CANONICAL;
use ironorb::giop::{Reader, Writer};
use ironorb::{Any, TypeCode, TypeDef};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::json::{
    DEPTH_MAX, default_value, fill, from_json, template, to_json, to_json_with, type_from_json, type_to_json,
};
use serde_json::{Value, json};

const IDL: &str = r#"
    module Shop {
        enum Color { red, green, blue };
        typedef sequence<octet> Raw;
        struct Item { string<8> name; short price; Color paint; };
        struct Order { sequence<Item, 2> items; Raw picture; octet key[4]; };
        union Choice switch (long) {
            case 1: case 2: string text;
            case 3: Item thing;
            default: boolean other;
        };
        union Sparse switch (Color) { case green: long count; };
        exception Refused { string why; long long missing; };
        struct Wide { long long a; unsigned long long b; float c; double d; long double e; fixed<5, 2> f; };
        typedef map<string, long> Ages;
        struct Many { any what; Object who; CORBA::TypeCode kind; wchar sign; char letter; Ages people; };
        valuetype Node { public string label; public sequence<Node> next; };
        valuetype Leaf : truncatable Node { private long size; };
        valuetype Label string;
        abstract valuetype Shape {};
        custom valuetype Own { public long x; };
        abstract interface Either {};
        struct Values { Node one; Node other; Label text; Either it; Own mine; };
        struct Tree { sequence<Tree> kids; };
    };
"#;

fn shop() -> Interfaces {
    let mut known = Interfaces::new();
    known.add_idl_text("shop.idl", IDL, &Default::default()).unwrap_or_else(|error| panic!("{error}"));
    known
}

fn ty(known: &Interfaces, name: &str) -> TypeCode {
    let id = known.id_of(&format!("Shop::{name}")).unwrap_or_else(|| panic!("no {name}"));
    known.type_code(id).expect("it has a type")
}

/// Converts to a value, and back to the same JSON.
#[track_caller]
fn same(name: &str, json: Value) -> Any {
    becomes(name, json.clone(), json)
}

/// Converts to a value, and back to the other JSON.
#[track_caller]
fn becomes(name: &str, json: Value, expected: Value) -> Any {
    let known = shop();
    let any = from_json(&ty(&known, name), &json, &known, None).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(to_json_with(&any, &known), Ok(expected));
    any
}

#[track_caller]
fn refused(name: &str, json: Value, why: &str) {
    let known = shop();
    let error = from_json(&ty(&known, name), &json, &known, None).unwrap_err();
    assert_eq!(error.to_string(), why);
}

#[track_caller]
fn refused_at(name: &str, json: Value, path: &str) {
    let known = shop();
    assert_eq!(from_json(&ty(&known, name), &json, &known, None).unwrap_err().path(), path);
}

#[test]
fn structs_sequences_and_enums() {
    let item = json!({ "name": "chair", "price": 40, "paint": "green" });
    same("Item", item.clone());
    becomes(
        "Item",
        json!({ "name": "", "price": 4e1, "paint": 1 }),
        json!({
            "name": "", "price": 40, "paint": "green"
        }),
    );
    let order = json!({ "items": [item, item], "picture": "AAEC/w==", "key": [1, 2, 3, 255] });
    let text = same("Order", order.clone());
    assert_eq!(
        to_json(&text).unwrap().to_string(),
        r#"{"items":[{"name":"chair","price":40,"paint":"green"},{"name":"chair","price":40,"paint":"green"}],"picture":"AAEC/w==","key":[1,2,3,255]}"#,
        "members stand in the order of the IDL"
    );
    let mut other = order.clone();
    other["picture"] = json!([0, 1, 2, 255]);
    other["key"] = json!("AQID/w");
    becomes("Order", other, order);
    same("Refused", json!({ "why": "closed", "missing": -7 }));
}

#[test]
fn errors_name_the_place() {
    let item = |price: Value| json!({ "name": "chair", "price": price, "paint": "green" });
    let order = |items: Value| json!({ "items": items, "picture": "", "key": [0, 0, 0, 0] });
    refused(
        "Order",
        order(json!([item(json!(1)), item(json!(40000))])),
        "$.items[1].price: expected a whole number from -32768 to 32767, found 40000",
    );
    refused("Item", item(json!("1")), "$.price: expected a whole number from -32768 to 32767, found \"1\"");
    refused("Item", item(json!(1.5)), "$.price: expected a whole number from -32768 to 32767, found 1.5");
    refused(
        "Item",
        json!({ "name": "a chair to sit on", "price": 1, "paint": "green" }),
        "$.name: expected a string of at most 8 characters, found \"a chair to sit on\"",
    );
    refused(
        "Item",
        json!({ "name": "", "price": 1, "paint": "grey" }),
        "$.paint: expected one of red, green, blue, found \"grey\"",
    );
    refused("Item", json!({ "name": "", "paint": "red" }), "$: the member \"price\" is missing");
    refused(
        "Item",
        json!({ "name": "", "price": 1, "paint": "red", "prize": 2 }),
        "$: there is no member \"prize\"; one of name, paint, price",
    );
    refused("Item", json!([1]), "$: expected an object, found an array of 1");
    refused("Order", order(json!({})), "$.items: expected an array, found an object");
    refused(
        "Order",
        order(json!([item(json!(1)), item(json!(1)), item(json!(1))])),
        "$.items: 3 elements, where at most 2 may be",
    );
    let bad = |picture: Value, key: Value| json!({ "items": [], "picture": picture, "key": key });
    refused("Order", bad(json!("A"), json!([])), "$.picture: expected a string in base64, found \"A\"");
    refused("Order", bad(json!(5), json!([])), "$.picture: expected a string in base64 or an array, found 5");
    refused(
        "Order",
        bad(json!([256]), json!([])),
        "$.picture[0]: expected a whole number from 0 to 255, found 256",
    );
    refused("Order", bad(json!(""), json!([0])), "$.key: expected an array of 4, found an array of 1");
    refused(
        "Item",
        json!({ "name": "a\0" , "price": 1, "paint": "red" }),
        "$.name: a string cannot hold the character NUL",
    );
}

#[test]
fn a_union_s_discriminator_and_member_agree() {
    same("Choice", json!({ "discriminator": 2, "text": "x" }));
    becomes("Choice", json!({ "text": "x" }), json!({ "discriminator": 1, "text": "x" }));
    becomes("Choice", json!({ "other": true }), json!({ "discriminator": 0, "other": true }));
    same("Choice", json!({ "discriminator": -9, "other": false }));
    same("Sparse", json!({ "discriminator": "green", "count": 4 }));
    same("Sparse", json!({ "discriminator": "blue" }));
    refused(
        "Choice",
        json!({ "discriminator": 1, "other": true }),
        "$: the member \"text\" belongs to this discriminator, not \"other\"",
    );
    refused("Choice", json!({ "discriminator": 1 }), "$: the member \"text\" is missing");
    refused("Choice", json!({}), "$: a union has a discriminator or a member");
    refused(
        "Choice",
        json!({ "texts": "" }),
        "$: there is no member \"texts\"; one of text, text, thing, other",
    );
    refused(
        "Choice",
        json!({ "text": "", "other": true }),
        "$: a union has one member, and \"other\" is another",
    );
    refused(
        "Sparse",
        json!({ "discriminator": "blue", "count": 4 }),
        "$: no member belongs to this discriminator, but \"count\" is there",
    );
    refused(
        "Choice",
        json!({ "discriminator": "x" }),
        "$.discriminator: expected a whole number from -2147483648 to 2147483647, found \"x\"",
    );
}

#[test]
fn numbers_lose_nothing() {
    let wide = json!({
        "a": "-9223372036854775808", "b": "18446744073709551615", "c": 0.1, "d": 0.1,
        "e": "0.1", "f": "-123.45"
    });
    let any = same("Wide", wide.clone());
    let mut r = any.reader();
    assert_eq!((r.read_i64(), r.read_u64()), (Ok(i64::MIN), Ok(u64::MAX)));
    assert_eq!((r.read_f32(), r.read_f64()), (Ok(0.1f32), Ok(0.1f64)));
    let with = |member: &str, value: Value| {
        let mut wide = wide.clone();
        wide[member] = value;
        wide
    };
    // 64-bit integers are accepted as numbers too, exactly.
    becomes("Wide", with("b", json!(18446744073709551615u64)), wide.clone());
    becomes("Wide", with("a", json!(i64::MIN)), wide.clone());
    same("Wide", with("a", json!(9007199254740992i64)));
    same("Wide", with("a", json!("9007199254740993")));
    for word in ["NaN", "Infinity", "-Infinity", "NaN:ffc00001"] {
        same("Wide", with("c", json!(word)));
    }
    for word in ["NaN", "Infinity", "-Infinity", "NaN:7ff0000000000001"] {
        same("Wide", with("d", json!(word)));
    }
    same("Wide", with("e", json!("-Infinity")));
    becomes("Wide", with("f", json!(7)), with("f", json!("7.00")));
    becomes("Wide", with("e", json!(2.5)), with("e", json!("2.5")));
    refused_at("Wide", with("e", json!("1".repeat(1_000_000))), "$.e");
    for wrong in [json!("1234.5"), json!("1.005"), json!(1.5), json!("x"), json!("9".repeat(1_000_000))] {
        refused_at("Wide", with("f", wrong), "$.f");
    }
    refused(
        "Wide",
        with("b", json!(-1)),
        "$.b: expected a whole number from 0 to 18446744073709551615, found -1",
    );
    refused(
        "Wide",
        with("b", json!("18446744073709551616")),
        "$.b: expected a whole number from 0 to 18446744073709551615, found \"18446744073709551616\"",
    );
    refused(
        "Wide",
        with("a", json!(1e19)),
        "$.a: expected a whole number from -9223372036854775808 to 9223372036854775807, found 1e+19",
    );
    refused("Wide", with("c", json!(1e39)), "$.c: expected a number of at most 3.4028235e38, found 1e+39");
    refused(
        "Wide",
        with("d", json!("inf")),
        "$.d: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", found \"inf\"",
    );
    refused(
        "Wide",
        with("d", json!("NaN:0000000000000001")),
        "$.d: expected a number, \"NaN\", \"Infinity\" or \"-Infinity\", found \"NaN:0000000000000001\"",
    );
}

#[test]
fn anys_references_and_types() {
    let nothing = json!({
        "what": null, "who": null, "kind": "void", "sign": "日", "letter": "é",
        "people": [{ "key": "Ann", "value": 40 }, { "key": "Bob", "value": 41 }]
    });
    let known = shop();
    let many = ty(&known, "Many");
    let check = |json: &Value| {
        let any = from_json(&many, json, &known, None).unwrap_or_else(|error| panic!("{error}"));
        to_json_with(&any, &known).unwrap()
    };
    assert_eq!(check(&nothing), nothing);
    let with = |member: &str, value: Value| {
        let mut json = nothing.clone();
        json[member] = value;
        json
    };
    for what in [
        json!({ "type": "long", "value": 5 }),
        json!({ "type": "sequence<string<3>,2>", "value": ["a", "b"] }),
        json!({ "type": "IDL:Shop/Color:1.0", "value": "blue" }),
        json!({ "type": "any", "value": { "type": "CORBA::TypeCode", "value": "IDL:Shop/Tree:1.0" } }),
        json!({ "type": "IDL:Shop/Tree:1.0", "value": { "kids": [{ "kids": [] }] } }),
        json!({ "type": "IDL:Shop/Refused:1.0", "value": { "why": "", "missing": 0 } }),
        json!({ "type": { "kind": "array", "element": "fixed<3,1>", "length": 1 }, "value": ["1.5"] }),
    ] {
        assert_eq!(check(&with("what", what.clone()))["what"], what);
    }
    // A scoped name is accepted in place of the id.
    let named = check(&with("what", json!({ "type": "Shop::Color", "value": "red" })));
    assert_eq!(named["what"]["type"], "IDL:Shop/Color:1.0");
    let ior = "corbaloc:iiop:1.2@example.org:2809/Key".parse::<ironorb::giop::ObjectUrl>().unwrap();
    let ior = match ior {
        ironorb::giop::ObjectUrl::Corbaloc(at) => at.to_ior().unwrap().to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(check(&with("who", json!("corbaloc:iiop:1.2@example.org:2809/Key")))["who"], ior);
    assert_eq!(check(&with("who", json!(ior)))["who"], ior);
    let wrong = |member: &str, value: Value| {
        from_json(&many, &with(member, value), &known, None).unwrap_err().to_string()
    };
    assert_eq!(
        wrong("what", json!([5])),
        "$.what: expected {\"type\": …, \"value\": …}, a number, a string, true, false or null, found an array of 1"
    );
    // A plain value implies its type.
    for (plain, of) in [
        (json!(5), "long"),
        (json!(-2147483649i64), "long long"),
        (json!(18446744073709551615u64), "unsigned long long"),
        (json!(0.5), "double"),
        (json!(true), "boolean"),
        (json!("text"), "string"),
    ] {
        let converted = check(&with("what", plain.clone()))["what"].clone();
        assert_eq!(converted["type"], of, "{plain}");
    }
    assert_eq!(
        wrong("what", json!({ "type": "short", "value": [1] })),
        "$.what.value: expected a whole number from -32768 to 32767, found an array of 1"
    );
    assert_eq!(
        wrong("what", json!({ "type": "Shop::Colour", "value": 1 })),
        "$.what.type: expected a known type, found \"Shop::Colour\""
    );
    assert!(
        wrong("who", json!("nonsense")).starts_with("$.who: expected a reference ("),
        "{}",
        wrong("who", json!("nonsense"))
    );
    assert!(wrong("who", json!("corbaname::x#y")).contains("a name is looked up by an ORB"));
    assert_eq!(wrong("letter", json!("日")), "$.letter: expected a character of ISO 8859-1, found \"日\"");
    assert_eq!(wrong("letter", json!("ab")), "$.letter: expected a string of one character, found \"ab\"");
}

#[test]
fn an_orb_gives_references_a_home() {
    let orb = ironorb::Orb::builder().no_endpoint().build().unwrap();
    let object = TypeCode::for_type::<Option<ironorb::ObjectRef>>();
    let url = json!("corbaloc:iiop:1.2@example.org:2809/Key");
    let any = from_json(&object, &url, &Interfaces::new(), Some(&orb)).unwrap();
    let reference = any.extract::<Option<ironorb::ObjectRef>>().unwrap().unwrap();
    assert_eq!(to_json(&any), Ok(json!(reference.to_ior_string())));
    let known = Interfaces::new();
    let wrong = from_json(&object, &json!("corbaloc:rir:/Nothing"), &known, Some(&orb)).unwrap_err();
    assert!(wrong.to_string().starts_with("$: expected a reference ("), "{wrong}");
}

#[test]
fn values_keep_their_graph() {
    let node = |label: &str| json!({ "@type": "IDL:Shop/Node:1.0", "label": label, "next": [] });
    same("Node", node("alone"));
    becomes(
        "Node",
        json!({ "label": "a", "next": [null] }),
        json!({
            "@type": "IDL:Shop/Node:1.0", "label": "a", "next": [null]
        }),
    );
    // A cycle, and two values that share a third.
    same(
        "Node",
        json!({
            "@id": 1, "@type": "IDL:Shop/Node:1.0", "label": "a",
            "next": [
                { "@id": 2, "@type": "IDL:Shop/Node:1.0", "label": "b", "next": [{ "@ref": 1 }] },
                { "@type": "IDL:Shop/Node:1.0", "label": "c", "next": [{ "@ref": 2 }, { "@ref": 1 }] }
            ]
        }),
    );
    let values = |one: Value, other: Value, text: Value, it: Value| json!({ "one": one, "other": other, "text": text, "it": it, "mine": null });
    same(
        "Values",
        values(node("x"), json!(null), json!({ "@type": "IDL:Shop/Label:1.0", "value": "t" }), json!(null)),
    );
    let mut first = node("x");
    first = json!({ "@id": 1, "@type": first["@type"], "label": "x", "next": [] });
    same("Values", values(first, json!({ "@ref": 1 }), json!(null), json!(null)));
    refused(
        "Node",
        json!({ "@ref": 1 }),
        "$[\"@ref\"]: expected the \"@id\" of a value before, found 1"
            .replace("[\"@ref\"]", ".@ref")
            .as_str(),
    );
    refused(
        "Node",
        json!({ "@type": "IDL:Nobody:1.0" }),
        "$.@type: expected the repository id or name of a known valuetype, found \"IDL:Nobody:1.0\"",
    );
    refused(
        "Node",
        json!({ "@type": "IDL:Shop/Label:1.0", "value": "" }),
        "$.@type: expected IDL:Shop/Node:1.0 or what inherits from it, found \"IDL:Shop/Label:1.0\"",
    );
    refused("Shape", json!({}), "$.@type: is missing, and several types may stand here");
    refused("Own", json!({ "x": 1 }), "$: a custom valuetype is marshalled by the program's own code");
    refused("Label", json!("text"), "$: expected an object, found \"text\"");
}

use crate::static_types::generated::values as generated;

#[test]
fn values_behind_bases_need_an_orb_that_knows_them() {
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../ironorb-build/testdata/emit/values/in.idl");
    let mut known = Interfaces::new();
    known.add_idl([idl], &Default::default()).unwrap();
    let node = known.type_code("IDL:graphs/Node:1.0").unwrap();
    let json = json!({
        "@id": 1, "@type": "IDL:graphs/Deep:1.0", "label": "l", "next": [{ "@ref": 1 }, null], "visits": 3,
        "Name": "n", "extra": null, "edges": [], "base": 7
    });
    let made = |orb: Option<&ironorb::Orb>| from_json(&node, &json, &known, orb);
    // Without, it would be cut to its base without a word.
    assert_eq!(
        made(None).unwrap_err().to_string(),
        "$.@type: expected a valuetype that is registered with the ORB, or the one that is expected, found \"IDL:graphs/Deep:1.0\""
    );
    let orb = ironorb::Orb::builder().no_endpoint().build().unwrap();
    assert!(made(Some(&orb)).is_err());
    generated::register_in_values(&orb);
    // The name is accepted too; the output has the id.
    let mut named = json.clone();
    named["@type"] = json!("graphs::Deep");
    let by_name = from_json(&node, &named, &known, Some(&orb)).unwrap();
    assert_eq!(by_name, from_json(&node, &json, &known, Some(&orb)).unwrap());
    named["@type"] = json!("graphs::Nobody");
    assert!(from_json(&node, &named, &known, Some(&orb)).is_err());
    let any = made(Some(&orb)).unwrap();
    assert_eq!(to_json_with(&any, &known), Ok(json.clone()));
    assert_eq!(to_json(&any), Ok(json));
}

#[test]
fn nesting_ends_before_the_stack_does() {
    let known = shop();
    let tree = ty(&known, "Tree");
    // Built by hand, because `json!` copies its parts.
    let around = |key: &str, inside: Value| Value::Object([(key.to_owned(), inside)].into_iter().collect());
    let deep = |levels: usize| {
        (1..levels).fold(json!({ "kids": [] }), |kid, _| around("kids", Value::Array(vec![kid])))
    };
    // Each level is an object and an array.
    let most = DEPTH_MAX / 2;
    let any = from_json(&tree, &deep(most), &known, None).unwrap();
    let json = to_json(&any).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json.to_string()).unwrap(), deep(most));
    let error = from_json(&tree, &deep(1_000), &known, None).unwrap_err();
    assert_eq!(error.what(), "nested deeper than 127 levels");
    let types = (0..1_000).fold(json!("long"), |ty, _| {
        let mut sequence = around("element", ty);
        sequence["kind"] = json!("sequence");
        sequence["bound"] = json!(0);
        sequence
    });
    assert_eq!(type_from_json(&types, &known).unwrap_err().what(), "nested deeper than 127 levels");
    let text = json!("sequence<".repeat(1_000) + "long" + &">".repeat(1_000));
    assert_eq!(type_from_json(&text, &known).unwrap_err().what(), "nested deeper than 127 levels");
}

/// A list of values is as deep as it is long, with few bytes.
#[test]
fn a_long_list_of_values_is_refused() -> Result<(), Misuse> {
    let known = shop();
    let node = ty(&known, "Node");
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, CANONICAL);
    let mut open = Vec::new();
    for _ in 0..10_000 {
        open.push(w.begin_value(&["IDL:Shop/Node:1.0"], false)?);
        w.write_str("")?;
        w.write_u32(1);
    }
    w.write_null_value();
    while let Some(value) = open.pop() {
        w.end_value(value)?;
    }
    let any = Any::read_value(node, &mut Reader::new(&bytes, CANONICAL)).unwrap();
    assert_eq!(to_json(&any).unwrap_err().what(), "nested deeper than 127 levels");
    Ok(())
}

/// A type of a few bytes can have 2^60 parts, and a name can occur a million times.
#[test]
fn json_is_in_proportion_to_the_value() {
    let mut ty = TypeCode::of(&TypeDef::Long);
    for _ in 0..40 {
        ty = TypeCode::create_struct("", "", &[("a", ty.clone()), ("b", ty)]).unwrap();
    }
    let known = Interfaces::new();
    assert_eq!(
        type_to_json(&ty, &known).unwrap_err().what(),
        "its JSON would be out of proportion to the value"
    );
    // A type with an id is described once.
    let mut ty = TypeCode::of(&TypeDef::Long);
    for number in 0..40 {
        let id = format!("IDL:S{number}:1.0");
        ty = TypeCode::create_struct(&id, "S", &[("a", ty.clone()), ("b", ty)]).unwrap();
    }
    let json = type_to_json(&ty, &known).unwrap();
    assert!(json.to_string().len() < 10_000);
    assert_eq!(type_from_json(&json, &known), Ok(ty));

    let name = "n".repeat(10_000);
    let long = TypeCode::create_struct("", "", &[(&name, TypeCode::of(&TypeDef::Octet))]).unwrap();
    let many = TypeCode::create_sequence(&long, 0).unwrap();
    let any = Any::with_type(many, &vec![0u8; 100_000]).unwrap();
    assert_eq!(to_json(&any).unwrap_err().what(), "its JSON would be out of proportion to the value");
}

#[test]
fn members_without_names_are_called_by_their_place() {
    let known = shop();
    let item = ty(&known, "Item");
    let any = from_json(&item, &json!({ "name": "x", "price": 1, "paint": "red" }), &known, None).unwrap();
    let compact = Any::read_value(item.compact(), &mut any.reader()).unwrap();
    let json = to_json(&compact).unwrap();
    assert_eq!(json, json!({ "#0": "x", "#1": 1, "#2": 0 }));
    assert_eq!(from_json(&item.compact(), &json, &known, None), Ok(compact));
}

#[test]
fn skeletons_are_values_of_their_types() {
    let known = shop();
    for type_code in known.type_codes() {
        for made in [template(type_code), default_value(type_code)] {
            let made = made.unwrap_or_else(|error| panic!("{error}"));
            // Interfaces, natives and abstract valuetypes have only nil.
            if made.is_null() {
                continue;
            }
            from_json(type_code, &made, &known, None).unwrap_or_else(|e| panic!("{e}: {type_code} {made}"));
        }
    }
    let of = |name: &str| template(&ty(&known, name)).unwrap();
    let item = json!({ "name": "", "price": 0, "paint": "red" });
    assert_eq!(of("Order"), json!({ "items": [item], "picture": "", "key": [0, 0, 0, 0] }));
    assert_eq!(of("Choice"), json!({ "text": "" }));
    assert_eq!(of("Tree"), json!({ "kids": [] }));
    assert_eq!(of("Node"), json!({ "@type": "IDL:Shop/Node:1.0", "label": "", "next": [] }));
    // A few words can declare a long array.
    let long = type_from_json(
        &json!({ "kind": "array", "element": { "kind": "array", "element": "long", "length": 65536 }, "length": 65536 }),
        &known,
    );
    let said = template(&long.unwrap()).unwrap_err().to_string();
    assert!(said.contains("more than 65536 parts"), "{said}");
}

#[test]
fn what_is_left_out_has_its_default() {
    let known = shop();
    let filled = |name: &str, mut json: Value| {
        let type_code = ty(&known, name);
        fill(&type_code, &mut json, &known).unwrap();
        from_json(&type_code, &json, &known, None).unwrap_or_else(|error| panic!("{error}"));
        json
    };
    let item = json!({ "name": "pen", "price": 0, "paint": "red" });
    assert_eq!(
        filled("Order", json!({ "items": [{ "name": "pen" }] })),
        json!({ "items": [item], "picture": "", "key": [0, 0, 0, 0] })
    );
    assert_eq!(
        filled("Choice", json!({ "discriminator": 3 })),
        json!({ "discriminator": 3, "thing": { "name": "", "price": 0, "paint": "red" } })
    );
    assert_eq!(filled("Choice", json!({ "thing": { "price": 4 } }))["thing"]["price"], 4);
    assert_eq!(
        filled("Node", json!({ "label": "a", "next": [{}] })),
        json!({ "label": "a", "next": [{ "label": "", "next": [] }] })
    );
    // The conversion reports what does not fit.
    let mut wrong = json!({ "nmae": "pen", "price": "x" });
    fill(&ty(&known, "Item"), &mut wrong, &known).unwrap();
    assert!(from_json(&ty(&known, "Item"), &wrong, &known, None).is_err());
}
