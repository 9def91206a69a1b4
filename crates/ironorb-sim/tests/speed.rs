//! How many calls a second are simulated: nothing fails here, a person reads it.

use std::time::Duration;

use hello::bank::{self, Account as _, account::WithdrawError};
use ironorb::{Orb, SystemException, TypedRef as _};
use ironorb_sim::Sim;

/// An account of one.
struct Constant;

impl bank::Account for Constant {
    fn balance(&self) -> Result<i64, SystemException> {
        Ok(1)
    }

    fn deposit(&self, _amount: i64) -> Result<i64, SystemException> {
        Ok(1)
    }

    fn withdraw(&self, _amount: i64) -> Result<i64, WithdrawError> {
        Ok(1)
    }

    fn note(&self, _text: &str) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The program of a host `server` with an account.
pub(crate) fn serve() {
    let orb = Orb::builder().endpoint("iiop://:2810").unwrap().publish("server:2810").build().unwrap();
    let account: bank::AccountRef = orb.root_poa().activate(Constant).unwrap();
    orb.bind_key("account", account.object()).unwrap();
    orb.run().unwrap();
}

/// The account, for a program of another host.
pub(crate) fn connect() -> (Orb, bank::AccountRef) {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let account = orb.resolve("corbaloc::server:2810/account").unwrap();
    (orb, account)
}

const CALLS: u32 = 100_000;

/// `taskset -c 0 cargo test --profile dist -p ironorb-sim --test all -- --include-ignored speed --nocapture`
#[ironorb_sim::test(seeds = 1)]
#[ignore = "for people: it measures"]
fn calls_a_second(sim: &mut Sim) {
    sim.set_preemption(0.0);
    let server = sim.host("server", serve);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    sim.on(&client, || {
        let (_orb, account) = connect();
        for _ in 0..CALLS {
            account.balance().unwrap();
        }
    });
    println!("{CALLS} calls in {:?} of virtual time, {:?}", sim.elapsed(), sim.counts());
}
