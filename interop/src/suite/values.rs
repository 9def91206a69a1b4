//! The servants of valuetypes, boxes, abstract interfaces and custom valuetypes, and the operations of the
//! valuetypes.

use ironorb::generated::value::{CustomMarshal, DataInput, DataOutput};
use ironorb::generated::{Abstract, ValueBase};
use ironorb::giop::{Malformed, Misuse};
use ironorb::{CompletionStatus, Link, MinorCode, SystemException, SystemExceptionKind};
use ironorb::{Value, ValueGraph};

use super::{Echo, adapter_error, echo_borrowed, root_poa};
use crate::interop::{self, *};

/// Echoes of values, which may be null.
macro_rules! echo_nillable {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation(
            &self,
            x: Option<&Value<$type>>,
            y: Option<&Value<$type>>,
        ) -> Echo<Option<Value<$type>>> {
            Ok((x.cloned(), x.cloned(), y.cloned()))
        }
    )*};
}

/// Registers the valuetypes that the suites know: all but `Secret` and `Sealed`.
pub fn register_values(orb: &ironorb::Orb) {
    orb.register_value::<Point>();
    orb.register_value::<Point3>();
    orb.register_value::<Spot>();
    orb.register_value::<HotSpot>();
    orb.register_value::<Account>();
    orb.register_value::<Cell>();
    orb.register_value::<Twig>();
    orb.register_value::<Mixed>();
    orb.register_value::<Tag>();
    orb.register_value::<Parcel>();
    orb.register_value::<Ticket>();
    orb.register_value::<BoxedString>();
    orb.register_value::<BoxedLong>();
    orb.register_value::<BoxedLongs>();
    orb.register_value::<BoxedBin>();
    orb.register_value::<Crate>();
    orb.register_value::<Anything>();
    orb.register_value::<Card>();
    orb.register_value::<Clock>();
}

impl interop::Labelled for Tag {
    fn label(&self) -> Result<String, SystemException> {
        Ok(self.text.clone())
    }
}

impl interop::Measured for Tag {
    fn measure(&self) -> Result<f64, SystemException> {
        Ok(self.size)
    }
}

impl interop::Describable for Card {
    fn describe_it(&self) -> Result<String, SystemException> {
        Ok(format!("card {}", self.line))
    }
}

impl TicketOperations for Ticket {
    fn face(&self) -> Result<String, SystemException> {
        Ok(format!("{} for {}", self.number, self.holder))
    }
}

/// Issues tickets.
#[derive(Debug, Clone, Copy)]
pub struct TicketOffice;

impl TicketFactory for TicketOffice {
    fn issue(&self, number: i32, holder: &str) -> Result<Value<Ticket>, SystemException> {
        Ok(Value::new(Ticket { number, holder: holder.to_owned() }))
    }
}

impl CustomMarshal for Clock {
    fn marshal(&self, out: &mut DataOutput<'_, '_>) -> Result<(), Misuse> {
        out.write_octet(self.hour as u8)?;
        out.write_octet(self.minute as u8)?;
        out.write_string(&format!("{:02}:{:02}", self.hour, self.minute))
    }

    fn unmarshal(input: &mut DataInput<'_, '_>) -> Result<Self, Malformed> {
        let (hour, minute) = (input.read_octet()?.into(), input.read_octet()?.into());
        input.read_string()?;
        Ok(Clock { hour, minute })
    }
}

/// The number of cells of a ring; 0 for null, -1 for a chain that ends.
pub fn length(first: Option<&Value<Cell>>) -> i32 {
    let Some(first) = first else { return 0 };
    let mut count = 1;
    let mut at = first.clone();
    loop {
        match at.next.get() {
            None => return -1,
            Some(next) if next.ptr_eq(first) => return count,
            Some(next) => at = next,
        }
        count += 1;
    }
}

/// A ring of cells, numbered from 1.
///
/// # Panics
///
/// If `count` is 0.
pub fn ring(count: i32) -> Value<Cell> {
    let mut graph = ValueGraph::new();
    let places: Vec<_> = (0..count).map(|_| graph.reserve::<Cell>()).collect();
    for (at, place) in places.iter().enumerate() {
        let next = graph.link(places[(at + 1) % places.len()]);
        graph.fill(*place, Cell { number: at as i32 + 1, next }).expect("each place is filled once");
    }
    graph.finish(places[0]).expect("all places are filled")
}

#[derive(Debug)]
pub(super) struct ValuesServant;

fn null() -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the value is null")
}

impl interop::Values for ValuesServant {
    echo_nillable! {
        echo_point: Point;
        echo_spot: Spot;
        echo_account: Account;
        echo_mixed: Mixed;
        echo_cell: Cell;
        echo_twig: Twig;
        echo_tag: Tag;
        echo_parcel: Parcel;
        echo_ticket: Ticket;
        echo_crate: Crate;
        echo_anything: Anything;
    }

    echo_borrowed! {
        echo_cells: [Link<Cell>], CellSeq;
        echo_point_pair: PointPair, PointPair;
        echo_point_or_number: PointOrNumber, PointOrNumber;
    }

    fn sum_of(&self, p: Option<&Value<Point>>) -> Result<i32, SystemException> {
        let p = p.ok_or_else(null)?;
        Ok(p.x + p.y)
    }

