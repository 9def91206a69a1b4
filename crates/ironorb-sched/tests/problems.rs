//! Bad files get the line, the mistake and the mend.

use ironorb_sched::TaskSet;

/// Checks that a text has exactly one problem, which stands in a line and whose text contains these words.
fn check(text: &str, line: u32, words: &str, mend: &str) {
    let problems = TaskSet::from_toml(text).unwrap_err();
    let all: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    assert_eq!(problems.len(), 1, "{all}");
    assert_eq!(problems[0].place.unwrap().line, line, "{all}");
    assert!(problems[0].message.contains(words), "{all}");
    assert!(problems[0].mend.contains(mend), "{all}");
}

const NODE: &str = "[[node]]\nname = \"n\"\n";

fn task(rest: &str) -> String {
    format!("{NODE}[[task]]\nname = \"t\"\nnode = \"n\"\nperiod = \"9ms\"\n{rest}")
}

#[test]
fn a_negative_time() {
    check(&task("wcet = \"-2ms\""), 7, "negative", "write `wcet = \"2ms\"`");
}

#[test]
fn a_time_without_a_unit() {
    check(&task("wcet = \"2\""), 7, "units", "wcet = \"2ms\"");
    check(&task("wcet = 2"), 7, "no time", "with a unit");
}

#[test]
fn a_missing_time() {
    check(&task(""), 3, "`wcet` is missing", "add `wcet");
}

#[test]
fn an_unknown_resource() {
    let text = task(
        "wcet = \"2ms\"\nuses = [{ resource = \"stroe\", wcet = \"1ms\" }]\n[[resource]]\nname = \"store\"",
    );
    check(&text, 8, "no resource `stroe`", "do you mean `store`?");
}

#[test]
fn an_unknown_key() {
    check(&task("wcet = \"2ms\"\ndeadlin = \"3ms\""), 8, "`deadlin` has no meaning", "`deadline`");
}

#[test]
fn sections_longer_than_the_run() {
    let text =
        task("wcet = \"2ms\"\nuses = [{ resource = \"r\", wcet = \"3ms\" }]\n[[resource]]\nname = \"r\"");
    check(&text, 8, "longer than the whole run", "sections count within the run");
}

#[test]
fn a_circle_of_calls() {
    check(include_str!("golden/circle.toml"), 17, "a -> b -> a", "remove one of the calls");
}

#[test]
fn a_processor_that_is_not_there() {
    check(&task("wcet = \"2ms\"\nprocessor = 3"), 8, "no processor 3", "below 1");
}

#[test]
fn no_toml() {
    check("[[node]\nname = 3", 1, "no TOML", "syntax");
}

#[test]
fn no_text_panics() {
    let text = include_str!("golden/distributed.toml");
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        let _ = TaskSet::from_toml(&text[..end]);
        let _ = TaskSet::from_toml(&text[end..]);
    }
}
