//! Valuetypes over the real ORB. Graphs keep their shape, a value's own type implements its operations, and a
//! value can be viewed as each of its bases.

#![deny(warnings)]

use std::collections::BTreeMap;
use std::sync::Mutex;

use ironorb::generated::value::{CustomMarshal, DataInput, DataOutput};
use ironorb::generated::{Abstract, Any, Link, Value, ValueBase};
use ironorb::giop::{Malformed, Misuse};
use ironorb::{CompletionStatus, MinorCode, Orb, SystemException, SystemExceptionKind, TypedRef};

use crate::compiled::{abstract_interfaces, boxes, custom_values, value_operations, values};

use abstract_interfaces::catalogue::{
    Bid, Describable, DescribableRef, Leaflet, Priced, PricedRef, Shelf, ShelfRef, Shop, ShopRef, Ticket,
    Unknown, describable,
};
use boxes::boxes::{Brief, Keeper, KeeperRef, Labels, Names, Place, Point, Text};
use boxes::corba::{StringValue, WStringValue};
use custom_values::packing::{Carrier, CarrierRef, Holder, Never, Packed};
use value_operations::drawing::{
    Board, BoardRef, Circle, CircleOperations, Dot, Drawable, Gauge, GaugeOperations, Marked, Printable,
    Scale, Shape, ShapeOperations, Titled, Unfit, drawable, gauge, shape,
};
use values::graphs::{Apart, Cycle, Deep, Edge, Empty, Maybe, Named, Node, Walker, WalkerRef, walker};

/// An ORB for the server and one for the client, so that calls use a connection.
struct World {
    server: Orb,
    client: Orb,
}

impl World {
    fn new() -> Self {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        for orb in [&server, &client] {
            values::register_in_values(orb);
            value_operations::drawing::register_values(orb);
            boxes::register_in_values(orb);
        }
        World { server, client }
    }

    /// The server's reference, which calls in the same process, and the client's.
    fn both<R: TypedRef + Clone>(&self, local: &R) -> [R; 2] {
        let url = self.server.object_to_string(local.object()).unwrap();
        [local.clone(), self.client.resolve(&url).unwrap()]
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.client.shutdown(true);
        let _ = self.server.shutdown(true);
    }
}

struct Echo;

impl Walker for Echo {
    fn echo(
        &self,
        start: Option<&Value<Node>>,
        others: &[Link<Node>],
    ) -> Result<(Option<Value<Node>>, Vec<Link<Node>>, Maybe), walker::EchoError> {
        match start {
            Some(start) if start.label == "stop" => Err(Cycle { at: start.into() }.into()),
            start => {
                let last = match others.last() {
                    Some(last) => Maybe::It(last.clone()),
                    None => Maybe::Unlisted { label: false },
                };
                Ok((start.cloned(), others.to_vec(), last))
            }
        }
    }

    fn any_value(
        &self,
        value: Option<&Value<dyn ValueBase>>,
        between: &Edge,
    ) -> Result<Option<Value<dyn ValueBase>>, SystemException> {
        match value {
            None => Ok(between.from.get().map(|node| node.upcast())),
            value => Ok(value.cloned()),
        }
    }

    fn current(&self) -> Result<Option<Value<Node>>, SystemException> {
        Ok(None)
    }

    fn set_current(&self, value: Option<&Value<Node>>) -> Result<(), SystemException> {
        assert!(value.is_some());
        Ok(())
    }
}

fn node(label: &str, next: Vec<Link<Node>>) -> Node {
    Node { label: label.to_owned(), next, visits: 7 }
}

