//! What some ORBs lack: one servant for each part of the contract that has a file of its own.

use std::sync::{Mutex, PoisonError};

use ironorb::{
    Any, CompletionStatus, Decimal, Deferred, LongDouble, MinorCode, ObjectRef, Poa, SystemException,
    SystemExceptionKind, TypeCode,
};

use super::later::{LaterServant, TextsServant};
use super::values::{AbstractsServant, BoxesServant, CustomsServant, ValuesServant};
use super::{Echo, adapter_error, echo_borrowed, echo_values};
use crate::interop::{self, *};
use crate::{samples, value_samples};

/// The object of a part; nil for an unknown part.
pub(super) fn part(root: &Poa, name: &str) -> Result<Option<ObjectRef>, SystemException> {
    let object = match name {
        "anys" => root.activate::<AnysRef, _>(AnysServant::default()).map(ObjectRef::from),
        "typecodes" => root.activate::<TypeCodesRef, _>(TypeCodesServant).map(ObjectRef::from),
        "fixed" => root.activate::<FixedsRef, _>(FixedsServant).map(ObjectRef::from),
        "long_double" => root.activate::<LongDoublesRef, _>(LongDoublesServant).map(ObjectRef::from),
        "values" => root.activate::<ValuesRef, _>(ValuesServant).map(ObjectRef::from),
        "boxes" => root.activate::<BoxesRef, _>(BoxesServant).map(ObjectRef::from),
        "later" => root.activate::<LaterRef, _>(Deferred(LaterServant::default())).map(ObjectRef::from),
        "texts" => root.activate::<TextsRef, _>(TextsServant).map(ObjectRef::from),
        "abstracts" => root.activate::<AbstractsRef, _>(AbstractsServant).map(ObjectRef::from),
        "custom" => root.activate::<CustomsRef, _>(CustomsServant).map(ObjectRef::from),
        "value_anys" => root.activate::<ValueAnysRef, _>(ValueAnysServant).map(ObjectRef::from),
        _ => return Ok(None),
    };
    object.map(Some).map_err(adapter_error)
}

fn unknown(sample: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::BadParam, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the sample {sample:?} is unknown"))
}

#[derive(Debug, Default)]
struct AnysServant {
    held: Mutex<Any>,
}

impl interop::Anys for AnysServant {
    echo_borrowed! {
        echo_any: Any, Any;
        echo_anys: [Any], AnySeq;
        echo_property: Property, Property;
        echo_properties: [Property], PropertySeq;
        echo_any_or_name: AnyOrName, AnyOrName;
    }

    fn raise_unfit(&self, what: &Any) -> Result<(), anys::RaiseUnfitError> {
        Err(Unfit { why: "asked".to_owned(), what: what.clone() }.into())
    }

    fn held(&self) -> Result<Any, SystemException> {
        Ok(self.held.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn set_held(&self, value: &Any) -> Result<(), SystemException> {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = value.clone();
        Ok(())
    }

    fn make(&self, sample: &str) -> Result<Any, SystemException> {
        samples::make(sample).ok_or_else(|| unknown(sample))
    }

    fn check(&self, sample: &str, what: &Any) -> Result<String, SystemException> {
        Ok(samples::check(sample, what).err().unwrap_or_default())
    }
}

#[derive(Debug)]
struct ValueAnysServant;

impl interop::ValueAnys for ValueAnysServant {
    echo_borrowed! { echo_value_any: Any, Any; }

    fn make(&self, sample: &str) -> Result<Any, SystemException> {
        value_samples::make(sample).ok_or_else(|| unknown(sample))
    }

    fn check(&self, sample: &str, what: &Any) -> Result<String, SystemException> {
        Ok(value_samples::check(sample, what).err().unwrap_or_default())
    }
}

#[derive(Debug)]
struct TypeCodesServant;

impl interop::TypeCodes for TypeCodesServant {
    echo_borrowed! {
        echo_typecode: TypeCode, TypeCode;
        echo_typecodes: [TypeCode], TypeCodeSeq;
    }

    fn type_of(&self, sample: &str) -> Result<TypeCode, SystemException> {
        Ok(samples::make(sample).ok_or_else(|| unknown(sample))?.type_code().clone())
    }

    fn are_equal(&self, a: &TypeCode, b: &TypeCode) -> Result<bool, SystemException> {
        Ok(a == b)
    }

    fn are_equivalent(&self, a: &TypeCode, b: &TypeCode) -> Result<bool, SystemException> {
        Ok(a.equivalent(b))
    }
}

#[derive(Debug)]
struct FixedsServant;

impl interop::Fixeds for FixedsServant {
    echo_values! {
        echo_price: Price;
        echo_whole: Whole;
        echo_fraction: Fraction;
        echo_huge: Huge;
        echo_digit: Digit;
    }

    echo_borrowed! {
        echo_prices: [Price], PriceSeq;
        echo_huge_pair: HugePair, HugePair;
        echo_bill: Bill, Bill;
        echo_by_price: ByPrice, ByPrice;
    }

    fn total(&self, prices: &[Price]) -> Result<Price, SystemException> {
        let unfit = |_| {
            let kind = SystemExceptionKind::DataConversion;
            SystemException::new(kind, MinorCode::NONE, CompletionStatus::No)
        };
        let mut total = Decimal::from(Price::default());
        for price in prices {
            total = total.try_add((*price).into()).map_err(unfit)?;
        }
        Price::try_from(total).map_err(unfit)
    }
}

#[derive(Debug)]
struct LongDoublesServant;

impl interop::LongDoubles for LongDoublesServant {
    echo_values! { echo_long_double: LongDouble; }

    echo_borrowed! {
        echo_long_doubles: [LongDouble], LongDoubleSeq;
        echo_precise: Precise, Precise;
    }

    fn half(&self, x: LongDouble) -> Result<LongDouble, SystemException> {
        Ok(samples::half(x))
    }
}
