//! Cases of values: every type of the contract as parameters in all directions, bounds, and messages of
//! several MB.

use ironorb::giop::Version;
use ironorb::{CompletionStatus, SystemExceptionKind, WString};

use super::runner::{Cases, expect_exception};
use super::values::{self, *};
use crate::interop::*;

pub(super) fn basics(cases: &mut Cases<'_>) {
    cases.run("nothing", |suite| suite.nothing().unwrap());
    cases.run("orb_name", |suite| assert!(!suite.orb_name().unwrap().is_empty()));
    cases.echo("echo_short", &[0, 1, -1, i16::MIN, i16::MAX, 0x0102], |s, x, y| s.echo_short(*x, *y));
    cases.echo("echo_ushort", &[0, 1, u16::MAX, 0x0102], |s, x, y| s.echo_ushort(*x, *y));
    cases.echo("echo_long", &[0, -1, i32::MIN, i32::MAX, 0x0102_0304], |s, x, y| s.echo_long(*x, *y));
    cases.echo("echo_ulong", &[0, 1, u32::MAX, 0x0102_0304], |s, x, y| s.echo_ulong(*x, *y));
    cases.echo("echo_llong", &[0, -1, i64::MIN, i64::MAX, 0x0102_0304_0506_0708], |s, x, y| {
        s.echo_llong(*x, *y)
    });
    cases.echo("echo_ullong", &[0, 1, u64::MAX, 0x0102_0304_0506_0708], |s, x, y| s.echo_ullong(*x, *y));
    // Compared as bits, so that NaN equals itself and its payload counts.
    let floats = [0.0, -0.0, 1.5, f32::MIN, f32::MAX, f32::MIN_POSITIVE, f32::INFINITY, f32::NEG_INFINITY];
    let floats = floats.map(f32::to_bits);
    for (name, bits) in [("echo_float", &floats[..]), ("echo_float/nan", &[0x7fc1_2345, 0xffc0_0001, 1])] {
        cases.echo(name, bits, |s, x, y| {
            let (r, x, y) = s.echo_float(f32::from_bits(*x), f32::from_bits(*y))?;
            Ok((r.to_bits(), x.to_bits(), y.to_bits()))
        });
    }
    let doubles = [0.0, -0.0, -1.5, f64::MIN, f64::MAX, f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];
    let doubles = doubles.map(f64::to_bits);
    let nans = [0x7ff8_1234_5678_9abc, 0xfff8_0000_0000_0001, 1];
    for (name, bits) in [("echo_double", &doubles[..]), ("echo_double/nan", &nans)] {
        cases.echo(name, bits, |s, x, y| {
            let (r, x, y) = s.echo_double(f64::from_bits(*x), f64::from_bits(*y))?;
            Ok((r.to_bits(), x.to_bits(), y.to_bits()))
        });
    }
    cases.echo("echo_char", b"\0Az\n ~\x7f", |s, x, y| s.echo_char(*x, *y));
    cases.echo("echo_boolean", &[true, false], |s, x, y| s.echo_boolean(*x, *y));
    cases.echo("echo_octet", &[0, 1, 127, 128, 255], |s, x, y| s.echo_octet(*x, *y));
    let colors = [Color::Red, Color::Green, Color::Blue, Color::InfraRed];
    cases.echo("echo_color", &colors, |s, x, y| s.echo_color(*x, *y));
    cases.echo("echo_single", &[Single::OnlyValue], |s, x, y| s.echo_single(*x, *y));
    cases.echo("echo_height", &[i32::MIN, 8848, i32::MAX], |s, x, y| s.echo_height(*x, *y));
    strings(cases);
    parameters(cases);
}