#[test]
fn graphs_keep_their_shape() {
    let world = World::new();
    let local: WalkerRef = world.server.root_poa().activate(Echo).unwrap();
    for walker in world.both(&local) {
        let (nothing, none, last) = walker.echo(None, &[]).unwrap();
        assert_eq!((nothing, none, last), (None, vec![], Maybe::Unlisted { label: false }));

        // first -> second -> first, and a sequence beside them refers to both.
        let mut graph = ironorb::generated::value::ValueGraph::new();
        let first = graph.reserve::<Node>();
        let second = graph.add(Named {
            base: node("second", vec![graph.link(first), Link::null()]),
            name: "a name".to_owned(),
            extra: Value::new(Empty {}).into(),
        });
        graph.fill(first, node("first", vec![graph.link(second)])).unwrap();
        let first = graph.finish(first).unwrap();
        let second = first.next[0].get().unwrap();

        let (start, others, last) =
            walker.echo(Some(&first), &[(&second).into(), (&first).into(), Link::null()]).unwrap();
        let start = start.unwrap();
        assert_eq!((start.label.as_str(), start.visits), ("first", 7));
        let (two, one) = (others[0].get().unwrap(), others[1].get().unwrap());
        assert!(one.ptr_eq(&start) && two.ptr_eq(&start.next[0].get().unwrap()));
        assert!(two.next[0].get().unwrap().ptr_eq(&start) && two.next[1].is_null());
        assert!(others[2].is_null());
        assert_eq!(last, Maybe::It(Link::null()));

        let named = two.downcast::<Named>().expect("it came as what it is");
        assert_eq!(named.name, "a name");
        assert!(named.extra.get().unwrap().downcast::<Empty>().is_some());
        assert!(named.downcast::<Deep>().is_none());
        let upcast: Value<Node> = named.upcast();
        assert_eq!(upcast.label, "second");
    }
}

#[test]
fn values_travel_in_exceptions_structs_and_as_any_value() {
    let world = World::new();
    let local: WalkerRef = world.server.root_poa().activate(Echo).unwrap();
    for walker in world.both(&local) {
        let stop = Value::new(node("stop", vec![]));
        let Err(walker::EchoError::Cycle(cycle)) = walker.echo(Some(&stop), &[]) else { panic!() };
        assert_eq!(cycle.at.get().unwrap().label, "stop");

        let deep = Deep {
            base_: Named { base: node("deep", vec![]), ..Named::default() },
            edges: vec![Edge { from: (&stop).into(), to: (&stop).into(), weight: 0.5 }],
            base: 3,
        };
        let deep: Value<dyn ValueBase> = Value::new(deep).upcast();
        let edge = Edge::default();
        let back = walker.any_value(Some(&deep), &edge).unwrap().unwrap();
        let deep = back.downcast::<Deep>().unwrap();
        assert_eq!((deep.base, deep.base_.base.label.as_str()), (3, "deep"));
        let edge = deep.edges[0].clone();
        assert_eq!(edge.from, edge.to);
        assert_eq!(back.downcast::<Node>().unwrap().label, "deep");

        let from = walker.any_value(None, &edge).unwrap().unwrap();
        assert_eq!(from.downcast::<Node>().unwrap().label, "stop");
        assert!(from.downcast::<Named>().is_none());

        assert!(walker.current().unwrap().is_none());
        walker.set_current(Some(&stop)).unwrap();
    }
}

impl Drawable for Shape {
    fn area(&self, scale: f64) -> Result<f64, drawable::AreaError> {
        if scale < 0.0 { Err(Unfit { why: "negative".to_owned() }.into()) } else { Ok(scale) }
    }

    fn name(&self) -> Result<String, SystemException> {
        Ok(format!("shape {}", self.id))
    }
}

impl ShapeOperations for Shape {
    fn parts(&self, depth: i32) -> Result<(shape::Shapes, Option<Value<Shape>>), SystemException> {
        let part = Value::new(Shape { id: format!("{} of {}", depth, self.id) });
        Ok((vec![(&part).into()], Some(part)))
    }
}

impl Printable for Shape {
    fn print(&self, prefix: &str) -> Result<String, SystemException> {
        Ok(format!("{prefix}{}", self.id))
    }
}

// Operations that a circle does not implement are implemented by its base.
impl Drawable for Circle {
    fn area(&self, scale: f64) -> Result<f64, drawable::AreaError> {
        Ok(scale * self.radius * self.radius)
    }

    fn name(&self) -> Result<String, SystemException> {
        Ok(format!("circle {}", self.base.id))
    }
}

struct Wall;

