//! A program for `ironorb bench marshal --sizes`, which compares sizes: it has none of the types, and is the
//! baseline.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Neither);
}