fn strings(cases: &mut Cases<'_>) {
    let ascii: String = (1..127).map(char::from).collect();
    let plain = texts(&["", "a", "hello world", &ascii, &"s".repeat(2000)]);
    cases.echo("echo_string", &plain, |s, x, y| s.echo_string(x, y));
    cases.echo("echo_string/long", &texts(&[&"s".repeat(70_000), "y"]), |s, x, y| s.echo_string(x, y));
    cases.echo("echo_string/latin1", &texts(&["café", "ÿ¡"]), |s, x, y| s.echo_string(x, y));
    let beyond = texts(&["€", "日本語 😀", "mixed Ωmega"]);
    if cases.target.code_sets && cases.target.version > Version::V1_0 {
        cases.echo("echo_string/utf8", &beyond, |s, x, y| s.echo_string(x, y));
    } else {
        cases.run("echo_string/not_latin1", |suite| {
            for text in &beyond {
                let result = suite.echo_string(text, "");
                expect_exception(result, SystemExceptionKind::DataConversion, CompletionStatus::No);
            }
            suite.nothing().unwrap();
        });
    }
    cases.run("echo_string/nul", |suite| {
        let result = suite.echo_string("a\0b", "");
        expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
    });
    let short = texts(&["", "x", "exactly 16 bytes"]);
    cases.echo("echo_short_string", &short, |s, x, y| s.echo_short_string(x, y));
    cases.run("echo_short_string/too_long", |suite| {
        for (x, y) in [("these are 17 byte", ""), ("", "these are 17 byte")] {
            let result = suite.echo_short_string(x, y);
            expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
        }
        suite.nothing().unwrap();
    });
    cases.echo("echo_label", &texts(&["label", ""]), |s, x, y| s.echo_label(x, y));
}

fn parameters(cases: &mut Cases<'_>) {
    cases.run("constants", |suite| {
        let expected = basics::ConstantValues {
            s: C_SHORT,
            us: C_USHORT,
            l: C_LONG,
            ul: C_ULONG,
            ll: C_LLONG,
            ull: C_ULLONG,
            f: C_FLOAT,
            d: C_DOUBLE,
            c: C_CHAR,
            b: C_BOOLEAN,
            o: C_OCTET,
            str: C_STRING.to_owned(),
            tint: C_COLOR,
        };
        assert_eq!(suite.constants().unwrap(), expected);
    });
    cases.run("outs", |suite| {
        assert_eq!(suite.outs().unwrap(), (1, 2.5, "three".to_owned(), -4, vec![5, -6]));
    });
    cases.run("inouts", |suite| {
        assert_eq!(suite.inouts(254, -0.75, "ab").unwrap(), (255, -1.5, "abab".to_owned()));
    });
    cases.run("mix", |suite| {
        let result = suite.mix("left", 1 << 40, 200, 0.5).unwrap();
        assert_eq!(result, (200.5, 200, -(1 << 40), "left/200".to_owned()));
    });
    cases.run("sum", |suite| {
        assert_eq!(suite.sum(1, -2, 3, -400_000, 5, 1_000_000, 7, 8.0).unwrap(), 600_022);
    });
    cases.run("default", |suite| assert_eq!(suite.default(10, 3).unwrap(), (13, 7)));
    cases.run("type", |suite| assert_eq!(suite.type_("fn", "ref").unwrap(), "fn&ref"));
}