impl Board for Wall {
    fn largest(
        &self,
        first: Option<&Value<dyn Drawable>>,
        second: Option<&Value<Shape>>,
    ) -> Result<Option<Value<dyn Drawable>>, SystemException> {
        let area = |value: &Value<dyn Drawable>| value.area(1.0).unwrap_or(0.0);
        let second = second.map(|shape| shape.upcast::<dyn Drawable>());
        Ok(match (first.cloned(), second) {
            (Some(first), Some(second)) if area(&first) >= area(&second) => Some(first),
            (first, second) => second.or(first),
        })
    }

    fn total(&self, shapes: &[Link<Shape>]) -> Result<f64, SystemException> {
        Ok(shapes.iter().filter_map(Link::get).map(|shape| shape.area(1.0).unwrap_or(0.0)).sum())
    }
}

#[test]
fn a_values_own_type_implements_its_operations() {
    let shape = Value::new(Shape { id: "square".to_owned() });
    let circle = Value::new(Circle { base: Shape { id: "round".to_owned() }, radius: 2.0 });
    let as_shape: Value<Shape> = circle.upcast();
    assert_eq!(as_shape.area(1.0).unwrap(), 4.0, "not what the base would say");
    assert_eq!(as_shape.name().unwrap(), "circle round");
    assert_eq!(shape.area(-1.0), Err(drawable::AreaError::Unfit(Unfit { why: "negative".to_owned() })));
    let (parts, first) = as_shape.parts(3).unwrap();
    assert_eq!(parts[0].get().unwrap().id, "3 of round");
    assert!(parts[0].get().unwrap().ptr_eq(&first.unwrap()));
    assert_eq!(circle.view::<dyn Printable>().unwrap().print("a ").unwrap(), "a round");
    assert!(circle.view::<dyn Marked>().is_some());
    // The struct does not implement these operations.
    assert!(circle.view::<dyn CircleOperations>().is_none());
    assert_eq!(circle.grow(1.0).unwrap_err().kind, SystemExceptionKind::NoImplement);
}

#[test]
fn operations_missing_in_a_base_are_those_of_its_own_base() {
    let round = Circle { base: Shape { id: "round".to_owned() }, radius: 2.0 };
    let dot = Value::new(Dot { base: round });
    let as_shape: Value<Shape> = dot.upcast();
    assert_eq!(as_shape.id, "round");
    assert_eq!(as_shape.area(1.0).unwrap(), 4.0, "as the circle does");
    assert_eq!(dot.parts(1).unwrap().0[0].get().unwrap().id, "1 of round", "as the shape does");
    assert!(dot.view::<dyn CircleOperations>().is_none());
}

fn exception(kind: SystemExceptionKind) -> SystemException {
    SystemException::new(kind, MinorCode(1), CompletionStatus::No)
}

/// The attributes set on gauges, by number. A value is immutable, so the struct cannot store them.
static SET: Mutex<BTreeMap<i32, (i32, String)>> = Mutex::new(BTreeMap::new());

impl GaugeOperations for Gauge {
    fn level(&self) -> Result<i32, gauge::GetLevelError> {
        match SET.lock().unwrap().get(&self.number) {
            Some((level, _)) => Ok(*level),
            None => Err(Unfit { why: "never set".to_owned() }.into()),
        }
    }

    fn set_level(&self, value: i32) -> Result<(), gauge::SetLevelError> {
        if value < 0 {
            return Err(Unfit { why: "negative".to_owned() }.into());
        }
        SET.lock().unwrap().entry(self.number).or_default().0 = value;
        Ok(())
    }

    fn needle(&self) -> Result<Option<Value<Shape>>, SystemException> {
        let id = format!("at {}", self.level().map_err(|_| exception(SystemExceptionKind::BadInvOrder))?);
        Ok(Some(Shape { id }.into()))
    }

    fn set_needle(&self, value: Option<&Value<Shape>>) -> Result<(), SystemException> {
        let at = value.and_then(|shape| shape.id.strip_prefix("at ")?.parse().ok());
        let at = at.ok_or(exception(SystemExceptionKind::BadParam))?;
        self.set_level(at).map_err(|_| exception(SystemExceptionKind::BadParam))
    }
}

impl Titled for Gauge {
    fn title(&self) -> Result<String, SystemException> {
        Ok(SET.lock().unwrap().get(&self.number).map_or_else(String::new, |(_, title)| title.clone()))
    }

