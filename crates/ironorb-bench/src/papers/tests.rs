//! The catalogue is complete, its conclusions are judged by rows alone, runs go on where they have ended, and the page hangs together.

use std::cell::RefCell;
use std::collections::BTreeMap;

use clap::Parser as _;

use super::catalogue::{Place, Shows, papers};
use super::rows::Measured;
use super::*;
use crate::BenchCommand;

mod rules;
mod worlds;

use worlds::World;

#[derive(clap::Parser)]
struct Alone {
    #[command(subcommand)]
    command: BenchCommand,
}

fn configurations() -> impl Iterator<Item = &'static Configuration> {
    papers().into_iter().flat_map(|paper| paper.configurations)
}

#[test]
fn every_figure_and_table_has_an_entry() {
    let numbers = |kind: &'static str, of: std::ops::RangeInclusive<u32>| {
        of.map(move |number| format!("{kind}-{number}"))
    };
    let all: [(&str, Vec<String>); 5] = [
        ("tao-97", numbers("figure", 4..=18).chain(numbers("table", 1..=2)).collect()),
        ("rt-99", numbers("figure", 3..=10).collect()),
        ("minorb-99", numbers("figure", 3..=6).collect()),
        ("dii-96", numbers("figure", 2..=8).chain(numbers("table", 1..=3)).collect()),
        ("par-04", numbers("table", 1..=3).chain(numbers("figure", 1..=2)).collect()),
    ];
    for (paper, (tag, wanted)) in papers().into_iter().zip(all) {
        let found: Vec<&str> = paper.figures.iter().map(|figure| figure.name).collect();
        assert_eq!((paper.tag, found), (tag, wanted.iter().map(String::as_str).collect()));
        for figure in paper.figures {
            let known = paper.configurations.iter().any(|it| it.name == figure.configuration);
            assert!(known, "{tag} {}: {}", figure.name, figure.configuration);
        }
        assert!(paper.conclusions.len() >= 14 && !paper.differs.is_empty(), "{tag}");
        assert!(paper.conclusions.iter().all(|it| [2, 3].contains(&it.why.len())), "{tag}");
    }
}

#[test]
fn every_part_is_a_command_line_of_a_suite() {
    let mut names: Vec<&str> = configurations().map(|configuration| configuration.name).collect();
    for configuration in configurations() {
        for length in [Length::Whole(None), Length::Whole(Some(2)), Length::Quick] {
            for part in 0..configuration.parts() {
                let words = configuration.words(part, length, "other");
                let line = [&["bench".to_owned()], &words[..]].concat();
                let parsed = Alone::try_parse_from(&line).map(|alone| alone.command.run().quick);
                assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
                assert!(!words.iter().any(|word| word.contains('{')), "{line:?}");
                // Where there is a second host, the suite knows of it.
                let with_host = [&line[..], &["--server-host=10.0.0.2=nsenter".to_owned()]].concat();
                let has_host = Alone::try_parse_from(&with_host).is_ok();
                assert!(has_host || !configuration.place.has_two_hosts(), "{line:?}");
                let is_breakdown = words.iter().any(|word| word == "--breakdown");
                assert_eq!(is_breakdown, configuration.place.needs_probes(), "{line:?}");
            }
        }
    }
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number, "each configuration has a name of its own");
}

#[test]
fn a_whole_run_is_estimated_at_two_hours_and_a_quick_one_at_ten_minutes() {
    let all = |is_quick: bool| {
        configurations().map(|it| it.seconds(is_quick) * it.parts() as f64).sum::<f64>() / 60.0
    };
    let (whole, quick) = (all(false), all(true));
    assert!((60.0..=150.0).contains(&whole), "{whole} minutes");
    assert!((2.0..=10.0).contains(&quick), "{quick} minutes");
}

/// On the machine by which parts are estimated. There is time for one that is a fifth slower.
#[test]
fn a_whole_run_has_all_runs_of_the_papers_in_its_time() {
    let parts: Vec<&Configuration> = configurations().flat_map(|it| vec![it; it.parts()]).collect();
    let Alone { command: BenchCommand::Papers(PapersOptions { minutes, .. }) } =
        Alone::parse_from(["bench", "papers"])
    else {
        panic!("another command")
    };
    for first in configurations().filter(|it| it.runs.is_some()) {
        let parts = [&[first], &parts[..]].concat();
        let planned =
            Pace::new(false).plan(&parts, Some(f64::from(minutes) * 60.0 / 1.2 + first.seconds(false)));
        assert_eq!(planned.runs, first.runs.map(|runs| runs.wanted), "{}", first.name);
    }
}

