//! The bank on three hosts in virtual time: a naming service, a server that is killed, and a client that goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use hello::bank::{self, Account as _, account::WithdrawError};
use ironorb::{CompletionStatus, Orb, SystemException};
use ironorb_services::naming::{Limits, NamingServer, NamingService, Store};
use ironorb_sim::{Faults, Sim};

const NAMES: &str = "corbaloc::names:2809/NameService";

fn names() {
    let orb = Orb::builder().endpoint("iiop://:2809").unwrap().build().unwrap();
    let service = NamingService::new(Store::in_memory().unwrap(), Limits::default());
    let _server = NamingServer::start(&orb, service).unwrap();
    orb.run().unwrap();
}

/// A bank whose money outlives its process, as on a disk.
struct Vault(Arc<AtomicI64>);

impl bank::Account for Vault {
    fn balance(&self) -> Result<i64, SystemException> {
        Ok(self.0.load(Ordering::Relaxed))
    }

    fn deposit(&self, amount: i64) -> Result<i64, SystemException> {
        Ok(self.0.fetch_add(amount, Ordering::Relaxed) + amount)
    }

    fn withdraw(&self, amount: i64) -> Result<i64, WithdrawError> {
        let missing = amount - self.0.load(Ordering::Relaxed);
        if missing > 0 {
            return Err(bank::InsufficientFunds { missing }.into());
        }
        Ok(self.0.fetch_sub(amount, Ordering::Relaxed) - amount)
    }

    fn note(&self, _text: &str) -> Result<(), SystemException> {
        Ok(())
    }
}

fn serve(money: Arc<AtomicI64>) {
    let endpoint = Orb::builder().initial_reference("NameService", NAMES).endpoint("iiop://:2810").unwrap();
    let orb = endpoint.publish("bank:2810").build().unwrap();
    let account: bank::AccountRef = orb.root_poa().activate(Vault(money)).unwrap();
    // The names may be unreachable for a while.
    let bind = || -> Result<(), ironorb::Error> { Ok(orb.naming()?.rebind("bank/main", &account)?) };
    while let Err(e) = bind() {
        println!("no names yet: {e}");
        std::thread::sleep(Duration::from_millis(100));
    }
    orb.run().unwrap();
}

#[ironorb_sim::test(seeds = 20)]
fn a_client_finds_the_account_and_uses_it(sim: &mut Sim) {
    let names = sim.host("names", names);
    let bank = sim.host("bank", || serve(Arc::default()));
    let client = sim.host("client", || {});
    sim.start(&names);
    sim.start(&bank);
    sim.run_for(Duration::from_secs(1));
    sim.on(&client, || {
        let orb = Orb::builder().no_endpoint().initial_reference("NameService", NAMES).build().unwrap();
        let account: bank::AccountRef = orb.resolve("corbaname:rir:#bank/main").unwrap();
        assert_eq!(account.deposit(100).unwrap(), 100);
        account.note("hello").unwrap();
        match account.withdraw(1_000) {
            Err(WithdrawError::InsufficientFunds(e)) => assert_eq!(e.missing, 900),
            other => panic!("{other:?}"),
        }
        assert_eq!(account.balance().unwrap(), 100);
    });
}

/// Whatever is killed, crashes or is cut off: a deposit that was acknowledged is in the account, and one that failed with
/// COMPLETED_NO is not.
#[ironorb_sim::test(seeds = 40)]
fn no_acknowledged_deposit_is_lost(sim: &mut Sim) {
    let money: Arc<AtomicI64> = Arc::default();
    let names = sim.host("names", names);
    let of_server = money.clone();
    let bank = sim.host("bank", move || serve(of_server.clone()));
    let client = sim.host("client", || {});
    sim.start(&names);
    sim.start(&bank);
    sim.run_for(Duration::from_secs(1));
    let faults = Faults::within(Duration::ZERO..Duration::from_secs(5), 4);
    sim.plan(&faults.killing([&bank]).crashing([&bank]).cutting(&client, &bank));
    let (acknowledged, unknown) = sim.on(&client, || {
        let orb = Orb::builder().no_endpoint().initial_reference("NameService", NAMES).build().unwrap();
        let account: bank::AccountRef = orb.resolve("corbaname:rir:#bank/main").unwrap();
        let (mut acknowledged, mut unknown) = (0, 0);
        for _ in 0..50 {
            let deposit = ironorb::with_timeout(Some(Duration::from_secs(2)), || account.deposit(1));
            match deposit {
                Ok(_) => acknowledged += 1,
                Err(e) if e.completed == CompletionStatus::No => {}
                Err(_) => unknown += 1,
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        (acknowledged, unknown)
    });
    let there = money.load(Ordering::Relaxed);
    assert!(
        (acknowledged..=acknowledged + unknown).contains(&there),
        "{acknowledged} acknowledged, {unknown} unknown, and {there} in the account"
    );
}
