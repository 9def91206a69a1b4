//! Finds structs whose memory layout equals their layout on the wire, if Rust keeps their members in order.
//!
//! The answer is no in case of doubt. A wrong yes does no harm: the support module compares it with the
//! compiler's layout.

use ironorb_idl::model::{Basic, DefId, DefKind, Model, Struct, Type};

use crate::config::Config;
use crate::marshalling::{Way, Ways};

/// Whether a struct should be laid out in memory as on the wire, which speeds up sequences of it.
pub(crate) fn is_as_on_the_wire(model: &Model, config: &Config, ways: &Ways, id: DefId) -> bool {
    let wire = Wire { model, config, ways };
    wire.of_definition(id, 0).is_some_and(|image| image.is_as_on_the_wire())
}

struct Wire<'m> {
    model: &'m Model,
    config: &'m Config,
    ways: &'m Ways,
}

/// The positions of the numbers in a value, in C's layout.
#[derive(Debug, Default)]
struct Image {
    numbers: Vec<Numbers>,
    size: usize,
    alignment: usize,
}

/// A number of values of one size, one behind the other.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    at: usize,
    bytes: usize,
    count: usize,
}

/// The most runs of numbers and the most bytes of a struct that the support module checks.
const RUNS_MAX: usize = 32;
const BYTES_MAX: usize = 512;

/// The deepest nesting of structs that is followed, as a bound.
const DEPTH_MAX: usize = 16;

impl Wire<'_> {
    fn of_definition(&self, id: DefId, depth: usize) -> Option<Image> {
        match &self.model.get(id).kind {
            DefKind::Typedef(typedef) => self.of(&typedef.ty, depth + 1),
            DefKind::Struct(s)
                if self.ways.of_definition(id) == Way::Compiled
                    && self.config.external_of(self.model, id).is_none() =>
            {
                self.of_struct(s, depth)
            }
            _ => None,
        }
    }

    fn of_struct(&self, s: &Struct, depth: usize) -> Option<Image> {
        let mut image = Image { alignment: 1, ..Image::default() };
        for member in &s.members {
            image.add(self.of(&member.ty, depth + 1)?)?;
        }
        if image.numbers.is_empty() {
            return None;
        }
        image.size = image.size.next_multiple_of(image.alignment);
        Some(image)
    }

    fn of(&self, ty: &Type, depth: usize) -> Option<Image> {
        if depth > DEPTH_MAX {
            return None;
        }
        let bytes = match ty {
            Type::Basic(Basic::Char | Basic::Octet | Basic::Int8 | Basic::UInt8) => 1,
            Type::Basic(Basic::Short | Basic::UShort) => 2,
            Type::Basic(Basic::Long | Basic::ULong | Basic::Float) => 4,
            Type::Basic(Basic::LongLong | Basic::ULongLong | Basic::Double) => 8,
            Type::Array { element, dimensions } => {
                let element = self.of(element, depth + 1)?;
                let count = dimensions.iter().try_fold(1usize, |all, &n| all.checked_mul(n as usize))?;
                return element.times(count);
            }
            Type::Named(id) => return self.of_definition(*id, depth),
            _ => return None,
        };
        Some(Image { numbers: vec![Numbers { at: 0, bytes, count: 1 }], size: bytes, alignment: bytes })
    }
}

impl Image {
    /// Has another behind it.
    fn add(&mut self, next: Image) -> Option<()> {
        let offset = self.size.next_multiple_of(next.alignment);
        self.numbers.extend(next.numbers.into_iter().map(|run| Numbers { at: offset + run.at, ..run }));
        self.size = offset + next.size;
        self.alignment = self.alignment.max(next.alignment);
        (self.numbers.len() <= RUNS_MAX && self.size <= BYTES_MAX).then_some(())
    }

    fn times(self, count: usize) -> Option<Image> {
        if let [numbers] = self.numbers[..]
            && numbers.bytes * numbers.count == self.size
        {
            let count = numbers.count.checked_mul(count)?;
            let size = numbers.bytes.checked_mul(count).filter(|&size| size <= BYTES_MAX)?;
            return Some(Image { numbers: vec![Numbers { count, ..numbers }], size, ..self });
        }
        let mut all = Image { alignment: 1, ..Image::default() };
        for _ in 0..count {
            all.add(Image { numbers: self.numbers.clone(), ..self })?;
        }
        Some(all)
    }

    /// Whether CDR puts the numbers of consecutive values at the same positions.
    fn is_as_on_the_wire(&self) -> bool {
        let mut end = 0usize;
        for run in &self.numbers {
            if end.next_multiple_of(run.bytes) != run.at {
                return false;
            }
            end = run.at + run.bytes * run.count;
        }
        self.numbers.first().is_some_and(|first| end.next_multiple_of(first.bytes) == self.size)
    }
}
