//! Sequences that are taken apart and put together, for all lengths and numbers of parts.

use std::sync::Arc;
use std::sync::Mutex;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::*;
use crate::naming::cos_naming::naming_context::DestroyError;
use crate::naming::cos_naming::{NamingContextAsync, NamingContextRef};
use crate::orb::Orb;

const DISTRIBUTIONS: [Distribution; 2] = [Distribution::Block, Distribution::Cyclic];

fn each_case(mut check: impl FnMut(Distribution, usize, usize)) {
    for distribution in DISTRIBUTIONS {
        for length in 0..=50 {
            for parts in 1..=9 {
                check(distribution, length, parts);
            }
        }
    }
}

#[test]
fn shares_put_together_are_the_whole() {
    each_case(|distribution, length, parts| {
        let whole: Vec<usize> = (0..length).collect();
        let share = |part| Share::new(distribution, part, parts).take(&whole).into_owned();
        let shares: Vec<Vec<usize>> = (0..parts).map(share).collect();
        assert_eq!(distribution.put_together(shares), Some(whole), "{distribution:?} {length}/{parts}");
    });
}

#[test]
fn no_share_has_two_elements_more_than_another() {
    each_case(|distribution, length, parts| {
        let whole = vec![(); length];
        let lengths = |part| {
            let share = Share::new(distribution, part, parts);
            let taken = share.take(&whole).len();
            assert_eq!(share.length(length), taken, "{distribution:?} {length}/{parts}");
            taken
        };
        let lengths: Vec<usize> = (0..parts).map(lengths).collect();
        assert!(lengths.is_sorted_by(|left, right| left >= right), "longer ones come first: {lengths:?}");
        assert!(lengths[0] - lengths[parts - 1] <= 1, "{lengths:?}");
    });
}

/// Fewer parts have the same shares as all, where the others would have none.
#[test]
fn parts_without_a_share_change_nothing() {
    each_case(|distribution, length, parts| {
        let whole: Vec<usize> = (0..length).collect();
        let needed = parts_needed(length, parts);
        assert!((1..=parts).contains(&needed));
        for part in 0..parts {
            let of_all = Share::new(distribution, part, parts).take(&whole);
            match part < needed {
                true => assert_eq!(Share::new(distribution, part, needed).take(&whole), of_all),
                false => assert!(of_all.is_empty()),
            }
        }
    });
}

#[test]
fn blocks_follow_one_another_and_cyclic_elements_do_not() {
    let whole = [0, 1, 2, 3, 4, 5, 6];
    let take = |distribution, part| Share::new(distribution, part, 3).take(&whole).into_owned();
    assert_eq!(
        [0, 1, 2].map(|part| take(Distribution::Block, part)),
        [vec![0, 1, 2], vec![3, 4], vec![5, 6]]
    );
    assert_eq!(
        [0, 1, 2].map(|part| take(Distribution::Cyclic, part)),
        [vec![0, 3, 6], vec![1, 4], vec![2, 5]]
    );
    assert!(matches!(Share::new(Distribution::Block, 1, 3).take(&whole), std::borrow::Cow::Borrowed(_)));
}

#[test]
fn results_of_any_length_follow_one_another_but_are_not_dealt() {
    let shares = || vec![vec![1], vec![2, 3, 4], vec![]];
    assert_eq!(Concatenated::join(shares(), Distribution::Block), Ok(vec![1, 2, 3, 4]));
    assert_eq!(Concatenated::join(shares(), Distribution::Cyclic), Err(NotJoined::NotDealt));
}

#[test]
fn reductions_are_those_of_their_names() {
    let of = Distribution::Block;
    assert_eq!(Sum::join(vec![1, 2, 4], of), Ok(7));
    assert_eq!(Product::join(vec![2.0, 3.0, 4.0], of), Ok(24.0));
    assert_eq!(Min::join(vec![3, -1, 2], of), Ok(-1));
    assert_eq!(Max::join(vec![3, -1, 2], of), Ok(3));
    assert_eq!(And::join(vec![true, false, true], of), Ok(false));
    assert_eq!(And::join(vec![true, true], of), Ok(true));
    assert_eq!(Or::join(vec![0b100u8, 0b001], of), Ok(0b101));
    assert_eq!(First::join(vec!["a", "b"], of), Ok("a"));
    assert_eq!(Equal::join(vec!["a", "a"], of), Ok("a"));
    assert_eq!(Equal::join(vec!["a", "b"], of), Err(NotJoined::Differ));
    assert_eq!(Sum::join(vec![vec![1, 2], vec![3, 4]], of), Ok(vec![4, 6]));
    assert_eq!(Max::join(vec![vec![1], vec![3, 4]], of), Err(NotJoined::SeveralLengths));
}

#[test]
fn a_reduction_that_is_out_of_range_is_no_number() {
    assert_eq!(Sum::join(vec![i32::MAX, 1], Distribution::Block), Err(NotJoined::OutOfRange));
    assert_eq!(Product::join(vec![200u8, 2], Distribution::Block), Err(NotJoined::OutOfRange));
}

/// Whichever part gives it.
#[test]
fn what_is_no_number_is_not_passed_over() {
    for values in [vec![f64::NAN, 1.0], vec![1.0, f64::NAN], vec![2.0, f64::NAN, 1.0]] {
        assert!(Min::join(values.clone(), Distribution::Block).unwrap().is_nan(), "{values:?}");
        assert!(Max::join(values.clone(), Distribution::Block).unwrap().is_nan(), "{values:?}");
    }
}

