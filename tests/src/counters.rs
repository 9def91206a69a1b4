//! The servant of the elements of an extent: that of `idl/extents.idl`.

use ironorb::{Extent, SystemException};

use crate::extents::Counter;

/// Serves all counters of an extent.
pub struct Counters(pub Extent<i64>);

impl Counter for Counters {
    fn value(&self) -> Result<i64, SystemException> {
        self.0.current()?.read(|count| *count)
    }

    fn place(&self) -> Result<u64, SystemException> {
        Ok(self.0.current()?.index())
    }

    fn add(&self, amount: i64) -> Result<i64, SystemException> {
        self.0.current()?.update(|count| {
            *count += amount;
            *count
        })
    }

    fn again(&self) -> Result<(), SystemException> {
        let element = self.0.current()?;
        element.update(|_| element.read(|_| ()))?
    }

    fn end(&self) -> Result<(), SystemException> {
        self.0.current()?.destroy()
    }
}
