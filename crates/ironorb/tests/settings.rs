//! The documentation page on settings has the table of settings.

use std::fmt::Write as _;
use std::path::Path;

const MARK: &str = "--test settings` -->\n";

#[test]
fn the_page_lists_every_setting() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, _) = page.split_once(MARK).expect("the page has its mark");
    let mut table = String::from("| setting | variable | value | what it decides |\n|---|---|---|---|\n");
    for setting in ironorb::settings() {
        let (name, variable, form) = (setting.name, setting.variable(), setting.form.replace('|', "\\|"));
        let many = if setting.repeats { " May be given several times." } else { "" };
        writeln!(table, "| `{name}` | `{variable}` | `{form}` | {}{many} |", setting.help).unwrap();
    }
    table.push_str("\nSettings of a lane, in the setting `lane`. What is not set is as for the ORB.\n\n");
    table.push_str("| setting | value | what it decides |\n|---|---|---|\n");
    for setting in ironorb::lane_settings() {
        let (name, form) = (setting.name, setting.form.replace('|', "\\|"));
        let many = if setting.repeats { " May stand several times." } else { "" };
        writeln!(table, "| `{name}` | `{form}` | {}{many} |", setting.help).unwrap();
    }
    let wanted = format!("{before}{MARK}{table}");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, wanted).unwrap();
    } else {
        assert_eq!(page, wanted, "run with UPDATE_EXPECT=1");
    }
}
