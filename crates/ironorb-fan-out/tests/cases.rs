//! Jobs step by step.

use std::sync::Arc;
use std::time::Duration;

use ironorb_fan_out::{
    Attempt, Begun, Budget, BudgetLimits, Desk, DeskLimits, Ended, Executed, Job, Moment, Order, Outcome,
    Part, Plan, Quorum, RaisedBy, Server, Step, Taken, Verdict,
};

const MS: Duration = Duration::from_millis(1);

/// A part that three servers can execute, any number of times, with a hedge after 10 ms.
const REPEATABLE: Part =
    Part { time: None, may_be_repeated: true, servers: 3, hedge_after: Some(Duration::from_millis(10)) };

fn at(ms: u64) -> Moment {
    Moment::from_nanos(ms * 1_000_000)
}

fn plan(parts: &[Part], quorum: Quorum) -> Plan {
    Plan { parts: parts.to_vec(), quorum, order: Order::AtOnce, time: None }
}

/// A job that has begun at 0, with a budget that is large enough.
fn begun(plan: &Plan) -> Job {
    with_burst(plan, 100)
}

fn with_burst(plan: &Plan, burst: u32) -> Job {
    let budget = Budget::new(BudgetLimits { share: 0.0, burst });
    let mut job = Job::new(plan, Arc::new(budget));
    job.begin(at(0));
    job
}

fn attempt(part: usize, number: u32) -> Attempt {
    Attempt { part, number }
}

fn start(part: usize, number: u32) -> Step {
    let server = if number == 0 { Server::FirstChoice } else { Server::Another };
    Step::Start { attempt: attempt(part, number), server }
}

fn tell(part: usize, outcome: Outcome) -> Step {
    Step::Tell { part, outcome }
}

fn result(part: usize, number: u32) -> Step {
    tell(part, Outcome::Result(attempt(part, number)))
}

fn raised(part: usize, number: u32, by: RaisedBy) -> Step {
    tell(part, Outcome::Exception(attempt(part, number), by))
}

const MAYBE: Outcome = Outcome::Cancelled(Executed::Maybe);
const NOT: Outcome = Outcome::Cancelled(Executed::No);

fn steps(job: &mut Job) -> Vec<Step> {
    std::iter::from_fn(|| job.poll_step()).collect()
}

#[track_caller]
fn check(job: &mut Job, expected: &[Step]) {
    assert_eq!(steps(job), expected);
}

#[test]
fn all_parts_start_at_once_and_the_job_is_over_when_the_last_has_answered() {
    let mut job = begun(&plan(&[Part::ONE; 2], Quorum::All));
    check(&mut job, &[start(0, 0), start(1, 0)]);
    assert!(job.handle_end(attempt(1, 0), Ended::Result, at(50)));
    check(&mut job, &[result(1, 0)]);
    assert!(job.handle_end(attempt(0, 0), Ended::Result, at(55)));
    check(&mut job, &[result(0, 0), Step::Over(Verdict::Met)]);
    assert_eq!(job.wakes_at(), None);
}

#[test]
fn parts_in_turn_wait_for_the_one_before() {
    let in_turn = Plan { order: Order::InTurn, ..plan(&[Part::ONE; 3], Quorum::BestEffort) };
    let mut job = begun(&in_turn);
    check(&mut job, &[start(0, 0)]);
    job.handle_end(attempt(0, 0), Ended::Result, at(50));
    check(&mut job, &[result(0, 0), start(1, 0)]);
    job.handle_end(attempt(1, 0), Ended::MaybeExecuted, at(60));
    check(&mut job, &[tell(1, Outcome::Unknown), start(2, 0)]);
}

#[test]
fn an_exception_is_an_answer_to_a_job_of_all_parts() {
    let mut job = begun(&plan(&[Part::ONE; 2], Quorum::All));
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::Exception, at(1));
    check(&mut job, &[raised(0, 0, RaisedBy::Application)]);
    job.handle_end(attempt(1, 0), Ended::Result, at(2));
    check(&mut job, &[result(1, 0), Step::Over(Verdict::Met)]);
}

#[test]
fn a_job_of_any_part_passes_over_exceptions_while_a_result_may_come() {
    let mut job = begun(&plan(&[Part::ONE; 3], Quorum::Any));
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::Exception, at(1));
    check(&mut job, &[raised(0, 0, RaisedBy::Application)]);
    job.handle_end(attempt(2, 0), Ended::Result, at(2));
    let cancel = Step::Cancel(attempt(1, 0));
    check(&mut job, &[result(2, 0), tell(1, MAYBE), cancel, Step::Over(Verdict::Met)]);

    let mut job = begun(&plan(&[Part::ONE; 2], Quorum::Any));
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::Exception, at(1));
    job.handle_end(attempt(1, 0), Ended::Exception, at(2));
    let [first, second] = [0, 1].map(|part| raised(part, 0, RaisedBy::Application));
    check(&mut job, &[first, second, Step::Over(Verdict::CannotBeMet)]);
}