#[test]
fn every_conclusion_holds_in_one_world_and_does_not_in_another() {
    let worlds = World::ALL.map(|world| world.rows());
    for paper in papers() {
        for conclusion in paper.conclusions {
            let verdicts = worlds.each_ref().map(|rows| conclusion.judge(rows));
            for wanted in [true, false] {
                let found = verdicts.iter().any(|verdict| verdict.same == Some(wanted));
                assert!(found, "{}, {:?}: never {wanted}: {verdicts:?}", paper.tag, conclusion.theirs);
            }
            for verdict in &verdicts {
                assert!(!verdict.ours.contains("{}"), "{verdict:?}");
                assert!(verdict.same.is_none() || !verdict.why.is_empty(), "{verdict:?}");
            }
            let nothing = conclusion.judge(&Measured::default());
            assert_eq!(
                (nothing.same, nothing.ours.as_str()),
                (None, "not measured"),
                "{:?}",
                conclusion.theirs
            );
        }
    }
}

#[test]
fn the_numbers_of_a_paper_make_its_conclusions_hold() {
    let rows = World::OfPapers.rows();
    let par_04 = papers()[4];
    let others: Vec<&str> = par_04
        .conclusions
        .iter()
        .filter(|conclusion| conclusion.judge(&rows).same != Some(true))
        .map(|conclusion| conclusion.theirs)
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn curves_stand_beside_the_papers_points() {
    let rows = World::OfPapers.rows();
    for paper in papers() {
        for figure in paper.figures {
            match &figure.shows {
                Shows::Curves(curves) => {
                    let chart = page::chart(figure.title, curves, rows.of(figure.configuration));
                    assert!(!chart.lines.is_empty(), "{} {}", paper.tag, figure.name);
                    assert_eq!(chart.crosses.len(), curves.paper.len());
                    let is_ordered = |points: &[(f64, f64)]| points.is_sorted_by(|a, b| a.0 < b.0);
                    assert!(chart.lines.iter().all(|line| is_ordered(&line.points)), "{}", figure.name);
                }
                Shows::Table(grid) => {
                    let grid = grid(&rows);
                    assert!(!grid.lines.is_empty(), "{} {}", paper.tag, figure.name);
                    let width = grid.columns.len();
                    assert!(
                        grid.lines.iter().all(|line| [1, width].contains(&line.len())),
                        "{} {}",
                        paper.tag,
                        figure.name
                    );
                }
            }
        }
    }
}

/// The page of a world, as a whole or a quick run.
fn page_of(world: World, names: &[&str], is_quick: bool) -> String {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let (chosen, measured) = (choose(&names).unwrap(), world.rows());
    let page = Page {
        chosen: &chosen,
        measured: &measured,
        is_quick,
        machine: "a < b".to_owned(),
        notes: vec!["A note.".to_owned()],
        missing: BTreeMap::from([("breakdown", "no probes".to_owned())]),
        commands: configurations().map(|it| (it.name, vec!["ironorb bench".to_owned()])).collect(),
    };
    page.html().unwrap()
}

/// The texts between this and a quotation mark.
fn quoted<'a>(page: &'a str, before: &str) -> Vec<&'a str> {
    page.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn links_of_the_page_lead_to_places_of_it_and_quick_runs_say_so_in_each_heading() {
    for (names, is_quick) in [(&[][..], false), (&[], true), (&["dii-96", "tao-97/figure-8"], false)] {
        let page = page_of(World::OfPapers, names, is_quick);
        let (links, mut ids) = (quoted(&page, "href=\""), quoted(&page, " id=\""));
        assert!(links.len() > 5);
        for link in links {
            let place = link.strip_prefix('#').expect("no link leads out of the page");
            assert!(ids.contains(&place), "{link}");
        }
        let number = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), number, "each place has an id of its own");
        let headings = page.lines().filter(|line| line.starts_with("<h") && line.contains("</h"));
        assert!(headings.clone().count() > 5);
        assert!(
            headings.clone().all(|line| line.contains("(quick run)") == is_quick),
            "{:?}",
            headings.collect::<Vec<_>>()
        );
        assert!(page.ends_with("</html>\n") && !page.contains("src=") && page.contains("a &lt; b"));
        assert_eq!(page.contains("verdicts may be wrong"), is_quick);
    }
}

