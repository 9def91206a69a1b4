//! Copies values from one encoding to another, directed by their TypeCode. This is the interpreter beneath
//! [`Any`](super::Any). Programs use it for values of types unknown at compile time.
//!
//! Nothing here builds a value in memory. Data of a peer is checked while it is copied. Lengths are checked
//! against the end of the data; bounds, enumerators and labels against the type; nesting by the reader. A
//! budget limits the work, because a type can have any number of values without bytes. The budget grows with
//! the data of the value. Padding, byte order, code sets and the form of TypeCodes do not count. So an
//! accepted value is accepted again at every position and in every encoding.

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

/// Copies one value of the type `type_code`. Converts all that differs between the encodings of reader and
/// writer: byte order, alignment, the GIOP version's wide characters, the code set of strings. Padding is
/// written as zeros.
///
/// After an error the positions of reader and writer are undefined.
pub fn copy_value(r: &mut Reader<'_>, w: &mut Writer<'_>, type_code: &TypeCode) -> Result<(), CopyError> {
    Copy::new().value(r, w, type_code.as_type_ref())
}

/// Copies values that have been copied before and so have passed the check of their size. The types given to
/// it must outlive it.
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

/// Copies one value that has been copied before. Returns true if references or values inside need an
/// environment to be extracted.
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
    /// The value cannot be written in the writer's encoding, or the type has no values on the wire.
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

/// The state while one value is copied.
pub(super) struct Copy<'t> {
    /// The reader's position after its last jump.
    start: usize,
    /// Number of types visited so far.
    steps: usize,
    /// Number of types that may be visited before anything is read.
    steps_free: usize,
    /// Octets of data copied so far, each of which allows more steps. A number counts with its size, a string
    /// with its length in UTF-8; lengths, tags and labels count as numbers. Padding, repository ids and
    /// TypeCodes do not count.
    paid: usize,
    /// Whether the copied value needs an environment to be extracted.
    pub(super) environment_needed: bool,
    /// Start positions of values, in the input and in the output.
    values: Places,
    /// Number of open values that stand in the message before the copied value.
    outside: usize,
    /// Results for type information that several values share, by its position.
    type_infos: BTreeMap<usize, TypeInfo>,
    /// The id of a type whose value had no type information, and where the id was written.
    assumed: Option<(String, WrittenIds)>,
    /// Flat forms of element types; `None` for a type that has none.
    plans: BTreeMap<TypeKey, Option<Rc<Plan>>>,
    /// For comparing two copies: TypeCodes are written as their numbers in this table, in which equal ones
    /// have one entry.
    pub(super) types: Option<&'t mut Vec<TypeCode>>,
}

/// Work that is still to be done.
enum Frame<'a> {
    Members {
        members: Members<'a>,
        next: usize,
    },
    /// The elements of a sequence or array, the selected case of a union, or the content of a value box.
    Elements {
        element: TypeRef<'a>,
        left: usize,
    },
    /// The end of a value, after its state.
    Value(OpenCopy),
    /// The end of a value that stands in the message before the copied value.
    Outside(Box<Bookmark>),
}

/// Number of steps that a value of any size may take, and number of further steps for each octet of its data.
/// Honest values take about one step for each member, and few members have less than four bytes.
const STEPS_FREE: usize = 256;
const STEPS_PER_BYTE: usize = 8;

/// Bytes for which a length, an enumerator or the tag of a value counts.
const LENGTH_BYTES: usize = 4;

/// Bytes for which an object reference of any contents counts: the size of a nil reference.
const REFERENCE_BYTES: usize = 12;

/// Number of nested typedefs resolved in one step. Real data has fewer, so typedefs cost it no step.
const ALIASES_PER_STEP: usize = 8;

/// Number of steps after which a value counts as large. Then single structs get plans too, because the next
/// struct is likely to be of the same type.
const STEPS_PLANLESS: usize = 64;

impl<'t> Copy<'t> {
    /// The state for one value of a peer.
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

    /// The state for values that have been copied before; it has no limit on steps.
    pub(super) fn trusted() -> Self {
        Copy { steps_free: usize::MAX / 2, ..Copy::new() }
    }

    /// Copies one value. Nested work goes to a list and not on the stack, because a linked list of values is
    /// as deep as it is long.
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

    /// Copies a value or begins to: its members or elements go to the list of work.
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

    /// Copies a value of a resolved type, which is not an alias, or begins to: its members or elements go to
    /// the list of work.
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
            // Local interfaces, native types, incomplete types.
            Shape::Named { .. } | Shape::Placeholder { .. } | Shape::Alias { .. } => {
                return Err(Misuse::BadTypeCode.into());
            }
        }
        Ok(())
    }

    /// Counts a visited type. An error when the value takes too many steps for its data.
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
                // Plans are found by the address of a type. Another type may have that address after this one
                // is dropped.
                let plans = std::mem::take(&mut self.plans);
                // An `any` has a budget of its own, so that it is also accepted when it is extracted and sent
                // by itself.
                let budget = (std::mem::take(&mut self.steps), std::mem::take(&mut self.paid));
                nested(r, |r| self.value(r, w, type_code.as_type_ref()))?;
                (self.steps, self.paid) = budget;
                self.plans = plans;
            }
            // All other kinds have parameters and so another shape.
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
            return Ok(()); // an empty sequence does not pay for a plan
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
            // Values without parts need not go to the list.
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
    // The reader's nesting passes on only the peer's errors, so errors of the caller bypass it.
    let mut failed = None;
    let done = r.nested(|r| Ok(body(r).map_err(|error| failed = Some(error)).ok()))?;
    done.ok_or_else(|| failed.unwrap_or(CopyError::Misuse(Misuse::WrongType)))
}

fn copy<T: Unmarshal + Marshal>(r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    Ok(w.put(&r.get::<T>()?)?)
}

fn in_bound(r: &Reader<'_>, text: &str, bound: u32) -> Result<(), Malformed> {
    // The bound counts characters: the number of octets depends on the code set.
    if bound > 0 && text.len() > bound as usize && text.chars().count() > bound as usize {
        return Err(r.malformed(MalformedKind::BoundExceeded));
    }
    Ok(())
}

/// Copies an enumerator or a discriminator and returns it as a label. The type must not be an alias.
fn copy_label(r: &mut Reader<'_>, w: &mut Writer<'_>, ty: TypeRef<'_>) -> Result<i64, CopyError> {
    let label = read_label(r, ty)?;
    write_label(w, ty, label)?;
    Ok(label)
}

/// Writes a label as a value of the type that it was read as. The type must not be an alias.
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

/// Copies the repository id with which an exception begins. One peer leaves it out. So the data counts as the
/// id only if it equals the id, with its length and its end; else it is the first member's. The id is written
/// except for that peer.
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
    // An exception whose type has no id cannot be checked for it.
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
