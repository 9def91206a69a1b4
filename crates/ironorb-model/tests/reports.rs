//! Experiments: how often a scenario runs, what is left out, what two differ by, and what the outputs say.

use std::time::Duration;

use ironorb_model::queueing::{self, QueueingError};
use ironorb_model::report::{self, Experiment, Origin, RunOrder};
use ironorb_model::scenario::{self, Scenario, Spread};

/// A queue with one server.
fn queue(demand: &str, rest: &str) -> Scenario {
    let text = format!(
        r#"
        {rest}
        hosts = [{{ name = "clients" }}, {{ name = "h" }}]
        servers = [{{ name = "s", hosts = "h", threads = 1, operations = [
            {{ name = "work", sleeps = true, demand = {{ exponential = "{demand}" }} }}] }}]
        [[classes]]
        name = "callers, \"all\" <of> them"
        hosts = "clients"
        between = {{ exponential = "1ms" }}
        mix = [{{ calls = [{{ call = "s.work" }}] }}]
    "#
    );
    scenario::read(&text, "queue").expect("a good file").remove(0)
}

fn of(
    scenario: &Scenario,
) -> impl FnMut(RunOrder) -> Result<ironorb_model::Observations, QueueingError> + '_ {
    |order| queueing::run(scenario, order.seed, order.warm_up)
}

fn experiment(scenario: &Scenario) -> Experiment {
    report::experiment(scenario, of(scenario)).expect("runs that end")
}

#[test]
fn an_experiment_ends_when_it_knows_enough() {
    let wide = queue("0.6ms", "span = \"2s\"\nreplications = { min = 3, max = 40, half_width = \"60 %\" }");
    let quick = experiment(&wide);
    assert_eq!((quick.runs.len(), quick.is_precise), (3, true));
    let narrow = queue("0.6ms", "span = \"2s\"\nreplications = { min = 3, max = 40, half_width = \"5 %\" }");
    let longer = experiment(&narrow);
    assert!((4..40).contains(&longer.runs.len()) && longer.is_precise, "{}", longer.runs.len());
    assert!(longer.response(0).half_width_share() <= 0.05);
    let never = queue("0.6ms", "span = \"2s\"\nreplications = { min = 3, max = 4, half_width = \"0.1 %\" }");
    let ended = experiment(&never);
    assert_eq!((ended.runs.len(), ended.is_precise), (4, false));
    assert_ne!(quick.runs[0].digest, quick.runs[1].digest, "each run has a seed of its own");
    assert_eq!(experiment(&wide).digest, quick.digest);
}

/// Of a trace that is longer than the runs figures tell a part alone.
#[test]
fn traces_that_are_cut_are_told() {
    let text = |span: &str| {
        format!(
            r#"
            span = "{span}"
            warm_up = "1 s"
            hosts = [{{ name = "h" }}]
            servers = [{{ name = "s", hosts = "h", threads = 1, operations = [{{ name = "work", demand = "1 ms" }}] }}]
            replications = {{ min = 2, max = 2 }}
            [[classes]]
            name = "recorded"
            hosts = "h"
            trace = ["1 s", "2 s", "3 s", "4 s"]
            mix = [{{ calls = [{{ call = "s.work" }}] }}]
        "#
        )
    };
    let cut = |span: &str| {
        let scenario = scenario::read(&text(span), "trace").expect("a good file").remove(0);
        let origin = Origin { level: queueing::LEVEL.to_owned(), commit: "abc123".to_owned() };
        report::experiments_text(&[experiment(&scenario)], &origin)
    };
    let told = cut("1500 ms");
    let note = "2 of 4 cycles of recorded do not begin: runs end at 2.500 s, warm-up included, and its `trace` at 4.000 s";
    assert!(told.contains(note), "{told}");
    let told = cut("3 s");
    assert!(!told.contains("do not begin"), "{told}");
}

