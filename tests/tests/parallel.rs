//! An object that is several parts, each at an ORB of its own: an agent says which, and clients hand in whole sequences.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use ironorb::generated::SystemException;
use ironorb::parallel::{Distribution, ParallelRef, ShareOfCall, Shares};
use ironorb::{CompletionStatus, Orb, Ownable, SystemExceptionKind, TypedRef};
use ironorb_agent::{Agent, AgentClient, Registration};
use ironorb_jobs::{AgentHandles, HeldHandles, Jobs, PART_PROPERTY, PartOptions};

use ironorb_tests::command::ServingProcess;
use ironorb_tests::eventually;
use ironorb_tests::executor::run;
use ironorb_tests::gate::Gate;
use serde_json::json;

use idl::shared::rows::TotalError;
use idl::shared::{Matrix, MatrixParallel, MatrixRef, Numbers, Refused, Rows, RowsParallel, RowsRef, Vector};

mod idl {
    ironorb::include_idl!("parallel");
}

/// The number that a part refuses.
const REFUSED: i32 = -13;

/// A part, which notes the lengths of the shares that it gets.
#[derive(Default)]
struct Part {
    lengths: Mutex<Vec<usize>>,
    /// What it has been told of its calls.
    told: Mutex<Vec<Option<ShareOfCall>>>,
    /// The first server to be asked for `total_again` waits until the other has been asked, too.
    rival: Option<Arc<Rival>>,
    /// Where `doubled` waits.
    gate: Option<Gate>,
}

#[derive(Default)]
struct Rival {
    asked: Mutex<usize>,
    changed: Condvar,
}

impl Rival {
    fn wait_for_both(&self) {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        self.changed.notify_all();
        if *asked == 1 {
            let limit = Duration::from_secs(60); // only bounds a hang
            drop(self.changed.wait_timeout_while(asked, limit, |asked| *asked < 2).unwrap());
        }
    }
}

impl Part {
    fn note(&self, length: usize) {
        self.lengths.lock().unwrap().push(length);
        self.told.lock().unwrap().push(ShareOfCall::current());
    }
}

fn sum(x: &[i32]) -> i64 {
    x.iter().map(|x| i64::from(*x)).sum()
}

impl Rows for Part {
    fn total(&self, x: &[i32]) -> Result<i64, TotalError> {
        self.note(x.len());
        match x.contains(&REFUSED) {
            true => Err(Refused { number: REFUSED }.into()),
            false => Ok(sum(x)),
        }
    }

    fn total_in_turn(&self, x: &[i32]) -> Result<i64, SystemException> {
        self.note(x.len());
        Ok(sum(x))
    }

    fn total_again(&self, x: &[i32]) -> Result<i64, SystemException> {
        self.note(x.len());
        if let Some(rival) = &self.rival {
            rival.wait_for_both();
        }
        Ok(sum(x))
    }

    fn narrow_total(&self, x: &[i32]) -> Result<i32, SystemException> {
        Ok(x.iter().sum())
    }

    fn doubled(&self, x: &[i32]) -> Result<Numbers, SystemException> {
        self.note(x.len());
        self.gate.iter().for_each(Gate::pass);
        Ok(x.iter().map(|x| 2 * x).collect())
    }

    fn positive(&self, x: &[i32]) -> Result<Numbers, SystemException> {
        Ok(x.iter().copied().filter(|x| *x > 0).collect())
    }

    fn positive_in_turn(&self, x: &[i32]) -> Result<Numbers, SystemException> {
        self.positive(x)
    }

    fn axpy(&self, a: f64, x: &[f64], y: &[f64]) -> Result<Vector, SystemException> {
        self.note(x.len());
        assert_eq!(x.len(), y.len());
        Ok(x.iter().zip(y).map(|(x, y)| a * x + y).collect())
    }

    fn scale(&self, a: f64, x: &[f64]) -> Result<Vector, SystemException> {
        Ok(x.iter().map(|x| a * x).collect())
    }

    fn extremes(&self, x: Ownable<'_, f64>) -> Result<(f64, f64, bool), SystemException> {
        let greatest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = x.iter().copied().fold(f64::INFINITY, f64::min);
        Ok((greatest, least, x.iter().all(|x| x.is_finite())))
    }