#[test]
fn a_page_has_a_row_for_each_conclusion_of_the_papers_that_are_chosen_as_a_whole() {
    let page = page_of(World::Modern, &["dii-96", "tao-97/figure-8"], false);
    let wanted = papers()[3].conclusions.len();
    assert_eq!(page.matches("data-label=\"Theirs\"").count(), wanted);
    assert!(page.contains("not the same") && page.contains("Not all was measured: no probes"));
    // One plot for wide windows and one for narrow ones.
    let plots =
        papers()[3].figures.iter().filter(|figure| matches!(figure.shows, Shows::Curves(_))).count() + 1;
    assert_eq!(page.matches("<svg").count(), 2 * plots);
}

#[test]
fn verdicts_lead_to_the_figures_of_their_rows_and_papers_back_to_their_verdicts() {
    let page = page_of(World::Modern, &["rt-99", "tao-97/table-1"], false);
    let of = |theirs: &str| page.lines().find(|line| line.contains(theirs)).unwrap();
    assert!(of("The cost of cubing").contains("<a href=\"#rt-99-figure-7\">Figure 7</a></small>"));
    let links: Vec<&str> = quoted(of("LynxOS is stable"), "href=\"");
    assert_eq!(links, ["#rt-99-figure-3", "#rt-99-figure-4", "#rt-99-figure-5", "#rt-99-figure-6"]);
    let below = |heading: &str| page.split(heading).nth(1).unwrap();
    assert!(below("<h3 id=\"rt-99\">").contains("<a href=\"#rt-99-verdicts\">to the verdicts</a>"));
    assert!(below("<h3 id=\"tao-97\">").contains("<a href=\"#verdicts\">to the verdicts</a>"));
    // Rows of two configurations, and rows of another paper's, have no figure here.
    let page = page_of(World::Modern, &["tao-97", "minorb-99"], false);
    let of = |theirs: &str| page.lines().find(|line| line.contains(theirs)).unwrap();
    assert!(!of("Neither ORB caches").contains("href"));
    assert!(!of("about 100 us more than the bare").contains("href"));
}

#[test]
fn tables_have_few_columns_under_headings_and_numbers_on_the_right() {
    let page = page_of(World::OfPapers, &["tao-97/table-1", "dii-96/table-3", "rt-99/figure-7"], false);
    for heading in ["client, round robin", "server, request train", "client, octets", "server, structs"] {
        assert!(page.contains(&format!("<tr><th colspan=\"4\">{heading}</th></tr>")), "{heading}");
    }
    assert_eq!(page.matches("<table class=\"grouped\">").count(), 2);
    for number in ["about 72", "236", "112,795"] {
        assert!(page.contains(&format!("<td class=\"number\">{number}</td>")), "{number}");
    }
    assert!(page.contains("<td>hashCode::lookup</td>"));
}

#[test]
fn what_is_chosen_is_known_by_name() {
    assert_eq!(choose(&[]).unwrap().len(), 5);
    let chosen = choose(&["rt-99".to_owned(), "tao-97/figure-8".to_owned()]).unwrap();
    let names: Vec<Vec<&str>> = chosen
        .iter()
        .map(|it| it.configurations().map(|configuration| configuration.name).collect())
        .collect();
    assert_eq!(names, [vec!["void-robin"], vec!["high-and-low", "cubit", "overhead"]]);
    let error = choose(&["tao-97/figure-99".to_owned()]).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("figure-99") && error.contains("minorb-99"), "{error}");
}

fn identity_of_tests() -> Identity {
    vec![("commit", "abc".to_owned()), ("length", "quick".to_owned())]
}

/// Runs with a suite that fails where it is told to. Returns the parts that ran, and what is missing.
fn run_of(folder: &Path, fails_at: Option<usize>) -> (Vec<String>, Vec<&'static str>) {
    let chosen = choose(&["par-04/table-3".to_owned(), "rt-99/figure-7".to_owned()]).unwrap();
    let state = State::open(folder, identity_of_tests()).unwrap();
    let ran = RefCell::new(Vec::new());
    let missing = measure(&chosen, &state, None, |Measurement { configuration, part, runs }, _| {
        assert_eq!(runs, None, "a quick run has its own");
        ran.borrow_mut().push(format!("{} {part}", configuration.name));
        let row = r#"{"kind":"row","us":1,"machine":{"commit":"abc"}}"#.to_owned();
        Ok(if Some(part) == fails_at { Err("it ends".to_owned()) } else { Ok(("bench".to_owned(), row)) })
    });
    (ran.into_inner(), missing.unwrap().into_keys().collect())
}