/// What is sent while nothing passes is neither an end nor a failure: the report says that it is there.
#[test]
fn cycles_that_have_not_ended_are_told() {
    let text = r#"
        span = "2 s"
        hosts = [{ name = "a" }, { name = "b" }]
        links = [{ between = ["a", "b"], outages = [{ from = "1 s", until = "9 s", kind = "hold" }] }]
        replications = { min = 2, max = 2 }
        servers = [{ name = "s", hosts = "b", operations = [{ name = "op", demand = "1 ms" }] }]
        classes = [{ name = "c", hosts = "a", between = "10 ms", mix = [{ calls = [{ call = "s.op" }] }] }]
    "#;
    let held = [experiment(&scenario::read(text, "held").unwrap()[0])];
    let origin = Origin { level: queueing::LEVEL.to_owned(), commit: "abc123".to_owned() };
    let said = report::experiments_text(&held, &origin);
    assert!(said.contains("200 cycles of c had not ended at the end, beside 198 that did"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&report::experiments_json(&held, &origin)).unwrap();
    let json = &json["experiments"][0];
    assert_eq!(json["classes"][0]["unfinished"], 202);
    assert!(json["classes"][0]["oldest_unfinished_s"].as_f64() > Some(0.9), "{json}");
    assert!(json["notes"][0].as_str().unwrap().contains("had not ended"), "{json}");
    assert!(report::experiments_csv(&held, &origin).contains(",c,unfinished,101,0"));
    let link = json["resources"].as_array().unwrap().iter().find(|it| it["name"] == "link a -> b").unwrap();
    assert!(link["queue_max"]["mean"].as_f64() > Some(90.0), "{link}");
}

#[test]
fn what_never_ends_is_no_precise_figure() {
    let origin = Origin { level: queueing::LEVEL.to_owned(), commit: "abc123".to_owned() };
    let mut late = queue("3s", "span = \"2s\"\nreplications = { min = 3, max = 40 }");
    late.servers[0].operations[0].demand = Spread::Fixed(Duration::from_secs(3));
    let none = experiment(&late);
    assert_eq!((none.runs.len(), none.is_precise), (3, false), "more runs would tell no more");
    let none = [none];
    for text in [report::experiments_text(&none, &origin), report::experiments_html(&none, &origin)] {
        assert!(text.contains("them ended well while it was observed"), "{text}");
    }
}

#[test]
fn a_warm_up_is_found_or_said_to_be_unknown() {
    let busy = queue("0.95ms", "span = \"20s\"\nwarm_up = \"found\"\nreplications = { min = 2, max = 2 }");
    let found = experiment(&busy);
    assert_eq!(found.warm_up_note, None);
    assert!(found.warm_up < Duration::from_secs(10), "{:?}", found.warm_up);
    assert_eq!(found.runs[0].span, Duration::from_secs(20), "the span is observed whole");
    // A queue that only grows has no place from which on it is like itself.
    let growing = queue("2ms", "span = \"2s\"\nwarm_up = \"found\"\nreplications = { min = 2, max = 2 }");
    let growing = experiment(&growing);
    let note = growing.warm_up_note.expect("a note");
    assert!(note.contains("too short to tell when callers"), "{note}");
    assert_eq!(growing.warm_up, Duration::from_secs(1));
}

#[test]
fn runs_with_equal_seeds_tell_small_differences() {
    let rest = "span = \"2s\"\nreplications = { min = 8, max = 8 }";
    let (slow, fast) = (queue("0.60ms", rest), queue("0.58ms", rest));
    let compared = report::compare((&slow, of(&slow)), (&fast, of(&fast))).expect("runs that end");
    let response = compared.differences.iter().find(|it| it.figure == "response s").expect("a figure");
    assert!(response.is_clear() && response.difference.mean < 0.0, "{response:?}");
    let apart = response.before.half_width.hypot(response.after.half_width);
    assert!(
        response.difference.half_width < 0.5 * apart,
        "{response:?}: runs with equal seeds would tell no more than others"
    );
    let same = report::compare((&slow, of(&slow)), (&slow, of(&slow))).expect("runs that end");
    assert!(same.differences.iter().all(|it| it.difference.mean == 0.0 && !it.is_clear()));
    // Both run as often as one of them asks for, and with the seeds of the first.
    let picky = queue("0.58ms", "seed = 9\nspan = \"2s\"\nreplications = { min = 10, max = 10 }");
    let compared = report::compare((&slow, of(&slow)), (&picky, of(&picky))).expect("runs that end");
    assert_eq!((compared.before.runs.len(), compared.after.runs.len()), (10, 10));
    assert_eq!((compared.before.seed, compared.after.seed), (1, 1));
}

#[test]
fn what_only_one_scenario_has_is_told() {
    let rest = "span = \"200ms\"\nreplications = { min = 2, max = 2 }";
    let one = queue("0.6ms", rest);
    let mut other = queue("0.6ms", rest);
    other.classes[0].name = "others".to_owned();
    other.servers[0].name = "t".to_owned();
    let compared = report::compare((&one, of(&one)), (&other, of(&other))).expect("runs that end");
    assert!(compared.differences.iter().all(|it| it.figure != "response s"), "{:?}", compared.differences);
    let told = compared.left_out.join("\n");
    for wanted in ["class `callers", "class `others`, which only", "`threads of s`", "`threads of t`"] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let origin = Origin { level: queueing::LEVEL.to_owned(), commit: "abc123".to_owned() };
    assert!(report::comparison_text(&compared, &origin).contains("Not compared: the class"));
    assert!(report::comparison_html(&compared, &origin).contains("Not compared: the class"));
    assert!(report::comparison_json(&compared, &origin).contains("not_compared"));
}

#[test]
fn every_output_says_where_it_comes_from() {
    let origin = Origin { level: queueing::LEVEL.to_owned(), commit: "abc123".to_owned() };
    let rest = "span = \"500ms\"\nseed = 77\nreplications = { min = 2, max = 2 }";
    let (one, other) = (queue("0.6ms", rest), queue("0.5ms", rest));
    let compared = report::compare((&one, of(&one)), (&other, of(&other))).expect("runs that end");
    let experiments = [compared.before.clone(), compared.after.clone()];
    let digest = format!("{:016x}", experiments[0].digest.value());
    for output in [
        report::experiments_text(&experiments, &origin),
        report::experiments_json(&experiments, &origin),
        report::experiments_csv(&experiments, &origin),
        report::experiments_html(&experiments, &origin),
        report::comparison_text(&compared, &origin),
        report::comparison_json(&compared, &origin),
        report::comparison_csv(&compared, &origin),
        report::comparison_html(&compared, &origin),
    ] {
        for wanted in ["L0", "abc123", "77", &digest] {
            assert!(output.contains(wanted), "{wanted} is missing: {output}");
        }
        assert!(!output.contains("NaN"), "{output}");
    }
    let csv = report::experiments_csv(&experiments, &origin);
    for figure in [",utilisation,", ",queue_mean,", ",queue_max,", ",failed_per_s,0,"] {
        assert!(csv.contains(figure), "{figure}: {csv}");
    }
    let csv = report::comparison_csv(&compared, &origin);
    let of_response = format!("\nL0,abc123,77,2,{digest},");
    assert!(csv.contains(&of_response), "{csv}");
    assert!(csv.contains(",\"callers, \"\"all\"\" <of> them\",response s,"), "{csv}");
    let json: serde_json::Value =
        serde_json::from_str(&report::experiments_json(&experiments, &origin)).expect("JSON");
    let response = &json["experiments"][0]["classes"][0]["response_s"];
    assert_eq!(response["mean"].as_f64(), Some(experiments[0].response(0).mean));
    let html = report::experiments_html(&experiments, &origin);
    assert!(html.contains("callers, &quot;all&quot; &lt;of&gt; them") && html.ends_with("</html>\n"));
    assert_eq!(html.matches("<svg").count(), 4, "two over all, and one of each scenario");
    assert!(!html.contains("http"), "the page refers to no other file");
}
