//! A program for `ironorb bench marshal --sizes`, which compares sizes: its types have compiled marshalling.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Compiled);
}
