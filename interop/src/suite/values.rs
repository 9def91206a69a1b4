//! The servants of valuetypes and boxes.

use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind};
use ironorb::{Value, ValueGraph};

use super::{Echo, echo_lent, internal};
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

/// Makes the valuetypes known that the suites know: all but `Secret`.
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
/// If it is to have none.
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
    }

    echo_lent! {
        echo_cells: [ironorb::Link<Cell>], CellSeq;
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

    fn label_of(&self, t: Option<&Value<Tag>>) -> Result<String, SystemException> {
        Ok(t.ok_or_else(null)?.text.clone())
    }

    fn measure_of(&self, m: Option<&Value<dyn Measured>>) -> Result<f64, SystemException> {
        let tag = m.ok_or_else(null)?.downcast::<Tag>();
        Ok(tag.ok_or_else(|| internal("what is measured is no Tag"))?.size)
    }
}

#[derive(Debug)]
pub(super) struct BoxesServant;

/// Operations that give back what they got.
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
