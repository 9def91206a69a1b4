//! Values from one encoding to another, directed by their TypeCode: the interpreter beneath [`Any`](super::Any), and what
//! programs use that handle values of types unknown at compile time.
//!
//! Nothing here builds a value in memory. What comes from a peer is checked as it is copied: lengths by reaching the
//! end of the data, bounds, enumerators and labels against the type, nesting by the reader, and work by a budget,
//! because a type can have values without bytes and as many of them as it likes. The budget grows with the data of the
//! value: padding, byte order, code sets and how types are written do not count, so a value that is accepted is accepted
//! again wherever it stands and however it is written.

mod numbers;
mod plan;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::cdr::{LongDouble, Marshal, Reader, Unmarshal, Writer};
use crate::error::{Malformed, MalformedKind, Misuse};
use crate::fixed;
use crate::ior::Ior;
use crate::typecode::{Members, Shape, TcKind, TypeCode, TypeKey, TypeRef, write_type};
use crate::value::{Bookmark, WrittenIds};

use plan::Plan;
pub(crate) use values::shown_type;
use values::{OpenCopy, Places, TypeInfo, end_copied};
pub use values::{READ_AGAIN_FREE, READ_AGAIN_MAX};

/// Copies one value of this type, converting whatever differs between the encodings of reader and writer: byte
/// order, alignment, the GIOP version's wide characters, the code set of strings. Padding is written as zeros.
///
/// After an error both are at no particular place.
pub fn copy_value(r: &mut Reader<'_>, w: &mut Writer<'_>, type_code: &TypeCode) -> Result<(), CopyError> {
    Copy::new().value(r, w, type_code.as_type_ref())
}

/// Copies values that have been copied before, whose size their sender has paid for. Types that it is given must outlive
/// it.
pub(crate) struct CopyAgain(Copy<'static>);

impl CopyAgain {
    pub(crate) fn new() -> Self {
        CopyAgain(Copy::trusted())
    }

    pub(crate) fn value(
        &mut self,
        r: &mut Reader<'_>,
        w: &mut Writer<'_>,
        ty: TypeRef<'_>,
    ) -> Result<(), CopyError> {
        self.0.value(r, w, ty)
    }
}

/// Copies one such value. True if an environment is needed to extract what is inside: references and values.
pub(crate) fn copy_again(r: &mut Reader<'_>, w: &mut Writer<'_>, ty: TypeRef<'_>) -> Result<bool, CopyError> {
    let mut copy = Copy::trusted();
    copy.value(r, w, ty)?;
    Ok(copy.environment_needed)
}

/// Why a value could not be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyError {
    /// The bytes are not a value of the type.
    Malformed(Malformed),
    /// The value cannot be written in the writer's encoding, or the type has no values that are sent.
    Misuse(Misuse),
}

impl fmt::Display for CopyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CopyError::Malformed(error) => error.fmt(f),
            CopyError::Misuse(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CopyError {}

impl From<Malformed> for CopyError {
    fn from(error: Malformed) -> Self {
        CopyError::Malformed(error)
    }
}

impl From<Misuse> for CopyError {
    fn from(error: Misuse) -> Self {
        CopyError::Misuse(error)
    }
}

/// The state of one copying.
pub(super) struct Copy<'t> {
    /// Where the reader went on after it had been elsewhere.
    start: usize,
    /// Types looked at so far.
    steps: usize,
    /// Types that may be looked at before anything is read.
    steps_free: usize,
    /// Octets of data copied so far, which pay for more steps. A number counts its size, a string its length in UTF-8,
    /// lengths, tags and labels count as numbers; padding, repository ids and TypeCodes count nothing.
    paid: usize,
    /// Whether what was copied needs an environment to be extracted.
    pub(super) environment_needed: bool,
    /// Where values start: in what is read, and in what has been written.
    values: Places,
    /// How many values that are being copied stand before all that is.
    outside: usize,
    /// What was found out about type information that stands for many values, by place.
    type_infos: BTreeMap<usize, TypeInfo>,
    /// A type that had no type information, and where its id was written.
    assumed: Option<(String, WrittenIds)>,
    /// Flat forms of element types; `None` for a type that has none.
    plans: BTreeMap<TypeKey, Option<Rc<Plan>>>,
    /// To compare two copies: TypeCodes become their numbers in this table, in which equal ones are one.
    pub(super) types: Option<&'t mut Vec<TypeCode>>,
}

