//! The host on which servers run: this one, or another network namespace, which stands for a second host.

use std::ffi::OsString;
use std::str::FromStr;

/// Where a suite's servers run.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Hosts {
    /// Start servers by this command, and have them listen at this address: `10.0.0.2=nsenter -t 7 -n`.
    #[arg(long, value_name = "ADDRESS=COMMAND")]
    pub(crate) server_host: Option<ServerHost>,
}

/// Another host: the address at which its servers listen, and the command that starts programs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerHost {
    pub(crate) address: String,
    command: Vec<OsString>,
}

/// The address of servers on this host.
pub(crate) const LOOPBACK: &str = "127.0.0.1";

impl ServerHost {
    /// The command under which servers start; none on this host.
    pub(crate) fn command(host: Option<&ServerHost>) -> &[OsString] {
        host.map_or(&[], |host| &host.command)
    }

    /// The address at which servers listen.
    pub(crate) fn address(host: Option<&ServerHost>) -> &str {
        host.map_or(LOOPBACK, |host| &host.address)
    }
}

impl FromStr for ServerHost {
    type Err = String;

    fn from_str(text: &str) -> Result<ServerHost, String> {
        let wrong = || "write an address and a command: 10.0.0.2=nsenter -t 7 -n".to_owned();
        let (address, command) = text.split_once('=').ok_or_else(wrong)?;
        let command: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
        let is_address = address.parse::<std::net::IpAddr>().is_ok();
        if !is_address || command.is_empty() {
            return Err(wrong());
        }
        Ok(ServerHost { address: address.to_owned(), command })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_and_a_command() {
        let host: ServerHost = "10.0.0.2=nsenter -t 7 -n".parse().unwrap();
        assert_eq!(ServerHost::address(Some(&host)), "10.0.0.2");
        assert_eq!(ServerHost::command(Some(&host)), ["nsenter", "-t", "7", "-n"]);
        assert_eq!((ServerHost::address(None), ServerHost::command(None).len()), (LOOPBACK, 0));
        for text in ["", "10.0.0.2", "10.0.0.2=", "here=nsenter"] {
            assert!(text.parse::<ServerHost>().is_err(), "{text}");
        }
    }
}