    fn set_title(&self, value: &str) -> Result<(), SystemException> {
        SET.lock().unwrap().entry(self.number).or_default().1 = value.to_owned();
        Ok(())
    }
}

#[test]
fn attributes_of_values_are_read_and_written() {
    let gauge = Value::new(Gauge { number: 1 });
    assert_eq!(gauge.level(), Err(gauge::GetLevelError::Unfit(Unfit { why: "never set".to_owned() })));
    gauge.set_level(7).unwrap();
    assert_eq!(gauge.level().unwrap(), 7);
    assert_eq!(gauge.set_level(-1), Err(gauge::SetLevelError::Unfit(Unfit { why: "negative".to_owned() })));
    gauge.set_needle(Some(&Shape { id: "at 8".to_owned() }.into())).unwrap();
    assert_eq!((gauge.level().unwrap(), gauge.needle().unwrap().unwrap().id.as_str()), (8, "at 8"));
    assert_eq!(gauge.set_needle(None).unwrap_err().kind, SystemExceptionKind::BadParam);
    // Attributes of a supported interface, and attributes that a base implements.
    let scale = Value::new(Scale { base: Gauge { number: 2 } });
    scale.view::<dyn Titled>().unwrap().set_title("two").unwrap();
    scale.upcast::<Gauge>().set_level(3).unwrap();
    assert_eq!(scale.level().unwrap(), 3);
    assert_eq!(scale.view::<dyn Titled>().unwrap().title().unwrap(), "two");
}

#[test]
fn values_arrive_as_their_abstract_bases() {
    let world = World::new();
    let local: BoardRef = world.server.root_poa().activate(Wall).unwrap();
    for board in world.both(&local) {
        let shape = Value::new(Shape { id: "square".to_owned() });
        let circle = Value::new(Circle { base: Shape { id: "round".to_owned() }, radius: 2.0 });
        let largest = board.largest(Some(&circle.upcast()), Some(&shape)).unwrap().unwrap();
        assert_eq!(largest.name().unwrap(), "circle round");
        assert_eq!(largest.downcast::<Circle>().unwrap().radius, 2.0);
        assert!(board.largest(None, None).unwrap().is_none());
        assert_eq!(board.total(&[(&circle).into(), (&shape).into(), Link::null()]).unwrap(), 5.0);
    }
}

struct Cupboard;

impl Keeper for Cupboard {
    fn echo(
        &self,
        what: Option<&Value<Text>>,
        at: Option<&Value<Place>>,
        by: Option<&Value<Brief>>,
        wide: Option<&Value<WStringValue>>,
    ) -> Result<(Option<Value<Text>>, Option<Value<Place>>), SystemException> {
        let text = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
        let joined = format!(
            "{} {} {}",
            text(what.map(|what| what.0.clone())),
            text(by.map(|by| by.0.clone())),
            text(wide.map(|wide| wide.0.to_string())),
        );
        Ok((Some(Text(joined).into()), at.cloned()))
    }

    fn list(&self, these: &Labels) -> Result<Labels, SystemException> {
        Ok(these.clone())
    }
}

#[test]
fn boxes_travel_and_may_be_null() {
    let world = World::new();
    let local: KeeperRef = world.server.root_poa().activate(Cupboard).unwrap();
    for keeper in world.both(&local) {
        let text = Value::new(Text("żółw".to_owned()));
        let place = Value::new(Place(Point { x: 1, y: -2 }));
        let brief = Value::new(Brief("12345".to_owned()));
        let (joined, at) = keeper.echo(Some(&text), Some(&place), Some(&brief), None).unwrap();
        assert_eq!((joined.unwrap().0.as_str(), at.unwrap().0), ("żółw 12345 null", Point { x: 1, y: -2 }));
        let wide = Value::new(WStringValue("𝄞".into()));
        let (joined, at) = keeper.echo(None, None, None, Some(&wide)).unwrap();
        assert_eq!((joined.unwrap().0.as_str(), at), ("null null 𝄞", None));

        let labels = Labels {
            first: (&text).into(),
            all: Names(vec!["a".to_owned(), "b".to_owned()]).into(),
            more: vec![(&text).into(), Link::null()],
            standard: StringValue("s".to_owned()).into(),
        };
        let back = keeper.list(&labels).unwrap();
        assert_eq!(back.first, back.more[0], "one box, met twice");
        assert_eq!(back.all.get().unwrap().0, ["a", "b"]);
        assert_eq!(back.standard.get().unwrap().0, "s");
    }
    let [_, keeper] = world.both(&local);
    let long = Value::new(Brief("sixsix".to_owned()));
    assert_eq!(keeper.echo(None, None, Some(&long), None).unwrap_err().kind, SystemExceptionKind::BadParam);
}