#[test]
fn a_quorum_that_cannot_be_met_any_more_ends_the_job() {
    let mut job = begun(&plan(&[Part::ONE; 3], Quorum::AtLeast(2)));
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::MaybeExecuted, at(1));
    check(&mut job, &[tell(0, Outcome::Unknown)]);
    job.handle_end(attempt(1, 0), Ended::Exception, at(2));
    let cancel = Step::Cancel(attempt(2, 0));
    let over = Step::Over(Verdict::CannotBeMet);
    check(&mut job, &[raised(1, 0, RaisedBy::Application), tell(2, MAYBE), cancel, over]);
}

#[test]
fn quorums_that_need_no_start_or_help_none() {
    let over = |verdict| Step::Over(verdict);
    check(&mut begun(&plan(&[], Quorum::All)), &[over(Verdict::Met)]);
    check(&mut begun(&plan(&[], Quorum::Any)), &[over(Verdict::CannotBeMet)]);
    check(&mut begun(&plan(&[], Quorum::BestEffort)), &[over(Verdict::Met)]);
    check(&mut begun(&plan(&[Part::ONE], Quorum::AtLeast(0))), &[tell(0, NOT), over(Verdict::Met)]);
    check(&mut begun(&plan(&[Part::ONE], Quorum::AtLeast(2))), &[tell(0, NOT), over(Verdict::CannotBeMet)]);
    let no_time = Plan { time: Some(Duration::ZERO), ..plan(&[Part::ONE], Quorum::All) };
    check(&mut begun(&no_time), &[tell(0, NOT), over(Verdict::Deadline)]);
}

#[test]
fn at_the_deadline_an_answer_is_late() {
    let timed = Plan { time: Some(MS * 20), ..plan(&[Part::ONE; 2], Quorum::All) };
    let mut job = begun(&timed);
    steps(&mut job);
    assert_eq!(job.wakes_at(), Some(at(20)));
    job.handle_end(attempt(0, 0), Ended::Result, at(19));
    check(&mut job, &[result(0, 0)]);
    assert!(!job.handle_end(attempt(1, 0), Ended::Result, at(20)));
    let cancel = Step::Cancel(attempt(1, 0));
    check(&mut job, &[tell(1, MAYBE), cancel, Step::Over(Verdict::Deadline)]);
}

#[test]
fn the_best_effort_is_what_has_come_at_the_deadline() {
    let timed = Plan { time: Some(MS * 20), ..plan(&[Part::ONE; 2], Quorum::BestEffort) };
    let mut job = begun(&timed);
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::Exception, at(5));
    check(&mut job, &[raised(0, 0, RaisedBy::Application)]);
    job.handle_time(at(25));
    check(&mut job, &[tell(1, MAYBE), Step::Cancel(attempt(1, 0)), Step::Over(Verdict::Met)]);
}

/// It has its time from its own beginning.
#[test]
fn a_part_may_have_less_time_than_its_job() {
    let short = Part { time: Some(MS * 5), ..Part::ONE };
    let in_turn = Plan { order: Order::InTurn, ..plan(&[short, short], Quorum::AtLeast(1)) };
    let mut job = begun(&in_turn);
    check(&mut job, &[start(0, 0)]);
    job.handle_time(at(5));
    check(&mut job, &[tell(0, MAYBE), Step::Cancel(attempt(0, 0)), start(1, 0)]);
    assert_eq!(job.wakes_at(), Some(at(10)));
    job.handle_end(attempt(1, 0), Ended::Result, at(9));
    check(&mut job, &[result(1, 0), Step::Over(Verdict::Met)]);
}

#[test]
fn what_was_not_executed_is_tried_at_another_server() {
    let two_servers = Part { servers: 2, ..Part::ONE };
    let mut job = begun(&plan(&[two_servers], Quorum::All));
    steps(&mut job);
    assert!(!job.handle_end(attempt(0, 0), Ended::NotExecuted, at(1)));
    check(&mut job, &[start(0, 1)]);
    // There is no third one.
    assert!(job.handle_end(attempt(0, 1), Ended::NotExecuted, at(2)));
    check(&mut job, &[raised(0, 1, RaisedBy::System), Step::Over(Verdict::CannotBeMet)]);
}

