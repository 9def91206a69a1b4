//! What a test that fails tells, and that equal seeds give equal runs. The tests that fail are here as well, and are only run by
//! those that look at their output.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use hello::bank::Account as _;
use ironorb_sim::{Fault, Faults, Sim};

use super::speed::{connect, serve};

/// Runs one of the tests below, with these variables.
fn run(test: &str, variables: &[(&str, &str)], change: impl FnOnce(&mut Command)) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).env_remove("RUST_BACKTRACE");
    command.envs(variables.iter().copied());
    change(&mut command);
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.success(), String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr))
}

fn failure(test: &str) -> String {
    let (has_passed, output) = run(test, &[], |_| {});
    assert!(!has_passed, "{output}");
    output
}

/// Keeps a count in memory, which a kill takes away.
fn forgetful() {
    let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
    let mut count = 0_u8;
    for client in listener.incoming() {
        let mut client = client.unwrap();
        if client.read_exact(&mut [0]).is_ok() {
            count += 1;
            let _ = client.write_all(&[count]);
        }
    }
}

/// What servers count in 4 seconds.
fn counts_of<const N: usize>(servers: [&str; N]) -> [Vec<u8>; N] {
    let mut seen = [const { Vec::new() }; N];
    for _ in 0..40 {
        for (server, seen) in servers.iter().zip(&mut seen) {
            let mut count = [0];
            let counted = TcpStream::connect(server).and_then(|mut stream| {
                stream.write_all(&[1])?;
                stream.read_exact(&mut count)
            });
            if counted.is_ok() {
                seen.push(count[0]);
            }
        }
        thread::sleep(Duration::from_millis(100));
    }
    seen
}

#[ironorb_sim::test(seeds = 200)]
#[ignore = "fails on purpose"]
fn a_count_is_kept(sim: &mut Sim) {
    let server = sim.host("server", forgetful);
    let others: Vec<_> = (0..3).map(|number| sim.host(&format!("other-{number}"), forgetful)).collect();
    let client = sim.host("client", || {});
    sim.start(&server);
    others.iter().for_each(|other| sim.start(other));
    let faults =
        Faults::within(Duration::ZERO..Duration::from_secs(3), 8).killing([&server]).killing(&others);
    sim.plan(&others.iter().fold(faults, |faults, other| faults.cutting(&client, other)));
    let [seen] = sim.on(&client, || counts_of(["server:7000"]));
    assert!(seen.is_sorted(), "the count went back: {seen:?}");
}

/// The faults that have nothing to do with a failure are left out: one is enough, and its mend stays with it.
#[test]
fn a_failure_is_repeated_with_few_faults() {
    let output = failure("harness::a_count_is_kept");
    let (repeat, rest) = output.split_once("Repeat it: ").unwrap().1.split_once(" cargo test").unwrap();
    let (printed, script) = rest.split_once("1 of ").unwrap();
    assert!(printed.contains("the count went back"), "{output}");
    assert!(script.contains(" s: kill server, ") && script.contains(" s: start server\n"), "{output}");
    assert!(!script.contains("other-"), "{output}");
    // The line that a person repeats runs the short script.
    let variables: Vec<_> = repeat.split(' ').filter_map(|variable| variable.split_once('=')).collect();
    assert_eq!(
        variables.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        ["IRONORB_SIM_SEED", "IRONORB_SIM_LEFT_OUT"]
    );
    let again = run("harness::a_count_is_kept", &variables, |_| {});
    assert!(!again.0 && again.1.contains(repeat), "{}", again.1);
}

/// A run with all faults fails if both counts go back; one with fewer of them fails in another way if one does.
#[ironorb_sim::test(seeds = 200)]
#[ignore = "fails on purpose"]
fn two_counts_are_kept(sim: &mut Sim) {
    let servers = ["server-a", "server-b"].map(|name| sim.host(name, forgetful));
    let client = sim.host("client", || {});
    servers.iter().for_each(|server| sim.start(server));
    sim.plan(&Faults::within(Duration::ZERO..Duration::from_secs(2), 6).killing(&servers));
    let seen = sim.on(&client, || counts_of(["server-a:7000", "server-b:7000"]));
    let is_shortened = std::env::var("IRONORB_SIM_LEFT_OUT").is_ok_and(|numbers| !numbers.is_empty());
    match seen.each_ref().map(|seen| seen.is_sorted()) {
        [true, true] => {}
        [false, false] => panic!("both counts went back: {seen:?}"),
        _ if is_shortened => panic!("one count went back: {seen:?}"),
        _ => {}
    }
}