/// What is still to be copied.
enum Frame<'a> {
    Members {
        members: Members<'a>,
        next: usize,
    },
    /// Of a sequence or array; also the one case of a union, or what is in a value box.
    Elements {
        element: TypeRef<'a>,
        left: usize,
    },
    /// The end of a value, after its state.
    Value(OpenCopy),
    /// The end of a value that stands before all that is copied.
    Outside(Box<Bookmark>),
}

/// Steps that a value may take whatever its size, and for each octet of its data. Honest values take about one for each
/// member, and few members have less than four bytes.
const STEPS_FREE: usize = 256;
const STEPS_PER_BYTE: usize = 8;

/// What lengths, enumerators and the tags of values count.
const LENGTH_BYTES: usize = 4;

/// What an object reference counts, whatever is in it: the bytes of one that is nil.
const REFERENCE_BYTES: usize = 12;

/// Typedefs over one another that are looked through in a step: more than real data has, so they cost it none.
const ALIASES_PER_STEP: usize = 8;

/// Steps after which a value is so large that plans are made for single structs too: the next is likely of the same type.
const STEPS_PLANLESS: usize = 64;

impl<'t> Copy<'t> {
    /// A copying of one value.
    pub(super) fn new() -> Self {
        Copy {
            start: 0,
            steps: 0,
            steps_free: STEPS_FREE,
            paid: 0,
            environment_needed: false,
            values: Places::default(),
            outside: 0,
            type_infos: BTreeMap::new(),
            assumed: None,
            plans: BTreeMap::new(),
            types: None,
        }
    }

    /// A copying of what has been copied before.
    pub(super) fn trusted() -> Self {
        Copy { steps_free: usize::MAX / 2, ..Copy::new() }
    }