#[test]
fn a_run_goes_on_where_one_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let (ran, missing) = run_of(folder.path(), Some(2));
    assert_eq!(ran, ["cubit 0", "exponential 0", "exponential 1", "exponential 2", "exponential 3"]);
    assert_eq!(missing, ["exponential"]);
    assert_eq!(run_of(folder.path(), None), (vec!["exponential 2".to_owned()], Vec::new()));
    assert_eq!(run_of(folder.path(), None), (Vec::new(), Vec::new()));
}

/// Where there is not time for all runs, parts that repeat what they measure do so less often, and the page says so with the
/// commands that ran.
#[test]
fn a_whole_run_keeps_to_its_time_by_fewer_runs() {
    let chosen = choose(&["par-04/table-3".to_owned(), "rt-99/figure-8".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let identity = vec![("commit", "abc".to_owned()), ("length", "whole".to_owned())];
    let state = State::open(folder.path(), identity).unwrap();
    let exponential = configurations().find(|configuration| configuration.name == "exponential").unwrap();
    // Overhead was measured, in more than its time, and one of the four parts fails.
    let head = Head { command: "bench overhead".to_owned(), seconds: 700.0, runs: Some(10) };
    state.store("overhead", 0, &head, "").unwrap();
    let seconds = Some(700.0 + exponential.seconds(false) * 3.3);
    let run = |fails: bool| {
        let mut runs = Vec::new();
        let missing = measure(&chosen, &state, seconds, |measurement, _| {
            let Measurement { configuration, part, runs: number } = measurement;
            runs.push(number.unwrap());
            if fails && part == 1 {
                return Ok(Err("it ends".to_owned()));
            }
            let words = configuration.words(part, Length::Whole(number), "other");
            Ok(Ok((words.join(" "), String::new())))
        });
        (runs, missing.unwrap().into_values().collect::<Vec<_>>())
    };
    assert_eq!(run(true), (vec![3; 4], vec!["it ends".to_owned()]));
    let runner =
        Runner { is_quick: false, class: "other".to_owned(), hosts: None, probes: Err(String::new()) };
    let commands = runner.commands(exponential, &state);
    assert!(
        commands[0].starts_with("ironorb jobs") && commands[0].ends_with("--repetitions 3"),
        "{commands:?}"
    );
    assert!(commands[1].starts_with("not measured: ironorb bench jobs"), "{commands:?}");
    // It gets what its neighbours have.
    assert_eq!(run(false), (vec![3], Vec::new()));
    let note = note_of_runs(&chosen, &state).unwrap();
    assert_eq!(note, "There was not time for all runs: par-04 exponential 3 of 4.");
}

#[test]
fn command_lines_are_such_that_a_shell_takes_them() {
    let words = ["bench", "ttcp", "--server-host=10.0.0.2=nsenter -t 7 -n"].map(str::to_owned);
    assert_eq!(line(&words), "bench ttcp '--server-host=10.0.0.2=nsenter -t 7 -n'");
}

#[test]
fn times_are_told_to_the_second_or_minute() {
    assert_eq!([59.4, 61.0, 7_320.0].map(spoken), ["59 s", "1 min", "2 h 2 min"]);
}

#[test]
fn a_program_without_probes_says_how_to_get_one_with_them() {
    let runner =
        Runner { is_quick: true, class: "other".to_owned(), hosts: None, probes: Err("it needs".to_owned()) };
    let of = |place| configurations().find(|configuration| configuration.place == place).unwrap();
    let files = || ["new", "log"].map(PathBuf::from);
    let measurement = Measurement { configuration: of(Place::ProbesOnTwoHosts), part: 0, runs: None };
    let done = runner.run(measurement, files()).unwrap();
    assert_eq!(done.unwrap_err(), "it needs");
    let folder = tempfile::tempdir().unwrap();
    let state = State::open(folder.path(), identity_of_tests()).unwrap();
    let commands = runner.commands(of(Place::ProbesOnTwoHosts), &state);
    assert!(commands[0].starts_with("not measured: ironorb-probes bench latency --breakdown"));
}