/// Fewer faults give another failure here, which does not take the place of the first one.
#[test]
fn a_failure_is_not_shortened_to_another() {
    let output = failure("harness::two_counts_are_kept");
    assert!(output.contains("both counts went back") && !output.contains("one count went back"), "{output}");
    let script = output.split_once("2 of ").unwrap().1;
    assert!(script.contains("kill server-a") && script.contains("kill server-b"), "{output}");
}

#[ironorb_sim::test(seeds = 50)]
#[ignore = "fails on purpose"]
fn locks_are_taken_in_one_order(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.set_preemption(0.5);
    sim.on(&host, || {
        let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
        let other = locks.clone();
        let thread = thread::spawn(move || {
            for _ in 0..20 {
                let first = other.1.lock().unwrap();
                thread::sleep(Duration::from_millis(1));
                let _second = other.0.lock().unwrap();
                drop(first);
            }
        });
        for _ in 0..20 {
            let first = locks.0.lock().unwrap();
            thread::sleep(Duration::from_millis(1));
            let _second = locks.1.lock().unwrap();
            drop(first);
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_deadlock_names_who_waits() {
    let output = failure("harness::locks_are_taken_in_one_order");
    assert!(output.contains("not within a virtual day: the code on a host has ended"), "{output}");
    assert!(output.contains("host: on is waiting for a lock, a condition or to be unparked"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn a_program_fails_while_the_test_sleeps(sim: &mut Sim) {
    let host = sim.host("host", || panic!("no disk"));
    sim.start(&host);
    thread::sleep(Duration::from_secs(1));
}

#[test]
fn a_program_that_fails_fails_the_test_however_that_waits() {
    let output = failure("harness::a_program_fails_while_the_test_sleeps");
    assert!(output.contains("the program of host has panicked: no disk"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn the_test_waits_for_what_a_failed_program_would_have_done(sim: &mut Sim) {
    let clock = sim.host("clock", || {
        loop {
            thread::sleep(Duration::from_secs(60));
        }
    });
    let host = sim.host("host", || panic!("no disk"));
    sim.start(&clock);
    sim.start(&host);
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv();
}

#[test]
fn a_test_that_waits_for_a_failed_program_ends() {
    let output = failure("harness::the_test_waits_for_what_a_failed_program_would_have_done");
    assert!(output.contains("the program of host has panicked: no disk"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn the_test_waits_for_nobody(_: &mut Sim) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let _ = receiver.recv();
}

#[test]
fn a_test_that_waits_for_ever_ends() {
    let output = failure("harness::the_test_waits_for_nobody");
    assert!(output.contains("nothing is left to happen, and threads wait"), "{output}");
    assert!(output.contains("test: a thread is waiting for a lock"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn code_runs_on_a_host_that_is_killed(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.inflict_after(Duration::from_secs(1), &Fault::Kill(host.clone()));
    sim.on(&host, || thread::sleep(Duration::from_secs(10)));
}

#[test]
fn code_that_was_killed_is_not_waited_for() {
    let output = failure("harness::code_runs_on_a_host_that_is_killed");
    assert!(output.contains("the host host was killed while code of the test ran on it"), "{output}");
    assert!(output.contains("[1.0000"), "it is noticed at once: {output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn nothing_waits_for_the_system(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.on(&host, || {
        let (mut reader, _writer) = std::io::pipe().unwrap();
        waits_for_a_pipe(&mut reader);
    });
}

#[inline(never)]
fn waits_for_a_pipe(reader: &mut std::io::PipeReader) {
    let _ = reader.read(&mut [0]);
}

#[test]
fn who_blocks_outside_is_named() {
    let output = failure("harness::nothing_waits_for_the_system");
    assert!(output.contains("waits for the system, outside of the simulation"), "{output}");
    assert!(output.contains("waits_for_a_pipe"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn what_is_asked_for_comes(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.on(&host, || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        listener.set_nonblocking(true).unwrap();
        asks_for_a_client(&listener);
    });
}

#[inline(never)]
fn asks_for_a_client(listener: &TcpListener) {
    while listener.accept().is_err() {}
}

#[test]
#[ignore = "takes two minutes"]
fn who_asks_for_ever_is_named() {
    let output = failure("harness::what_is_asked_for_comes");
    assert!(output.contains("asks again and again for what does not come"), "{output}");
    assert!(output.contains("asks_for_a_client"), "{output}");
}

#[ironorb_sim::test(seeds = 1)]
#[ignore = "fails on purpose"]
fn a_number_stays_below_ten(sim: &mut Sim) {
    let number = Arc::new(AtomicU64::new(0));
    let seen = number.clone();
    sim.invariant("the number is below ten", move || seen.load(Ordering::Relaxed) < 10);
    let host = sim.host("host", || {});
    sim.on(&host, move || {
        for _ in 0..20 {
            number.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(1));
        }
    });
}

#[test]
fn an_invariant_is_looked_at_after_each_step() {
    let output = failure("harness::a_number_stays_below_ten");
    assert!(output.contains("the invariant does not hold: the number is below ten"), "{output}");
    assert!(output.contains("[9.0000"), "it is noticed in the tenth second: {output}");
}

#[ironorb_sim::test(seeds = 100)]
#[ignore = "another test runs it"]
fn many_threads_in_some_order(sim: &mut Sim) {
    let server = sim.host("server", forgetful);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.set_preemption(0.2);
    sim.on(&client, || {
        let seen: Arc<Mutex<std::collections::HashMap<u8, usize>>> = Arc::default();
        let threads: Vec<_> = (0..6)
            .map(|number| {
                let seen = seen.clone();
                thread::spawn(move || {
                    for _ in 0..3 {
                        let mut count = [0];
                        let mut stream = TcpStream::connect("server:7000").unwrap();
                        stream.write_all(&[1]).unwrap();
                        stream.read_exact(&mut count).unwrap();
                        seen.lock().unwrap().insert(count[0], number);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // A table of random order: the same in each run.
        let order: Vec<u8> = seen.lock().unwrap().keys().copied().collect();
        TcpStream::connect("server:7000").unwrap().write_all(&order).unwrap();
    });
}

#[ironorb_sim::test(seeds = 100)]
#[ignore = "another test runs it"]
fn an_orb_calls_another_under_faults(sim: &mut Sim) {
    let server = sim.host("server", serve);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    let faults = Faults::within(Duration::from_millis(100)..Duration::from_secs(2), 4);
    sim.plan(&faults.killing([&server]).crashing([&server]).pausing([&server]).cutting(&client, &server));
    sim.on(&client, || {
        let (_orb, account) = connect();
        for _ in 0..20 {
            // Whether it succeeds is another test's.
            let _ = ironorb::with_timeout(Some(Duration::from_secs(1)), || account.balance());
            thread::sleep(Duration::from_millis(100));
        }
    });
}

fn digests(test: &str, change: impl FnOnce(&mut Command)) -> Vec<String> {
    let (has_passed, output) = run(test, &[("IRONORB_SIM_SEED", "0..100")], change);
    assert!(has_passed, "{output}");
    let mut digests: Vec<String> =
        output.lines().filter(|line| line.contains("digest")).map(str::to_owned).collect();
    digests.sort();
    assert_eq!(digests.len(), 100, "{output}");
    digests
}

#[test]
fn equal_seeds_give_equal_runs() {
    runs_are_equal("harness::many_threads_in_some_order");
}

#[test]
fn equal_seeds_give_equal_runs_of_orbs() {
    runs_are_equal("harness::an_orb_calls_another_under_faults");
}

/// Neither the environment, nor the number of processors, nor where memory lies changes a run.
fn runs_are_equal(test: &str) {
    let digests_usual = digests(test, |_| {});
    let is_different =
        |digest: &[String]| digest[0].split("digest ").nth(1) != digest[1].split("digest ").nth(1);
    assert!(digests_usual.windows(2).any(is_different), "different seeds give different runs");
    let on_one_processor = digests(test, |command| {
        command.env("SOMETHING", "x".repeat(10_000));
        let program = command.get_program().to_owned();
        let arguments: Vec<_> = command.get_args().map(|it| it.to_owned()).collect();
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", "0", "setarch", "-R"]).arg(&program).args(&arguments).arg0("taskset");
        pinned.env("IRONORB_SIM_SEED", "0..100").env("SOMETHING", "x".repeat(10_000));
        *command = pinned;
    });
    assert_eq!(digests_usual, on_one_processor);
}
