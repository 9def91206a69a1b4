//! Cases of what some ORBs lack: each asks the suite for the object of its part.

use ironorb::giop::Version;
use ironorb::{Any, LongDouble, SystemExceptionKind, TypeCode, TypedRef};

use super::runner::Cases;
use crate::interop::*;
use crate::samples;

/// The object of a part of the contract.
#[track_caller]
pub(super) fn part<R: TypedRef>(suite: &SuiteRef, name: &str) -> R {
    suite.part(name).unwrap().expect("the server has this part").narrow_unchecked()
}

/// The samples that the version can carry.
fn samples_of(version: Version) -> impl Iterator<Item = &'static str> {
    let is_wide = |sample: &str| matches!(sample, "wchar" | "wstring");
    samples::names().filter(move |sample| version > Version::V1_0 || !is_wide(sample))
}

pub(super) fn anys(cases: &mut Cases<'_>) {
    for sample in samples_of(cases.target.version) {
        cases.run(&format!("any/make/{sample}"), |suite| {
            let any = part::<AnysRef>(suite, "anys").make(sample).unwrap();
            samples::check(sample, &any).unwrap();
        });
        cases.run(&format!("any/check/{sample}"), |suite| {
            let any = samples::make(sample).unwrap();
            assert_eq!(part::<AnysRef>(suite, "anys").check(sample, &any).unwrap(), "");
        });
        cases.run(&format!("any/echo/{sample}"), |suite| {
            let (any, before) = (samples::make(sample).unwrap(), Any::new(&7_i16).unwrap());
            let (result, inout, out) = part::<AnysRef>(suite, "anys").echo_any(&any, &before).unwrap();
            samples::check(sample, &result).unwrap();
            samples::check(sample, &inout).unwrap();
            assert_eq!(out, before);
        });
    }
    cases.run("any/unknown_sample", |suite| {
        let result = part::<AnysRef>(suite, "anys").make("no such sample");
        assert_eq!(result.unwrap_err().kind, SystemExceptionKind::BadParam);
    });
    let plain = || vec![Any::new(&1_i32).unwrap(), Any::default(), Any::new("three").unwrap()];
    let property = |name: &str, value: Any| Property { name: name.to_owned(), value };
    cases.echo("any/echo_anys", &[vec![], plain()], |suite, x, y| {
        part::<AnysRef>(suite, "anys").echo_anys(x, y)
    });
    let properties = [property("p", Any::new(&true).unwrap()), property("", Any::default())];
    cases.echo("any/echo_property", &properties, |suite, x, y| {
        part::<AnysRef>(suite, "anys").echo_property(x, y)
    });
    cases.echo("any/echo_properties", &[vec![], properties.to_vec()], |suite, x, y| {
        part::<AnysRef>(suite, "anys").echo_properties(x, y)
    });
    let unions = [AnyOrName::Value(Any::new(&2.5_f64).unwrap()), AnyOrName::Name("n".to_owned())];
    cases.echo("any/echo_any_or_name", &unions, |suite, x, y| {
        part::<AnysRef>(suite, "anys").echo_any_or_name(x, y)
    });
    cases.run("any/raise_unfit", |suite| {
        let what = samples::make("variable").unwrap();
        match part::<AnysRef>(suite, "anys").raise_unfit(&what) {
            Err(anys::RaiseUnfitError::Unfit(e)) => {
                assert_eq!(e.why, "asked");
                samples::check("variable", &e.what).unwrap();
            }
            other => panic!("{other:?}"),
        }
    });
    cases.run("any/held", |suite| {
        let anys: AnysRef = part(suite, "anys");
        for sample in ["long", "anys", "tree"] {
            anys.set_held(&samples::make(sample).unwrap()).unwrap();
            samples::check(sample, &anys.held().unwrap()).unwrap();
        }
    });
    cases.run("any/live_reference", |suite| {
        let node = suite.create_node(55).unwrap();
        let any = Any::new(&node).unwrap();
        let (result, ..) = part::<AnysRef>(suite, "anys").echo_any(&any, &Any::default()).unwrap();
        let back: Option<NodeRef> = result.extract().unwrap();
        assert_eq!(back.unwrap().id().unwrap(), 55);
    });
}

