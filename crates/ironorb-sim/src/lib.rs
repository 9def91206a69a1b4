//! Tests of distributed programs in virtual time.
//!
//! The program under test runs unchanged: its servants and stubs, the ORB with all its threads, `std::thread`, `std::net`,
//! `std::time`, mutexes and condition variables. What it asks of the system is answered by a simulation instead: hosts with
//! addresses of their own, links between them, clocks that only move when nothing else can happen, random numbers from the
//! test's seed. One thread runs at a time, and which goes on next follows from the seed alone. So equal seeds give equal
//! runs, an hour of waiting takes no time, and a failure can be repeated.
//!
//! ```
//! use std::io::{Read as _, Write as _};
//! use std::net::{TcpListener, TcpStream};
//! use std::time::{Duration, Instant};
//!
//! #[ironorb_sim::test(seeds = 5)]
//! fn an_hour_passes(sim: &mut ironorb_sim::Sim) {
//!     let server = sim.host("server", || {
//!         let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
//!         std::thread::sleep(Duration::from_secs(3_600));
//!         client.write_all(b"late").unwrap();
//!     });
//!     let client = sim.host("client", || {});
//!     sim.start(&server);
//!     let (answer, took) = sim.on(&client, || {
//!         let begun = Instant::now();
//!         let mut answer = String::new();
//!         TcpStream::connect("server:7000").unwrap().read_to_string(&mut answer).unwrap();
//!         (answer, begun.elapsed())
//!     });
//!     assert_eq!(answer, "late");
//!     assert!(took >= Duration::from_secs(3_600));
//! }
//! ```
//!
//! What is simulated, and what is not, is in the project's `docs/simulation.md`. Linux only, on x86-64 and AArch64.

#[expect(
    unsafe_code,
    reason = "the functions of the C library that programs call; its first page says why it is sound"
)]
mod calls;
mod children;
mod faults;
mod sim;
mod watchdog;
mod world;

pub use children::{SEEDS, run, simulate};
pub use faults::{Fault, Faults};
pub use ironorb_model::scenario::Link;
pub use ironorb_model::{PauseTimes, Pauses, ResourceObservations};
pub use ironorb_sim_macros::test;
pub use sim::{Host, Sender, Sim, compute, elapsed};
pub use world::{Costs, Counts};