/// A value of an unregistered type is refused with an error.
#[test]
fn unknown_types_are_refused() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let local: WalkerRef = server.root_poa().activate(Echo).unwrap();
    let walker: WalkerRef = client.resolve(&server.object_to_string(local.object()).unwrap()).unwrap();
    let empty: Value<dyn ValueBase> = Value::new(Empty {}).upcast();
    let refused = walker.any_value(Some(&empty), &Edge::default()).unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::Marshal);
    // The type that the signature names needs no registration.
    let stop = Value::new(node("go", vec![]));
    assert_eq!(walker.echo(Some(&stop), &[]).unwrap().0.unwrap().label, "go");
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

impl Describable for Leaflet {
    fn describe(&self, language: &str) -> Result<String, describable::DescribeError> {
        match language {
            "" => Err(Unknown { what: "the language".to_owned() }.into()),
            language => Ok(format!("{} in {language}", self.text)),
        }
    }
}

struct Wares(i32);

impl Describable for Wares {
    fn describe(&self, language: &str) -> Result<String, describable::DescribeError> {
        Ok(format!("shelf in {language}"))
    }
}

impl Priced for Wares {
    fn price(&self) -> Result<i32, SystemException> {
        Ok(self.0)
    }
}

impl Shelf for Wares {
    fn fill(&self, all: &[Abstract<DescribableRef>]) -> Result<(), SystemException> {
        assert!(all.is_empty());
        Ok(())
    }
}

struct Market;

impl Shop for Market {
    fn find(
        &self,
        name: &str,
        best: &Abstract<PricedRef>,
    ) -> Result<(Abstract<DescribableRef>, Abstract<PricedRef>, Bid), SystemException> {
        let what = Abstract::from(&Value::new(Leaflet { text: name.to_owned() }));
        let bid = Bid { what: what.clone(), paid: best.clone() };
        Ok((what, best.clone(), bid))
    }

    fn echo(
        &self,
        all: &[Abstract<DescribableRef>],
        bid: &Bid,
    ) -> Result<Vec<Abstract<DescribableRef>>, SystemException> {
        Ok(all.iter().chain([&bid.what]).cloned().collect())
    }

    fn current(&self) -> Result<Abstract<DescribableRef>, SystemException> {
        Ok(Abstract::Nil)
    }

    fn set_current(&self, value: &Abstract<DescribableRef>) -> Result<(), SystemException> {
        assert!(!value.is_nil());
        Ok(())
    }
}

