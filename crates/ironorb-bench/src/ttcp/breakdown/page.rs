//! The page with the tables: a bar for each column, as long as all of its time, and the tables as text. It is one file that
//! refers to nothing outside.

use std::fmt::Write as _;
use std::path::Path;

use super::category::Category;
use super::{BreakdownRow, TtcpBreakdown};
use crate::chart::{FOOT, escape, head};
use crate::error::BenchError;
use crate::report::write_text;
use crate::variant::name;

/// Writes the page.
pub(super) fn write(report: &TtcpBreakdown, file: &Path) -> Result<(), BenchError> {
    write_text(file, page(report).as_bytes())
}

// A String takes everything that is written to it.
fn page(report: &TtcpBreakdown) -> String {
    let mut page = head("CORBA-TTCP");
    page.push_str("<h2>Where the time goes</h2>\n<p>Per cent of all time of a thread, by the ORB's own probes.</p>\n<p>");
    for category in Category::ALL {
        let _ = write!(page, "<span style=\"{}\">&#9632;</span> {} ", color(category), category.name());
    }
    page.push_str("</p>\n<table>\n");
    for table in report.tables() {
        for rows in table.chunk_by(|a, b| a.ty == b.ty) {
            rows.iter().for_each(|row| bar(row, &mut page));
            let of_paper = rows.first().map_or(&[][..], |row| &row.paper);
            of_paper.iter().for_each(|column| paper_bar(column.orb, column.shares, &mut page));
        }
    }
    let _ = writeln!(page, "</table>\n<pre>{}</pre>\n{FOOT}", escape(&report.to_string()));
    page
}

fn bar(row: &BreakdownRow, page: &mut String) {
    let table = row.table.map_or_else(String::new, |number| format!("Table {number}, "));
    let _ = write!(
        page,
        "<tr><td>{table}{}, {}s in {}, {} to {}, {} over {}</td><td>{:.1} ms</td><td>",
        row.side.name(),
        name(row.ty),
        row.buffer,
        name(row.invocation),
        name(row.servant),
        name(row.mode),
        name(row.transport),
        row.shares.elapsed_us / 1000.0
    );
    pieces(row.categories.iter().map(|(category, part)| (*category, part.percent)), page);
}

fn paper_bar(orb: &str, shares: &[(Category, u32, f64)], page: &mut String) {
    let _ = write!(page, "<tr><td>&nbsp;&nbsp;the paper's {orb}</td><td></td><td>");
    pieces(shares.iter().map(|&(category, _, percent)| (category, percent)), page);
}

fn pieces(parts: impl Iterator<Item = (Category, f64)>, page: &mut String) {
    for (category, percent) in parts.filter(|(_, percent)| *percent > 0.0) {
        let _ = write!(
            page,
            "<span title=\"{} {percent:.2} %\" style=\"display:inline-block;height:1em;width:{:.2}px;background:currentColor;{}\">\
             </span>",
            category.name(),
            percent * PIXELS_A_PERCENT,
            color(category)
        );
    }
    page.push_str("</td></tr>\n");
}

const PIXELS_A_PERCENT: f64 = 4.0;

fn color(category: Category) -> &'static str {
    match category {
        Category::Write => "color:#1f77b4",
        Category::Populate => "color:#ff7f0e",
        Category::Allocate => "color:#bcbd22",
        Category::Copy => "color:#d62728",
        Category::TypeCode => "color:#9467bd",
        Category::Read => "color:#17becf",
        Category::Demarshal => "color:#2ca02c",
        Category::Lookup => "color:#e377c2",
        Category::Upcall => "color:#8c564b",
        Category::Rest => "color:#7f7f7f",
        Category::Probes => "color:#c7c7c7",
        Category::Unaccounted => "color:#000000",
    }
}
