//! `get_canonical_typecode`: converts a client's form of a type to the repository's form.

use ironorb::giop::typecode::{BadType, UnionCase, ValueMember};
use ironorb::{TcKind, TypeCode};

use super::{ANSWER_VISITS_MAX, TypeCodes};
use crate::ifr::error::RepositoryError;
use crate::ifr::queries::existing;
use crate::ifr::record::Body;
use crate::ifr::store::Lookup;

/// The repository's form of a type. A type that the repository does not know, or that has no id, is made anew
/// from its parts in the repository's form.
pub(in crate::ifr) fn canonical(lookup: &impl Lookup, tc: &TypeCode) -> Result<TypeCode, RepositoryError> {
    let known = TypeCodes::new(lookup, ANSWER_VISITS_MAX);
    Canonical { known, path: Vec::new(), visits_left: super::TYPE_VISITS_MAX }.of(tc)
}

struct Canonical<'l, L> {
    known: TypeCodes<'l, L>,
    /// The ids of the unknown types in progress, outermost first.
    path: Vec<String>,
    visits_left: usize,
}

impl<L: Lookup> Canonical<'_, L> {
    fn of(&mut self, tc: &TypeCode) -> Result<TypeCode, RepositoryError> {
        let too_many = RepositoryError::Limit { what: "parts of types", max: super::TYPE_VISITS_MAX as u64 };
        self.visits_left = self.visits_left.checked_sub(1).ok_or(too_many)?;
        let id = tc.id().unwrap_or_default();
        if !id.is_empty() {
            if let Some(number) = self.known.lookup().by_id(id)? {
                let body = existing(self.known.lookup(), number)?.body;
                if body.is_type() || matches!(body, Body::Exception { .. }) {
                    return self.known.of(number);
                }
            }
            if self.path.iter().any(|above| above == id) {
                return Ok(TypeCode::recursive(id)?);
            }
        }
        if self.path.len() >= super::DEPTH_MAX {
            return Err(BadType::TooDeep.into());
        }
        // Types without an id count for the depth only.
        self.path.push(id.to_owned());
        let made = self.anew(id, tc);
        self.path.pop();
        made
    }

    fn anew(&mut self, id: &str, tc: &TypeCode) -> Result<TypeCode, RepositoryError> {
        let name = tc.name().unwrap_or_default();
        let count = tc.member_count().unwrap_or_default();
        Ok(match tc.kind() {
            TcKind::Sequence => TypeCode::create_sequence(&self.content(tc)?, length(tc)?)?,
            TcKind::Array => TypeCode::create_array(&self.content(tc)?, length(tc)?)?,
            TcKind::Alias => TypeCode::create_alias(id, name, &self.content(tc)?)?,
            TcKind::ValueBox => TypeCode::create_value_box(id, name, &self.content(tc)?)?,
            TcKind::Struct => TypeCode::create_struct(id, name, &self.members(tc, count)?)?,
            TcKind::Except => TypeCode::create_exception(id, name, &self.members(tc, count)?)?,
            TcKind::Union => {
                let discriminator = self.of(&tc.discriminator_type().map_err(not_its_own)?)?;
                let labels = (0..count).map(|index| tc.member_label(index)).collect::<Result<Vec<_>, _>>();
                let members = self.members(tc, count)?.into_iter().zip(labels.map_err(not_its_own)?);
                let cases = members.map(|((name, type_code), label)| UnionCase {
                    label,
                    name: name.to_owned(),
                    type_code,
                });
                TypeCode::create_union(id, name, &discriminator, &cases.collect::<Vec<_>>())?
            }
            TcKind::Value => {
                let base = tc.concrete_base_type().map_err(not_its_own)?;
                let base = base.map(|base| self.of(&base)).transpose()?;
                let access =
                    (0..count).map(|index| tc.member_visibility(index)).collect::<Result<Vec<_>, _>>();
                let members = self.members(tc, count)?.into_iter().zip(access.map_err(not_its_own)?);
                let members = members.map(|((name, type_code), visibility)| ValueMember {
                    name: name.to_owned(),
                    type_code,
                    visibility,
                });
                let modifier = tc.type_modifier().map_err(not_its_own)?;
                TypeCode::create_value(id, name, modifier, base.as_ref(), &members.collect::<Vec<_>>())?
            }
            _ => tc.clone(),
        })
    }

    fn content(&mut self, tc: &TypeCode) -> Result<TypeCode, RepositoryError> {
        self.of(&tc.content_type().map_err(not_its_own)?)
    }

    fn members<'t>(
        &mut self,
        tc: &'t TypeCode,
        count: u32,
    ) -> Result<Vec<(&'t str, TypeCode)>, RepositoryError> {
        let member = |index| {
            let name = tc.member_name(index).map_err(not_its_own)?;
            Ok((name, self.of(&tc.member_type(index).map_err(not_its_own)?)?))
        };
        (0..count).map(member).collect()
    }
}

fn length(tc: &TypeCode) -> Result<u32, RepositoryError> {
    tc.length().map_err(not_its_own)
}

/// The error for a TypeCode that lacks a part which its kind or count requires.
fn not_its_own(e: impl std::fmt::Display) -> RepositoryError {
    crate::ifr::error::bad_param(format!("the TypeCode contradicts itself: {e}"))
}