    fn histogram(&self, samples: &[u8]) -> Result<Vec<u32>, SystemException> {
        let mut counts = vec![0; 4];
        samples.iter().for_each(|sample| counts[usize::from(sample % 4)] += 1);
        Ok(counts)
    }

    fn reversed(&self, names: &[String]) -> Result<Vec<String>, SystemException> {
        self.note(names.len());
        Ok(names.iter().map(|name| name.chars().rev().collect()).collect())
    }
}

impl Matrix for Part {
    fn product(&self, x: &[i32]) -> Result<i64, SystemException> {
        Ok(x.iter().map(|x| i64::from(*x)).product())
    }
}

/// A server of a part, which its registration calls `2/4`.
struct Server {
    orb: Orb,
    part: Arc<Part>,
    object: MatrixRef,
    registration: Option<Registration>,
}

/// An agent, and a client of it.
struct Site {
    agents: AgentClient,
    client: Orb,
    _agent: Agent,
}

impl Site {
    fn new() -> Site {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let agent = Agent::builder().serve(&orb).unwrap();
        let client = Orb::builder().build().unwrap();
        let agents = AgentClient::connect(&client, [agent.corbaloc()]).unwrap();
        Site { agents, client, _agent: agent }
    }

    fn serve_as(&self, part: Part, says: Option<&str>) -> Server {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().server_context(Shares);
        let orb = orb.build().unwrap();
        let poa = orb.root_poa();
        let part = Arc::new(part);
        let object: MatrixRef = poa.activate_shared(part.clone()).unwrap();
        let offering = self.agents.register("rows", &object).unwrap();
        let offering =
            says.into_iter().fold(offering, |offering, says| offering.property(PART_PROPERTY, says));
        Server { orb, part, object, registration: Some(offering.start().unwrap()) }
    }

    fn serve(&self, says: &str) -> Server {
        self.serve_as(Part::default(), Some(says))
    }

    /// As many parts.
    fn parts(&self, count: usize) -> Vec<Server> {
        (1..=count).map(|number| self.serve(&format!("{number}/{count}"))).collect()
    }

    fn jobs(&self) -> Jobs {
        Jobs::builder(&self.client).handles(AgentHandles::new(&self.agents)).build()
    }

    fn rows(&self) -> ParallelRef<RowsRef> {
        self.jobs().parallel("rows", PartOptions::new())
    }
}

/// The lengths of the shares that servers have got since this was asked last.
fn lengths(servers: &[Server]) -> Vec<Vec<usize>> {
    servers.iter().map(|server| std::mem::take(&mut *server.part.lengths.lock().unwrap())).collect()
}

/// Nobody can tell from the results how many parts there are.
#[test]
fn results_are_those_of_one_object() {
    let site = Site::new();
    let _parts = site.parts(4);
    let (four, one) = (site.rows(), Part::default());
    for length in 0..=9usize {
        let numbers: Vec<i32> = (0..length as i32).map(|n| 3 * n - 7).collect();
        let (x, y): (Vec<f64>, Vec<f64>) =
            numbers.iter().map(|n| (f64::from(*n), f64::from(100 * n))).unzip();
        assert_eq!(four.total(&numbers).unwrap(), sum(&numbers), "{length}");
        assert_eq!(four.total_in_turn(&numbers).unwrap(), sum(&numbers), "{length}");
        assert_eq!(four.doubled(&numbers).unwrap(), one.doubled(&numbers).unwrap());
        assert_eq!(four.positive(&numbers).unwrap(), one.positive(&numbers).unwrap());
        assert_eq!(four.axpy(0.5, &x, &y).unwrap(), one.axpy(0.5, &x, &y).unwrap());
        assert_eq!(four.scale(3.0, &x).unwrap(), one.scale(3.0, &x).unwrap());
        assert_eq!(four.extremes(&x).unwrap(), one.extremes(x.as_slice().into()).unwrap());
        let samples: Vec<u8> = (0..length as u8).map(|n| n * n).collect();
        assert_eq!(four.histogram(&samples).unwrap(), one.histogram(&samples).unwrap());
    }
    let names = ["abc", "", "de", "fghi", "j"].map(str::to_owned);
    assert_eq!(four.reversed(&names).unwrap(), ["cba", "", "ed", "ihgf", "j"]);
}

