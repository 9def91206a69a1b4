//! Decimal arithmetic of `fixed` constants: exact up to 62 digits, then cut to 31
//! (CORBA 3.3 part 1, 7.10.2).

use std::fmt;

/// `digits` (most significant first) divided by ten to the power of `scale`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fixed {
    negative: bool,
    digits: Vec<u8>,
    scale: usize,
}

impl Fixed {
    /// Reads decimal text with at most one point and an optional sign, whose form the lexer has checked.
    pub(super) fn parse(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let scale = text.find('.').map_or(0, |at| text.len() - at - 1);
        let digits = text.bytes().filter(u8::is_ascii_digit).map(|byte| byte - b'0').collect();
        Self { negative, digits, scale }.normal()
    }

    pub(super) fn from_integer(value: i128) -> Self {
        Self::parse(&value.to_string())
    }

    pub(super) fn negated(mut self) -> Self {
        self.negative = !self.negative && self.digits.iter().any(|&digit| digit != 0);
        self
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.at_scale(scale), other.at_scale(scale));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, add(&left, &right))
        } else if compare(&left, &right).is_ge() {
            (self.negative, subtract(&left, &right))
        } else {
            (other.negative, subtract(&right, &left))
        };
        Self { negative, digits, scale }.normal()
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u32; self.digits.len() + other.digits.len()];
        for (i, &left) in self.digits.iter().enumerate().rev() {
            for (j, &right) in other.digits.iter().enumerate().rev() {
                digits[i + j + 1] += u32::from(left) * u32::from(right);
            }
            carry(&mut digits);
        }
        let digits = digits.into_iter().map(|digit| digit as u8).collect();
        Self { negative: self.negative != other.negative, digits, scale: self.scale + other.scale }.normal()
    }

    /// `None` for a division by zero.
    pub(super) fn divided_by(&self, other: &Self) -> Option<Self> {
        if other.digits.iter().all(|&digit| digit == 0) {
            return None;
        }
        let divisor = trimmed(&other.digits);
        let mut rest: Vec<u8> = Vec::new();
        let mut digits = Vec::new();
        // 62 digits after those of the dividend are more than the result keeps.
        let scale = self.scale + INTERMEDIATE_DIGITS;
        for digit in self.digits.iter().copied().chain(std::iter::repeat_n(0, INTERMEDIATE_DIGITS)) {
            rest.push(digit);
            let mut quotient = 0;
            while compare(&rest, divisor).is_ge() {
                rest = subtract(&rest, divisor);
                quotient += 1;
            }
            rest = trimmed(&rest).to_vec();
            digits.push(quotient);
        }
        let mut result = Self { negative: self.negative != other.negative, digits, scale };
        // Ten to the power of the divisor's scale belongs to the numerator.
        if other.scale > result.scale {
            result.digits.extend(std::iter::repeat_n(0, other.scale - result.scale));
            result.scale = 0;
        } else {
            result.scale -= other.scale;
        }
        Some(result.normal())
    }

    /// Cut to 31 digits; `None` when the integer part alone has more.
    pub(super) fn truncated(mut self) -> Option<Self> {
        while self.digits.len() > DIGITS_MAX && self.scale > 0 {
            self.digits.pop();
            self.scale -= 1;
        }
        let mut value = self.normal();
        while value.scale > DIGITS_MAX {
            value.digits.pop();
            value.scale -= 1;
            value = value.normal();
        }
        (value.digits.len() <= DIGITS_MAX).then_some(value)
    }

    /// Cut to the scale of a type; `None` when the integer part does not fit.
    pub(super) fn fitted(&self, spec: Option<(u16, i16)>) -> Option<Self> {
        let Some((digits, scale)) = spec else { return self.clone().truncated() };
        let scale = scale.max(0) as usize;
        let mut value = self.clone();
        while value.scale > scale {
            value.digits.pop();
            value.scale -= 1;
        }
        let whole = value.digits.len().saturating_sub(value.scale);
        let leading = value.digits.iter().take(whole).take_while(|&&digit| digit == 0).count();
        (whole - leading <= usize::from(digits) - scale).then(|| value.normal())
    }

    /// The digits and scale of the smallest type that holds the value.
    pub(super) fn digits_and_scale(&self) -> (u16, i16) {
        (self.digits.len().max(self.scale).max(1) as u16, self.scale as i16)
    }

    /// Removes leading zeros, and trailing ones after the point.
    fn normal(mut self) -> Self {
        while self.scale > 0 && self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale -= 1;
        }
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..zeros);
        if self.digits.is_empty() {
            return Self { negative: false, digits: vec![0], scale: 0 };
        }
        self
    }

    fn at_scale(&self, scale: usize) -> Vec<u8> {
        let mut digits = self.digits.clone();
        digits.extend(std::iter::repeat_n(0, scale - self.scale));
        digits
    }
}

