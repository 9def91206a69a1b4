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