pub(super) fn typecodes(cases: &mut Cases<'_>) {
    for sample in samples::names() {
        cases.run(&format!("typecode/echo/{sample}"), |suite| {
            let (x, y) = (samples::make(sample).unwrap().type_code().clone(), TypeCode::from(&TC_PAIR));
            let (result, inout, out) =
                part::<TypeCodesRef>(suite, "typecodes").echo_typecode(&x, &y).unwrap();
            assert!(result.equivalent(&x), "the result is {result} for {x}");
            assert!(inout.equivalent(&x), "the inout is {inout} for {x}");
            assert!(out.equivalent(&y), "the out is {out} for {y}");
        });
        cases.run(&format!("typecode/type_of/{sample}"), |suite| {
            let expected = samples::make(sample).unwrap().type_code().clone();
            let found = part::<TypeCodesRef>(suite, "typecodes").type_of(sample).unwrap();
            assert!(found.equivalent(&expected), "{found} is not {expected}");
        });
        cases.run(&format!("typecode/are_equivalent/{sample}"), |suite| {
            let typecodes: TypeCodesRef = part(suite, "typecodes");
            let mine = samples::make(sample).unwrap().type_code().clone();
            let theirs = typecodes.type_of(sample).unwrap();
            assert!(typecodes.are_equivalent(&mine, &theirs).unwrap(), "{mine} and {theirs}");
            let other = if sample == "color" { "struct" } else { "color" };
            let other = samples::make(other).unwrap().type_code().clone();
            assert!(!typecodes.are_equivalent(&mine, &other).unwrap(), "{mine} and {other}");
        });
    }
    cases.run("typecode/echo_typecodes", |suite| {
        // Other ORBs fail on the TypeCode of expr.
        let samples = samples::names().filter(|name| *name != "expr");
        let x: Vec<TypeCode> = samples.map(|name| samples::make(name).unwrap().type_code().clone()).collect();
        let (result, inout, out) = part::<TypeCodesRef>(suite, "typecodes").echo_typecodes(&x, &[]).unwrap();
        for found in [result, inout] {
            assert_eq!(found.len(), x.len());
            for (found, expected) in found.iter().zip(&x) {
                assert!(found.equivalent(expected), "{found} is not {expected}");
            }
        }
        assert_eq!(out, []);
    });
    cases.run("typecode/made_at_run_time", |suite| {
        let id = "IDL:ironorb.example/interop/Unheard:1.0";
        let itself = TypeCode::create_sequence(&TypeCode::recursive(id).unwrap(), 0).unwrap();
        let members = [("number", TypeCode::from(&ironorb::TypeDef::LongLong)), ("more", itself)];
        let x = TypeCode::create_struct(id, "Unheard", &members).unwrap();
        let (result, ..) =
            part::<TypeCodesRef>(suite, "typecodes").echo_typecode(&x, &TypeCode::default()).unwrap();
        assert!(result.equivalent(&x), "{result} is not {x}");
    });
}

pub(super) fn fixed(cases: &mut Cases<'_>) {
    fn parsed<T: std::str::FromStr>(texts: &[&str]) -> Vec<T>
    where
        T::Err: std::fmt::Debug,
    {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }
    let prices: Vec<Price> = parsed(&["0", "0.01", "-0.01", "999.99", "-999.99", "7", "12.3", "100"]);
    cases.echo("fixed/echo_price", &prices, |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_price(*x, *y)
    });
    // An even number of digits leaves half an octet unused in front.
    cases.echo("fixed/echo_whole", &parsed::<Whole>(&["0", "1", "-1", "9999", "-10"]), |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_whole(*x, *y)
    });
    let fractions = parsed::<Fraction>(&["0", "0.000001", "-0.999999", "0.5", "0.050000"]);
    cases.echo("fixed/echo_fraction", &fractions, |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_fraction(*x, *y)
    });
    let huge = parsed::<Huge>(&[
        "0",
        "123456789012345678901.0123456789",
        "-999999999999999999999.9999999999",
        "0.0000000001",
        "42",
    ]);
    cases.echo("fixed/echo_huge", &huge, |suite, x, y| part::<FixedsRef>(suite, "fixed").echo_huge(*x, *y));
    cases.echo("fixed/echo_digit", &parsed::<Digit>(&["0", "9", "-9"]), |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_digit(*x, *y)
    });
    cases.echo("fixed/echo_prices", &[vec![], prices.clone()], |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_prices(x, y)
    });
    cases.echo("fixed/echo_huge_pair", &[[huge[0], huge[1]], [huge[2], huge[3]]], |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_huge_pair(x, y)
    });
    let bill = |what: &str, total, paid| Bill { what: what.to_owned(), total, paid };
    let bills = [bill("odd", prices[3], 1), bill("", prices[0], 255)];
    cases.echo("fixed/echo_bill", &bills, |suite, x, y| part::<FixedsRef>(suite, "fixed").echo_bill(x, y));
    let unions = [ByPrice::Small(prices[4]), ByPrice::Large(huge[1])];
    cases.echo("fixed/echo_by_price", &unions, |suite, x, y| {
        part::<FixedsRef>(suite, "fixed").echo_by_price(x, y)
    });
    cases.run("fixed/total", |suite| {
        let fixed: FixedsRef = part(suite, "fixed");
        let sum = |texts: &[&str]| fixed.total(&parsed::<Price>(texts)).map(|total| total.to_string());
        assert_eq!(sum(&[]).unwrap().parse::<Price>(), "0".parse());
        assert_eq!(sum(&["1.05", "2.95", "-0.5"]).unwrap().parse::<Price>(), "3.50".parse());
        assert_eq!(sum(&["900", "99.99"]).unwrap().parse::<Price>(), "999.99".parse());
        assert!(sum(&["900", "100"]).is_err(), "the sum does not fit");
    });
}

pub(super) fn long_double(cases: &mut Cases<'_>) {
    let numbers =
        [0.0, -0.0, 1.0, -1.5, 0.1, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY].map(LongDouble::from);
    cases.echo("long_double/echo_long_double", &numbers, |suite, x, y| {
        part::<LongDoublesRef>(suite, "long_double").echo_long_double(*x, *y)
    });
    cases.echo("long_double/echo_long_doubles", &[vec![], numbers.to_vec()], |suite, x, y| {
        part::<LongDoublesRef>(suite, "long_double").echo_long_doubles(x, y)
    });
    let precise = |before, value, after| Precise { before, value, after };
    let structs = [precise(1, numbers[3], 2), precise(255, numbers[0], 0)];
    cases.echo("long_double/echo_precise", &structs, |suite, x, y| {
        part::<LongDoublesRef>(suite, "long_double").echo_precise(x, y)
    });
    cases.run("long_double/half", |suite| {
        for number in [1.0, -3.0, 1e300] {
            let half = part::<LongDoublesRef>(suite, "long_double").half(LongDouble::from(number)).unwrap();
            assert_eq!(half, LongDouble::from(number / 2.0));
        }
    });
}
