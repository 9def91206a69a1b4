//! The kernel's own system calls, for threads outside of a simulation and for what is not simulated.
//!
//! They are made by one instruction each, because the functions of the C library of these names are this crate's.

use std::ffi::{c_int, c_long};

/// Makes a system call. The result is the kernel's: an error is a number from -4095 to -1.
///
/// # Safety
/// As that of the system call itself: pointers among the arguments must be what the call demands.
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn kernel(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the registers are those of the kernel's calling convention, which says that rcx and r11 are lost; memory
    // that the call reads or writes is the caller's promise.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// Makes a system call. The result is the kernel's: an error is a number from -4095 to -1.
///
/// # Safety
/// As that of the system call itself: pointers among the arguments must be what the call demands.
#[cfg(target_arch = "aarch64")]
pub(crate) unsafe fn kernel(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    let result;
    // SAFETY: the registers are those of the kernel's calling convention; memory that the call reads or writes is the
    // caller's promise.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result, in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack)
        );
    }
    result
}

/// Makes a system call, with the C library's result: -1 for an error, whose number is in `errno`.
///
/// # Safety
/// As [`kernel`].
pub(crate) unsafe fn libc_call(number: c_long, arguments: [c_long; 6]) -> c_long {
    // SAFETY: the caller's promise.
    let result = unsafe { kernel(number, arguments) };
    if (-4095..0).contains(&result) {
        set_errno(-result as c_int);
        return -1;
    }
    result
}

/// Sets the calling thread's error number.
pub(crate) fn set_errno(number: c_int) {
    // SAFETY: the C library gives the address of a number of the calling thread.
    unsafe { *libc::__errno_location() = number }
}