impl fmt::Display for Fixed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let whole = self.digits.len().saturating_sub(self.scale);
        if whole == 0 {
            f.write_str("0")?;
        }
        for digit in &self.digits[..whole] {
            write!(f, "{digit}")?;
        }
        if self.scale > 0 {
            f.write_str(".")?;
            for _ in self.digits.len()..self.scale {
                f.write_str("0")?;
            }
            for digit in &self.digits[whole..] {
                write!(f, "{digit}")?;
            }
        }
        Ok(())
    }
}

fn trimmed(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    &digits[zeros..]
}

fn compare(left: &[u8], right: &[u8]) -> std::cmp::Ordering {
    let (left, right) = (trimmed(left), trimmed(right));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = left.len().max(right.len()) + 1;
    let digit = |digits: &[u8], place: usize| digits.iter().rev().nth(place).copied().unwrap_or(0);
    let mut out = Vec::with_capacity(length);
    let mut carry = 0;
    for place in 0..length {
        let sum = digit(left, place) + digit(right, place) + carry;
        out.push(sum % 10);
        carry = sum / 10;
    }
    out.reverse();
    out
}

/// `left - right`, which is not negative.
fn subtract(left: &[u8], right: &[u8]) -> Vec<u8> {
    let digit = |digits: &[u8], place: usize| digits.iter().rev().nth(place).copied().unwrap_or(0);
    let mut out = Vec::with_capacity(left.len());
    let mut borrow = 0;
    for place in 0..left.len() {
        let (have, take) = (digit(left, place), digit(right, place) + borrow);
        borrow = u8::from(have < take);
        out.push(have + 10 * borrow - take);
    }
    out.reverse();
    out
}

fn carry(digits: &mut [u32]) {
    for at in (1..digits.len()).rev() {
        digits[at - 1] += digits[at] / 10;
        digits[at] %= 10;
    }
}

const DIGITS_MAX: usize = 31;
const INTERMEDIATE_DIGITS: usize = 62;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(actual: Option<Fixed>, expected: &str) {
        assert_eq!(actual.expect("a value").to_string(), expected);
    }

    fn fixed(text: &str) -> Fixed {
        Fixed::parse(text)
    }

    #[test]
    fn sums_and_differences_are_exact() {
        check(Some(fixed("1.25").plus(&fixed("2.5"))), "3.75");
        check(Some(fixed("1").plus(&fixed("0.999").negated())), "0.001");
        check(Some(fixed("1").plus(&fixed("2").negated())), "-1");
        check(Some(fixed("9.9").plus(&fixed("0.1"))), "10");
        check(Some(fixed("0").negated()), "0");
    }

    #[test]
    fn products_keep_62_digits_and_are_then_cut_to_31() {
        check(fixed("-1.5").times(&fixed("1.5")).truncated(), "-2.25");
        let nines = "9999999999999999999999999999999";
        assert_eq!(fixed(nines).times(&fixed(nines)).truncated(), None);
        check(fixed(nines).times(&fixed("0.00001")).truncated(), "99999999999999999999999999.99999");
    }

    #[test]
    fn quotients_are_cut_to_31_digits() {
        check(fixed("10").divided_by(&fixed("4")).and_then(Fixed::truncated), "2.5");
        check(
            fixed("1").divided_by(&fixed("3")).and_then(Fixed::truncated),
            "0.3333333333333333333333333333333",
        );
        check(fixed("1").divided_by(&fixed("0.001")).and_then(Fixed::truncated), "1000");
        assert_eq!(fixed("1").divided_by(&fixed("0.00")), None);
    }

    #[test]
    fn a_value_is_cut_to_the_scale_of_its_type_and_must_fit_before_the_point() {
        check(fixed("12.349").fitted(Some((4, 2))), "12.34");
        assert_eq!(fixed("123.4").fitted(Some((4, 2))), None);
        check(fixed("0.05").fitted(Some((2, 2))), "0.05");
    }
}
