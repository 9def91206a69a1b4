use super::*;

/// The same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// Facts with few different values, so that many are equally urgent.
    fn facts(&mut self, now: Time) -> SchedulingFacts {
        use crate::object::priority::Priority;
        use crate::object::timing::Level;
        let mut level =
            || [None, Some(Level::Low), Some(Level::Medium), Some(Level::High)][self.below(4) as usize];
        let (criticality, importance) = (level(), level());
        let due = self.below(6);
        SchedulingFacts {
            priority: Priority::new(self.below(4) as i16),
            deadline: Deadline::at_time((due > 0).then(|| now + Duration::from_nanos(due * 10))),
            wcet: Some(Duration::from_nanos(self.below(20))).filter(|wcet| !wcet.is_zero()),
            criticality,
            importance,
        }
    }
}

const ORDERS: [RequestOrder; 5] = [
    RequestOrder::Arrival,
    RequestOrder::Priority,
    RequestOrder::EarliestDeadline,
    RequestOrder::LeastLaxity,
    RequestOrder::UrgencyFirst,
];

/// A list that is sorted anew each time.
struct SortedList {
    limits: QueueLimits,
    list: Vec<(Urgency, u64, usize)>,
}

impl SortedList {
    fn bytes(&self) -> usize {
        self.list.iter().map(|(_, _, bytes)| bytes).sum()
    }

    fn is_over(&self) -> bool {
        self.list.len() > self.limits.requests_max || self.bytes() > self.limits.bytes_max
    }

    /// Takes a request in, and drops from the end. What was dropped; `None` if it would have been the request itself or one
    /// that is as urgent.
    fn offer(&mut self, request: u64, urgency: Urgency, bytes: usize) -> Option<Vec<u64>> {
        let before = self.list.clone();
        self.list.push((urgency, request, bytes));
        self.list.sort();
        let mut dropped = Vec::new();
        while self.is_over() {
            let (last, id, _) = self.list.pop()?;
            if last <= urgency {
                self.list = before;
                return None;
            }
            dropped.push(id);
        }
        Some(dropped)
    }
}

#[test]
fn the_queue_does_what_a_sorted_list_does() {
    let mut random = Random(1);
    let (mut displaced_ever, mut refused_ever) = (0, 0);
    for round in 0..400 {
        let order = ORDERS[round % ORDERS.len()];
        let limits = QueueLimits {
            requests_max: 1 + random.below(8) as usize,
            bytes_max: 20 + random.below(200) as usize,
        };
        let mut queue = WaitingRequests::new(order, limits, None);
        let mut list = SortedList { limits, list: Vec::new() };
        for request in 0..60_u64 {
            let now = Time::from_nanos(1_000);
            let (facts, bytes) = (random.facts(now), 1 + random.below(40) as usize);
            let expected = match list.offer(request, Urgency::of(&facts, order), bytes) {
                Some(displaced) => Offered::Waits { displaced },
                None => Offered::NoRoom(request),
            };
            displaced_ever +=
                usize::from(matches!(&expected, Offered::Waits { displaced } if !displaced.is_empty()));
            refused_ever += usize::from(matches!(expected, Offered::NoRoom(_)));
            assert_eq!(queue.offer(request, bytes, &facts, now), expected, "{order:?}");
            if random.below(3) == 0 {
                let first = (!list.list.is_empty()).then(|| list.list.remove(0).1);
                assert_eq!(queue.take(now).map(|taken| taken.request), first);
            }
            assert_eq!((queue.len(), queue.bytes), (list.list.len(), list.bytes()));
            assert_eq!(queue.has_room(), queue.len() < limits.requests_max && queue.bytes < limits.bytes_max);
        }
        let rest: Vec<u64> =
            std::iter::from_fn(|| queue.take(Time::ZERO)).map(|taken| taken.request).collect();
        assert_eq!(rest, list.list.iter().map(|(_, request, _)| *request).collect::<Vec<_>>());
        assert_eq!(queue.bytes, 0);
    }
    assert!(displaced_ever > 100 && refused_ever > 100, "{displaced_ever} {refused_ever}");
}

/// What a simulated pool leaves out, to show that the test notices.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// Upcalls that run block nothing.
    Blocking,
    /// Requests are not tested.
    Admission,
}

/// A request of a simulation.
#[derive(Debug, Clone, Copy)]
struct Arrived {
    deadline: Deadline,
    /// How long its upcall really takes.
    takes: Duration,
}

/// A pool whose threads do not interrupt upcalls.
struct SimulatedPool {
    queue: WaitingRequests<Arrived>,
    /// When each busy thread ends, and what it carries out.
    busy: Vec<(Time, Deadline, Option<RunningUpcall>)>,
    threads: usize,
    left_out: LeftOut,
    missed: usize,
}

const LONGEST_UNKNOWN: Duration = Duration::from_nanos(45);