    fn kind_of(&self, p: Option<&Value<Point>>) -> Result<String, SystemException> {
        Ok(p.map(|p| p.info().id.to_owned()).unwrap_or_default())
    }

    fn secret(&self, x: i32, y: i32) -> Result<Option<Value<Spot>>, SystemException> {
        let spot = Spot { base: Point { x, y }, color: "red".to_owned() };
        Ok(Some(Value::new(Secret { base: spot, code: 99 }).upcast()))
    }

    fn same_point(
        &self,
        a: Option<&Value<Point>>,
        b: Option<&Value<Point>>,
    ) -> Result<bool, SystemException> {
        Ok(match (a, b) {
            (Some(a), Some(b)) => a.ptr_eq(b),
            (None, None) => true,
            _ => false,
        })
    }

    fn ring(&self, count: i32) -> Result<Option<Value<Cell>>, SystemException> {
        Ok((count > 0).then(|| ring(count)))
    }

    fn length_of(&self, c: Option<&Value<Cell>>) -> Result<i32, SystemException> {
        Ok(length(c))
    }

    fn raise_spoilt(&self, where_: Option<&Value<Point>>) -> Result<(), values::RaiseSpoiltError> {
        Err(Spoilt { where_: where_.cloned().into() }.into())
    }

    fn pass_base(
        &self,
        x: Option<&Value<dyn ValueBase>>,
    ) -> Result<Option<Value<dyn ValueBase>>, SystemException> {
        Ok(x.cloned())
    }

    fn kinds_of(&self, points: &[Link<Point>]) -> Result<String, SystemException> {
        let kind = |link: &Link<Point>| link.get().map_or("", |point| point.info().id);
        Ok(points.iter().map(kind).collect::<Vec<_>>().join(" "))
    }

    fn sum_of_second(
        &self,
        _: Option<&Value<Parcel>>,
        second: Option<&Value<Point>>,
    ) -> Result<i32, SystemException> {
        self.sum_of(second)
    }

    fn label_of(&self, t: Option<&Value<Tag>>) -> Result<String, SystemException> {
        t.ok_or_else(null)?.label()
    }

    fn measure_of(&self, m: Option<&Value<dyn Measured>>) -> Result<f64, SystemException> {
        m.ok_or_else(null)?.measure()
    }

    fn face_of(&self, t: Option<&Value<Ticket>>) -> Result<String, SystemException> {
        t.ok_or_else(null)?.face()
    }

    fn object_of(&self, t: Option<&Value<Tag>>) -> Result<Option<LabelledRef>, SystemException> {
        let tag: Tag = (**t.ok_or_else(null)?).clone();
        root_poa()?.activate(tag).map(Some).map_err(adapter_error)
    }
}

#[derive(Debug)]
pub(super) struct BoxesServant;

/// Operations that return their argument.
macro_rules! pass {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation(&self, x: Option<&Value<$type>>) -> Result<Option<Value<$type>>, SystemException> {
            Ok(x.cloned())
        }
    )*};
}

impl interop::Boxes for BoxesServant {
    echo_nillable! {
        echo_boxed_string: BoxedString;
        echo_boxed_long: BoxedLong;
        echo_boxed_longs: BoxedLongs;
        echo_boxed_bin: BoxedBin;
    }

    pass! {
        pass_boxed_string: BoxedString;
        pass_boxed_long: BoxedLong;
        pass_boxed_longs: BoxedLongs;
        pass_boxed_bin: BoxedBin;
    }
}

#[derive(Debug)]
pub(super) struct AbstractsServant;

impl interop::Abstracts for AbstractsServant {
    fn echo_describable(
        &self,
        x: &Abstract<DescribableRef>,
        y: &Abstract<DescribableRef>,
    ) -> Echo<Abstract<DescribableRef>> {
        Ok((x.clone(), x.clone(), y.clone()))
    }

    fn description_of(&self, what: &Abstract<DescribableRef>) -> Result<String, SystemException> {
        if what.is_nil() { Ok(String::new()) } else { what.describe_it() }
    }

    fn create_person(&self, name: &str) -> Result<Option<PersonRef>, SystemException> {
        let person = PersonServant { name: name.to_owned() };
        root_poa()?.activate::<PersonRef, _>(person).map(Some).map_err(adapter_error)
    }

    fn a_card(&self, line: &str) -> Result<Abstract<DescribableRef>, SystemException> {
        Ok(Abstract::from(&Value::new(Card { line: line.to_owned() })))
    }

    fn a_person(&self, name: &str) -> Result<Abstract<DescribableRef>, SystemException> {
        let person = self.create_person(name)?;
        Ok(person.map_or(Abstract::Nil, |person| Abstract::Object(person.into())))
    }
}

#[derive(Debug)]
struct PersonServant {
    name: String,
}

impl interop::Describable for PersonServant {
    fn describe_it(&self) -> Result<String, SystemException> {
        Ok(format!("person {}", self.name))
    }
}

impl interop::Person for PersonServant {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }
}

#[derive(Debug)]
pub(super) struct CustomsServant;

impl interop::Customs for CustomsServant {
    echo_nillable! { echo_clock: Clock; }

    fn minutes_of(&self, c: Option<&Value<Clock>>) -> Result<i32, SystemException> {
        let clock = c.ok_or_else(null)?;
        Ok(i32::from(clock.hour) * 60 + i32::from(clock.minute))
    }
}
