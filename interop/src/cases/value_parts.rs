//! Cases of abstract interfaces, of custom valuetypes, and of values inside anys.

use ironorb::generated::{Abstract, ValueBase};
use ironorb::{Any, Link, SystemExceptionKind, Value};

use super::parts::part;
use super::runner::Cases;
use crate::interop::*;
use crate::value_samples;

pub(super) fn abstracts(cases: &mut Cases<'_>) {
    type Thing = Abstract<DescribableRef>;
    let abstracts = |suite: &SuiteRef| part::<AbstractsRef>(suite, "abstracts");
    let card = |line: &str| Thing::from(&Value::new(Card { line: line.to_owned() }));
    fn line(thing: &Abstract<DescribableRef>) -> Option<String> {
        let value: Value<dyn ValueBase> = thing.value()?;
        Some(value.downcast::<Card>()?.line.clone())
    }
    cases.run("abstract/echo_value", |suite| {
        let (result, inout, out) = abstracts(suite).echo_describable(&card("one"), &card("two")).unwrap();
        let found = [result, inout, out].map(|thing| line(&thing));
        assert_eq!(found.map(Option::unwrap), ["one", "one", "two"]);
    });
    cases.run("abstract/echo_reference", |suite| {
        let abstracts = abstracts(suite);
        let person = Thing::Object(abstracts.create_person("somebody").unwrap().unwrap().into());
        let (result, inout, out) = abstracts.echo_describable(&person, &Thing::Nil).unwrap();
        for thing in [result, inout] {
            assert!(thing.object().is_some(), "{thing:?} is no reference");
            assert_eq!(thing.describe_it().unwrap(), "person somebody");
        }
        assert!(out.is_nil());
        let (result, inout, out) = abstracts.echo_describable(&Thing::Nil, &person).unwrap();
        assert!(result.is_nil() && inout.is_nil());
        assert_eq!(out.describe_it().unwrap(), "person somebody");
    });
    cases.run("abstract/mixed", |suite| {
        let abstracts = abstracts(suite);
        let person = Thing::Object(abstracts.create_person("x").unwrap().unwrap().into());
        let (result, _, out) = abstracts.echo_describable(&card("y"), &person).unwrap();
        assert_eq!(result.describe_it().unwrap(), "card y");
        assert_eq!(out.describe_it().unwrap(), "person x");
    });
    cases.run("abstract/description_of", |suite| {
        let abstracts = abstracts(suite);
        assert_eq!(abstracts.description_of(&card("line")).unwrap(), "card line");
        assert_eq!(abstracts.description_of(&Thing::Nil).unwrap(), "");
        let person = abstracts.create_person("somebody").unwrap().unwrap();
        assert_eq!(person.name().unwrap(), "somebody");
        let description = abstracts.description_of(&Thing::Object(person.into())).unwrap();
        assert_eq!(description, "person somebody");
    });
    cases.run("abstract/made_there", |suite| {
        let abstracts = abstracts(suite);
        assert_eq!(line(&abstracts.a_card("made").unwrap()).unwrap(), "made");
        let person = abstracts.a_person("born").unwrap();
        assert!(person.value().is_none());
        assert_eq!(person.describe_it().unwrap(), "person born");
    });
}

pub(super) fn customs(cases: &mut Cases<'_>) {
    let customs = |suite: &SuiteRef| part::<CustomsRef>(suite, "custom");
    cases.run("custom/echo_clock", |suite| {
        let clock = Value::new(Clock { hour: 23, minute: 59 });
        let (result, inout, out) = customs(suite).echo_clock(Some(&clock), None).unwrap();
        assert_eq!(*result.unwrap(), *clock);
        assert_eq!(*inout.unwrap(), *clock);
        assert!(out.is_none());
        let (result, inout, out) = customs(suite).echo_clock(None, Some(&clock)).unwrap();
        assert!(result.is_none() && inout.is_none());
        assert_eq!(*out.unwrap(), *clock);
    });
    cases.run("custom/minutes_of", |suite| {
        let clock = Value::new(Clock { hour: 1, minute: 5 });
        assert_eq!(customs(suite).minutes_of(Some(&clock)).unwrap(), 65);
    });
}

pub(super) fn value_anys(cases: &mut Cases<'_>) {
    for sample in value_samples::names() {
        cases.run(&format!("value_any/make/{sample}"), |suite| {
            let any = part::<ValueAnysRef>(suite, "value_anys").make(sample).unwrap();
            value_samples::check(sample, &any).unwrap();
        });
        cases.run(&format!("value_any/check/{sample}"), |suite| {
            let any = value_samples::make(sample).unwrap();
            assert_eq!(part::<ValueAnysRef>(suite, "value_anys").check(sample, &any).unwrap(), "");
        });
        cases.run(&format!("value_any/echo/{sample}"), |suite| {
            let (any, before) = (value_samples::make(sample).unwrap(), value_samples::make("point").unwrap());
            let anys = part::<ValueAnysRef>(suite, "value_anys");
            let (result, inout, out) = anys.echo_value_any(&any, &before).unwrap();
            value_samples::check(sample, &result).unwrap();
            value_samples::check(sample, &inout).unwrap();
            value_samples::check("point", &out).unwrap();
        });
    }
    cases.run("value_any/unknown_sample", |suite| {
        let result = part::<ValueAnysRef>(suite, "value_anys").make("no such sample");
        assert_eq!(result.unwrap_err().kind, SystemExceptionKind::BadParam);
    });
    // Only this client knows the type. The any contains what the server needs to pass it on.
    cases.run("value_any/not_known_there", |suite| {
        let spot = Spot { base: Point { x: 1, y: 2 }, color: "red".to_owned() };
        let secret = Secret { base: spot, code: 99 };
        let any = Any::new(&Some(Value::new(secret.clone()))).unwrap();
        let anys = part::<ValueAnysRef>(suite, "value_anys");
        let (result, _, out) = anys.echo_value_any(&any, &Any::default()).unwrap();
        let found: Option<Value<Secret>> = result.extract().unwrap();
        assert_eq!(*found.unwrap(), secret);
        assert!(out.is_empty());
    });
    // Two anys of one message that hold one value.
    cases.run("value_any/two_of_one", |suite| {
        let point = Value::new(Point { x: 1, y: -2 });
        let x = Any::new(&PointPair { first: Link::from(&point), second: Link::null() }).unwrap();
        let y = Any::new(&Some(point)).unwrap();
        let anys = part::<ValueAnysRef>(suite, "value_anys");
        let (result, _, out) = anys.echo_value_any(&x, &y).unwrap();
        let pair: PointPair = result.extract().unwrap();
        assert_eq!(pair.first.get().unwrap().y, -2);
        value_samples::check("point", &out).unwrap();
    });
}
