//! What is due happens in the order of times, and of entry at one time.

use ironorb_model::{Agenda, Time};

#[test]
fn events_come_by_time_and_then_as_they_were_entered() {
    let mut agenda = Agenda::default();
    agenda.enter(Time::from_ns(20), 'c');
    agenda.enter(Time::from_ns(10), 'a');
    agenda.enter(Time::from_ns(20), 'd');
    agenda.enter(Time::from_ns(10), 'b');
    let order: String = std::iter::from_fn(|| agenda.take_next()).map(|(_, event)| event).collect();
    assert_eq!(order, "abcd");
    assert_eq!(agenda.now(), Time::from_ns(20));
}

#[test]
fn nothing_happens_in_the_past() {
    let mut agenda = Agenda::default();
    agenda.enter(Time::from_ns(20), 'a');
    assert_eq!(agenda.take_next(), Some((Time::from_ns(20), 'a')));
    agenda.enter(Time::from_ns(5), 'b');
    assert_eq!(agenda.take_next(), Some((Time::from_ns(20), 'b')));
}
