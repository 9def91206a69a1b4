//! Copies values and clears their padding in one pass through wide registers. This takes a third of the time
//! of a copy whose padding is cleared afterwards.
//!
//! The code is in assembly because padding may be uninitialised. Rust allows no operation on such bytes, but
//! the processor does. On other processors, and under miri, this module copies nothing.

/// Bytes of a step: three registers, or a whole number of values of 8, 12, 16, 24, 32 or 48 bytes.
pub(super) const STEP_BYTES: usize = 96;

/// The bytes of a step that are copied. The rest become zero.
#[cfg_attr(any(not(target_arch = "x86_64"), miri), allow(dead_code))] // unused there
pub(super) struct Mask([u8; STEP_BYTES]);

impl Mask {
    /// The mask for values of `size` bytes whose padding is in `gaps`: offsets and lengths.
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

/// Whether the processor has the instructions that steps need.
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

/// Copies this many steps, and writes zeros where the mask has them.
///
/// # Safety
///
/// [`is_there`] has returned true. `from` is readable and `to` is writable for that many steps, and they do
/// not overlap. The bytes that the mask keeps are initialised.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
#[inline(never)] // `vzeroupper` clears the upper halves of all wide registers, which a caller built for AVX may use
pub(super) unsafe fn copy_steps(from: *const u8, to: *mut u8, steps: usize, mask: &'static Mask) {
    if steps == 0 {
        return;
    }
    // SAFETY: the code reads and writes what the caller says it may, and the mask, each for its length. All
    // pointers advance by 96 bytes per iteration, and there is one iteration per step, at least one. It
    // writes only initialised bytes: copied ones, and zeros. It uses no stack and relies on no flag. Apart
    // from the registers it names, it changes only upper halves of wide registers, which every function may.
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
    unreachable!("callers ask `is_there` first");
}