impl SimulatedPool {
    fn new(order: RequestOrder, threads: usize, left_out: LeftOut) -> SimulatedPool {
        let limits = QueueLimits { requests_max: 40, bytes_max: 40 };
        let longest = (left_out != LeftOut::Admission).then_some(LONGEST_UNKNOWN);
        let queue = WaitingRequests::new(order, limits, admission(threads, longest));
        SimulatedPool { queue, busy: Vec::new(), threads, left_out, missed: 0 }
    }

    /// Has every thread that is free take a request.
    fn begin(&mut self, now: Time) {
        while self.busy.len() < self.threads
            && let Some(Taken { request, mut running }) = self.queue.take(now)
        {
            if self.left_out == LeftOut::Blocking
                && let Some(running) = running.take()
            {
                self.queue.end(running);
            }
            self.busy.push((now + request.takes, request.deadline, running));
        }
    }

    /// Has all upcalls end that end by this time.
    fn advance(&mut self, until: Time) {
        loop {
            self.busy.sort_by_key(|(end, ..)| std::cmp::Reverse(*end));
            let Some((end, deadline, running)) = self.busy.pop_if(|(end, ..)| *end <= until) else { return };
            self.missed += usize::from(deadline.at().is_some_and(|deadline| end > deadline));
            running.into_iter().for_each(|running| self.queue.end(running));
            self.begin(end);
        }
    }
}

/// What came of random arrivals.
#[derive(Debug, Default)]
struct Outcome {
    admitted: usize,
    refused: usize,
    missed: usize,
}

fn simulate(left_out: LeftOut) -> Outcome {
    let mut random = Random(7);
    let mut outcome = Outcome::default();
    for round in 0..500 {
        let threads = 1 + random.below(3) as usize;
        let mut pool = SimulatedPool::new(ORDERS[round % ORDERS.len()], threads, left_out);
        let mut now = Time::from_nanos(1_000);
        for _ in 0..80 {
            now += Duration::from_nanos(random.below(30));
            pool.advance(now);
            let facts = random.facts(now);
            let longest = facts.wcet.unwrap_or(LONGEST_UNKNOWN);
            let takes = Duration::from_nanos(random.below(longest.as_nanos() as u64 + 1));
            let request = Arrived { deadline: facts.deadline, takes };
            match pool.queue.offer(request, 1, &facts, now) {
                Offered::Waits { displaced } => {
                    assert!(
                        displaced
                            .iter()
                            .all(|it| it.deadline == Deadline::NEVER || left_out == LeftOut::Admission)
                    );
                    outcome.admitted += 1;
                }
                Offered::NoRoom(_) | Offered::NotInTime(_) => outcome.refused += 1,
            }
            pool.begin(now);
        }
        pool.advance(Time::MAX);
        assert_eq!((pool.queue.len(), pool.busy.len()), (0, 0));
        outcome.missed += pool.missed;
    }
    outcome
}

/// Whatever comes, in every order and with several threads, and however short the upcalls are: what is admitted ends in time.
#[test]
fn no_admitted_request_misses_its_deadline() {
    let outcome = simulate(LeftOut::Nothing);
    assert!(outcome.missed == 0 && outcome.admitted > 1_000 && outcome.refused > 1_000, "{outcome:?}");
}

#[test]
fn without_the_blocking_term_admitted_requests_miss_their_deadlines() {
    let outcome = simulate(LeftOut::Blocking);
    assert!(outcome.missed > 0, "{outcome:?}");
    let unchecked = simulate(LeftOut::Admission);
    assert!(unchecked.missed > outcome.missed, "{unchecked:?}");
}

/// More upcalls than static threads run, because dynamic threads help out. These may go before they take the next request.
#[test]
fn only_static_threads_count() {
    let limits = QueueLimits { requests_max: 4, bytes_max: 4 };
    let mut queue =
        WaitingRequests::new(RequestOrder::EarliestDeadline, limits, admission(1, Some(Duration::ZERO)));
    let job = |wcet, due| SchedulingFacts {
        wcet: Some(Duration::from_nanos(wcet)),
        deadline: Deadline::at_time(Some(Time::from_nanos(due))),
        ..SchedulingFacts::NOTHING
    };
    for wcet in [10, 50] {
        assert_eq!(queue.offer((), 1, &job(wcet, 1_000), Time::ZERO), Offered::Waits { displaced: vec![] });
        queue.take(Time::ZERO).unwrap();
    }
    assert_eq!(queue.offer((), 1, &job(1, 50), Time::ZERO), Offered::NotInTime(()));
    assert_eq!(queue.offer((), 1, &job(1, 51), Time::ZERO), Offered::Waits { displaced: vec![] });
    // The next, more urgent, would have that one end too late.
    assert_eq!(queue.offer((), 1, &job(0, 50), Time::ZERO), Offered::Waits { displaced: vec![] });
    assert_eq!(queue.offer((), 1, &job(1, 50), Time::ZERO), Offered::NotInTime(()));
}
