//! Servants of `dynamic.idl`, a static and a dynamic one, and the hand-written description of its
//! interface.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use ironorb::dynamic::{
    DynamicServant, InterfaceDescription, OperationDescription, ParameterMode, ServerRequest,
};
use ironorb::poa::{ObjectId, PoaCurrent};
use ironorb::{
    Any, CompletionStatus, Context, Link, MinorCode, Replied, SystemException, SystemExceptionKind, TypeCode,
    TypeDef, Typed, TypedRef, Value, WString,
};

use crate::dynamics::{
    Base, Choice, Everything, EverythingRef, Hidden, Node, OctetSeq, Odd, Point, Shape, everything,
};

/// Serves `Everything` by a static skeleton.
#[derive(Debug, Default)]
pub struct StaticEverything {
    calls: AtomicU32,
    label: Mutex<String>,
}

impl Base for StaticEverything {
    fn calls(&self) -> Result<u32, SystemException> {
        Ok(self.calls.load(Ordering::SeqCst))
    }
}

impl Everything for StaticEverything {
    fn label(&self) -> Result<String, SystemException> {
        Ok(self.label.lock().unwrap().clone())
    }

    fn set_label(&self, value: &str) -> Result<(), SystemException> {
        value.clone_into(&mut self.label.lock().unwrap());
        Ok(())
    }

    fn nothing(&self) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn turn(
        &self,
        given: &Shape,
        chosen: &Choice,
        count: i32,
    ) -> Result<(Shape, Choice, Any, i32), SystemException> {
        let mut turned = given.clone();
        turned.points.reverse();
        let chosen = match chosen {
            Choice::Number(number) => Choice::Text(number.to_string()),
            Choice::Text(text) => Choice::Number(text.len() as i32),
            place => place.clone(),
        };
        Ok((turned, chosen, Any::new(&given.points)?, -count))
    }

    fn reversed(&self, list: Option<&Value<Node>>) -> Result<Option<Value<Node>>, SystemException> {
        let mut reversed: Option<Value<Node>> = None;
        let mut rest = list.cloned();
        while let Some(node) = rest {
            reversed = Some(Value::new(Node { number: node.number, next: Link::from(reversed) }));
            rest = node.next.get();
        }
        Ok(reversed)
    }

    fn myself(
        &self,
        other: Option<&EverythingRef>,
    ) -> Result<(Option<EverythingRef>, bool), SystemException> {
        let own = PoaCurrent.reference().map(EverythingRef::from_object);
        let same = own.as_ref() == other;
        Ok((own, same))
    }

    fn sum(
        &self,
        kind: u8,
        text: &str,
        numbers: &[i32],
        points: &[Point],
        broad: &str,
    ) -> Result<f64, SystemException> {
        let lengths = f64::from(kind) + text.chars().count() as f64 + broad.chars().count() as f64;
        let numbers: f64 = numbers.iter().copied().map(f64::from).sum();
        Ok(lengths + numbers + points.iter().map(|point| point.x + point.y).sum::<f64>())
    }

    fn reflect(&self, data: &[u8]) -> Result<OctetSeq, SystemException> {
        Ok(data.to_vec())
    }

    fn fail(&self, how: i32) -> Result<(), everything::FailError> {
        match how {
            0 => Ok(()),
            1 => Err(Odd { why: "odd".to_owned(), at: Point { x: 1.5, y: -2.0 } }.into()),
            2 => Err(refused().into()),
            _ => panic!("as asked"),
        }
    }

    fn region(&self, more: &str) -> Result<String, SystemException> {
        let context = Context::received();
        let names: Vec<String> = context.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(format!("{} {more}", names.join(" ")))
    }

    fn note(&self, text: &str) -> Result<(), SystemException> {
        self.set_label(text)
    }
}

/// The system exception that `fail` raises.
pub fn refused() -> SystemException {
    SystemException::new(SystemExceptionKind::NoPermission, MinorCode(7), CompletionStatus::Yes)
}

/// The description of `Everything`, written by hand from its IDL.
pub fn everything() -> InterfaceDescription {
    use ParameterMode::{In, InOut, Out};
    let operation = OperationDescription::new;
    let text = || &TypeDef::String { bound: 0 };
    let base = InterfaceDescription::new("IDL:dynamics/Base:1.0", "Base")
        .readonly_attribute("calls", &TypeDef::ULong);
    InterfaceDescription::new("IDL:dynamics/Everything:1.0", "Everything")
        .attribute("label", text())
        .operation(operation("nothing"))
        .operation(
            operation("add")
                .parameter("a", In, &TypeDef::Long)
                .parameter("b", In, &TypeDef::Long)
                .returns(&TypeDef::Long),
        )
        .operation(
            operation("turn")
                .parameter("given", In, Shape::TYPE)
                .parameter("chosen", InOut, Choice::TYPE)
                .parameter("something", Out, &TypeDef::Any)
                .parameter("count", InOut, &TypeDef::Long)
                .returns(Shape::TYPE),
        )
        .operation(operation("reversed").parameter("list", In, node()).returns(node()))
        .operation(
            operation("myself")
                .parameter("other", In, <Option<EverythingRef>>::TYPE)
                .parameter("same", Out, &TypeDef::Boolean)
                .returns(<Option<EverythingRef>>::TYPE),
        )
        .operation(
            operation("sum")
                .parameter("kind", In, &TypeDef::Char)
                .parameter("text", In, text())
                .parameter("numbers", In, <[i32]>::TYPE)
                .parameter("points", In, <[Point]>::TYPE)
                .parameter("broad", In, &TypeDef::WString { bound: 0 })
                .returns(&TypeDef::Double),
        )
        .operation(operation("reflect").parameter("data", In, <[u8]>::TYPE).returns(<[u8]>::TYPE))
        .operation(operation("fail").parameter("how", In, &TypeDef::Long).raises(Odd::TYPE))
        .operation(
            operation("region")
                .parameter("more", In, text())
                .returns(text())
                .context("region")
                .context("colour*"),
        )
        .operation(operation("note").parameter("text", In, text()).oneway())
        .inherits(&base)
}

