//! One of the programs whose sizes `ironorb bench marshal --sizes` compares: types with marshalling of their own.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Compiled);
}
