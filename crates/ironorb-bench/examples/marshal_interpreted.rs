//! A program for `ironorb bench marshal --sizes`, which compares sizes: the interpreter marshals its types.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Interpreted);
}
