//! Options of connections' sockets by which a lane's bytes pass others or wait less (socket(7), tcp(7)).

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::AddressFamily;
use rustix::net::sockopt::{set_tcp_quickack, set_tcp_user_timeout, socket_domain};
use socket2::SockRef;

use crate::base::config::OrbConfig;

/// The highest priority of a socket: the kernel's tables have 16 places.
const PRIORITY_MAX: u32 = 15;
/// The highest that a process without CAP_NET_ADMIN may take.
const PRIORITY_FREE_MAX: u32 = 6;
/// The longest time for which a system call may poll a device. More is taken for a mistake.
const BUSY_POLL_MAX: Duration = Duration::from_millis(100);
const USER_TIMEOUT_MIN: Duration = Duration::from_millis(1);
const USER_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Sets the options that the settings give. Those of TCP are for TCP.
pub(super) fn apply(socket: BorrowedFd<'_>, config: &OrbConfig) -> io::Result<()> {
    if let Some(priority) = config.socket_priority {
        SockRef::from(&socket).set_priority(priority)?;
    }
    if let Some(time) = config.busy_poll {
        SockRef::from(&socket).set_busy_poll(microseconds(time))?;
    }
    if let Some(time) = config.tcp_user_timeout.filter(|_| is_tcp(socket)) {
        set_tcp_user_timeout(socket, milliseconds(time))?;
    }
    Ok(())
}

pub(crate) fn is_tcp(socket: impl AsFd) -> bool {
    socket_domain(socket).is_ok_and(|domain| domain == AddressFamily::INET || domain == AddressFamily::INET6)
}

/// Acknowledges what has come, and what comes next, without delay. The system takes up delays again when bytes leave.
pub(super) fn acknowledge_at_once(socket: BorrowedFd<'_>) {
    // A connection that has ended has nothing to acknowledge.
    let _ = set_tcp_quickack(socket, true);
}

/// Why options cannot be had: the setting, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadOption(String);

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks the ranges of options, and whether the system grants them to the process: a connection would be the first to
/// notice.
pub(crate) fn check(config: &OrbConfig) -> Result<(), BadOption> {
    if let Some(priority) = config.socket_priority {
        check_priority(priority)?;
    }
    if let Some(time) = config.busy_poll {
        check_busy_poll(time)?;
    }
    let times = USER_TIMEOUT_MIN..=USER_TIMEOUT_MAX;
    match config.tcp_user_timeout {
        Some(time) if !times.contains(&time) => {
            Err(BadOption(format!("tcpUserTimeout is {time:?}: write a time from 1ms to 24h")))
        }
        _ => Ok(()),
    }
}

fn check_priority(priority: u32) -> Result<(), BadOption> {
    if priority > PRIORITY_MAX {
        return Err(BadOption(format!(
            "socketPriority is {priority}: write a number from 0 to {PRIORITY_MAX}"
        )));
    }
    try_out(|socket| SockRef::from(&socket).set_priority(priority)).map_err(|e| {
        BadOption(format!(
            "socketPriority is {priority}, which the system refuses ({e}): write a number from 0 to {PRIORITY_FREE_MAX}, or \
             grant CAP_NET_ADMIN"
        ))
    })
}

fn check_busy_poll(time: Duration) -> Result<(), BadOption> {
    if time > BUSY_POLL_MAX {
        return Err(BadOption(format!("busyPoll is {time:?}: write a time from 0us to 100ms")));
    }
    try_out(|socket| SockRef::from(&socket).set_busy_poll(microseconds(time))).map_err(|e| {
        BadOption(format!(
            "busyPoll is {time:?}, which the system refuses ({e}): grant CAP_NET_ADMIN, set it for all sockets (sysctl \
             net.core.busy_read), or leave it out"
        ))
    })
}

fn try_out(set: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0"))?;
    set(socket.as_fd())
}

fn microseconds(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::tcp_user_timeout;

    use super::*;

    fn all() -> OrbConfig {
        OrbConfig {
            socket_priority: Some(5),
            tcp_user_timeout: Some(Duration::from_secs(7)),
            ..OrbConfig::default()
        }
    }

    #[test]
    fn a_socket_has_the_options_of_the_settings() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let facts = || (SockRef::from(&stream).priority().unwrap(), tcp_user_timeout(&stream).unwrap());
        apply(stream.as_fd(), &OrbConfig::default()).unwrap();
        assert_eq!(facts(), (0, 0));
        apply(stream.as_fd(), &all()).unwrap();
        assert_eq!(facts(), (5, 7_000));
        let (local, _peer) = UnixStream::pair().unwrap();
        apply(local.as_fd(), &all()).unwrap();
        assert_eq!(SockRef::from(&local).priority().unwrap(), 5);
    }

    #[test]
    fn polling_devices_needs_a_right() {
        let config = OrbConfig { busy_poll: Some(Duration::from_micros(50)), ..OrbConfig::default() };
        match check(&config) {
            Err(why) => assert!(why.to_string().contains("CAP_NET_ADMIN"), "{why}"),
            Ok(()) => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                apply(socket.as_fd(), &config).unwrap();
                assert_eq!(SockRef::from(&socket).busy_poll().unwrap(), 50);
            }
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        assert_eq!(check(&all()), Ok(()));
        let refused = |config: OrbConfig| check(&config).unwrap_err().to_string();
        let priority = refused(OrbConfig { socket_priority: Some(16), ..all() });
        assert!(priority.contains("from 0 to 15"), "{priority}");
        let polling = refused(OrbConfig { busy_poll: Some(Duration::from_secs(1)), ..all() });
        assert!(polling.contains("to 100ms"), "{polling}");
        for time in [Duration::ZERO, Duration::from_secs(90_000)] {
            let timeout = refused(OrbConfig { tcp_user_timeout: Some(time), ..all() });
            assert!(timeout.contains("from 1ms to 24h"), "{timeout}");
        }
    }
}