#[test]
fn each_part_gets_its_share_in_one_request() {
    let site = Site::new();
    // The order is that of what they say, not of their registrations.
    let servers = ["2/3", "3/3", "1/3"].map(|says| site.serve(says));
    let rows = site.rows();
    rows.total(&[1; 7]).unwrap();
    assert_eq!(lengths(&servers), [[2], [2], [3]]);
    rows.total_in_turn(&[1; 8]).unwrap();
    assert_eq!(lengths(&servers), [[3], [2], [3]]);
    // A part without a share is not called; of nothing, the first gets nothing.
    rows.total(&[1; 2]).unwrap();
    assert_eq!(lengths(&servers), [vec![1], vec![], vec![1]]);
    rows.doubled(&[]).unwrap();
    assert_eq!(lengths(&servers), [vec![], vec![], vec![0]]);
}

#[test]
fn operations_of_base_interfaces_are_among_them() {
    let site = Site::new();
    let _parts = site.parts(2);
    let matrix: ParallelRef<MatrixRef> = site.jobs().parallel("rows", PartOptions::new());
    assert_eq!(matrix.product(&[2, 3, 5]).unwrap(), 30);
    assert_eq!(matrix.total(&[2, 3, 5]).unwrap(), 10);
}

/// One server, or one that no agent knows, gets one plain request with the whole.
#[test]
fn one_object_gets_plain_calls() {
    let site = Site::new();
    let servers = [site.serve_as(Part::default(), None)];
    let known = site.rows();
    assert_eq!(known.total_in_turn(&[1, 2, 3, 4, 5]).unwrap(), 15);
    assert_eq!(lengths(&servers), [[5]]);
    // By a reference as a text, in another ORB, as a client of another ORB's object has it.
    let elsewhere: RowsRef =
        site.client.string_to_object(&servers[0].object.object().to_ior_string()).unwrap().narrow_unchecked();
    let unknown = ParallelRef::of(&elsewhere);
    assert_eq!(unknown.axpy(2.0, &[1.0, 2.0, 3.0], &[1.0; 3]).unwrap(), [3.0, 5.0, 7.0]);
    assert_eq!(unknown.total(&[]).unwrap(), 0);
    assert_eq!(lengths(&servers), [[3, 0]]);
    // And one of this process.
    let here = ParallelRef::of(&servers[0].object);
    assert_eq!(here.doubled(&[1, 2]).unwrap(), [2, 4]);
    assert_eq!(lengths(&servers), [[2]]);
    // Equals that say no part have the whole object each.
    let servers = [servers.into_iter().next().unwrap(), site.serve_as(Part::default(), None)];
    assert_eq!(known.doubled(&[1, 2, 3]).unwrap(), [2, 4, 6]);
    assert_eq!(lengths(&servers).concat(), [3]);
}

fn system(e: TotalError) -> SystemException {
    match e {
        TotalError::System(e) => e,
        other => panic!("{other}"),
    }
}

/// A sum of three parts would look like a result.
#[test]
fn a_missing_part_is_named_and_no_other_is_called() {
    let site = Site::new();
    let mut servers = site.parts(4);
    let rows = site.rows();
    assert_eq!(rows.total(&[1, 2, 3, 4]).unwrap(), 10);
    lengths(&servers);
    drop(servers[1].registration.take());
    // Also where it would have no share.
    for numbers in [&[1, 2, 3, 4][..], &[1]] {
        let e = system(rows.total(numbers).unwrap_err());
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
        assert!(e.detail().unwrap().contains("part 2 of 4 of rows"), "{e:?}");
    }
    assert_eq!(lengths(&servers), vec![Vec::<usize>::new(); 4]);
    // One that comes back is found.
    let back = site.serve("2/4");
    assert_eq!(rows.total(&[1, 2, 3, 4]).unwrap(), 10);
    assert_eq!(lengths(&[back]), [[1]]);
    // Another number of parts is not mixed with the first.
    let _other = site.serve("1/5");
    let e = system(rows.total(&[1, 2, 3, 4]).unwrap_err());
    assert!(e.detail().unwrap().contains("not the parts of one object"), "{e:?}");
}

