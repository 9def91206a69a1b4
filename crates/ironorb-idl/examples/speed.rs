//! t
use ironorb_idl::*;
fn main() {
    let t = std::fs::read_to_string(std::env::args().nth(1).unwrap()).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let f = MapLoader::new().with("a.idl", t.as_str());
    let lines = t.lines().count();
    let mut v = vec![];
    for _ in 0..n {
        let s = std::time::Instant::now();
        let o = compile_with("a.idl".as_ref(), &Options::default(), &f);
        v.push(s.elapsed().as_secs_f64());
        assert!(o.model.is_some());
    }
    v.sort_by(f64::total_cmp);
    println!(
        "{:.0} k lines/s median, best {:.0}",
        lines as f64 / v[v.len() / 2] / 1e3,
        lines as f64 / v[0] / 1e3
    );
}