#[test]
fn several_results_are_joined_each_in_its_way() {
    let parts = vec![(1, vec!["a"], 5), (2, vec!["b"], 4)];
    let joined = <(Sum, Concatenated, Min) as Join<_>>::join(parts, Distribution::Block);
    assert_eq!(joined, Ok((3, vec!["a", "b"], 4)));
    assert_eq!(<() as Join<()>>::join(vec![(), ()], Distribution::Cyclic), Ok(()));
}

/// Parts whose calls end as a test says.
struct Scripted {
    parts: usize,
    ends: Mutex<Vec<PartEnd>>,
    /// What the calls of those that have answered end with, in order.
    answers: Mutex<Vec<SystemException>>,
    object: ObjectRef,
}

impl Parts for Scripted {
    fn name(&self) -> String {
        "rows".to_owned()
    }

    fn call(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<PartsCalled, SystemException> {
        let called = parts_needed(length, self.parts);
        for part in 0..called {
            let ((), written) = crate::dynamic::write_down(|| begin(&self.object, part, called));
            for call in written {
                let mut answers = self.answers.lock().unwrap();
                call.end(Err(if answers.is_empty() {
                    failed(CompletionStatus::No)
                } else {
                    answers.remove(0)
                }));
            }
        }
        Ok(PartsCalled { parts: self.parts, ends: std::mem::take(&mut self.ends.lock().unwrap()) })
    }
}

fn failed(completed: CompletionStatus) -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, completed).with_detail("it is off")
}

fn not_executed() -> PartEnd {
    PartEnd::Cancelled { may_be_executed: false }
}

fn maybe_executed() -> PartEnd {
    PartEnd::Cancelled { may_be_executed: true }
}

/// The exception of a call whose parts end like this.
fn exception_of(ends: Vec<PartEnd>, answers: Vec<SystemException>) -> SystemException {
    let orb = Orb::builder().build().unwrap();
    let object = orb.string_to_object("corbaloc::192.0.2.1:1/x").unwrap();
    let parts = ends.len();
    let scripted = Scripted { parts, ends: Mutex::new(ends), answers: Mutex::new(answers), object };
    let target = ParallelRef::<NamingContextRef>::by(Arc::new(scripted));
    let begin = |object: &NamingContextRef, _: Share| object.destroy_async();
    match call_in_parallel::<_, _, _, ()>(&target, Distribution::Block, &[9], &begin) {
        Err(DestroyError::System(e)) => e,
        other => panic!("{other:?}"),
    }
}

/// With COMPLETED_NO the caller would call all of them again, and those that have been executed twice.
#[test]
fn a_part_that_was_not_executed_says_nothing_of_the_others() {
    let no = || vec![failed(CompletionStatus::No)];
    let of = |other| exception_of(vec![other, PartEnd::Answered], no()).completed;
    assert_eq!(of(not_executed()), CompletionStatus::No);
    assert_eq!(of(maybe_executed()), CompletionStatus::Maybe);
    assert_eq!(of(PartEnd::Unknown(failed(CompletionStatus::Maybe))), CompletionStatus::Maybe);
    let yes = vec![failed(CompletionStatus::Yes), failed(CompletionStatus::No)];
    let e = exception_of(vec![PartEnd::Answered, PartEnd::Answered], yes);
    assert_eq!(e.completed, CompletionStatus::Yes, "the first has been executed, and no other");
    let no = vec![failed(CompletionStatus::No), failed(CompletionStatus::Yes)];
    let e = exception_of(vec![PartEnd::Answered, PartEnd::Answered], no);
    assert_eq!(e.completed, CompletionStatus::Maybe);
}

#[test]
fn an_exception_names_its_part() {
    let e = exception_of(
        vec![not_executed(), PartEnd::Answered, not_executed()],
        vec![failed(CompletionStatus::No), failed(CompletionStatus::No), failed(CompletionStatus::No)],
    );
    assert_eq!(e.kind, SystemExceptionKind::Transient);
    let detail = e.detail().unwrap_or_default();
    assert!(detail.starts_with("part 2 of 3 of rows: ") && detail.ends_with("it is off"), "{detail}");
    // An object in one part is called as any other.
    let e = exception_of(vec![PartEnd::Answered], vec![failed(CompletionStatus::No)]);
    assert!(!e.detail().unwrap_or_default().contains("part"), "{:?}", e.detail());
}

#[test]
fn time_that_is_over_is_told_as_such() {
    let e = exception_of(vec![not_executed(), not_executed()], Vec::new());
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::No));
    for ends in [vec![maybe_executed()], vec![not_executed(), maybe_executed()]] {
        let e = exception_of(ends, Vec::new());
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
    }
}

#[test]
fn arguments_of_several_lengths_are_refused_before_anything_is_sent() {
    struct Nobody;

    impl Parts for Nobody {
        fn name(&self) -> String {
            "nobody".to_owned()
        }

        fn call(
            &self,
            _: usize,
            _: &mut dyn FnMut(&ObjectRef, usize, usize),
        ) -> Result<PartsCalled, SystemException> {
            panic!("no part is to be called")
        }
    }

    let target = ParallelRef::<NamingContextRef>::by(Arc::new(Nobody));
    let begin = |object: &NamingContextRef, _: Share| object.destroy_async();
    let called = call_in_parallel::<_, _, _, ()>(&target, Distribution::Block, &[3, 3, 2], &begin);
    let Err(DestroyError::System(e)) = called else { panic!("{called:?}") };
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadParam, CompletionStatus::No));
}