pub(super) fn sequences(cases: &mut Cases<'_>) {
    cases.echo("echo_shorts", &values::sequences(|b| b as i16), |s, x, y| s.echo_shorts(x, y));
    cases.echo("echo_ushorts", &values::sequences(|b| b as u16), |s, x, y| s.echo_ushorts(x, y));
    cases.echo("echo_longs", &values::sequences(|b| b as i32), |s, x, y| s.echo_longs(x, y));
    cases.echo("echo_ulongs", &values::sequences(|b| b as u32), |s, x, y| s.echo_ulongs(x, y));
    cases.echo("echo_llongs", &values::sequences(|b| b as i64), |s, x, y| s.echo_llongs(x, y));
    cases.echo("echo_ullongs", &values::sequences(|b| b), |s, x, y| s.echo_ullongs(x, y));
    // Compared as bits. Only the second case has all kinds of NaN.
    let finite = |b: u64| if b as u32 & 0x7f80_0000 == 0x7f80_0000 { 0 } else { b as u32 };
    let float_cases =
        [("echo_floats", values::sequences(finite)), ("echo_floats/nan", values::sequences(|b| b as u32))];
    for (name, bits) in float_cases {
        cases.echo(name, &bits, |s, x, y| {
            let floats = |bits: &[u32]| bits.iter().copied().map(f32::from_bits).collect::<Vec<_>>();
            let bits = |floats: Vec<f32>| floats.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let (r, x, y) = s.echo_floats(&floats(x), &floats(y))?;
            Ok((bits(r), bits(x), bits(y)))
        });
    }
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    let finite = |b: u64| if b & EXPONENT == EXPONENT { 0 } else { b };
    let double_cases = [
        ("echo_doubles", values::sequences(finite)),
        ("echo_doubles/nan", values::sequences(|b| b | EXPONENT)),
    ];
    for (name, bits) in double_cases {
        cases.echo(name, &bits, |s, x, y| {
            let doubles = |bits: &[u64]| bits.iter().copied().map(f64::from_bits).collect::<Vec<_>>();
            let bits = |doubles: Vec<f64>| doubles.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            let (r, x, y) = s.echo_doubles(&doubles(x), &doubles(y))?;
            Ok((bits(r), bits(x), bits(y)))
        });
    }
    cases.echo("echo_chars", &[Vec::new(), b"abc\0~".to_vec()], |s, x, y| s.echo_chars(x, y));
    cases.echo("echo_booleans", &[vec![], vec![true, false, false, true]], |s, x, y| s.echo_booleans(x, y));
    cases.echo("echo_octets", &values::sequences(|b| b as u8), |s, x, y| s.echo_octets(x, y));
    let bounded = [0, 3, C_BOUND as usize].map(longs);
    cases.echo("echo_bounded_longs", &bounded, |s, x, y| s.echo_bounded_longs(x, y));
    cases.run("echo_bounded_longs/too_many", |suite| {
        let result = suite.echo_bounded_longs(&longs(9), &[]);
        expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
        suite.nothing().unwrap();
    });
    let strings =
        [vec![], texts(&[""]), texts(&["one", "", "three", &"x".repeat(9000), "five"]), texts(&["é"])];
    cases.echo("echo_strings", &strings, |s, x, y| s.echo_strings(x, y));
    let short = [vec![], texts(&["", "exactly 16 bytes", "c", "d"])];
    cases.echo("echo_short_strings", &short, |s, x, y| s.echo_short_strings(x, y));
    cases.run("echo_short_strings/too_long", |suite| {
        for too_much in [texts(&["", "", "", "", ""]), texts(&["these are 17 byte"])] {
            let result = suite.echo_short_strings(&[], &too_much);
            expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
        }
    });
    let colors = [vec![], vec![Color::InfraRed, Color::Red, Color::Blue, Color::Green]];
    cases.echo("echo_colors", &colors, |s, x, y| s.echo_colors(x, y));
    cases.echo("echo_bins", &[bins(0), bins(1), bins(1000)], |s, x, y| s.echo_bins(x, y));
    let nameds = ["", "abc", "abcd", "abcde"].map(|name| named(name, -1)).to_vec();
    cases.echo("echo_nameds", &[vec![], nameds], |s, x, y| s.echo_nameds(x, y));
    cases.echo("echo_longs_seq", &[vec![], [0, 3, 0, 1].map(longs).to_vec()], |s, x, y| {
        s.echo_longs_seq(x, y)
    });
    let table = vec![texts(&["r0c0", ""]), vec![], texts(&["r2"])];
    cases.echo("echo_string_table", &[vec![], table], |s, x, y| s.echo_string_table(x, y));
    cases.echo("echo_readings", &values::sequences(|b| b as i32), |s, x, y| s.echo_readings(x, y));
    let many = [0, 1, 5, 20].map(nested).to_vec();
    cases.echo("echo_nesteds", &[vec![], many], |s, x, y| s.echo_nesteds(x, y));
    cases.echo("echo_by_longs", &[vec![], by_longs()], |s, x, y| s.echo_by_longs(x, y));
    cases.echo("echo_by_longs/other_label", &[vec![], other_by_longs()], |s, x, y| s.echo_by_longs(x, y));
    let arrays = vec![[0, 1, 2, 3, 4], [0, -1, -2, -3, -4]];
    cases.echo("echo_long_arrays", &[vec![], arrays], |s, x, y| s.echo_long_arrays(x, y));
}