#[test]
fn what_may_have_been_executed_is_tried_again_only_if_it_may_be_repeated() {
    let once = Part { may_be_repeated: false, ..REPEATABLE };
    let mut job = begun(&plan(&[once, REPEATABLE], Quorum::BestEffort));
    steps(&mut job);
    job.handle_end(attempt(0, 0), Ended::MaybeExecuted, at(1));
    check(&mut job, &[tell(0, Outcome::Unknown)]);
    job.handle_end(attempt(1, 0), Ended::MaybeExecuted, at(1));
    check(&mut job, &[start(1, 1)]);
    // Nobody knows of the first attempt.
    job.handle_end(attempt(1, 1), Ended::NotExecuted, at(2));
    check(&mut job, &[start(1, 2)]);
    job.handle_end(attempt(1, 2), Ended::NotExecuted, at(3));
    check(&mut job, &[tell(1, Outcome::Unknown), Step::Over(Verdict::Met)]);
}

#[test]
fn a_hedge_starts_beside_a_slow_attempt_and_the_first_answer_counts() {
    let mut job = begun(&plan(&[REPEATABLE], Quorum::All));
    check(&mut job, &[start(0, 0)]);
    assert_eq!(job.wakes_at(), Some(at(10)));
    job.handle_time(at(10));
    check(&mut job, &[start(0, 1)]);
    assert_eq!(job.wakes_at(), Some(at(20)));
    assert!(job.handle_end(attempt(0, 1), Ended::Result, at(12)));
    check(&mut job, &[result(0, 1), Step::Cancel(attempt(0, 0)), Step::Over(Verdict::Met)]);
    // The loser answers all the same.
    assert!(!job.handle_end(attempt(0, 0), Ended::Result, at(13)));
    check(&mut job, &[]);
}

/// An exception of the server that was asked second says nothing of the one that was asked first.
#[test]
fn another_attempt_may_have_executed_what_one_has_not() {
    let with_one_of = |ended| {
        let mut job = begun(&plan(&[REPEATABLE], Quorum::All));
        check(&mut job, &[start(0, 0)]);
        assert!(!job.may_be_executed_by_another(attempt(0, 0)), "there is no other");
        job.handle_time(at(10));
        check(&mut job, &[start(0, 1)]);
        if let Some(ended) = ended {
            job.handle_end(attempt(0, 0), ended, at(11));
        }
        assert!(job.handle_end(attempt(0, 1), Ended::Exception, at(12)));
        job.may_be_executed_by_another(attempt(0, 1))
    };
    assert!(with_one_of(None), "it is under way, and cancelled");
    assert!(with_one_of(Some(Ended::MaybeExecuted)));
    assert!(!with_one_of(Some(Ended::NotExecuted)));
    let mut job = begun(&plan(&[REPEATABLE], Quorum::All));
    check(&mut job, &[start(0, 0)]);
    job.handle_time(at(10));
    // The hedge has not been sent, and is not any more.
    job.handle_end(attempt(0, 0), Ended::Exception, at(11));
    assert!(!job.may_be_executed_by_another(attempt(0, 0)));
    assert!(!job.may_be_executed_by_another(attempt(1, 0)), "there is no such part");
}

#[test]
fn a_part_has_two_hedges_and_no_more() {
    let many = Part { servers: 9, ..REPEATABLE };
    let mut job = begun(&plan(&[many], Quorum::All));
    steps(&mut job);
    job.handle_time(at(10));
    // The clock has stepped: one delay is over and not three.
    job.handle_time(at(50));
    check(&mut job, &[start(0, 1), start(0, 2)]);
    assert_eq!(job.wakes_at(), None);
    job.handle_time(at(1_000));
    check(&mut job, &[]);
}

#[test]
fn a_part_that_must_not_be_repeated_has_no_hedges() {
    let once = Part { may_be_repeated: false, ..REPEATABLE };
    let mut job = begun(&plan(&[once], Quorum::All));
    check(&mut job, &[start(0, 0)]);
    assert_eq!(job.wakes_at(), None);
    job.handle_time(at(50));
    check(&mut job, &[]);
}

/// While another attempt is under way, one that fails has no retry.
#[test]
fn a_hedge_stands_in_for_a_retry() {
    let mut job = begun(&plan(&[REPEATABLE], Quorum::All));
    job.handle_time(at(10));
    steps(&mut job);
    assert!(!job.handle_end(attempt(0, 0), Ended::NotExecuted, at(11)));
    check(&mut job, &[]);
    assert!(!job.handle_end(attempt(0, 1), Ended::NotExecuted, at(12)));
    check(&mut job, &[start(0, 2)]);
}

#[test]
fn an_empty_budget_allows_neither_retries_nor_hedges() {
    let mut job = with_burst(&plan(&[REPEATABLE], Quorum::All), 0);
    steps(&mut job);
    job.handle_time(at(10));
    check(&mut job, &[]);
    job.handle_end(attempt(0, 0), Ended::NotExecuted, at(11));
    check(&mut job, &[raised(0, 0, RaisedBy::System), Step::Over(Verdict::CannotBeMet)]);
}

