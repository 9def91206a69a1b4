//! The servants of elements of extents: those of `idl/extents.idl`.

use ironorb::cache::CellRef;
use ironorb::{ElementCells, Extent, SystemException, WString};

use crate::extents::{Counter, Dial, DialState, Lamp, LampState, Line, LineState, Mark, Sensor, SensorState};

/// Serves all lines of an extent: an element is the carrier, and 1,000 more while the line is busy.
pub struct Lines(pub ElementCells<i32, LineState>);

impl From<&i32> for LineState {
    fn from(element: &i32) -> LineState {
        LineState { carrier: element % 1_000, is_busy: *element >= 1_000 }
    }
}

impl Line for Lines {
    fn cell(&self) -> CellRef<'_, LineState> {
        self.0.current()
    }

    fn move_to(&self, carrier: i32) -> Result<(), SystemException> {
        self.0.extent().current()?.update(|element| *element = *element / 1_000 * 1_000 + carrier)
    }
}

/// Serves all lamps of an extent.
pub struct Lamps(pub ElementCells<i32, LampState>);

impl From<&i32> for LampState {
    fn from(element: &i32) -> LampState {
        LampState { level: *element }
    }
}

impl Lamp for Lamps {
    fn cell(&self) -> CellRef<'_, LampState> {
        self.0.current()
    }
}

/// Serves all sensors of an extent: an element has the bits of a reading.
pub struct Sensors(pub ElementCells<u64, SensorState>);

impl From<&u64> for SensorState {
    fn from(element: &u64) -> SensorState {
        SensorState { reading: f64::from_bits(*element) }
    }
}

impl Sensor for Sensors {
    fn cell(&self) -> CellRef<'_, SensorState> {
        self.0.current()
    }
}

/// Serves all dials of an extent: an element has the bits of what is shown.
pub struct Dials(pub ElementCells<u64, DialState>);

impl From<&u64> for DialState {
    fn from(element: &u64) -> DialState {
        let shown = Mark { at: f64::from_bits(*element), unit: "bar".to_owned() };
        DialState { shown, label: WString("press\u{f6}r".to_owned()) }
    }
}

impl Dial for Dials {
    fn cell(&self) -> CellRef<'_, DialState> {
        self.0.current()
    }
}

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