/// An abstract interface accepts an object or a value. Calls work without knowing which it is.
#[test]
fn abstract_interfaces_are_objects_or_values() {
    let world = World::new();
    abstract_interfaces::catalogue::register_values(&world.client);
    abstract_interfaces::catalogue::register_values(&world.server);
    let local: ShopRef = world.server.root_poa().activate(Market).unwrap();
    let wares: ShelfRef = world.server.root_poa().activate(Wares(7)).unwrap();
    for (shop, wares) in world.both(&local).into_iter().zip(world.both(&wares)) {
        let ticket = Ticket { base: Leaflet { text: "ticket".to_owned() }, price_paid: 3 };
        let priced = Abstract::from(&Value::new(ticket));
        let (leaflet, best, bid) = shop.find("leaflet", &priced).unwrap();
        assert_eq!(leaflet.describe("Latin").unwrap(), "leaflet in Latin");
        assert_eq!(
            bid.what.describe("").unwrap_err().to_string(),
            "catalogue::Unknown (what: \"the language\")"
        );
        // A ticket leaves `describe` to its base, and no type implements `price`.
        assert_eq!(best.describe("Greek").unwrap(), "ticket in Greek");
        assert_eq!(best.price().unwrap_err().kind, SystemExceptionKind::NoImplement);
        assert_eq!(best.value().unwrap().downcast::<Ticket>().unwrap().price_paid, 3);

        let (_, best, _) = shop.find("", &Abstract::Object(wares.clone().into())).unwrap();
        assert_eq!((best.price().unwrap(), best.describe("Welsh").unwrap().as_str()), (7, "shelf in Welsh"));
        assert!(ShelfRef::narrow(best.object().unwrap().object()).unwrap().is_some());

        let things = [leaflet, Abstract::Object(wares.clone().into()), Abstract::Nil];
        let back = shop.echo(&things, &Bid::default()).unwrap();
        let described: Vec<Option<String>> = back.iter().map(|thing| thing.describe("C").ok()).collect();
        assert_eq!(described, [Some("leaflet in C".to_owned()), Some("shelf in C".to_owned()), None, None]);
        assert_eq!(back[2].describe("C").unwrap_err(), {
            let describable::DescribeError::System(nil) = back[3].describe("C").unwrap_err() else {
                panic!()
            };
            assert_eq!(nil.kind, SystemExceptionKind::InvObjref);
            nil.into()
        });
        assert!(shop.current().unwrap().is_nil());
        shop.set_current(&things[1]).unwrap();
        wares.fill(&[]).unwrap();
    }
}

/// A receiver that knows only the base of a ticket gets the ticket truncated, as its declaration allows.
#[test]
fn a_truncatable_value_arrives_as_its_known_base() {
    let world = World::new();
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    server.register_value::<Leaflet>();
    let local: ShopRef = server.root_poa().activate(Market).unwrap();
    let shop: ShopRef = world.client.resolve(&server.object_to_string(local.object()).unwrap()).unwrap();
    abstract_interfaces::catalogue::register_values(&world.client);
    let ticket = Ticket { base: Leaflet { text: "ticket".to_owned() }, price_paid: 3 };
    let back = shop.echo(&[Abstract::from(&Value::new(ticket))], &Bid::default()).unwrap();
    let leaflet = back[0].value().unwrap();
    assert!(leaflet.downcast::<Ticket>().is_none());
    assert_eq!(leaflet.downcast::<Leaflet>().unwrap().text, "ticket");
    server.shutdown(true).unwrap();
}

impl CustomMarshal for Packed {
    fn marshal(&self, out: &mut DataOutput<'_, '_>) -> Result<(), Misuse> {
        out.write_string(&self.second)?;
        out.write_long(-self.first)
    }

    fn unmarshal(input: &mut DataInput<'_, '_>) -> Result<Self, Malformed> {
        let second = input.read_string()?;
        Ok(Packed { first: -input.read_long()?, second })
    }
}

struct Truck;

impl Carrier for Truck {
    fn carry(
        &self,
        load: Option<&Value<Packed>>,
        refused: Option<&Value<Never>>,
        held: Option<&Value<Holder>>,
    ) -> Result<Option<Value<Packed>>, SystemException> {
        assert!(refused.is_none());
        let held = held.map(|held| (held.inside.get(), held.anything.extract::<i32>()));
        match held {
            Some((inside, anything)) => {
                assert_eq!((inside.as_ref(), anything), (load, Ok(5)));
                Ok(inside)
            }
            None => Ok(load.cloned()),
        }
    }
}

#[test]
fn a_custom_value_travels_in_the_form_of_its_program() {
    let world = World::new();
    custom_values::packing::register_values(&world.client);
    custom_values::packing::register_values(&world.server);
    let local: CarrierRef = world.server.root_poa().activate(Truck).unwrap();
    for carrier in world.both(&local) {
        let load = Value::new(Packed { first: 7, second: "text".to_owned() });
        let holder = Holder { inside: (&load).into(), anything: Any::new(&5i32).unwrap() };
        let back = carrier.carry(Some(&load), None, Some(&Value::new(holder))).unwrap().unwrap();
        assert_eq!(*back, *load);
        assert!(carrier.carry(None, None, None).unwrap().is_none());
    }
    let [_, carrier] = world.both(&local);
    let never = Value::new(Never { only: 1 });
    let refused = carrier.carry(None, Some(&never), None).unwrap_err();
    assert_eq!(refused.kind, SystemExceptionKind::NoImplement, "{refused}");
}

