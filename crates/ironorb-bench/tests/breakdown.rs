//! `ironorb bench ... --breakdown` from end to end: with probes its tables have all of the time, without them it says how to
//! get them. No figure is asserted but those that must add up.
//!
//! The benchmark starts its own program again as its server, which here is this one; so it has no harness.

use clap::Parser;
use ironorb::probe::{self, Stage};
use ironorb_bench::{
    BenchCommand, BenchError, BreakdownRow, Category, Mode, Shares, WatchedSide, echo, run, ttcp_breakdown,
};

#[derive(Parser)]
enum Command {
    #[command(subcommand)]
    Bench(BenchCommand),
}

fn main() -> Result<(), BenchError> {
    if std::env::args().nth(1).is_some_and(|first| first == "bench") {
        let Command::Bench(command) = Command::parse();
        return run(command);
    }
    for (name, test) in TESTS {
        println!("test {name} ...");
        test();
    }
    println!("{} tests passed", TESTS.len());
    Ok(())
}

const TESTS: [(&str, fn()); 3] = [
    ("tables_have_all_of_the_time", tables_have_all_of_the_time),
    ("calls_pass_their_stages", calls_pass_their_stages),
    ("other_analyses_have_no_paper", other_analyses_have_no_paper),
];

fn tables_have_all_of_the_time() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("tables.html");
    let options = ["ttcp", "--breakdown", "--total", "512K", "--repetitions", "1", "--html"];
    let options = [&options[..], &[page.to_str().unwrap()]].concat();
    let report = match (ttcp(&options), probe::ENABLED) {
        (Ok(report), true) => report,
        (Err(e @ BenchError::NoProbes), false) => {
            assert!(e.to_string().contains("cargo run --release --features probes -p ironorb-cli"), "{e}");
            return;
        }
        (result, _) => panic!("{result:?}"),
    };
    // Two analyses of two types, three ways to call, two sides.
    assert_eq!(report.rows.len(), 24);
    for row in &report.rows {
        let percent: f64 = row.categories.iter().map(|(_, part)| part.percent).sum();
        assert!((percent - 100.0).abs() < 0.01, "{row:?}");
        adds_up(&row.shares);
        assert!(!row.paper.is_empty(), "{row:?}");
        // Four sequences and the calls around them, one more where nobody has been told that all came; in 64 MB as many
        // times as half a megabyte is in it.
        let around = if row.mode == Mode::Oneway { 5 } else { 4 };
        let of_run = |count: u32| f64::from(count) * (64 << 20) as f64 / row.bytes as f64;
        let calls = |stage: Stage| row.shares.stages.iter().find(|share| share.stage == stage.name());
        let (stage, expected) = match row.side {
            WatchedSide::Client => (Stage::Call, of_run(4 + around)),
            // That which asks what has been counted as well.
            WatchedSide::Server => (Stage::Serve, of_run(4 + around + 1)),
        };
        assert!((calls(stage).unwrap().times - expected).abs() < 0.01, "{row:?}");
    }
    let text = report.to_string();
    for part in ["Table 1: client-side", "Table 2: server-side", "Table 3: client-side", "397724  96.60"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<tr>").count(), 24 + 4 * 3 + 4, "our rows, and the paper's");
}

fn other_analyses_have_no_paper() {
    if !probe::ENABLED {
        return;
    }
    let options = ["ttcp", "--breakdown", "--quick", "--modes", "twoway", "--servants", "static"];
    let more = ["--types", "long", "--buffers", "64K", "--invocations", "sii", "--transports", "unix"];
    let report = ttcp(&[&options[..], &more[..]].concat()).unwrap();
    let found = |row: &BreakdownRow| (row.table, row.paper.len());
    assert_eq!(report.rows.iter().map(found).collect::<Vec<_>>(), [(None, 0), (None, 0)]);
    let is_lookup =
        |(category, part): &(Category, ironorb_bench::Part)| *category == Category::Lookup && part.ms > 0.0;
    assert!(report.rows[1].categories.iter().any(is_lookup), "the server finds objects and operations");
    assert!(!report.to_string().contains("Table"), "{report}");
}

fn calls_pass_their_stages() {
    let arguments = ["test", "echo", "--breakdown", "--calls", "100", "--repetitions", "2", "--rows", "void"];
    let BenchCommand::Echo(options) = parse(&arguments) else { panic!("echo") };
    let report = match (echo(&options), probe::ENABLED) {
        (Ok(report), true) => report,
        (Err(BenchError::NoProbes), false) => return,
        (result, _) => panic!("{result:?}"),
    };
    assert!(!report.breakdowns.is_empty());
    for breakdown in &report.breakdowns {
        assert_eq!((breakdown.row.as_str(), breakdown.calls), ("void", 200));
        for shares in [&breakdown.client, &breakdown.server] {
            adds_up(shares);
        }
        let times = |shares: &Shares, stage: Stage| {
            shares.stages.iter().find(|share| share.stage == stage.name()).map(|share| share.times)
        };
        assert_eq!(times(&breakdown.client, Stage::Call), Some(1.0));
        assert_eq!(times(&breakdown.client, Stage::Upcall), None);
        // With those two that ask what has been counted.
        assert_eq!(times(&breakdown.server, Stage::Upcall), Some(202.0 / 200.0));
    }
    assert!(report.to_string().contains("operation lookup"), "{report}");
}

/// The stages and what is in none of them are the whole.
fn adds_up(shares: &Shares) {
    let us: f64 = shares.stages.iter().map(|share| share.us).sum();
    assert!((us + shares.unaccounted_us - shares.elapsed_us).abs() < 0.01, "{shares:?}");
    assert!(shares.unaccounted_us >= 0.0 && shares.stages.iter().all(|share| share.us >= 0.0), "{shares:?}");
}

fn ttcp(arguments: &[&str]) -> Result<ironorb_bench::TtcpBreakdown, BenchError> {
    let BenchCommand::Ttcp(options) = parse(&[&["test"], arguments].concat()) else {
        panic!("{arguments:?}")
    };
    ttcp_breakdown(&options)
}

fn parse(arguments: &[&str]) -> BenchCommand {
    #[derive(Parser)]
    struct Alone {
        #[command(subcommand)]
        command: BenchCommand,
    }
    Alone::parse_from(arguments).command
}
