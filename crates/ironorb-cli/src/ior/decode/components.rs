//! Explains the components of a reference.

use ironorb::giop::Malformed;
use ironorb::giop::ior::{
    SecurityMechanism, TAG_NULL_TAG, TAG_OMNIORB_BIDIR, TAG_OMNIORB_PERSISTENT_ID, TaggedComponent,
    TaoUnixEndpoint,
};

use super::{Out, words};

impl Out {
    /// Shows a known and well-formed component in words, and every other as bytes.
    pub(super) fn component(&mut self, component: &TaggedComponent<'_>) {
        let shown = None
            .or_else(|| self.address(component))
            .or_else(|| self.fact(component))
            .or_else(|| self.security(component))
            .or_else(|| self.of_omniorb(component));
        match shown {
            Some(Ok(())) => {}
            Some(Err(why)) => self.bad(1, "component", &why, &component.data),
            None => {
                let tag = component.tag;
                self.dump(1, &format!("component {tag:#x}"), &component.data);
                self.line(1, "", format_args!("({})", words::component(tag)));
            }
        }
    }

    /// Shows the addresses that a UIOP profile lists for one priority each.
    pub(super) fn unix_endpoints(
        &mut self,
        component: &TaggedComponent<'_>,
        endpoints: &Result<Vec<TaoUnixEndpoint>, Malformed>,
    ) {
        match endpoints {
            Err(why) => self.bad(1, "component", why, &component.data),
            Ok(endpoints) => {
                for TaoUnixEndpoint { path, priority } in endpoints {
                    let priority = words::priority_of_endpoint(*priority);
                    self.line(1, "Unix socket", format_args!("uiop://{path}, {priority} (TAO)"));
                }
            }
        }
    }

    /// Shows further addresses; `None` for other components.
    fn address(&mut self, component: &TaggedComponent<'_>) -> Option<Result<(), Malformed>> {
        if let Some(address) = component.alternate_address() {
            return Some(
                address.map(|address| self.line(1, "address", format_args!("{address} (alternate)"))),
            );
        }
        if let Some(address) = component.unix_address() {
            return Some(address.map(|address| self.line(1, "Unix socket", address)));
        }
        if let Some(address) = component.shared_memory_address() {
            return Some(address.map(|address| {
                self.line(1, "shared mem", format_args!("shm://{} on {}", address.path, address.host));
            }));
        }
        component.tao_endpoints().map(|endpoints| {
            endpoints.map(|endpoints| {
                for endpoint in endpoints {
                    let priority = words::priority_of_endpoint(endpoint.priority);
                    let (host, port) = (&endpoint.host, endpoint.port);
                    self.line(1, "address", format_args!("{host}:{port}, {priority} (TAO)"));
                }
            })
        })
    }

    /// Shows what a client must know to call; `None` for other components.
    fn fact(&mut self, component: &TaggedComponent<'_>) -> Option<Result<(), Malformed>> {
        if let Some(number) = component.orb_type() {
            return Some(number.map(|number| self.line(1, "ORB type", words::orb_type(number))));
        }
        if let Some(info) = component.code_sets() {
            return Some(info.map(|info| {
                let (char, wchar) = (&info.for_char_data, &info.for_wchar_data);
                self.line(1, "code sets", format_args!("char: {}", words::code_sets(char)));
                self.line(1, "", format_args!("wchar: {}", words::code_sets(wchar)));
            }));
        }
        if let Some(urls) = component.java_codebase() {
            return Some(urls.map(|urls| match urls.as_str() {
                "" => self.line(1, "code base", "none"),
                urls => self.line(1, "code base", urls),
            }));
        }
        if let Some(version) = component.rmi_stream_format() {
            return Some(version.map(|version| {
                self.line(1, "RMI", format_args!("custom marshalling up to version {version}"));
            }));
        }
        component.policies().map(|policies| {
            policies.map(|policies| {
                for policy in policies {
                    let name = words::policy(policy.policy_type);
                    self.dump(1, "policy", &policy.value);
                    self.line(1, "", format_args!("({name})"));
                }
            })
        })
    }