/// An `any` made from a value that no TypeCode describes can be sent at every position in a message, by a
/// client whose ORB knows none of the types.
#[test]
fn an_any_holds_custom_values_and_abstract_interfaces() {
    let world = World::new();
    custom_values::packing::register_values(&world.server);
    abstract_interfaces::catalogue::register_values(&world.server);
    let client = Orb::builder().no_endpoint().build().unwrap();
    client.register_value::<Node>(); // the type of the result
    let local: WalkerRef = world.server.root_poa().activate(Inspector).unwrap();
    let wares: ShelfRef = world.server.root_poa().activate(Wares(7)).unwrap();
    let walker: WalkerRef = client.resolve(&world.server.object_to_string(local.object()).unwrap()).unwrap();
    let wares: ShelfRef = client.resolve(&world.server.object_to_string(wares.object()).unwrap()).unwrap();
    let load = Value::new(Packed { first: 7, second: "text".to_owned() });
    let packed = Any::new(&Some(load.clone())).unwrap();
    let ticket = Ticket { base: Leaflet { text: "ticket".to_owned() }, price_paid: 3 };
    let ticket = Abstract::<DescribableRef>::from(&Value::new(ticket));
    let described = Any::new(&ticket).unwrap();
    let bid = Bid { what: ticket, paid: Abstract::Object(wares.into()) };
    let bid = Any::new(&bid).unwrap();
    assert_eq!(contents_of(&bid), "ticket in C for 7");
    let nested = Any::new(&vec![packed.clone(), described.clone(), bid.clone()]).unwrap();
    for walker in [local, walker] {
        for label in ["", "a", "label", "long label", "longer yet, label"] {
            for (anything, expected) in [
                (&packed, "7 text"),
                (&described, "ticket in C"),
                (&bid, "ticket in C for 7"),
                (&nested, "7 text, ticket in C, ticket in C for 7"),
            ] {
                let apart = Apart { base: node(label, vec![]), anything: anything.clone() };
                let apart: Value<dyn ValueBase> = Value::new(apart).upcast();
                let answer = walker
                    .any_value(Some(&apart), &Edge::default())
                    .unwrap_or_else(|e| panic!("{e} {label} {expected}"))
                    .unwrap();
                assert_eq!(answer.downcast::<Node>().unwrap().label, expected);
            }
        }
    }
    client.shutdown(true).unwrap();
}

/// A servant that returns a description of the `any` in a value.
struct Inspector;

fn contents_of(any: &Any) -> String {
    if let Ok(packed) = any.extract::<Option<Value<Packed>>>() {
        let packed = packed.unwrap();
        return format!("{} {}", packed.first, packed.second);
    }
    if let Ok(thing) = any.extract::<Abstract<DescribableRef>>() {
        return thing.describe("C").unwrap();
    }
    if let Ok(bid) = any.extract::<Bid>() {
        return format!("{} for {}", bid.what.describe("C").unwrap(), bid.paid.price().unwrap());
    }
    any.extract::<Vec<Any>>().unwrap().iter().map(contents_of).collect::<Vec<_>>().join(", ")
}

impl Walker for Inspector {
    fn echo(
        &self,
        _: Option<&Value<Node>>,
        _: &[Link<Node>],
    ) -> Result<(Option<Value<Node>>, Vec<Link<Node>>, Maybe), walker::EchoError> {
        Ok(Default::default())
    }

    fn any_value(
        &self,
        value: Option<&Value<dyn ValueBase>>,
        _: &Edge,
    ) -> Result<Option<Value<dyn ValueBase>>, SystemException> {
        let apart = value.unwrap().downcast::<Apart>().unwrap();
        Ok(Some(Value::new(node(&contents_of(&apart.anything), vec![])).upcast()))
    }

    fn current(&self) -> Result<Option<Value<Node>>, SystemException> {
        Ok(None)
    }

    fn set_current(&self, _: Option<&Value<Node>>) -> Result<(), SystemException> {
        Ok(())
    }
}