pub(super) fn arrays(cases: &mut Cases<'_>) {
    let numbers = [[1, -2, 3, i32::MIN, i32::MAX], [0; 5]];
    cases.echo("echo_long_array", &numbers, |s, x, y| s.echo_long_array(x, y));
    cases.echo("echo_vector", &numbers, |s, x, y| s.echo_vector(x, y));
    let matrices = [[[1.0, 2.0, 3.0], [-4.0, 5.5, f64::INFINITY]], [[0.0; 3]; 2]];
    cases.echo("echo_matrix", &matrices, |s, x, y| s.echo_matrix(x, y));
    let mut counter = 0;
    let cubes = [(); 2].map(|()| {
        [(); 2].map(|()| {
            [(); 3].map(|()| {
                [(); 4].map(|()| {
                    counter += 1;
                    counter
                })
            })
        })
    });
    cases.echo("echo_cube", &cubes, |s, x, y| s.echo_cube(x, y));
    let words = [["zero", "", "two"], ["", "", ""]].map(|words| words.map(String::from));
    cases.echo("echo_string_array", &words, |s, x, y| s.echo_string_array(x, y));
    let grids = [[["", "g"], ["gg", "ggg"]], [["."; 2]; 2]].map(|grid| grid.map(|row| row.map(String::from)));
    cases.echo("echo_string_grid", &grids, |s, x, y| s.echo_string_grid(x, y));
    let pairs = [[bin(1), bin(2)], [bin(30_000), bin(-1)]];
    cases.echo("echo_bin_array", &pairs, |s, x, y| s.echo_bin_array(x, y));
    let nameds = [[named("a", 1), named("bb", 2)], [named("", 0), named("several words", -1)]];
    cases.echo("echo_named_array", &nameds, |s, x, y| s.echo_named_array(x, y));
    let lists = [[longs(4), longs(0)], [longs(0), longs(1)]];
    cases.echo("echo_long_seq_array", &lists, |s, x, y| s.echo_long_seq_array(x, y));
}

pub(super) fn structs(cases: &mut Cases<'_>) {
    let edges = [BinStruct { s: i16::MIN, c: 0, l: i32::MAX, o: 255, d: -0.25 }, bin(7)];
    cases.echo("echo_bin", &edges, |s, x, y| s.echo_bin(x, y));
    cases.echo("echo_sample", &edges, |s, x, y| s.echo_sample(x, y));
    cases.echo("echo_one_octet", &[0, 255].map(|value| OneOctet { value }), |s, x, y| s.echo_one_octet(x, y));
    let all = AllBasics {
        s: i16::MIN,
        us: u16::MAX,
        l: i32::MIN,
        ul: u32::MAX,
        ll: i64::MIN,
        ull: u64::MAX,
        f: 1.25,
        d: -2.5,
        c: b'\\',
        b: true,
        o: 254,
    };
    cases.echo("echo_all_basics", &[all, AllBasics::default()], |s, x, y| s.echo_all_basics(x, y));
    let nameds = [named("", 0), named("n", -1), named("name", 42)];
    cases.echo("echo_named", &nameds, |s, x, y| s.echo_named(x, y));
    cases.echo("echo_variable", &[0, 1, 8, 16, 500].map(variable), |s, x, y| s.echo_variable(x, y));
    cases.run("echo_variable/too_long", |suite| {
        for wrong in [
            Variable { code: "these are 17 byte".to_owned(), ..Variable::default() },
            Variable { raw: vec![0; 9], ..Variable::default() },
        ] {
            let result = suite.echo_variable(&wrong, &variable(0));
            expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
        }
    });
    cases.echo("echo_nested", &[0, 3, 11].map(nested), |s, x, y| s.echo_nested(x, y));
    let trees = [tree(0, 0), tree(1, 3), tree(6, 3), tree(30, 1)];
    cases.echo("echo_tree", &trees, |s, x, y| s.echo_tree(x, y));
    cases.echo("echo_chain", &[1, 2, 40].map(chain), |s, x, y| s.echo_chain(x, y));
    let pairs = [("p", 1, 2), ("", -1, i32::MAX)]
        .map(|(text, first, second)| deep::Pair { first: text.to_owned(), outer: Pair { first, second } });
    cases.echo("echo_deep_pair", &pairs, |s, x, y| s.echo_deep_pair(x, y));
}