    /// Shows TLS ports and CSIv2 mechanisms; `None` for other components.
    fn security(&mut self, component: &TaggedComponent<'_>) -> Option<Result<(), Malformed>> {
        if let Some(ssl) = component.ssl_transport() {
            return Some(ssl.map(|ssl| {
                self.line(1, "SSL", format_args!("port {}", ssl.port));
                self.line(1, "", format_args!("supports {}", ssl.supports));
                self.line(1, "", format_args!("requires {}", ssl.requires));
            }));
        }
        component.security_mechanisms().map(|mechanisms| {
            mechanisms.map(|list| {
                let state = if list.stateful { "keeps sessions" } else { "keeps no sessions" };
                let count = list.mechanisms.len();
                let plural = if count == 1 { "" } else { "s" };
                self.line(1, "CSIv2", format_args!("{count} mechanism{plural}, the server {state}"));
                for (index, mechanism) in list.mechanisms.iter().enumerate() {
                    self.mechanism(index + 1, mechanism);
                }
            })
        })
    }

    fn mechanism(&mut self, number: usize, mechanism: &SecurityMechanism) {
        self.line(2, "mechanism", format_args!("{number}, requires {}", mechanism.requires));
        self.transport(&mechanism.transport);
        let user = &mechanism.authentication;
        if user.mechanism.is_empty() && user.supports.is_empty() {
            self.line(2, "client", "is not authenticated by messages");
        } else {
            let target = match user.target_name.is_empty() {
                true => String::new(),
                false => format!(" for {}", words::target_name(&user.target_name)),
            };
            let how = words::object_identifier(&user.mechanism);
            self.line(2, "client", format_args!("by {how}{target}"));
            self.options(user.supports, user.requires);
        }
        let identity = &mechanism.attributes;
        if identity.supports.is_empty() && identity.identity_types == 0 {
            return self.line(2, "identity", "of another party is not taken");
        }
        let types = words::identity_types(identity.identity_types);
        self.line(2, "identity", format_args!("types: {types}"));
        for mechanism in &identity.naming_mechanisms {
            self.line(2, "", format_args!("names by {}", words::object_identifier(mechanism)));
        }
        for authority in &identity.privilege_authorities {
            self.dump(2, "authority", &authority.name);
        }
        self.options(identity.supports, identity.requires);
    }

    fn transport(&mut self, transport: &TaggedComponent<'_>) {
        match transport.tls_transport() {
            Some(Ok(tls)) => {
                let addresses: Vec<String> = tls.addresses.iter().map(ToString::to_string).collect();
                self.line(2, "transport", format_args!("TLS at {}", addresses.join(", ")));
                self.options(tls.supports, tls.requires);
            }
            Some(Err(why)) => self.bad(2, "transport", &why, &transport.data),
            None if transport.tag == TAG_NULL_TAG => self.line(2, "transport", "without protection"),
            None => self.dump(2, &format!("transport {:#x}", transport.tag), &transport.data),
        }
    }

    fn options(&mut self, supports: impl std::fmt::Display, requires: impl std::fmt::Display) {
        self.line(2, "", format_args!("supports {supports}"));
        self.line(2, "", format_args!("requires {requires}"));
    }

    /// Shows components of omniORB; `None` for other components.
    fn of_omniorb(&mut self, component: &TaggedComponent<'_>) -> Option<Result<(), Malformed>> {
        match component.tag {
            TAG_OMNIORB_BIDIR => self.line(1, "omniORB", "takes bidirectional GIOP"),
            TAG_OMNIORB_PERSISTENT_ID => self.dump(1, "omniORB id", &component.data),
            _ => {
                return component.restricted_connection().map(|limits| {
                    limits.map(|limits| {
                        let (connections, threads) = (limits.connections_max, limits.threads_max);
                        self.line(
                            1,
                            "omniORB",
                            format_args!(
                                "connections at most {connections}, calls at once at most {threads}"
                            ),
                        );
                    })
                });
            }
        }
        Some(Ok(()))
    }
}
