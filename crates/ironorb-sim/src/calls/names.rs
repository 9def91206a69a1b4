//! Names of hosts.

use std::ffi::{CStr, c_char, c_int};
use std::ptr;

use libc::{addrinfo, sockaddr_in};

use super::sockets::raw_address;
use super::{c_library, inside, is_simulated};

type Getaddrinfo =
    unsafe extern "C" fn(*const c_char, *const c_char, *const addrinfo, *mut *mut addrinfo) -> c_int;
type Freeaddrinfo = unsafe extern "C" fn(*mut addrinfo);
type Gethostname = unsafe extern "C" fn(*mut c_char, usize) -> c_int;

/// An answer, and the address in it.
#[repr(C)]
struct Found {
    info: addrinfo,
    address: sockaddr_in,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const addrinfo,
    found: *mut *mut addrinfo,
) -> c_int {
    if !is_simulated() {
        let getaddrinfo = c_library!(c"getaddrinfo": Getaddrinfo);
        // SAFETY: the caller's promise.
        return unsafe { getaddrinfo(node, service, hints, found) };
    }
    if node.is_null() {
        return libc::EAI_NONAME;
    }
    // SAFETY: the caller's promise: strings that end with a zero, or none.
    let (node, service) =
        unsafe { (CStr::from_ptr(node), service.as_ref().map(|text| CStr::from_ptr(text))) };
    let port = service.and_then(|text| text.to_str().ok()?.parse().ok()).unwrap_or(0);
    let Some(address) = node.to_str().ok().and_then(|name| inside(|state| state.look_up(name))) else {
        return libc::EAI_NONAME;
    };
    // SAFETY: all fields are numbers or addresses, for which zeros are legal.
    let mut answer: Box<Found> = Box::new(unsafe { std::mem::zeroed() });
    answer.address = raw_address((address, port));
    answer.info.ai_family = libc::AF_INET;
    answer.info.ai_socktype = libc::SOCK_STREAM;
    answer.info.ai_protocol = libc::IPPROTO_TCP;
    answer.info.ai_addrlen = size_of::<sockaddr_in>() as u32;
    let answer = Box::into_raw(answer);
    // SAFETY: the box has just been made, and `found` is the caller's.
    unsafe {
        (*answer).info.ai_addr = (&raw mut (*answer).address).cast();
        *found = answer.cast();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn freeaddrinfo(answer: *mut addrinfo) {
    if is_simulated() {
        // SAFETY: a thread of a simulation has it from the function above, which has made it from a box.
        drop(unsafe { Box::from_raw(answer.cast::<Found>()) });
        return;
    }
    let freeaddrinfo = c_library!(c"freeaddrinfo": Freeaddrinfo);
    // SAFETY: the caller's promise.
    unsafe { freeaddrinfo(answer) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gethostname(name: *mut c_char, length: usize) -> c_int {
    if !is_simulated() {
        let gethostname = c_library!(c"gethostname": Gethostname);
        // SAFETY: the caller's promise.
        return unsafe { gethostname(name, length) };
    }
    let own = inside(|state| state.hosts[state.here().0].name.clone());
    let copied = own.len().min(length.saturating_sub(1));
    // SAFETY: the caller's promise: so many octets.
    unsafe {
        ptr::copy_nonoverlapping(own.as_ptr().cast(), name, copied);
        name.add(copied).write(0);
    }
    0
}