/// A part whose lease still runs, but whose server has gone.
#[test]
fn a_dead_part_is_named_and_the_call_is_not_said_to_be_unexecuted() {
    let site = Site::new();
    let servers = site.parts(4);
    let rows = site.rows();
    assert_eq!(rows.total(&[1, 2, 3, 4]).unwrap(), 10);
    servers[2].orb.shutdown(true).unwrap();
    let e = system(rows.total(&[1, 2, 3, 4]).unwrap_err());
    assert!(e.detail().unwrap().contains("part 3 of 4 of rows"), "{e:?}");
    assert_eq!(e.completed, CompletionStatus::Maybe, "the first part had its request: {e:?}");
}

/// Its request was never sent to the one that has gone, so any operation may go to the other.
#[test]
fn another_server_of_a_part_takes_its_place() {
    let site = Site::new();
    let servers = [site.serve("1/2"), site.serve("2/2"), site.serve("2/2")];
    servers[1].orb.shutdown(true).unwrap();
    let rows = site.rows();
    for _ in 0..8 {
        assert_eq!(rows.total(&[1, 2, 3, 4]).unwrap(), 10);
    }
    assert_eq!(lengths(&servers), [vec![2; 8], vec![], vec![2; 8]]);
}

/// An idempotent operation is asked of another server of the part when one is late. The first waits for the second.
#[test]
fn a_late_part_is_hedged() {
    let site = Site::new();
    let rival = Arc::new(Rival::default());
    let late = || Part { rival: Some(rival.clone()), ..Part::default() };
    let _servers =
        [site.serve("1/2"), site.serve_as(late(), Some("2/2")), site.serve_as(late(), Some("2/2"))];
    let options = PartOptions::new().hedged_after(Duration::from_millis(20));
    let rows: ParallelRef<RowsRef> = site.jobs().parallel("rows", options);
    assert_eq!(rows.total_again(&[1, 2, 3, 4]).unwrap(), 10);
    assert_eq!(*rival.asked.lock().unwrap(), 2);
}

#[test]
fn an_exception_of_a_part_is_that_of_the_call() {
    let site = Site::new();
    let _parts = site.parts(4);
    match site.rows().total(&[1, 2, 3, 4, 5, REFUSED, 7, 8]) {
        Err(TotalError::Refused(Refused { number: REFUSED })) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_that_cannot_be_sent_to_one_part_are_sent_to_none() {
    let site = Site::new();
    let servers = site.parts(4);
    let rows = site.rows();
    let e = rows.axpy(1.0, &[1.0, 2.0], &[1.0]).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
    let names = ["a", "b", "longer", "d"].map(str::to_owned);
    let e = rows.reversed(&names).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
    assert!(e.detail().unwrap().contains("part 3 of 4 of rows"), "{e:?}");
    assert_eq!(lengths(&servers), vec![Vec::<usize>::new(); 4]);
}

#[test]
fn results_that_do_not_become_one_are_an_exception() {
    let site = Site::new();
    let _parts = site.parts(2);
    let rows = site.rows();
    assert_eq!(rows.narrow_total(&[i32::MAX, 0]).unwrap(), i32::MAX);
    let e = rows.narrow_total(&[i32::MAX, 1]).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::DataConversion, CompletionStatus::Yes));
    assert_eq!(rows.positive_in_turn(&[1, 2, 3]).unwrap(), [1, 2, 3]);
    let e = rows.positive_in_turn(&[-1, 2, -3, 4]).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::DataConversion, CompletionStatus::Yes));
    assert!(e.detail().unwrap().contains("rows"), "{e:?}");
}

/// Else a name whose servers are held would have equals, and one part would pass for the whole.
#[test]
fn held_names_have_parts_too() {
    let site = Site::new();
    let servers = site.parts(3);
    let jobs = Jobs::builder(&site.client).handles(HeldHandles::new(&site.agents)).build();
    let rows: ParallelRef<RowsRef> = jobs.parallel("rows", PartOptions::new());
    assert_eq!(rows.total(&[1, 2, 3, 4]).unwrap(), 10);
    assert_eq!(lengths(&servers), [[2], [1], [1]]);
    let e = system(jobs.parallel::<RowsRef>("nothing", PartOptions::new()).total(&[1]).unwrap_err());
    assert_eq!(e.kind, SystemExceptionKind::Transient);
}

