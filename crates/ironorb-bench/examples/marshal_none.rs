//! One of the programs whose sizes `ironorb bench marshal --sizes` compares: neither, beside which the others are measured.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Neither);
}
