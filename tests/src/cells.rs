//! Servants with cells: those of `idl/cached.idl`.

use ironorb::cache::{CachedState, Cell, CellRef};
use ironorb::{Reply, SystemException};

use crate::cached::{
    Address, Counter, CounterState, DeferredMeter, Gauge, GaugeState, Lever, LeverState, Meter, MeterState,
    Person, PersonState, Tariff, TariffState, gauge,
};

/// A meter.
pub struct Counting {
    /// Its state.
    pub cell: Cell<MeterState>,
    /// What it adds to when it is to add elsewhere.
    pub other: Option<Cell<MeterState>>,
}

impl Default for Counting {
    fn default() -> Self {
        Counting { cell: Cell::new(MeterState { value: 0, factor: 1.0 }), other: None }
    }
}

impl Meter for Counting {
    fn cell(&self) -> CellRef<'_, MeterState> {
        (&self.cell).into()
    }

    fn set_factor(&self, value: f64) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_factor(value));
        Ok(())
    }

    fn place(&self) -> Result<String, SystemException> {
        Ok("cellar".to_owned())
    }

    fn add(&self, amount: i32) -> Result<(), SystemException> {
        self.cell.update(|mut state| *state.value_mut() += amount);
        Ok(())
    }

    fn add_later(&self, amount: i32) -> Result<(), SystemException> {
        Meter::add(self, amount)
    }

    fn add_elsewhere(&self, amount: i32) -> Result<(), SystemException> {
        if let Some(other) = &self.other {
            other.update(|mut state| *state.value_mut() += amount);
        }
        Ok(())
    }
}

/// Answers from other threads, after its upcalls.
impl DeferredMeter for Counting {
    fn cell(&self) -> CellRef<'_, MeterState> {
        (&self.cell).into()
    }

    fn set_factor(&self, value: f64, reply: Reply<(), SystemException>) {
        let cell = self.cell.clone();
        std::thread::spawn(move || {
            cell.update(|mut state| state.set_factor(value));
            reply.send(Ok(()));
        });
    }

    fn place(&self, reply: Reply<String, SystemException>) {
        reply.send(Meter::place(self));
    }

    fn add(&self, amount: i32, reply: Reply<(), SystemException>) {
        let cell = self.cell.clone();
        std::thread::spawn(move || {
            cell.update(|mut state| *state.value_mut() += amount);
            reply.send(Ok(()));
        });
    }

    fn add_later(&self, amount: i32) {
        let cell = self.cell.clone();
        std::thread::spawn(move || cell.update(|mut state| *state.value_mut() += amount));
    }

    fn add_elsewhere(&self, amount: i32, reply: Reply<(), SystemException>) {
        reply.send(Meter::add_elsewhere(self, amount));
    }
}

/// A person.
pub struct Living {
    /// Its state.
    pub cell: Cell<PersonState>,
}

impl Default for Living {
    fn default() -> Self {
        let home = Address { street: "Main Street".to_owned(), number: 1 };
        Living { cell: Cell::new(PersonState { name: "Ada".to_owned(), home }) }
    }
}

impl Person for Living {
    fn cell(&self) -> CellRef<'_, PersonState> {
        (&self.cell).into()
    }

    fn set_name(&self, value: &str) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_name(value.to_owned()));
        Ok(())
    }

    fn move_to(&self, home: &Address) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_home(home.clone()));
        Ok(())
    }
}

/// A tariff, with a cell for each of its interfaces.
pub struct Pricing {
    /// What it is as a meter.
    pub meter: Counting,
    /// Its state.
    pub cell: Cell<TariffState>,
}

impl Default for Pricing {
    fn default() -> Self {
        Pricing { meter: Counting::default(), cell: Cell::new(TariffState { price: 7 }) }
    }
}

impl Meter for Pricing {
    fn cell(&self) -> CellRef<'_, MeterState> {
        Meter::cell(&self.meter)
    }

    fn set_factor(&self, value: f64) -> Result<(), SystemException> {
        Meter::set_factor(&self.meter, value)
    }

    fn place(&self) -> Result<String, SystemException> {
        Meter::place(&self.meter)
    }

    fn add(&self, amount: i32) -> Result<(), SystemException> {
        Meter::add(&self.meter, amount)
    }

    fn add_later(&self, amount: i32) -> Result<(), SystemException> {
        Meter::add_later(&self.meter, amount)
    }

    fn add_elsewhere(&self, amount: i32) -> Result<(), SystemException> {
        Meter::add_elsewhere(&self.meter, amount)
    }
}

impl Tariff for Pricing {
    fn cell(&self) -> CellRef<'_, TariffState> {
        (&self.cell).into()
    }

    fn set_price(&self, price: u16) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_price(price));
        Ok(())
    }
}

/// What has a cell and nothing else.
pub struct Holding<S: CachedState> {
    /// Its state.
    pub cell: Cell<S>,
}

impl<S: CachedState> Holding<S> {
    /// An object with this state, and its cell.
    pub fn new(state: S) -> (Self, Cell<S>) {
        let cell = Cell::new(state);
        (Holding { cell: cell.clone() }, cell)
    }
}

impl Gauge for Holding<GaugeState> {
    fn cell(&self) -> CellRef<'_, GaugeState> {
        (&self.cell).into()
    }

    fn set_value(&self, value: i32) -> Result<(), SystemException> {
        self.cell.update(|mut state| {
            state.set_value(value);
            state.set_text(value.to_string());
        });
        Ok(())
    }
}

impl gauge::Reads for GaugeState {
    fn is_over(&self, limit: i32) -> bool {
        RUNS.set(RUNS.get() + 1);
        self.value > limit
    }

    fn described(&self, unit: &str) -> String {
        assert_eq!(self.text, self.value.to_string(), "a function never sees two versions");
        format!("{} {unit}", self.text)
    }
}

thread_local! {
    /// How often this thread has run `is_over`.
    pub static RUNS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

impl Lever for Holding<LeverState> {
    fn cell(&self) -> CellRef<'_, LeverState> {
        (&self.cell).into()
    }

    fn set_value(&self, value: i32) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_value(value));
        Ok(())
    }
}

impl Counter for Holding<CounterState> {
    fn cell(&self) -> CellRef<'_, CounterState> {
        (&self.cell).into()
    }

    fn set_value(&self, value: i32) -> Result<(), SystemException> {
        self.cell.update(|mut state| {
            state.set_value(value);
            state.set_twice(2 * value);
        });
        Ok(())
    }
}
