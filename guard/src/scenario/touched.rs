//! What is done for the code that it touches: a remote call, a cached read, a write of what a client holds, and the read after
//! it, which asks the server. Both sides have their markers, so that what a server does for such reads is seen, too.

use std::hint::black_box;

use ironorb::cache::{Cell, CellRef, ReadOptions};
use ironorb::{SystemException, TypedRef};

use super::idl::guard::{Touched, TouchedRef, TouchedState};
use super::{Client, Failure, Server, between_markers, server_begins, server_ends};

/// What is done between the markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// The attribute is read by a call.
    Call,
    /// The client reads what it holds.
    CachedRead,
    /// A call writes what this client holds.
    Write,
    /// A call writes, and the next read asks the server what has changed.
    WriteAndRead,
    /// All of them.
    All,
}

/// Each is done so often before the markers, and so often between them.
const TIMES: usize = 200;

impl Touch {
    pub(crate) const EACH: [Touch; 5] =
        [Touch::Call, Touch::CachedRead, Touch::Write, Touch::WriteAndRead, Touch::All];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Touch::Call => "call",
            Touch::CachedRead => "cached-read",
            Touch::Write => "write",
            Touch::WriteAndRead => "write-and-read",
            Touch::All => "all",
        }
    }

    /// Warms up, and does it between the markers.
    pub(crate) fn run(self) -> Result<(), String> {
        self.run_between_two_orbs().map_err(|e| e.to_string())
    }

    fn run_between_two_orbs(self) -> Result<(), Failure> {
        let (server, client) = (Server::Default.start()?, Client::Default.start()?);
        let local: TouchedRef = server.root_poa().activate(Keeps(Cell::new(TouchedState { value: 7 })))?;
        let object: TouchedRef = client.string_to_object(&local.object().to_ior_string())?.narrow_unchecked();
        // The first read opens a session, the second fills the place.
        (0..3).try_for_each(|_| object.value().map(drop))?;
        // Two rounds: the first fills caches that the second uses.
        for is_counted in [false, true] {
            if is_counted {
                object.begin()?;
            }
            between_markers(is_counted, || (0..TIMES).try_for_each(|_| self.once(&object)))?;
            if is_counted {
                object.end()?;
            }
        }
        client.shutdown(false)?;
        server.shutdown(false)?;
        Ok(())
    }

    fn once(self, object: &TouchedRef) -> Result<(), Failure> {
        match self {
            Touch::Call => drop(black_box(object.value_with(&ReadOptions::new().remote())?)),
            Touch::CachedRead => drop(black_box(object.value()?)),
            Touch::Write => object.write(black_box(9))?,
            Touch::WriteAndRead => {
                object.write(black_box(9))?;
                black_box(object.value()?);
            }
            Touch::All => [Touch::Call, Touch::WriteAndRead, Touch::CachedRead]
                .into_iter()
                .try_for_each(|touch| touch.once(object))?,
        }
        Ok(())
    }
}

struct Keeps(Cell<TouchedState>);

impl Touched for Keeps {
    fn cell(&self) -> CellRef<'_, TouchedState> {
        (&self.0).into()
    }

    fn write(&self, value: i32) -> Result<(), SystemException> {
        self.0.update(|mut state| state.set_value(value));
        Ok(())
    }

    fn begin(&self) -> Result<(), SystemException> {
        server_begins();
        Ok(())
    }

    fn end(&self) -> Result<(), SystemException> {
        server_ends();
        Ok(())
    }
}
