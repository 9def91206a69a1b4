//! One of the programs whose sizes `ironorb bench marshal --sizes` compares: types that leave it to the interpreter.

use ironorb_bench::{Kept, keep};

fn main() {
    keep(Kept::Interpreted);
}