fn by_longs() -> Vec<ByLong> {
    let text = |label, value: &str| ByLong::Text { label, value: value.to_owned() };
    vec![
        ByLong::Number { label: 1, value: 10 },
        ByLong::Number { label: 2, value: 20 },
        ByLong::Number { label: -3, value: 30 },
        text(4, "four"),
        ByLong::Bin(bin(9)),
        ByLong::Numbers(longs(5)),
        ByLong::Cells([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        ByLong::Words(texts(&["w", ""])),
        ByLong::Letters(*b"xyz"),
    ]
}

/// Values with a label that the IDL does not name.
fn other_by_longs() -> Vec<ByLong> {
    let text = |label, value: &str| ByLong::Text { label, value: value.to_owned() };
    vec![text(i32::MIN, "default"), text(i32::MAX, "")]
}

pub(super) fn unions(cases: &mut Cases<'_>) {
    other_labels(cases);
    let values = [ByShort::Small(200), ByShort::Text("seven".to_owned())];
    cases.echo("echo_by_short", &values, |s, x, y| s.echo_by_short(x, y));
    let values = [ByUShort::Top(0.1), ByUShort::Other { label: 0, value: -5 }];
    cases.echo("echo_by_ushort", &values, |s, x, y| s.echo_by_ushort(x, y));
    cases.echo("echo_by_long", &by_longs(), |s, x, y| s.echo_by_long(x, y));
    cases.run("echo_by_long/wrong_label", |suite| {
        for wrong in [
            ByLong::Number { label: 4, value: 0 },
            ByLong::Text { label: -3, value: String::new() },
            ByLong::Text { label: 5, value: String::new() },
        ] {
            let result = suite.echo_by_long(&wrong, &ByLong::Bin(bin(0)));
            expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
        }
        suite.nothing().unwrap();
    });
    let values = [ByULong::Yes(true), ByULong::Big(i64::MIN)];
    cases.echo("echo_by_ulong", &values, |s, x, y| s.echo_by_ulong(x, y));
    let values = [ByLongLong::Low(-7), ByLongLong::Rest { label: 0, value: 1.5 }];
    cases.echo("echo_by_llong", &values, |s, x, y| s.echo_by_llong(x, y));
    let values = [ByULongLong::Top(b't'), ByULongLong::Who(named("one", 1))];
    cases.echo("echo_by_ullong", &values, |s, x, y| s.echo_by_ullong(x, y));
    let values = [
        ByChar::Edge { label: b'a', value: 1 },
        ByChar::Edge { label: b'z', value: 26 },
        ByChar::Line("text".to_owned()),
    ];
    cases.echo("echo_by_char", &values, |s, x, y| s.echo_by_char(x, y));
    let values = [ByBoolean::Yes("y".to_owned()), ByBoolean::No(-1)];
    cases.echo("echo_by_boolean", &values, |s, x, y| s.echo_by_boolean(x, y));
    cases.echo("echo_half_boolean", &[HalfBoolean::Value(2.5), HalfBoolean::Value(-0.5)], |s, x, y| {
        s.echo_half_boolean(x, y)
    });
    let values = [
        ByColor::Who { label: Color::Red, value: named("r", 1) },
        ByColor::Who { label: Color::Blue, value: named("b", 2) },
        ByColor::Level(9),
        ByColor::Tint { label: Color::InfraRed, value: Color::Green },
    ];
    cases.echo("echo_by_color", &values, |s, x, y| s.echo_by_color(x, y));
    let values = [ByAlias::R(1), ByAlias::G(2), ByAlias::B(3), ByAlias::I(4)];
    cases.echo("echo_by_alias", &values, |s, x, y| s.echo_by_alias(x, y));
    let values = [expr(0), expr(1), expr(12), Expr::Name("free".to_owned())];
    cases.echo("echo_expr", &values, |s, x, y| s.echo_expr(x, y));
}

/// Labels that the IDL does not name: those of a default member, and those without a member.
fn other_labels(cases: &mut Cases<'_>) {
    let values = [ByShort::Unlisted { label: i16::MIN }, ByShort::Small(1), ByShort::Unlisted { label: 1 }];
    cases.echo("echo_by_short/other_label", &values, |s, x, y| s.echo_by_short(x, y));
    let values = [65534, 7].map(|label| ByUShort::Other { label, value: 6 });
    cases.echo("echo_by_ushort/other_label", &values, |s, x, y| s.echo_by_ushort(x, y));
    cases.echo("echo_by_long/other_label", &other_by_longs(), |s, x, y| s.echo_by_long(x, y));
    let values = [77, u32::MAX - 1].map(|label| ByULong::Unlisted { label });
    cases.echo("echo_by_ulong/other_label", &values, |s, x, y| s.echo_by_ulong(x, y));
    let values = [1 << 40, i64::MIN].map(|label| ByLongLong::Rest { label, value: 1.5 });
    cases.echo("echo_by_llong/other_label", &values, |s, x, y| s.echo_by_llong(x, y));
    let values = [u64::MAX - 1, 0].map(|label| ByULongLong::Unlisted { label });
    cases.echo("echo_by_ullong/other_label", &values, |s, x, y| s.echo_by_ullong(x, y));
    let values = [b'q', b'\0'].map(|label| ByChar::Unlisted { label });
    cases.echo("echo_by_char/other_label", &values, |s, x, y| s.echo_by_char(x, y));
    let values = [HalfBoolean::Unlisted { label: false }, HalfBoolean::Value(2.5)];
    cases.echo("echo_half_boolean/other_label", &values, |s, x, y| s.echo_half_boolean(x, y));
    let values = [Expr::Unlisted { label: 0 }, expr(0), Expr::Unlisted { label: i16::MAX }];
    cases.echo("echo_expr/other_label", &values, |s, x, y| s.echo_expr(x, y));
}

pub(super) fn wide(cases: &mut Cases<'_>) {
    if cases.target.version == Version::V1_0 {
        // CORBA 3.3 part 2, 9.3.1.6: GIOP 1.0 has no wide characters, and an ORB raises MARSHAL for them.
        cases.run("wide/not_in_giop_1.0", |suite| {
            let (kind, completed) = (SystemExceptionKind::Marshal, CompletionStatus::No);
            expect_exception(suite.echo_wchar('€', 'a'), kind, completed);
            expect_exception(suite.echo_wstring("a", ""), kind, completed);
            suite.nothing().unwrap();
        });
        return;
    }
    let wide = |text: &str| WString::from(text);
    let letters = ['\0', 'A', 'é', '€', '世', '\u{fffd}'];
    cases.echo("wide/echo_wchar", &letters, |s, x, y| s.echo_wchar(*x, *y));
    let beyond_the_bmp = "wide/echo_wchar/beyond_the_bmp";
    if cases.target.version == Version::V1_2 {
        cases.echo(beyond_the_bmp, &['😀', 'a'], |s, x, y| s.echo_wchar(*x, *y));
    } else {
        // In GIOP 1.1 a wchar has a fixed size, with no room for a pair of surrogates.
        cases.run(beyond_the_bmp, |suite| {
            let result = suite.echo_wchar('😀', 'a');
            expect_exception(result, SystemExceptionKind::DataConversion, CompletionStatus::No);
            suite.nothing().unwrap();
        });
    }
    let strings = ["", "a", "wide é世", &"€".repeat(20_000), "😀"].map(wide);
    cases.echo("wide/echo_wstring", &strings, |s, x, y| s.echo_wstring(x, y));
    let short = ["", "8 wide €"].map(wide);
    cases.echo("wide/echo_short_wstring", &short, |s, x, y| s.echo_short_wstring(x, y));
    cases.run("wide/echo_short_wstring/too_long", |suite| {
        let result = suite.echo_short_wstring("9 wide €€", "");
        expect_exception(result, SystemExceptionKind::BadParam, CompletionStatus::No);
    });
    cases.echo("wide/echo_wchars", &[vec![], vec!['a', '€', '\0']], |s, x, y| s.echo_wchars(x, y));
    let many = [vec![], ["", "世", "plain"].map(wide).to_vec()];
    cases.echo("wide/echo_wstrings", &many, |s, x, y| s.echo_wstrings(x, y));
    cases
        .echo("wide/echo_wchar_array", &[['a', '€', '世'], ['\0'; 3]], |s, x, y| s.echo_wchar_array(x, y));
    let whole = |c, text| wide::WideStruct { c, text: wide(text), after: 255 };
    let structs = [whole('€', "odd"), whole('x', "")];
    cases.echo("wide/echo_wide_struct", &structs, |s, x, y| s.echo_wide_struct(x, y));
    let unions = [
        wide::WideUnion::Text(wide("text €")),
        wide::WideUnion::Letter('世'),
        wide::WideUnion::Whole { label: 0, value: whole('w', "w") },
    ];
    cases.echo("wide/echo_wide_union", &unions, |s, x, y| s.echo_wide_union(x, y));
    let unions = [77, i32::MIN].map(|label| wide::WideUnion::Whole { label, value: whole('w', "w") });
    cases.echo("wide/echo_wide_union/other_label", &unions, |s, x, y| s.echo_wide_union(x, y));
    cases.run("wide/raise_wide", |suite| match suite.raise_wide("why 世") {
        Err(wide::RaiseWideError::WideError(e)) => assert_eq!(e.why, "why 世"),
        other => panic!("{other:?}"),
    });
    cases.run("wide/wide_constants", |suite| {
        assert_eq!(suite.wide_constants().unwrap(), (wide::C_WCHAR, wide(wide::C_WSTRING)));
    });
}

pub(super) fn big_messages(cases: &mut Cases<'_>) {
    cases.run("big/octets", |suite| {
        let sent = octets(5 << 20);
        assert!(suite.reflect_octets(&sent).unwrap() == sent);
    });
    cases.run("big/longs", |suite| {
        let sent = longs(1 << 20);
        assert!(suite.reflect_longs(&sent).unwrap() == sent);
    });
    cases.run("big/doubles", |suite| {
        let sent = doubles(1 << 19);
        assert!(suite.reflect_doubles(&sent).unwrap() == sent);
    });
    cases.run("big/bins", |suite| {
        let sent = bins(150_000);
        assert!(suite.reflect_bins(&sent).unwrap() == sent);
    });
    cases.run("big/strings", |suite| {
        let sent: Vec<String> = (0..50_000).map(|i| "abcdefghij".repeat(i % 10)).collect();
        assert!(suite.reflect_strings(&sent).unwrap() == sent);
    });
    cases.run("big/one_string", |suite| {
        let sent = "q".repeat(3 << 20);
        let (result, inout, out) = suite.echo_string(&sent, "").unwrap();
        assert!(result == sent && inout == sent && out.is_empty());
    });
    cases.run("big/swallow", |suite| assert_eq!(suite.swallow(&octets(8 << 20)).unwrap(), 8 << 20));
    cases.run("big/produce", |suite| {
        let got = suite.produce(6 << 20).unwrap();
        assert_eq!(got.len(), 6 << 20);
        assert!(got.iter().enumerate().all(|(i, octet)| usize::from(*octet) == i % 251));
    });
    // Lengths around the sizes at which ORBs fragment messages and switch to copying in bulk.
    cases.run("big/edges", |suite| {
        for size in [1023, 4096, 8100, 8191, 8192, 16_384, 65_535, 131_072] {
            for more in 0..8 {
                let sent = octets(size + more);
                assert!(suite.reflect_octets(&sent).unwrap() == sent, "{} octets", size + more);
            }
            let sent = doubles(size / 8 + 1);
            assert!(suite.reflect_doubles(&sent).unwrap() == sent, "{} doubles", sent.len());
        }
    });
}
