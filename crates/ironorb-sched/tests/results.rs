//! Tables, drawings, sensitivity, suggestions, unknown verdicts.

use ironorb_sched::description::*;
use ironorb_sched::{Nanos, Table, TaskSet, Verdict, analyze, sensitivity, table};

use crate::textbook::{report, response};

#[test]
fn a_call_over_a_link_adds_up() {
    // Run 1 ms, twice (message 1 ms + delay 1 ms), operation 2 ms blocked for 3 ms, run 1 ms. The last run and the
    // reply each contend with the task's own first run and request, of another release, under the holistic analysis:
    // 1 ms each, for both of a pair.
    let report = report(include_str!("golden/distributed.toml"));
    assert_eq!(report.verdict, Verdict::Fits, "{report}");
    let loop_ = response(&report, "loop");
    assert!(loop_ >= Nanos::from_millis(11) && loop_ <= Nanos::from_millis(15), "{report}");
    assert_eq!(response(&report, "backup"), Nanos::from_millis(7), "{report}");
}

#[test]
fn tables_read_back_and_are_stable() {
    let report = report(include_str!("golden/distributed.toml"));
    let text = table(&report).to_toml().unwrap();
    assert_eq!(Table::from_toml(&text).unwrap(), table(&report));
    assert_eq!(text, include_str!("golden/distributed.table.toml"), "{text}");
}

#[test]
fn reports_draw_and_serialize() {
    let report = report(include_str!("golden/distributed.toml"));
    let svg = report.to_svg();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("server/1"));
    assert!(report.to_html().contains(&svg));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "fits");
}

#[test]
fn the_longest_run_is_found_to_the_nanosecond() {
    let set = TaskSet::from_toml(include_str!("golden/three_tasks.toml")).unwrap();
    // 3 x 3 ms and 2 x 3 ms leave 5 ms of the 20 ms, which `log` uses.
    assert_eq!(sensitivity(&set, "log").unwrap().wcet_max, Some(Nanos::from_millis(5)));
    assert_eq!(sensitivity(&set, "attitude").unwrap().wcet_max, Some(Nanos::from_millis(3)));
    assert!(sensitivity(&set, "nothing").is_none());
}

#[test]
fn suggestions_mend() {
    let text = include_str!("golden/three_tasks.toml").replace("5ms", "6ms");
    let report = report(&text);
    assert_eq!(report.verdict, Verdict::DoesNotFit);
    assert!(
        report.suggestions.iter().any(|it| it.mends_all && it.text.contains("`log` from 6ms to at most 5ms")),
        "{report}"
    );
}

#[test]
fn an_unpinned_lane_is_unknown_and_pinning_is_suggested() {
    let text = include_str!("golden/distributed.toml").replace("processor = 1\n\n[[res", "\n[[res");
    let report = report(&text);
    assert_eq!(report.verdict, Verdict::Unknown, "{report}");
    assert!(report.suggestions.iter().any(|it| it.text.contains("pin lane `requests`")), "{report}");
}

/// The bar is one second, with optimization. The test prints the time and asserts nothing about it.
#[test]
fn a_thousand_tasks_over_ten_nodes() {
    let mut all = Description { links: vec![Link::new("net", 10_000_000_000)], ..Description::default() };
    for node in 0..10u64 {
        all.nodes.push(Node { context_switch: Nanos(500), ..Node::new(format!("n{node}")) });
        all.lanes.push(Lane::new(format!("l{node}"), format!("n{node}")));
        all.operations.push(Operation {
            name: format!("o{node}"),
            lane: format!("l{node}"),
            wcet: Nanos::from_micros(5),
            sections: Vec::new(),
            calls: Vec::new(),
        });
    }
    for number in 0..1_000u64 {
        let node = number % 10;
        let home = Home::Lane(format!("l{node}"));
        let period = Nanos::from_millis(10 + number * 37 % 190);
        let mut task = Task::new(format!("t{number}"), home, period, Nanos::from_micros(100 + number % 200));
        if number % 2 == 0 {
            let mut call = Call::new(format!("o{}", (node + 1 + number / 10 % 9) % 10));
            call.link = Some("net".to_owned());
            call.request_bytes = 200;
            call.reply_bytes = 100;
            call.then = Nanos::from_micros(10);
            task.calls.push(call);
        }
        all.tasks.push(task);
    }
    let set = TaskSet::new(all).unwrap();
    let start = std::time::Instant::now();
    let report = analyze(&set);
    let took = start.elapsed();
    println!("1,000 tasks: {took:?}, {} passes, {:?}", report.passes, report.verdict);
    assert_eq!(report.tasks.len(), 1_000);
}
