//! Random values of any type that can be sent. The writer follows the TypeCode and uses neither compiled nor
//! interpreted marshalling, which the tests compare with it.

use ironorb::TypeCode;
use ironorb::giop::typecode::TcKind;
use ironorb::giop::{Misuse, Writer};
use ironorb::{Any, LongDouble};

/// Appends a random value of `ty`. Sequences nest at most `depth` deep. References and values are nil.
///
/// # Errors
///
/// When the writer's GIOP version has no form for the type, such as wide characters in GIOP 1.0.
pub fn write_random(
    w: &mut Writer<'_>,
    ty: &TypeCode,
    random: &mut Random,
    depth: u32,
) -> Result<(), Misuse> {
    let ty = ty.resolved();
    match ty.kind() {
        TcKind::Boolean => w.write_bool(random.below(2) == 1),
        TcKind::Char | TcKind::Octet => w.write_u8(random.next() as u8),
        TcKind::Short | TcKind::UShort => w.write_u16(random.next() as u16),
        TcKind::Long | TcKind::ULong => w.write_u32(random.next() as u32),
        TcKind::LongLong | TcKind::ULongLong => w.write_u64(random.next()),
        TcKind::Float => w.write_f32(random.next() as f32),
        TcKind::Double => w.write_f64(random.next() as f64 / 7.0),
        TcKind::LongDouble => w.put(&LongDouble::from(random.next() as f64 / 3.0))?,
        TcKind::WChar => w.write_wchar(TEXT[random.below(TEXT.len())])?,
        TcKind::String => w.write_str(&random.text(ty.length().map_or(0, |bound| bound as usize)))?,
        TcKind::WString => w.write_wstr(&random.text(ty.length().map_or(0, |bound| bound as usize)))?,
        TcKind::Any => w.put(&Any::new(&(random.next() as i32))?)?,
        TcKind::TypeCode => w.put(&TypeCode::for_type::<Vec<String>>())?,
        TcKind::ObjRef => {
            w.write_str("")?;
            w.write_u32(0);
        }
        TcKind::AbstractInterface => {
            w.write_bool(false);
            w.write_u32(0);
        }
        TcKind::Value | TcKind::ValueBox => w.write_u32(0),
        TcKind::Fixed => {
            let digits = ty.fixed_digits().map_or(0, usize::from);
            let mut nibbles: Vec<u8> = (0..digits).map(|_| random.below(10) as u8).collect();
            if digits.is_multiple_of(2) {
                nibbles.insert(0, 0);
            }
            nibbles.push(0xC);
            nibbles.chunks(2).for_each(|pair| w.write_u8(pair[0] << 4 | pair[1]));
        }
        TcKind::Enum => w.write_u32(random.below(count(&ty)) as u32),
        TcKind::Sequence | TcKind::Array => {
            let bound = ty.length().map_or(0, |length| length as usize);
            let length = match ty.kind() {
                TcKind::Array => bound,
                _ if depth == 0 => 0,
                _ => random.below(if bound == 0 { 5 } else { bound.min(5) + 1 }),
            };
            if ty.kind() == TcKind::Sequence {
                w.write_u32(length as u32);
            }
            let element = ty.content_type().unwrap_or_default();
            (0..length).try_for_each(|_| write_random(w, &element, random, depth.saturating_sub(1)))?;
        }
        TcKind::Union => return write_union(w, &ty, random, depth),
        TcKind::Struct | TcKind::Except => {
            for index in 0..count(&ty) {
                write_random(w, &member(&ty, index), random, depth)?;
            }
        }
        kind => panic!("values of kind {kind:?} are not sent"),
    }
    Ok(())
}

fn write_union(w: &mut Writer<'_>, ty: &TypeCode, random: &mut Random, depth: u32) -> Result<(), Misuse> {
    let labels: Vec<Option<i64>> =
        (0..count(ty)).map(|index| ty.member_label(index as u32).unwrap_or_default()).collect();
    let index = random.below(labels.len());
    let discriminator = ty.discriminator_type().unwrap_or_default().resolved();
    let label = labels[index].unwrap_or_else(|| {
        let free = |label: &i64| !labels.contains(&Some(*label));
        let first = match discriminator.kind() {
            TcKind::Enum | TcKind::Boolean => 0,
            _ => random.below(100) as i64,
        };
        (first..).find(free).unwrap_or_default()
    });
    match discriminator.kind() {
        TcKind::Boolean | TcKind::Char | TcKind::Octet => w.write_u8(label as u8),
        TcKind::Short | TcKind::UShort => w.write_u16(label as u16),
        TcKind::LongLong | TcKind::ULongLong => w.write_i64(label),
        TcKind::WChar => w.write_wchar(char::from_u32(label as u32).unwrap_or_default())?,
        _ => w.write_u32(label as u32),
    }
    write_random(w, &member(ty, index), random, depth)
}

fn count(ty: &TypeCode) -> usize {
    ty.member_count().map_or(0, |count| count as usize)
}

fn member(ty: &TypeCode, index: usize) -> TypeCode {
    ty.member_type(index as u32).unwrap_or_default()
}

const TEXT: &[char] = &['a', 'Z', '0', ' ', 'é', 'ż', '日', '𝄞'];

/// A generator whose numbers follow from its seed (splitmix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number of 64 random bits.
    #[allow(clippy::should_implement_trait)] // the sequence has no end
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A text of at most `bound` UTF-16 units. 0 means no bound.
    fn text(&mut self, bound: usize) -> String {
        let length = self.below(if bound == 0 { 12 } else { bound / 2 + 1 });
        (0..length).map(|_| TEXT[self.below(TEXT.len())]).collect()
    }
}