/// Four servers that know nothing of parts, as processes, which are killed. Each answers only for the share that it is to get.
#[test]
fn parts_may_be_any_servers_and_a_killed_one_is_named() {
    let agent = ServingProcess::start(["agent", "serve", "--lease", "3", "--endpoint", "iiop://127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/parallel.idl");
    let shares = [json!([1, 2]), json!([3, 4]), json!([5]), json!([6])];
    let mut servers: Vec<Option<[ServingProcess; 2]>> = Vec::new();
    for (at, share) in shares.into_iter().enumerate() {
        let total = 10 * (at + 1);
        let answers =
            json!({"shared::Rows": {"total": {"when": [{"arguments": {"x": share}, "result": total}]}}});
        let file = folder.path().join(format!("{at}.json"));
        std::fs::write(&file, answers.to_string()).unwrap();
        let server = ServingProcess::start(["serve-mock", idl, "--answers", file.to_str().unwrap()]);
        let reference = format!("corbaloc::1.2@{}/Rows", server.ready);
        let part = format!("part={}/4", at + 1);
        let args = ["agent", "register", "--agent", &agent.ready, "rows", &reference, "--property", &part];
        servers.push(Some([server, ServingProcess::start(args)]));
    }
    let client = Orb::builder().build().unwrap();
    let agents = AgentClient::connect(&client, [&agent.ready]).unwrap();
    let jobs = Jobs::builder(&client).handles(AgentHandles::new(&agents)).build();
    let rows: ParallelRef<RowsRef> = jobs.parallel("rows", PartOptions::new());
    let numbers = [1, 2, 3, 4, 5, 6];
    assert_eq!(rows.total(&numbers).unwrap(), 100);
    let [server, registration] = servers[2].take().unwrap();
    // SIGKILL. Its lease goes on.
    drop(server);
    let e = system(rows.total(&numbers).unwrap_err());
    assert!(e.detail().unwrap().contains("part 3 of 4 of rows"), "{e:?}");
    assert_eq!(e.completed, CompletionStatus::Maybe, "{e:?}");
    drop(registration);
    eventually("the part has left with its lease, and nothing is sent", || {
        let e = system(rows.total(&numbers).unwrap_err());
        assert!(e.detail().unwrap().contains("part 3 of 4 of rows"), "{e:?}");
        e.completed == CompletionStatus::No
    });
}

/// A part that does not answer until its time is over.
#[test]
fn a_call_takes_no_longer_than_it_may() {
    let site = Site::new();
    let rival = Arc::new(Rival::default());
    let late = Part { rival: Some(rival.clone()), ..Part::default() };
    let _servers = [site.serve("1/2"), site.serve_as(late, Some("2/2"))];
    let options = PartOptions::new().within(Duration::from_secs(1));
    let rows: ParallelRef<RowsRef> = site.jobs().parallel("rows", options);
    let e = rows.total_again(&[1, 2]).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe), "{e:?}");
    assert!(e.detail().unwrap().contains("part 2 of 2 of rows"), "{e:?}");
    rival.wait_for_both();
}

/// The first part must not be given up: a servant's exception is an answer, and what others do for the call goes on.
#[test]
fn the_others_are_waited_for_when_a_servant_raises_an_exception() {
    let site = Site::new();
    let servers = site.parts(2);
    for _ in 0..8 {
        assert!(site.rows().total(&[1, REFUSED]).is_err());
        assert_eq!(lengths(&servers), [[1], [1]]);
    }
}

