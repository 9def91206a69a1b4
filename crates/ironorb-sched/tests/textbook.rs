//! Sets whose results are computed by hand.

use ironorb_sched::{Nanos, Report, TaskSet, Verdict, analyze};

pub(crate) fn report(text: &str) -> Report {
    match TaskSet::from_toml(text) {
        Ok(set) => analyze(&set),
        Err(problems) => panic!("{}", problems.iter().map(|it| format!("{it}\n")).collect::<String>()),
    }
}

pub(crate) fn response(report: &Report, name: &str) -> Nanos {
    let task = report.tasks.iter().find(|task| task.name == name).unwrap();
    task.response.unwrap()
}

#[test]
fn three_tasks_have_responses_3_6_and_20() {
    let report = report(include_str!("golden/three_tasks.toml"));
    println!("{report}");
    assert_eq!(report.verdict, Verdict::Fits);
    assert_eq!(response(&report, "attitude"), Nanos::from_millis(3));
    assert_eq!(response(&report, "telemetry"), Nanos::from_millis(6));
    assert_eq!(response(&report, "log"), Nanos::from_millis(20));
}

/// Lehoczky's example: the longest response is not the first one of the busy period.
#[test]
fn the_fifth_release_is_the_worst() {
    let report = report(
        r#"
        [[node]]
        name = "n"
        [[task]]
        name = "short"
        node = "n"
        period = "70ms"
        wcet = "26ms"
        [[task]]
        name = "long"
        node = "n"
        period = "100ms"
        deadline = "120ms"
        wcet = "62ms"
        "#,
    );
    assert_eq!(response(&report, "long"), Nanos::from_millis(118), "{report}");
}
