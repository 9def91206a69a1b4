//! Threads that pools make on demand (TAO's Dynamic_Thread_Pool and Bug_3643): they come under load and end when they are idle.

use std::time::Duration;

use ironorb::{LaneConfig, Orb, ServerConcurrency, ThreadLifetime, ThreadPoolConfig};
use ironorb_interop::process::wait_until;
use ironorb_interop::tao::{lines_of, start_client};

use super::our_client::{all_meet, client, reference, start};
use super::their_client::{PROPAGATED, at_any_port, built, serve};
use super::{priority, real_time};

const CALLERS: usize = 4;

/// The threads that the pools of this process have made on demand.
fn dynamic_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("the system has /proc");
    // One that ends meanwhile has no name any more.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "ironorb-dynamic").count()
}

#[test]
#[ignore = "needs TAO_TREE"]
fn clients_of_tao_have_our_pool_grow_and_it_shrinks_again() {
    let pool = ThreadPoolConfig::new(1)
        .dynamic_threads(CALLERS - 1)
        .lifetime(ThreadLifetime::Idle(Duration::from_millis(100)));
    let pool = ServerConcurrency::ThreadPool(pool);
    let flat = || built(at_any_port(real_time()).concurrency(pool));
    let with_lane = || {
        let lane = LaneConfig::new("lane").endpoint("iiop://127.0.0.1:0").priority(priority(1_000));
        built(at_any_port(real_time()).lane(lane.concurrency(pool)))
    };
    for start in [&flat as &dyn Fn() -> Orb, &with_lane] {
        let orb = start();
        for round in ["first", "second"] {
            let served = serve(&orb, round, Some(PROPAGATED));
            let meet = ["use", &served.reference, "priority", "1000", "meet", "4"];
            let clients: Vec<_> = (0..CALLERS).map(|_| start_client(&meet)).collect();
            for client in clients {
                assert_eq!(lines_of(client), ["meet true"]);
            }
            wait_until("the threads on demand do not end", || dynamic_threads() == 0);
        }
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn our_calls_have_a_pool_of_tao_grow_as_far_as_it_may() {
    let serve = ["name=flat,model=propagated,pool=flat", "name=lane,model=propagated,pool=lanes"];
    let pools = ["--threads", "1", "--dynamic", "3", "--lanes", "1000", "--pool", "1000"];
    let client = client();
    for adapter in ["flat", "lane"] {
        let server = start(&[&pools[..], &["--serve", serve[0], "--serve", serve[1]]].concat());
        let object = reference(&client, &server, adapter);
        let threads = server.process.threads();
        all_meet(&client, &object, &[1_000; CALLERS]);
        // Threads of TAO that end have others take their place, so that it keeps some of them.
        let grown = server.process.threads();
        assert!((threads + 1..threads + CALLERS).contains(&grown), "{adapter}: {threads}, {grown}");
    }
}