fn node() -> TypeCode {
    <Option<Value<Node>>>::TYPE.into()
}

/// Serves `Everything` dynamically: decodes every call and passes it to an [`StaticEverything`].
#[derive(Debug)]
pub struct DynamicEverything {
    inner: StaticEverything,
    interface: Arc<InterfaceDescription>,
}

impl Default for DynamicEverything {
    fn default() -> Self {
        DynamicEverything { inner: StaticEverything::default(), interface: Arc::new(everything()) }
    }
}

impl DynamicServant for DynamicEverything {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.interface.clone())
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        let arguments = match request.arguments() {
            Ok(arguments) => arguments,
            Err(e) => return request.raise_system(e),
        };
        match self.carry_out(request.operation(), &arguments) {
            Ok((result, outs)) => request.reply(result.as_ref(), &outs),
            Err(Failure::User(exception)) => request.raise(&exception),
            Err(Failure::System(e)) => request.raise_system(e),
        }
    }
}

enum Failure {
    User(Any),
    System(SystemException),
}

impl<E: Into<SystemException>> From<E> for Failure {
    fn from(e: E) -> Self {
        Failure::System(e.into())
    }
}

impl DynamicEverything {
    fn carry_out(&self, operation: &str, arguments: &[Any]) -> Result<(Option<Any>, Vec<Any>), Failure> {
        let inner = &self.inner;
        let result = match operation {
            "_get_calls" => Any::new(&inner.calls()?)?,
            "_get_label" => Any::new(&inner.label()?)?,
            "_set_label" => {
                inner.set_label(arguments[0].extract_str()?)?;
                return Ok((None, vec![]));
            }
            "nothing" => {
                inner.nothing()?;
                return Ok((None, vec![]));
            }
            "add" => Any::new(&inner.add(arguments[0].extract()?, arguments[1].extract()?)?)?,
            "turn" => {
                let (shape, choice): (Shape, Choice) = (arguments[0].extract()?, arguments[1].extract()?);
                let (shape, choice, any, count) = inner.turn(&shape, &choice, arguments[2].extract()?)?;
                let outs = vec![Any::new(&choice)?, Any::new(&any)?, Any::new(&count)?];
                return Ok((Some(Any::new(&shape)?), outs));
            }
            "reversed" => {
                let list: Option<Value<Node>> = arguments[0].extract()?;
                Any::new(&inner.reversed(list.as_ref())?)?
            }
            "myself" => {
                let other: Option<EverythingRef> = arguments[0].extract()?;
                let (own, same) = inner.myself(other.as_ref())?;
                return Ok((Some(Any::new(&own)?), vec![Any::new(&same)?]));
            }
            "sum" => {
                let kind: u8 = arguments[0].extract_as(&TypeDef::Char)?;
                let text: String = arguments[1].extract()?;
                let numbers: Vec<i32> = arguments[2].extract()?;
                let points: Vec<Point> = arguments[3].extract()?;
                let broad: WString = arguments[4].extract()?;
                Any::new(&inner.sum(kind, &text, &numbers, &points, &broad)?)?
            }
            "reflect" => Any::new(&inner.reflect(arguments[0].extract_octets()?)?)?,
            "fail" => match arguments[0].extract::<i32>()? {
                // A user exception that the operation does not declare: a static skeleton cannot raise it.
                -1 => return Err(Failure::User(Any::new(&Hidden { code: 1 })?)),
                how => match inner.fail(how) {
                    Ok(()) => return Ok((None, vec![])),
                    Err(everything::FailError::Odd(odd)) => return Err(Failure::User(Any::new(&odd)?)),
                    Err(everything::FailError::System(e)) => return Err(Failure::System(e)),
                },
            },
            "region" => Any::new(&inner.region(arguments[0].extract_str()?)?)?,
            "note" => {
                inner.note(arguments[0].extract_str()?)?;
                return Ok((None, vec![]));
            }
            other => panic!("{other} is not an operation of the interface"),
        };
        Ok((Some(result), vec![]))
    }
}