    /// Copies one value. What it is made of waits on a list rather than on the stack: a list of values is as deep as it
    /// is long.
    pub(super) fn value<'r>(
        &mut self,
        r: &mut Reader<'r>,
        w: &mut Writer<'_>,
        ty: TypeRef<'_>,
    ) -> Result<(), CopyError> {
        let mut work = Vec::new();
        self.one(r, w, ty, &mut work)?;
        while let Some(frame) = work.last_mut() {
            let next = match frame {
                Frame::Members { members, next } => {
                    *next += 1;
                    members.get(*next - 1).map(|(_, member)| member)
                }
                Frame::Elements { element, left } => {
                    let more = left.checked_sub(1);
                    *left = more.unwrap_or(0);
                    more.map(|_| *element)
                }
                Frame::Value(_) | Frame::Outside(_) => None,
            };
            match next {
                Some(ty) => self.one(r, w, ty, &mut work)?,
                None => match work.pop() {
                    Some(Frame::Value((header, open))) => {
                        end_copied(r, header)?;
                        w.end_value(open)?;
                    }
                    Some(Frame::Outside(bookmark)) => self.end_outside(r, &bookmark)?,
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Copies a value, or begins to: what it is made of goes to the list of work.
    fn one<'a, 'r>(
        &mut self,
        r: &mut Reader<'r>,
        w: &mut Writer<'_>,
        ty: TypeRef<'a>,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        let (ty, shape, aliases) = ty.resolved_counting();
        self.steps += aliases as usize / ALIASES_PER_STEP;
        self.shape(r, w, ty, shape, work)
    }

    /// The same for a type that has been taken apart, and is none that is named by a typedef.
    #[inline]
    fn shape<'a, 'r>(
        &mut self,
        r: &mut Reader<'r>,
        w: &mut Writer<'_>,
        ty: TypeRef<'a>,
        shape: Shape<'a>,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        self.step(r)?;
        match shape {
            Shape::Basic(kind) => self.basic(r, w, kind)?,
            Shape::String { bound } => {
                let text = r.read_str()?;
                in_bound(r, &text, bound)?;
                self.paid += LENGTH_BYTES + text.len();
                w.write_str(&text)?;
            }
            Shape::WString { bound } => {
                let text = r.read_wstr()?;
                in_bound(r, &text, bound)?;
                self.paid += LENGTH_BYTES + text.len();
                w.write_wstr(&text)?;
            }
            Shape::Fixed { digits, .. } => {
                fixed::copy_digits(r, w, digits)?;
                self.paid += usize::from(digits) / 2 + 1;
            }
            Shape::Sequence { element, bound } => {
                let count = r.read_u32()?;
                if bound > 0 && count > bound {
                    return Err(r.malformed(MalformedKind::BoundExceeded).into());
                }
                w.write_u32(count);
                self.paid += LENGTH_BYTES;
                self.elements(r, w, element, count as usize, work)?;
            }
            Shape::Array { element, length } => self.elements(r, w, element, length as usize, work)?,
            Shape::Enum { .. } => {
                copy_label(r, w, ty)?;
                self.paid += LENGTH_BYTES;
            }
            Shape::Struct { kind, id, members, .. } => {
                if kind == TcKind::Except {
                    exception_id(r, w, id)?;
                } else if self.steps > STEPS_PLANLESS
                    && let Some(plan) = self.plan(ty)
                {
                    self.paid += plan.data_bytes();
                    return plan.copy(r, w, 1);
                }
                work.push(Frame::Members { members, next: 0 });
            }
            Shape::Union { discriminator, default, cases, by_label, .. } => {
                let label = copy_label(r, w, discriminator.resolved())?;
                self.paid += 1;
                let case = find_case(cases, by_label, default, label);
                if let Some((_, member)) = case.and_then(|index| cases.get(index)) {
                    work.push(Frame::Elements { element: member, left: 1 });
                }
            }
            Shape::Named { kind: TcKind::ObjRef | TcKind::Component | TcKind::Home, .. } => {
                self.reference(r, w)?;
            }
            Shape::Named { kind: TcKind::AbstractInterface, .. } => {
                let is_reference = r.read_bool()?;
                w.write_bool(is_reference);
                self.paid += 1;
                if is_reference {
                    self.reference(r, w)?;
                } else {
                    self.begin_value(r, w, None, work)?;
                }
            }
            Shape::Value { .. } | Shape::ValueBox { .. } => self.begin_value(r, w, Some(ty), work)?,
            // Local interfaces, native types, types still to be built.
            Shape::Named { .. } | Shape::Placeholder { .. } | Shape::Alias { .. } => {
                return Err(Misuse::BadTypeCode.into());
            }
        }
        Ok(())
    }

    /// Counts the types looked at, and ends a value that is out of proportion to its data.
    fn step(&mut self, r: &Reader<'_>) -> Result<(), Malformed> {
        self.steps += 1;
        if self.steps > self.steps_free + STEPS_PER_BYTE * self.paid {
            return Err(r.malformed(MalformedKind::OutOfProportion));
        }
        Ok(())
    }

    fn basic(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>, kind: TcKind) -> Result<(), CopyError> {
        self.paid += numbers::size(kind);
        match kind {
            TcKind::Null | TcKind::Void => {}
            TcKind::Octet | TcKind::Char => w.write_u8(r.read_u8()?),
            TcKind::Boolean => w.write_bool(r.read_bool()?),
            TcKind::Short | TcKind::UShort => w.write_u16(r.read_u16()?),
            TcKind::Long | TcKind::ULong | TcKind::Float => w.write_u32(r.read_u32()?),
            TcKind::LongLong | TcKind::ULongLong | TcKind::Double => w.write_u64(r.read_u64()?),
            TcKind::LongDouble => copy::<LongDouble>(r, w)?,
            TcKind::WChar => w.write_wchar(r.read_wchar()?)?,
            TcKind::Principal => {
                let length = r.read_u32()? as usize;
                w.write_octets(&r.read_bytes_split(length)?)?;
                self.paid += length;
            }
            TcKind::TypeCode => {
                let type_code = r.get::<TypeCode>()?;
                self.type_code(w, &type_code)?;
            }
            TcKind::Any => {
                let type_code = r.get::<TypeCode>()?;
                self.type_code(w, &type_code)?;
                // Types are known by where they lie in memory, and another may lie there when this one is gone.
                let plans = std::mem::take(&mut self.plans);
                // An `any` has a budget of its own, as it has when it is taken out and sent by itself.
                let budget = (std::mem::take(&mut self.steps), std::mem::take(&mut self.paid));
                nested(r, |r| self.value(r, w, type_code.as_type_ref()))?;
                (self.steps, self.paid) = budget;
                self.plans = plans;
            }
            // The others have parameters and so another shape.
            _ => return Err(Misuse::BadTypeCode.into()),
        }
        Ok(())
    }

    fn type_code(&mut self, w: &mut Writer<'_>, type_code: &TypeCode) -> Result<(), Misuse> {
        let Some(types) = &mut self.types else { return write_type(w, type_code.as_type_ref()) };
        let number = types.iter().position(|known| known == type_code).unwrap_or_else(|| {
            types.push(type_code.clone());
            types.len() - 1
        });
        w.write_u32(number as u32);
        Ok(())
    }

    fn reference(&mut self, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
        self.environment_needed = true;
        self.paid += REFERENCE_BYTES;
        match r.environment() {
            None => copy::<Ior>(r, w),
            Some(environment) => {
                let ior = Ior::unmarshal(r)?;
                environment.pass_reference(ior).marshal(w)?;
                Ok(())
            }
        }
    }

    fn elements<'a, 'r>(
        &mut self,
        r: &mut Reader<'r>,
        w: &mut Writer<'_>,
        element: TypeRef<'a>,
        count: usize,
        work: &mut Vec<Frame<'a>>,
    ) -> Result<(), CopyError> {
        if count == 0 {
            return Ok(()); // a plan costs more than what has been sent for it
        }
        let (element, shape) = element.resolved_shape();
        if let Shape::Basic(kind) = shape
            && numbers::copy(r, w, kind, count)?
        {
            self.paid += count * numbers::size(kind);
            return Ok(());
        }
        if (count >= plan::COUNT_MIN || self.steps > STEPS_PLANLESS)
            && let Some(plan) = self.plan(element)
        {
            plan.copy(r, w, count)?;
            self.paid += count * plan.data_bytes();
            return Ok(());
        }
        match shape {
            // What has no parts need not wait on the list.
            Shape::Basic(_) | Shape::String { .. } | Shape::WString { .. } | Shape::Fixed { .. } => {
                (0..count).try_for_each(|_| self.shape(r, w, element, shape, work))
            }
            _ => {
                work.push(Frame::Elements { element, left: count });
                Ok(())
            }
        }
    }

    fn plan(&mut self, element: TypeRef<'_>) -> Option<Rc<Plan>> {
        self.plans.entry(element.key()).or_insert_with(|| Plan::of(element).map(Rc::new)).clone()
    }
}

fn nested<T>(
    r: &mut Reader<'_>,
    body: impl FnOnce(&mut Reader<'_>) -> Result<T, CopyError>,
) -> Result<T, CopyError> {
    // The reader's own errors are the peer's only; ours go around them.
    let mut failed = None;
    let done = r.nested(|r| Ok(body(r).map_err(|error| failed = Some(error)).ok()))?;
    done.ok_or_else(|| failed.unwrap_or(CopyError::Misuse(Misuse::WrongType)))
}

fn copy<T: Unmarshal + Marshal>(r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    Ok(w.put(&r.get::<T>()?)?)
}

fn in_bound(r: &Reader<'_>, text: &str, bound: u32) -> Result<(), Malformed> {
    // Counted in characters: octets differ between code sets.
    if bound > 0 && text.len() > bound as usize && text.chars().count() > bound as usize {
        return Err(r.malformed(MalformedKind::BoundExceeded));
    }
    Ok(())
}

/// Copies an enumerator or a discriminator and gives it as a label. The type is none that is named by a typedef.
fn copy_label(r: &mut Reader<'_>, w: &mut Writer<'_>, ty: TypeRef<'_>) -> Result<i64, CopyError> {
    let label = read_label(r, ty)?;
    write_label(w, ty, label)?;
    Ok(label)
}

/// Writes a label as the type that was read as one, which is none that is named by a typedef.
pub(crate) fn write_label(w: &mut Writer<'_>, ty: TypeRef<'_>, label: i64) -> Result<(), Misuse> {
    match ty.kind() {
        TcKind::Boolean | TcKind::Char | TcKind::Octet => w.write_u8(label as u8),
        TcKind::Short | TcKind::UShort => w.write_u16(label as u16),
        TcKind::LongLong | TcKind::ULongLong => w.write_i64(label),
        TcKind::WChar => w.write_wchar(char::from_u32(label as u32).unwrap_or_default())?,
        _ => w.write_u32(label as u32),
    }
    Ok(())
}

/// Reads an enumerator or a discriminator as a label.
pub(crate) fn read_label(r: &mut Reader<'_>, ty: TypeRef<'_>) -> Result<i64, CopyError> {
    Ok(match ty.resolved().shape() {
        Shape::Enum { enumerators, .. } => {
            let ordinal = r.read_u32()?;
            if ordinal as usize >= enumerators.len() {
                return Err(r.malformed(MalformedKind::NoSuchEnumerator).into());
            }
            i64::from(ordinal)
        }
        Shape::Basic(kind) => match kind {
            TcKind::Boolean => i64::from(r.read_bool()?),
            TcKind::Char | TcKind::Octet => i64::from(r.read_u8()?),
            TcKind::WChar => i64::from(u32::from(r.read_wchar()?)),
            TcKind::Short => i64::from(r.read_i16()?),
            TcKind::UShort => i64::from(r.read_u16()?),
            TcKind::Long => i64::from(r.read_i32()?),
            TcKind::ULong => i64::from(r.read_u32()?),
            TcKind::LongLong | TcKind::ULongLong => r.read_i64()?,
            _ => return Err(Misuse::BadTypeCode.into()),
        },
        _ => return Err(Misuse::BadTypeCode.into()),
    })
}

/// An exception begins with its repository id. One peer leaves it out, so what stands there is taken for the id only
/// if it is the id, with its length and its end; else it is the first member's. It is written but for that peer.
fn exception_id(r: &mut Reader<'_>, w: &mut Writer<'_>, id: &str) -> Result<(), CopyError> {
    let bare = match r.clone().read_str() {
        Ok(text) if text == id || id.is_empty() => {
            r.read_str()?;
            write_exception_id(w, &text)?;
            false
        }
        _ => {
            write_exception_id(w, id)?;
            true
        }
    };
    // Without an id in its type an exception does not tell.
    if let Some(environment) = r.environment().filter(|_| !id.is_empty()) {
        environment.note_exception_form(bare);
    }
    Ok(())
}

fn write_exception_id(w: &mut Writer<'_>, id: &str) -> Result<(), CopyError> {
    if !w.encoding().bare_exceptions {
        w.write_str(id)?;
    }
    Ok(())
}

/// The index of the case that a label selects.
pub(crate) fn find_case(
    cases: Members<'_>,
    by_label: &[u32],
    default: Option<u32>,
    label: i64,
) -> Option<usize> {
    let found = if by_label.is_empty() {
        (0..cases.len()).find(|&index| default != Some(index as u32) && cases.label(index) == label)
    } else {
        let label_of = |&index: &u32| cases.label(index as usize);
        by_label.binary_search_by_key(&label, label_of).ok().map(|at| by_label[at] as usize)
    };
    found.or(default.map(|index| index as usize))
}
