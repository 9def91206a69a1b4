//! `ironorb sim calibrate` and `ironorb sim validate` as people run them. The tests compare no times.

use ironorb_tests::command::run;
use serde_json::Value;

#[test]
fn what_is_calibrated_is_validated_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [profile, json, page, scenario] = ["profile.toml", "all.json", "page.md", "scenario.toml"].map(path);
    let told = run(["sim", "calibrate", "--quick", &profile, "--objects", "100"]).expect();
    assert!(told.contains("not modelled") && told.contains("predict nothing by it"), "{told}");
    let text = std::fs::read_to_string(&profile).unwrap();
    for key in
        ["processor = ", "kernel = ", "commit = ", "[[wake_ups]]", "[[cached_reads]]", "in_flight = 32"]
    {
        assert!(text.contains(key), "no {key} in {text}");
    }
    // Where the system permits a second network at all.
    let [networks, relayed] =
        ["networks", "relayed"].map(|it| text.contains(&format!("placement = \"{it}\"")));
    assert_eq!(networks, relayed, "calls between networks are measured with and without a relay");

    let files = ["--json", &json, "--markdown", &page];
    let line = ["sim", "validate", &profile, "--quick", "--cases", "latency"];
    let told = run([&line[..], &files].concat()).expect();
    assert!(told.contains("its figures judge nothing") && told.contains("level     L0"), "{told}");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let figures = all["cases"][0]["figures"].as_array().unwrap();
    for figure in figures {
        let numbers = [&figure["measured"][0], &figure["measured"][1], &figure["simulated"]];
        assert!(numbers.iter().all(|number| number.as_f64() > Some(0.0)), "{figure}");
    }
    let judged = figures.iter().filter(|figure| figure["holds"].is_boolean()).count();
    assert!(judged >= 2 && figures.len() == 2 * judged, "means are judged, percentiles are not: {figures:?}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert_eq!(page.matches("\n| layout").count(), figures.len(), "{page}");

    deployments_are_predicted(&profile, &json);
    other_profiles_and_overwriting_are_refused(&profile, &json);

    let text = r#"
        span = "10 ms"
        hosts = [{ name = "here" }]
        servers = [{ name = "s", hosts = "here", threads = 1, operations = [{ name = "get" }] }]
        dwell = { profile = "profile.toml", placement = "one-core" }
        [[classes]]
        name = "c"
        hosts = "here"
        clients = 1
        mix = [{ calls = [{ call = "s.get" }] }]
    "#;
    std::fs::write(&scenario, text).unwrap();
    run(["sim", "run", &scenario]).expect();
    let told = run(["sim", "run", &scenario, "--json", &profile]).expect_failure(2);
    assert!(told.contains("would be overwritten"), "{told}");
}

fn other_profiles_and_overwriting_are_refused(profile: &str, json: &str) {
    let validate = |outputs: &[&str]| {
        let line = ["sim", "validate", profile, "--cases", "latency", "--measured", json];
        run([&line[..], outputs].concat()).expect_failure(1)
    };
    for outputs in [["--json", profile], ["--markdown", json]] {
        let told = validate(&outputs);
        assert!(told.contains("would be overwritten"), "{told}");
    }
    let text = std::fs::read_to_string(profile).unwrap();
    std::fs::write(profile, text.replace("orb = \"IronORB\"", "orb = \"omniORB\"")).unwrap();
    let told = validate(&[]);
    assert!(told.contains("it is of omniORB"), "{told}");
    std::fs::write(profile, text).unwrap();
}

/// A system is recorded, and others are built after they were predicted.
fn deployments_are_predicted(profile: &str, json: &str) {
    let line = ["sim", "validate", profile, "--quick", "--cases", "deployment", "--json", json];
    let told = run(line).expect();
    if told.contains("it needs two processors") {
        return;
    }
    assert!(told.contains("front of 4 threads, two backs: buyers"), "{told}");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let figures = all["cases"][0]["figures"].as_array().unwrap();
    // Calls and octets; and R, X and a percentile of two classes in seven deployments.
    assert_eq!(figures.len(), 2 + 3 * 2 * 7, "{told}");
    for figure in figures {
        let numbers = [&figure["measured"][0], &figure["measured"][1], &figure["simulated"]];
        assert!(numbers.iter().all(|number| number.as_f64() > Some(0.0)), "{figure}");
    }
    // Whatever the machine does: a replay makes the calls that were recorded, and no others.
    let replay: Vec<&Value> = figures.iter().filter(|figure| figure["place"] == "replay").collect();
    assert!(replay.len() == 2 && replay.iter().all(|figure| figure["holds"] == true), "{replay:?}");
    // The file has what predicts the same again.
    let again = format!("{json}.again");
    let line = [
        "sim",
        "validate",
        profile,
        "--quick",
        "--cases",
        "deployment",
        "--measured",
        json,
        "--json",
        &again,
    ];
    run(line).expect();
    let judged: Value = serde_json::from_str(&std::fs::read_to_string(&again).unwrap()).unwrap();
    let judged = judged["cases"][0]["figures"].as_array().unwrap();
    let told = |figures: &[Value]| -> Vec<[Value; 3]> {
        figures.iter().map(|it| ["place", "what", "simulated"].map(|key| it[key].clone())).collect()
    };
    assert_eq!(told(judged), told(&figures[2..]));
    let ratios = all["cases"][0]["ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), 2 * 2 * 6, "{ratios:?}");
    let of = |ratio: &Value, key: &str| ratio[key].as_str().unwrap().split(": ").map(str::to_owned).collect();
    for ratio in ratios {
        let [of, to]: [Vec<String>; 2] = ["of", "to"].map(|key| of(ratio, key));
        assert!(to[0] == "recorded" && of[0] != "recorded" && of[1] == to[1], "{ratio}");
    }
}

#[test]
fn a_file_that_is_no_profile_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[origin]\n").unwrap();
    let told = run(["sim", "validate", file.path().to_str().unwrap()]).expect_failure(1);
    assert!(told.contains("this is no profile"), "{told}");
    let told = run(["sim", "validate", "/nowhere/profile.toml"]).expect_failure(1);
    assert!(told.contains("cannot read /nowhere/profile.toml"), "{told}");
}
