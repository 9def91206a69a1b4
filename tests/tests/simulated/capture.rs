//! What programs send in a simulation, as packets: tshark finds every message, and none malformed.

use std::process::Command;

#[test]
fn tshark_finds_every_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("levels.pcapng");
    let program = std::env::current_exe().unwrap();
    let mut run = Command::new(program);
    run.args(["--exact", "levels::the_levels_agree", "--nocapture"]);
    run.env("IRONORB_SIM_SEED", "0").env("IRONORB_SIM_PCAPNG", &file);
    let output = run.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let sent = said.split("messages: ").nth(1).and_then(|rest| rest.split([' ', '}']).next());
    let sent: usize = sent.unwrap_or_else(|| panic!("{said}")).parse().unwrap();

    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-T", "fields", "-e", "giop.type", "-e", "_ws.malformed", "-e", "tcp.analysis.flags"]);
    tshark.args(["-d", "tcp.port==2810,giop", "-r"]).arg(&file);
    let output = tshark.output().unwrap_or_else(|e| panic!("tshark, of the Debian package tshark: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = 0;
    for packet in String::from_utf8(output.stdout).unwrap().lines() {
        let mut fields = packet.split('\t');
        let kinds = fields.next().unwrap_or_default();
        assert!(fields.all(str::is_empty), "{packet}");
        found += kinds.split(',').filter(|kind| !kind.is_empty()).count();
    }
    assert_eq!(found, sent);
    assert!(found > 50, "{found}");
}