#[test]
fn a_caller_that_gives_up_is_told_of_each_part() {
    let in_turn = Plan { order: Order::InTurn, ..plan(&[Part::ONE; 2], Quorum::All) };
    let mut job = begun(&in_turn);
    steps(&mut job);
    job.give_up();
    let expected = [tell(0, MAYBE), Step::Cancel(attempt(0, 0)), tell(1, NOT), Step::Over(Verdict::GivenUp)];
    check(&mut job, &expected);
    job.give_up();
    job.begin(at(1));
    check(&mut job, &[]);
}

/// What another thread of the driver has not sent yet need not be cancelled, and costs no budget.
#[test]
fn an_attempt_whose_step_was_not_taken_is_forgotten() {
    let budget = Arc::new(Budget::new(BudgetLimits { share: 0.0, burst: 1 }));
    let mut job = Job::new(&plan(&[Part::ONE, REPEATABLE], Quorum::Any), budget.clone());
    job.begin(at(0));
    assert_eq!(job.poll_step(), Some(start(0, 0)));
    job.handle_time(at(10));
    assert_eq!(budget.counts().further, 1, "a hedge of the second part waits");
    job.handle_end(attempt(0, 0), Ended::Result, at(11));
    check(&mut job, &[result(0, 0), tell(1, NOT), Step::Over(Verdict::Met)]);
    assert_eq!((budget.counts().first, budget.counts().further), (1, 0));
    assert!(budget.spend(), "the hedge was not made");
}

#[test]
fn an_attempt_that_the_driver_cancels_is_not_tried_again() {
    let mut job = begun(&plan(&[REPEATABLE], Quorum::All));
    steps(&mut job);
    assert!(job.handle_end(attempt(0, 0), Ended::Cancelled, at(1)));
    check(&mut job, &[tell(0, MAYBE), Step::Over(Verdict::CannotBeMet)]);
}

#[test]
fn answers_that_come_twice_or_to_nothing_change_nothing() {
    let mut job = begun(&plan(&[Part::ONE; 2], Quorum::All));
    assert!(!job.handle_end(attempt(0, 0), Ended::Result, at(0)), "its step was not taken");
    steps(&mut job);
    assert!(job.handle_end(attempt(0, 0), Ended::Exception, at(1)));
    assert!(!job.handle_end(attempt(0, 0), Ended::Result, at(2)));
    assert!(!job.handle_end(attempt(1, 7), Ended::Result, at(3)));
    assert!(!job.handle_end(attempt(9, 0), Ended::Result, at(4)));
    check(&mut job, &[raised(0, 0, RaisedBy::Application)]);
}

/// A clock that runs backwards gives no part more time.
#[test]
fn an_earlier_moment_counts_as_the_latest() {
    let short = Part { time: Some(MS * 5), ..Part::ONE };
    let mut job = begun(&plan(&[short], Quorum::All));
    steps(&mut job);
    job.handle_time(at(4));
    job.handle_time(at(1));
    assert_eq!(job.wakes_at(), Some(at(5)));
    let mut late = begun(&Plan { order: Order::InTurn, ..plan(&[Part::ONE, short], Quorum::BestEffort) });
    steps(&mut late);
    late.handle_time(at(100));
    late.handle_end(attempt(0, 0), Ended::Result, at(50));
    assert_eq!(late.wakes_at(), Some(at(105)));
}

#[test]
fn a_task_that_is_no_longer_wanted_makes_room_for_another() {
    let mut desk = Desk::new(DeskLimits { threads: 1, queue_max: 2, queue_octets_max: 10 });
    let first = Begun { task: "first", waited: Duration::ZERO };
    assert_eq!(desk.take("first", 100, false, at(0)), Taken::Begins(first));
    assert_eq!(desk.take("second", 4, false, at(1)), Taken::Waits);
    assert_eq!(desk.take("third", 6, false, at(2)), Taken::Waits);
    assert_eq!(desk.take("fourth", 1, false, at(3)), Taken::Refused("fourth"));
    assert_eq!(desk.remove(|&task| task == "first"), None, "it is under way");
    assert_eq!(desk.remove(|&task| task == "second"), Some("second"));
    assert_eq!((desk.counts().queued, desk.counts().queued_octets, desk.counts().busy), (1, 6, 1));
    assert_eq!(desk.take("fourth", 4, false, at(4)), Taken::Waits);
    assert_eq!(desk.finish(at(12)), Some(Begun { task: "third", waited: MS * 10 }));
    assert_eq!(desk.finish(at(14)), Some(Begun { task: "fourth", waited: MS * 10 }));
    assert_eq!(desk.finish(at(15)), None);
    assert_eq!(desk.counts().queued_octets, 0);
}
