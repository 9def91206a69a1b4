//! Locking memory changes the whole process, so this is a process of its own.

use std::fs;

use ironorb::{BuildError, Orb};

/// The locked memory of the process, in KiB.
fn locked() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn an_orb_locks_the_memory_of_its_process_or_says_what_to_do() {
    assert_eq!(locked(), 0);
    match Orb::builder().no_endpoint().lock_memory(true).build() {
        Ok(_) => assert!(locked() > 0),
        Err(BuildError::Io(e)) => assert!(e.to_string().contains("RLIMIT_MEMLOCK"), "{e}"),
        Err(e) => panic!("{e}"),
    }
}
