//! Further attempts are a share of first ones.

use ironorb_fan_out::{Budget, BudgetLimits};

fn spend_all(budget: &Budget) -> usize {
    std::iter::repeat_with(|| budget.spend()).take_while(|spent| *spent).count()
}

#[test]
fn a_budget_begins_with_its_burst_and_never_has_more() {
    let budget = Budget::default();
    assert_eq!(spend_all(&budget), 10);
    (0..1_000).for_each(|_| budget.earn());
    assert_eq!(spend_all(&budget), 10);
    assert_eq!(budget.counts().first, 1_000);
    assert_eq!(budget.counts().further, 20);
    assert_eq!(budget.counts().refused, 2);
}

#[test]
fn twenty_first_attempts_earn_a_further_one() {
    let budget = Budget::default();
    spend_all(&budget);
    (0..19).for_each(|_| budget.earn());
    assert!(!budget.spend());
    budget.earn();
    assert_eq!(spend_all(&budget), 1);
}

#[test]
fn what_is_given_back_can_be_spent() {
    let budget = Budget::new(BudgetLimits { share: 0.0, burst: 1 });
    assert!(budget.spend() && !budget.spend());
    budget.give_back();
    assert_eq!(spend_all(&budget), 1);
    assert_eq!(budget.counts().further, 1);
}

#[test]
fn shares_out_of_range_are_the_nearest_in_range() {
    for (share, spent) in [(-1.0, 0), (f64::NAN, 0), (0.5, 50), (7.0, 100)] {
        let budget = Budget::new(BudgetLimits { share, burst: 100 });
        spend_all(&budget);
        (0..100).for_each(|_| budget.earn());
        assert_eq!(spend_all(&budget), spent, "{share}");
    }
}

#[test]
fn threads_together_spend_what_they_have_earned() {
    let budget = Budget::new(BudgetLimits { share: 0.25, burst: 10_000 });
    let burst = spend_all(&budget) as u64;
    let work = || {
        for _ in 0..10_000 {
            budget.earn();
            budget.spend();
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    assert_eq!(budget.counts().first, 40_000);
    // All that was earned has room in the burst, so that nothing is lost.
    spend_all(&budget);
    assert_eq!(budget.counts().further, burst + 10_000);
}