/// Several threads share one reference.
#[test]
fn calls_side_by_side_have_their_own_results() {
    let site = Site::new();
    let _parts = site.parts(3);
    let (rows, done) = (site.rows(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (rows, done) = (rows.clone(), &done);
            scope.spawn(move || {
                for round in 0..10 {
                    let numbers: Vec<i32> = (0..7).map(|n| n + 1000 * thread + round).collect();
                    let doubled: Vec<i32> = numbers.iter().map(|n| 2 * n).collect();
                    assert_eq!(rows.doubled(&numbers).unwrap(), doubled);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 40);
}

/// A call that is begun takes no thread, has the same result, and is given up with what stands for it.
#[test]
fn calls_are_begun_and_go_on_by_themselves() {
    let site = Site::new();
    let gate = Gate::closed();
    let _opens = gate.open_at_end();
    let serve = |says| site.serve_as(Part { gate: Some(gate.clone()), ..Part::default() }, Some(says));
    let servers = ["1/2", "2/2"].map(serve);
    // The limit only bounds a hang.
    let rows: ParallelRef<RowsRef> =
        site.jobs().parallel("rows", PartOptions::new().within(Duration::from_secs(40)));
    let pending = rows.doubled_async(&[1, 2, 3]);
    eventually("both parts are at work", || gate.held() == 2);
    assert_eq!(rows.total_async(&[1, 2, 3]).wait().unwrap(), 6);
    assert!(format!("{pending:?}").contains("rows"));
    gate.open();
    assert_eq!(run(pending).unwrap(), [2, 4, 6]);
    assert_eq!(lengths(&servers), [[2, 2], [1, 1]]);
    for numbers in [&[][..], &[1], &[1, 2, 3, 4, 5]] {
        let (mut begun, mut waited) = (Vec::new(), Vec::new());
        (0..3).for_each(|_| begun.push(rows.doubled_async(numbers)));
        (0..3).for_each(|_| waited.push(rows.doubled(numbers).unwrap()));
        assert_eq!(begun.into_iter().map(|pending| run(pending).unwrap()).collect::<Vec<_>>(), waited);
    }
    // Exceptions are those of calls that block.
    let e = run(rows.total_async(&[1, REFUSED])).unwrap_err();
    assert!(matches!(e, TotalError::Refused(Refused { number: REFUSED })), "{e}");
    let e = run(rows.axpy_async(1.0, &[1.0], &[])).unwrap_err();
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
    let nobody: ParallelRef<RowsRef> = site.jobs().parallel("nobody", PartOptions::new());
    let e = system(nobody.total_async(&[1]).wait().unwrap_err());
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
    assert_eq!(run(ParallelRef::of(&servers[0].object).total_async(&[4, 5])).unwrap(), 9);
    // What nobody waits for is cancelled.
    gate.close();
    let pending = rows.doubled_async(&[1, 2]);
    eventually("both parts are at work", || gate.held() == 2);
    drop(pending);
    for server in &servers {
        eventually("its server is told", || server.orb.status().total("cancel_requests_total") == 1);
    }
}

/// A servant may know which part of the whole its arguments are.
#[test]
fn parts_are_told_their_shares() {
    let site = Site::new();
    let servers = site.parts(3);
    let rows = site.rows();
    let whole: Vec<i32> = (0..8).collect();
    rows.total(&whole).unwrap();
    rows.total_in_turn(&whole).unwrap();
    run(rows.doubled_async(&whole[..2])).unwrap();
    let told = |server: &Server| std::mem::take(&mut *server.part.told.lock().unwrap());
    let told: Vec<Vec<_>> = servers.iter().map(told).collect();
    let expected = [
        (Distribution::Block, 3, 8, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]),
        (Distribution::Cyclic, 3, 8, [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]),
        // The third has no share.
        (Distribution::Block, 2, 2, [vec![0], vec![1], vec![]]),
    ];
    for (call, (distribution, of, length, places)) in expected.into_iter().enumerate() {
        for (part, places) in places.into_iter().enumerate().filter(|(_, places)| !places.is_empty()) {
            let told = told[part][call].expect("it is told");
            assert_eq!((told.share().part(), told.share().of()), (part, of));
            assert_eq!((told.share().distribution(), told.whole_length()), (distribution, length));
            assert_eq!((0..places.len()).map(|at| told.place(at)).collect::<Vec<_>>(), places);
        }
    }
    // A plain call has the whole.
    let one = site.client.string_to_object(&servers[0].object.object().to_ior_string()).unwrap();
    ParallelRef::of(&one.narrow_unchecked::<RowsRef>()).total(&whole).unwrap();
    assert_eq!(*servers[0].part.told.lock().unwrap(), [None]);
}
