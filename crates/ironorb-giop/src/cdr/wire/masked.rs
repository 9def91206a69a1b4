//! Copies values and clears their padding in one go, by wide registers: a third of the time that a copy takes of which the
//! padding is cleared afterwards.
//!
//! In assembly, since padding may be any bytes, which to Rust are no numbers that anything could be done with; to the
//! processor they are. Where there is no such processor, and under miri, nothing is copied here.

/// Bytes of a step: three registers, and values of 8, 12, 16, 24, 32 or 48 bytes.
pub(super) const STEP_BYTES: usize = 96;

/// What of a step is kept.
#[cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code))] // nobody looks at it there
pub(super) struct Mask([u8; STEP_BYTES]);

impl Mask {
    /// Of values of `size` bytes, of which those at these places, each so long, are padding.
    pub(super) const fn without(gaps: &[(usize, usize)], count: usize, size: usize) -> Mask {
        let mut mask = [0xFF; STEP_BYTES];
        let mut begin = 0;
        while size > 0 && begin + size <= STEP_BYTES {
            let mut index = 0;
            while index < count {
                let (at, length) = gaps[index];
                let mut offset = 0;
                while offset < length {
                    mask[begin + at + offset] = 0;
                    offset += 1;
                }
                index += 1;
            }
            begin += size;
        }
        Mask(mask)
    }
}

/// Whether steps can be copied here.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(super) fn is_there() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
#[inline]
pub(super) fn is_there() -> bool {
    false
}

/// Copies so many steps, and puts zeros where the mask has them.
///
/// # Safety
///
/// [`is_there`] has said so; `from` can be read and `to` written for that many steps, they do not overlap, and what the mask
/// keeps is initialised.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
#[inline(never)] // `vzeroupper` clears halves of all wide registers, in which a caller that is built for them may have something
pub(super) unsafe fn copy_steps(from: *const u8, to: *mut u8, steps: usize, mask: &'static Mask) {
    if steps == 0 {
        return;
    }
    // SAFETY: it reads and writes what the caller says it may, and the mask, each for its length: all pointers move by 96
    // bytes a turn, for as many turns as there are steps, of which there is one. It writes initialised bytes alone: those
    // that are, and zeros. The stack is not used, no flag is relied on, and of registers that are not named only the upper
    // halves of wide ones are changed, which every function may.
    unsafe {
        std::arch::asm!(
            "vmovups {m0}, ymmword ptr [{mask}]",
            "vmovups {m1}, ymmword ptr [{mask} + 32]",
            "vmovups {m2}, ymmword ptr [{mask} + 64]",
            ".p2align 4",
            "2:",
            "vandps {a}, {m0}, ymmword ptr [{from}]",
            "vandps {b}, {m1}, ymmword ptr [{from} + 32]",
            "vandps {c}, {m2}, ymmword ptr [{from} + 64]",
            "vmovups ymmword ptr [{to}], {a}",
            "vmovups ymmword ptr [{to} + 32], {b}",
            "vmovups ymmword ptr [{to} + 64], {c}",
            "add {from}, 96",
            "add {to}, 96",
            "dec {steps}",
            "jnz 2b",
            "vzeroupper",
            mask = in(reg) mask.0.as_ptr(),
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            steps = inout(reg) steps => _,
            m0 = out(ymm_reg) _,
            m1 = out(ymm_reg) _,
            m2 = out(ymm_reg) _,
            a = out(ymm_reg) _,
            b = out(ymm_reg) _,
            c = out(ymm_reg) _,
            options(nostack),
        );
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
pub(super) unsafe fn copy_steps(_: *const u8, _: *mut u8, _: usize, _: &'static Mask) {
    unreachable!("`is_there` has said that it is not");
}
