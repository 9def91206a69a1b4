//! Clients of other ORBs, which hold nothing, beside clients that cache. They agree on the values, and what either writes
//! reaches the other.

use std::time::{Duration, Instant};

use ironorb::cache::{Cell, CellRef, ReadOptions, Source};
use ironorb::{Deferred, Orb, Reply, SystemException, TypedRef as _};
use ironorb_interop::interop::{CachedAccount, CachedAccountRef, CachedAccountState, DeferredCachedAccount};
use ironorb_interop::ours::builder;
use ironorb_interop::peer::Peer;
use ironorb_interop::results::{Side, case};

const LAG: Duration = Duration::from_millis(20);

struct Account {
    cell: Cell<CachedAccountState>,
}

impl Account {
    fn new() -> Account {
        Account { cell: Cell::new(CachedAccountState { balance: 0, owner: "Ada".to_owned() }) }
    }
}

impl CachedAccount for Account {
    fn cell(&self) -> CellRef<'_, CachedAccountState> {
        (&self.cell).into()
    }

    fn set_owner(&self, value: &str) -> Result<(), SystemException> {
        self.cell.update(|mut state| state.set_owner(value.to_owned()));
        Ok(())
    }

    fn deposit(&self, amount: i64) -> Result<(), SystemException> {
        self.cell.update(|mut state| *state.balance_mut() += amount);
        Ok(())
    }
}

impl DeferredCachedAccount for Account {
    fn cell(&self) -> CellRef<'_, CachedAccountState> {
        (&self.cell).into()
    }

    fn set_owner(&self, value: &str, reply: Reply<(), SystemException>) {
        self.cell.update(|mut state| state.set_owner(value.to_owned()));
        std::thread::spawn(|| reply.send(Ok(())));
    }

    fn deposit(&self, amount: i64, reply: Reply<(), SystemException>) {
        self.cell.update(|mut state| *state.balance_mut() += amount);
        std::thread::spawn(|| reply.send(Ok(())));
    }
}

#[test]
fn other_orbs_read_and_write_what_clients_cache() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "cached/servant", || {
            let server = builder().build().unwrap();
            let local: CachedAccountRef = server.root_poa().activate(Account::new()).unwrap();
            agree(peer, &local);
        });
        case(peer, Side::Server, "cached/deferred", || {
            let server = builder().build().unwrap();
            let local: CachedAccountRef = server.root_poa().activate(Deferred(Account::new())).unwrap();
            agree(peer, &local);
        });
    }
}

fn agree(peer: Peer, local: &CachedAccountRef) {
    let ior = local.object().to_ior_string();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let account: CachedAccountRef = client.string_to_object(&ior).unwrap().narrow_unchecked();
    let within = ReadOptions::new().lag(LAG);
    let any = ReadOptions::new().lag(Duration::from_secs(1_000_000));
    let sources: Vec<_> = (0..3).map(|_| account.balance_with(&any).unwrap().source).collect();
    assert_eq!(sources, [Source::Remote, Source::Remote, Source::Cache]);

    assert_eq!(peer.run_cached(&ior, &["balance", "owner"]), ["0", "Ada"]);
    assert_eq!(
        peer.run_cached(&ior, &["deposit:5", "balance", "owner:Grace", "owner"]),
        ["done", "5", "done", "Grace"]
    );
    // The writes were done before this moment, and a read that begins more than the lag later sees them.
    let written = Instant::now();
    assert_eq!(account.balance_with(&any).unwrap().value, 0, "nobody has asked");
    std::thread::sleep(LAG);
    while written.elapsed() <= LAG {
        std::thread::yield_now();
    }
    let seen = account.cached_state(&within).unwrap();
    assert_eq!((seen.value.balance, &*seen.value.owner, seen.source), (5, "Grace", Source::Cache));

    account.deposit(7).unwrap();
    assert_eq!(account.balance_with(&any).unwrap().value, 12, "the client's own write");
    account.set_owner("Barbara").unwrap();
    assert_eq!(peer.run_cached(&ior, &["balance", "owner", "deposit:-2"]), ["12", "Barbara", "done"]);
    assert_eq!(account.balance_with(&ReadOptions::new().lag(Duration::ZERO)).unwrap().value, 10);
    assert_eq!(account.owner_with(&any).unwrap().value, "Barbara");
}
