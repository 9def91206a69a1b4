//! The servants of `probe.idl`.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex};

use ironorb::poa::PoaCurrent;
use ironorb::{CompletionStatus, MinorCode, SystemException, SystemExceptionKind, TypedRef};

use crate::testing::{self, Probe, ProbeRef};

/// Serves `Probe`.
#[derive(Debug, Default)]
pub struct Probing {
    ticks: AtomicU32,
    label: Mutex<String>,
    /// The number of blocked calls, and of releases.
    gate: Mutex<(u32, u32)>,
    opened: Condvar,
}

impl Probe for Probing {
    fn ticks(&self) -> Result<u32, SystemException> {
        Ok(self.ticks.load(Ordering::SeqCst))
    }

    fn label(&self) -> Result<String, SystemException> {
        Ok(self.label.lock().unwrap().clone())
    }

    fn set_label(&self, value: &str) -> Result<(), SystemException> {
        *self.label.lock().unwrap() = value.to_owned();
        Ok(())
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    fn echo(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned())
    }

    fn reflect(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn shorten(&self, text: &str) -> Result<String, SystemException> {
        Ok(text.to_owned()) // a text that exceeds the bound shows that results are checked
    }

    fn refuse(&self, why: &str) -> Result<(), testing::probe::RefuseError> {
        Err(testing::Refused { why: why.to_owned() }.into())
    }

    fn raise_system(&self, minor: u32) -> Result<(), SystemException> {
        Err(SystemException::new(SystemExceptionKind::NoPermission, MinorCode(minor), CompletionStatus::Yes))
    }

    fn fall_over(&self) -> Result<(), SystemException> {
        panic!("as asked")
    }

    fn tick(&self) -> Result<(), SystemException> {
        self.ticks.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn block(&self) -> Result<(), SystemException> {
        let mut gate = self.gate.lock().unwrap();
        gate.0 += 1;
        let round = gate.1;
        while gate.1 == round {
            gate = self.opened.wait(gate).unwrap();
        }
        gate.0 -= 1;
        Ok(())
    }

    fn release(&self) -> Result<(), SystemException> {
        self.gate.lock().unwrap().1 += 1;
        self.opened.notify_all();
        Ok(())
    }

    fn blocked(&self) -> Result<u32, SystemException> {
        Ok(self.gate.lock().unwrap().0)
    }

    fn whoami(&self) -> Result<String, SystemException> {
        let id = PoaCurrent.object_id().ok_or_else(ironorb::nil_reference)?;
        Ok(String::from_utf8_lossy(id.as_bytes()).into_owned())
    }

    fn itself(&self) -> Result<Option<ProbeRef>, SystemException> {
        Ok(PoaCurrent.reference().map(ProbeRef::from_object))
    }

    fn is_same(&self, other: Option<&ProbeRef>) -> Result<bool, SystemException> {
        let own = PoaCurrent.reference().ok_or_else(ironorb::nil_reference)?;
        Ok(other.is_some_and(|other| other.object().is_equivalent(&own)))
    }
}

/// What `ping` of a [`Hooked`] servant does.
pub type Hook = Box<dyn Fn() -> Result<(), SystemException> + Send + Sync>;

/// Serves `Probe` by a [`Probing`], except for `ping`, which runs code of the test within the upcall.
pub struct Hooked {
    /// Serves all operations but `ping`.
    pub probing: Probing,
    /// Serves `ping`.
    pub on_ping: Hook,
}

impl Hooked {
    /// A servant whose `ping` calls `on_ping`.
    pub fn new(on_ping: impl Fn() -> Result<(), SystemException> + Send + Sync + 'static) -> Self {
        Hooked { probing: Probing::default(), on_ping: Box::new(on_ping) }
    }
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hooked").field("probing", &self.probing).finish_non_exhaustive()
    }
}

#[rustfmt::skip]
impl Probe for Hooked {
    fn ticks(&self) -> Result<u32, SystemException> { self.probing.ticks() }
    fn label(&self) -> Result<String, SystemException> { self.probing.label() }
    fn set_label(&self, value: &str) -> Result<(), SystemException> { self.probing.set_label(value) }
    fn ping(&self) -> Result<(), SystemException> { (self.on_ping)() }
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> { self.probing.add(a, b) }
    fn echo(&self, text: &str) -> Result<String, SystemException> { self.probing.echo(text) }
    fn reflect(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> { self.probing.reflect(data) }
    fn shorten(&self, text: &str) -> Result<String, SystemException> { self.probing.shorten(text) }
    fn refuse(&self, why: &str) -> Result<(), testing::probe::RefuseError> { self.probing.refuse(why) }
    fn raise_system(&self, minor: u32) -> Result<(), SystemException> { self.probing.raise_system(minor) }
    fn fall_over(&self) -> Result<(), SystemException> { self.probing.fall_over() }
    fn tick(&self) -> Result<(), SystemException> { self.probing.tick() }
    fn block(&self) -> Result<(), SystemException> { self.probing.block() }
    fn release(&self) -> Result<(), SystemException> { self.probing.release() }
    fn blocked(&self) -> Result<u32, SystemException> { self.probing.blocked() }
    fn whoami(&self) -> Result<String, SystemException> { self.probing.whoami() }
    fn itself(&self) -> Result<Option<ProbeRef>, SystemException> { self.probing.itself() }
    fn is_same(&self, other: Option<&ProbeRef>) -> Result<bool, SystemException> { self.probing.is_same(other) }
}

/// Serves `Derived`. A [`Probing`] serves the inherited operations.
#[derive(Debug, Default)]
pub struct Deriving(pub Probing);

impl testing::Derived for Deriving {
    fn depth(&self) -> Result<String, SystemException> {
        Ok("derived".to_owned())
    }
}

#[rustfmt::skip]
impl Probe for Deriving {
    fn ticks(&self) -> Result<u32, SystemException> { self.0.ticks() }
    fn label(&self) -> Result<String, SystemException> { self.0.label() }
    fn set_label(&self, value: &str) -> Result<(), SystemException> { self.0.set_label(value) }
    fn ping(&self) -> Result<(), SystemException> { self.0.ping() }
    fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> { self.0.add(a, b) }
    fn echo(&self, text: &str) -> Result<String, SystemException> { self.0.echo(text) }
    fn reflect(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> { self.0.reflect(data) }
    fn shorten(&self, text: &str) -> Result<String, SystemException> { self.0.shorten(text) }
    fn refuse(&self, why: &str) -> Result<(), testing::probe::RefuseError> { self.0.refuse(why) }
    fn raise_system(&self, minor: u32) -> Result<(), SystemException> { self.0.raise_system(minor) }
    fn fall_over(&self) -> Result<(), SystemException> { self.0.fall_over() }
    fn tick(&self) -> Result<(), SystemException> { self.0.tick() }
    fn block(&self) -> Result<(), SystemException> { self.0.block() }
    fn release(&self) -> Result<(), SystemException> { self.0.release() }
    fn blocked(&self) -> Result<u32, SystemException> { self.0.blocked() }
    fn whoami(&self) -> Result<String, SystemException> { self.0.whoami() }
    fn itself(&self) -> Result<Option<ProbeRef>, SystemException> { self.0.itself() }
    fn is_same(&self, other: Option<&ProbeRef>) -> Result<bool, SystemException> { self.0.is_same(other) }
}
