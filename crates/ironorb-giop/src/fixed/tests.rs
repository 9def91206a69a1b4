use super::*;
use crate::version::Encoding;

fn d(text: &str) -> Decimal {
    text.parse().unwrap()
}

#[track_caller]
fn check(result: Result<Decimal, FixedError>, text: &str, digits: u16, scale: i16) {
    let result = result.unwrap();
    assert_eq!(
        (result.to_string().as_str(), result.fixed_digits(), result.fixed_scale()),
        (text, digits, scale)
    );
}

#[test]
fn results_have_the_digits_and_scale_of_the_standard() {
    check(d("12.50").try_add(d("0.125")), "12.625", 6, 3);
    check(d("12.50").try_sub(d("12.6")), "-0.10", 5, 2);
    check(d("-1.5").try_mul(d("0.25")), "-0.375", 4, 3);
    check(d("1").try_div(d("4")), "0.25", 3, 2);
    check(d("1").try_div(d("3")), "0.3333333333333333333333333333333", 31, 31);
    check(d("2").try_div(d("3")), "0.6666666666666666666666666666666", 31, 31);
    check(d("100").try_div(d("0.5")), "200", 4, 0);
    assert_eq!(d("1").try_div(d("0.0")), Err(FixedError::DivisionByZero));
}

#[test]
fn results_beyond_31_digits_lose_their_fraction_or_overflow() {
    let nines = "9".repeat(31);
    assert_eq!(d(&nines).try_add(d("1")), Err(FixedError::Overflow));
    assert_eq!(d(&nines).try_mul(d("10")), Err(FixedError::Overflow));
    check(d(&nines).try_add(d("0.5")), &nines, 31, 0);
    check(d(&nines).try_mul(d("0.5")), "4999999999999999999999999999999", 31, 0);
    let tiny = format!("0.{}1", "0".repeat(30));
    check(d(&tiny).try_add(d(&tiny)), &format!("0.{}2", "0".repeat(30)), 31, 31);
    check(d("1000000000000000").try_mul(d("0.0000000000000001")), "0.1000000000000000", 31, 16);
}

#[test]
fn rounding_and_truncation() {
    check(d("1.2345").round(3), "1.235", 4, 3);
    check(d("-1.2345").round(3), "-1.235", 4, 3);
    check(d("9.95").round(1), "10.0", 3, 1);
    check(Ok(d("1.2399").truncate(2)), "1.23", 3, 2);
    check(d("0.4").round(0), "0", 1, 0);
    check(d("155").round(-1), "160", 2, -1);
    assert_eq!("1.235".parse::<Fixed<5, 2>>(), Err(FixedError::Inexact));
    assert_eq!(Fixed::<5, 2>::rounded(d("1.235")).unwrap().to_string(), "1.24");
    assert_eq!(Fixed::<5, 2>::truncated(d("1.239")).unwrap().to_string(), "1.23");
    assert_eq!("1000".parse::<Fixed<5, 2>>(), Err(FixedError::Overflow));
}

#[test]
fn texts_that_are_not_numbers_are_refused() {
    for text in ["", "-", ".", "1.2.3", "1e5", "--1", "0x10", "1 ", "d", "१"] {
        assert_eq!(text.parse::<Decimal>(), Err(FixedError::NotANumber), "{text:?}");
    }
    assert_eq!(d("+1.50d"), d("1.5"));
    assert_eq!(d(".5"), d("0.50"));
    assert_eq!("1".repeat(32).parse::<Decimal>(), Err(FixedError::Overflow));
    assert_eq!(format!("0.{}", "1".repeat(32)).parse::<Decimal>(), Err(FixedError::Inexact));
    assert_eq!(d(&format!("0{}.{}", "1".repeat(31), "0".repeat(40))).fixed_digits(), 31);
}

#[test]
fn order_is_that_of_the_numbers_whatever_the_scale() {
    let sorted = ["-100", "-99.99", "-0.1", "0.000", "0.0001", "1", "1.0000001", "2.5", "10", "99.9"];
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(d(a).cmp(&d(b)), i.cmp(&j), "{a} and {b}");
        }
    }
    let far = Decimal::new(5, 1, i16::MIN).unwrap();
    assert!(far > d("9999999999999999999999999999999") && -far < d("0"));
    assert_eq!(far, far);
}

#[test]
fn conversions_are_exact_or_report_why_not() {
    assert_eq!(i32::try_from(d("-7.00")), Ok(-7));
    assert_eq!(i32::try_from(d("-7.01")), Err(FixedError::Inexact));
    assert_eq!(u16::try_from(d("65536")), Err(FixedError::Overflow));
    assert_eq!(Decimal::try_from(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::try_from(f64::NAN), Err(FixedError::NotANumber));
    assert_eq!(Decimal::try_from(1e40), Err(FixedError::Overflow));
    assert_eq!(d("0.1").to_f64(), 0.1);
    assert_eq!(Fixed::<31, 0>::try_from(u64::MAX).unwrap().to_string(), u64::MAX.to_string());
    assert_eq!(Fixed::<4, 2>::try_from(12.345).unwrap().to_string(), "12.35");
    const PRICE: Fixed<6, 2> = Fixed::constant(-12345);
    assert_eq!(PRICE.to_string(), "-123.45");
}

/// Checks the octets of a number, and that they read back.
#[track_caller]
fn check_wire<const D: u16, const S: u16>(text: &str, octets: &[u8]) {
    let value: Fixed<D, S> = text.parse().unwrap();
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, Encoding::NATIVE).put(&value).unwrap();
    assert_eq!(bytes, octets);
    let mut r = Reader::new(&bytes, Encoding::NATIVE);
    assert_eq!(r.get::<Fixed<D, S>>().unwrap(), value);
    assert_eq!(r.remaining(), 0);
    for cut in 0..bytes.len() {
        assert!(Reader::new(&bytes[..cut], Encoding::NATIVE).get::<Fixed<D, S>>().is_err());
    }
}

#[test]
fn packed_decimal_is_written_and_read() {
    check_wire::<5, 2>("123.45", &[0x12, 0x34, 0x5C]);
    check_wire::<4, 2>("-1.5", &[0x00, 0x15, 0x0D]);
    check_wire::<1, 0>("0", &[0x0C]);
    check_wire::<31, 0>(&"9".repeat(31), &[[0x99; 15].as_slice(), &[0x9C]].concat());
}

#[test]
fn leading_zeros_may_be_left_out_but_digits_may_not_be_too_many() {
    let read = |octets: &[u8]| {
        let mut r = Reader::new(octets, Encoding::NATIVE);
        r.get::<Fixed<8, 2>>().map(|value| (value.to_string(), r.remaining()))
    };
    assert_eq!(read(&[0x15, 0x0D, 0xFF]), Ok(("-1.50".to_owned(), 1)));
    assert_eq!(read(&[0x0C]), Ok(("0.00".to_owned(), 0)));
    for octets in [[0x12, 0x34, 0x56, 0x78, 0x9C], [0, 0, 0, 0, 0x0E], [0xA0, 0, 0, 0, 0x0C], [0, 0, 0, 0, 0]]
    {
        assert_eq!(read(&octets).unwrap_err().kind, MalformedKind::BadFixed);
    }
}
