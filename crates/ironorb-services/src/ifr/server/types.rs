//! Constants, exceptions and the kinds of types.

use ironorb::ifr::corba::{
    AliasDef, ArrayDef, ConstantDef, EnumDef, ExceptionDef, FixedDef, IdlTypeRef, NativeDef, PrimitiveDef,
    PrimitiveKind, SequenceDef, StringDef, StructDef, StructMember, StructMemberSeq, TypedefDef, UnionDef,
    UnionMember, UnionMemberSeq, ValueBoxDef, WstringDef,
};
use ironorb::{Any, SystemException, TypeCode};

use super::container::bounded;
use super::definition::Definition;
use super::fault::Fault;
use crate::ifr::record::Body;
use crate::ifr::values::label_any;

/// Reads a field of one kind of body, if the body is of this kind.
macro_rules! part {
    ($variant:ident { $field:ident }) => {
        |body| match body {
            Body::$variant { $field, .. } => Some($field.clone()),
            _ => None,
        }
    };
}

/// Borrows a field of one kind of body for changes.
macro_rules! place {
    ($variant:ident { $field:ident }) => {
        |body| match body {
            Body::$variant { $field, .. } => Some($field),
            _ => None,
        }
    };
}

/// Sets a field of one kind of body.
macro_rules! set {
    ($self:ident, $variant:ident { $field:ident } = $value:expr) => {{
        let value = $value;
        $self.edit(|record| match &mut record.body {
            Body::$variant { $field, .. } => {
                *$field = value;
                Some(())
            }
            _ => None,
        })
    }};
}

impl TypedefDef for Definition {}

impl NativeDef for Definition {}

impl ConstantDef for Definition {
    fn type_(&self) -> Result<TypeCode, SystemException> {
        self.type_of(part!(Constant { ty }))
    }

    fn type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(Constant { ty }))
    }

    fn set_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(Constant { ty }))
    }

    fn value(&self) -> Result<Any, SystemException> {
        self.body(part!(Constant { value }))
    }

    fn set_value(&self, new: &Any) -> Result<(), SystemException> {
        set!(self, Constant { value } = new.clone())
    }
}

impl StructDef for Definition {
    fn members(&self) -> Result<StructMemberSeq, SystemException> {
        self.read(|view, record| match &record.body {
            Body::Struct { members } | Body::Pair { members } => self.shared.members(view, members),
            _ => Err(Fault::other_kind()),
        })
    }

    fn set_members(&self, value: &[StructMember]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.members_of(value))?;
        set!(self, Struct { members } = new)
    }
}

impl ExceptionDef for Definition {
    fn type_(&self) -> Result<TypeCode, SystemException> {
        self.read(|view, _| Ok(view.type_code(self.number)?))
    }

    fn members(&self) -> Result<StructMemberSeq, SystemException> {
        self.read(|view, record| match &record.body {
            Body::Exception { members } => self.shared.members(view, members),
            _ => Err(Fault::other_kind()),
        })
    }

    fn set_members(&self, value: &[StructMember]) -> Result<(), SystemException> {
        let new = self.shared.answer(self.members_of(value))?;
        set!(self, Exception { members } = new)
    }
}

impl UnionDef for Definition {
    fn discriminator_type(&self) -> Result<TypeCode, SystemException> {
        self.type_of(part!(Union { discriminator }))
    }

    fn discriminator_type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(Union { discriminator }))
    }

    fn set_discriminator_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(Union { discriminator }))
    }

    fn members(&self) -> Result<UnionMemberSeq, SystemException> {
        self.read(|view, record| {
            let Body::Union { discriminator, cases } = &record.body else { return Err(Fault::other_kind()) };
            let discriminator = view.type_code(*discriminator)?;
            let mut members = Vec::new();
            for case in cases {
                members.push(UnionMember {
                    name: case.name.clone(),
                    label: label_any(&discriminator, (!case.is_default).then_some(case.label))?,
                    type_: view.type_code(case.ty)?,
                    type_def: Some(self.shared.reference_in(view, case.ty)?),
                });
            }
            Ok(members)
        })
    }

    fn set_members(&self, value: &[UnionMember]) -> Result<(), SystemException> {
        let discriminator = self.body(part!(Union { discriminator }))?;
        let new = self.shared.answer(self.cases_of(discriminator, value))?;
        set!(self, Union { cases } = new)
    }
}

impl EnumDef for Definition {
    fn members(&self) -> Result<Vec<String>, SystemException> {
        self.body(part!(Enum { enumerators }))
    }

    fn set_members(&self, value: &[String]) -> Result<(), SystemException> {
        set!(self, Enum { enumerators } = value.to_vec())
    }
}

impl AliasDef for Definition {
    fn original_type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(Alias { original }))
    }

    fn set_original_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(Alias { original }))
    }
}

impl ValueBoxDef for Definition {
    fn original_type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(ValueBox { original }))
    }

    fn set_original_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(ValueBox { original }))
    }
}

impl PrimitiveDef for Definition {
    fn kind(&self) -> Result<PrimitiveKind, SystemException> {
        self.body(part!(Primitive { kind }))
    }
}

impl StringDef for Definition {
    fn bound(&self) -> Result<u32, SystemException> {
        self.body(part!(String { bound }))
    }

    fn set_bound(&self, value: u32) -> Result<(), SystemException> {
        let bound = self.shared.answer(bounded(value))?;
        set!(self, String { bound } = bound)
    }
}

impl WstringDef for Definition {
    fn bound(&self) -> Result<u32, SystemException> {
        self.body(part!(WString { bound }))
    }

    fn set_bound(&self, value: u32) -> Result<(), SystemException> {
        let bound = self.shared.answer(bounded(value))?;
        set!(self, WString { bound } = bound)
    }
}

impl FixedDef for Definition {
    fn digits(&self) -> Result<u16, SystemException> {
        self.body(part!(Fixed { digits }))
    }

    fn set_digits(&self, value: u16) -> Result<(), SystemException> {
        set!(self, Fixed { digits } = value)
    }

    fn scale(&self) -> Result<i16, SystemException> {
        self.body(part!(Fixed { scale }))
    }

    fn set_scale(&self, value: i16) -> Result<(), SystemException> {
        set!(self, Fixed { scale } = value)
    }
}

impl SequenceDef for Definition {
    fn bound(&self) -> Result<u32, SystemException> {
        self.body(part!(Sequence { bound }))
    }

    fn set_bound(&self, value: u32) -> Result<(), SystemException> {
        set!(self, Sequence { bound } = value)
    }

    fn element_type(&self) -> Result<TypeCode, SystemException> {
        self.type_of(part!(Sequence { element }))
    }

    fn element_type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(Sequence { element }))
    }

    fn set_element_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(Sequence { element }))
    }
}

impl ArrayDef for Definition {
    fn length(&self) -> Result<u32, SystemException> {
        self.body(part!(Array { length }))
    }

    fn set_length(&self, value: u32) -> Result<(), SystemException> {
        if value == 0 {
            return self.shared.answer(Err(Fault::bad_param("an array has one element at least")));
        }
        set!(self, Array { length } = value)
    }

    fn element_type(&self) -> Result<TypeCode, SystemException> {
        self.type_of(part!(Array { element }))
    }

    fn element_type_def(&self) -> Result<Option<IdlTypeRef>, SystemException> {
        self.part(part!(Array { element }))
    }

    fn set_element_type_def(&self, value: Option<&IdlTypeRef>) -> Result<(), SystemException> {
        self.edit_type(value, place!(Array { element }))
    }
}
