//! The one list of minor codes. Each line has number, name and text; everything else is derived.

use std::fmt;

use crate::exception::SystemExceptionKind;

/// A minor code: 20 bits of vendor id and 12 bits of code (CORBA 3.3 part 1, annex A).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MinorCode(pub u32);

/// Vendor id of the codes that the OMG assigns.
pub const OMG_VMCID: u32 = 0x4F4D_0000;
/// Vendor id of IronORB's own codes: `IO`, shifted into the upper 20 bits.
pub const IRONORB_VMCID: u32 = 0x494F_0000;

macro_rules! codes {
    ($($vmcid:ident { $($number:literal => $name:ident $text:literal)* })*) => {
        impl MinorCode {
            /// No further detail.
            pub const NONE: MinorCode = MinorCode(0);
            $($(
                #[doc = $text]
                pub const $name: MinorCode = MinorCode($vmcid | $number);
            )*)*

            /// The meaning of one of IronORB's own codes. `None` for others, whose meaning depends on the
            /// exception.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $($(MinorCode::$name if $vmcid == IRONORB_VMCID => Some($text),)*)*
                    _ => None,
                }
            }

            /// The meaning of the code in an exception of this kind. `None` for unknown codes.
            pub fn text_for(self, kind: SystemExceptionKind) -> Option<&'static str> {
                let omg: &[(u32, &str, &str)] = &[
                    $($(($vmcid | $number, stringify!($name), $text),)*)*
                ];
                let of_kind = |name: &str| {
                    name.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with('_'))
                };
                let standard = || omg.iter().find(|(code, name, _)| *code == self.0 && of_kind(name));
                self.text().or_else(|| standard().map(|(_, _, text)| *text))
            }
        }
    };
}

// OMG codes are numbered for each exception, so their names contain it.
codes! {
    OMG_VMCID {
        1 => NO_IMPLEMENT_VALUE "a local valuetype lacks its implementation"
        1 => UNKNOWN_UNLISTED_USER_EXCEPTION "an exception that the operation does not declare"
        1 => MARSHAL_NO_VALUE_FACTORY "no factory is registered for the type of a value"
        2 => UNKNOWN_NONSTANDARD_SYSTEM_EXCEPTION "a system exception that this ORB does not know"
        7 => BAD_PARAM_URL_SCHEME "string_to_object: unknown URL scheme"
        8 => BAD_PARAM_URL_ADDRESS "string_to_object: bad address"
        9 => BAD_PARAM_URL_SPECIFIC "string_to_object: bad scheme-specific part"
        3 => BAD_INV_ORDER_WOULD_DEADLOCK "the operation would wait for itself"
        4 => MARSHAL_LOCAL_OBJECT "a local object or native value was to be sent"
        4 => BAD_INV_ORDER_SHUT_DOWN "the ORB has been shut down"
        10 => BAD_PARAM_URL_OTHER "string_to_object: other reason"
        23 => BAD_PARAM_WIDE_NOT_NEGOTIATED "wide characters, but no code set context says what they are"
        30 => BAD_PARAM_POLICY_TWICE "a list of policies has two of one type"
        1 => DATA_CONVERSION_NOT_IN_SET "a character is not in the code set agreed on"
        2 => DATA_CONVERSION_PRIORITY "the priority mapping has no priority of the system for a priority"
        5 => MARSHAL_WIDE_IN_REQUEST_1_0 "a client sent wide characters over GIOP 1.0"
        6 => MARSHAL_WIDE_IN_REPLY_1_0 "a server sent wide characters over GIOP 1.0"
        1 => INV_OBJREF_NO_WIDE_CODE_SET "the server takes no wide characters that we can send"
        2 => INV_OBJREF_NO_CODE_SETS_COMPONENT "the reference lacks the code sets that wide characters need"
        1 => CODESET_NEGOTIATION_FAILED "client and server have no code set in common"
        2 => CODESET_NOT_SUPPORTED "the client chose a code set that the server does not take"
        6 => BAD_INV_ORDER_MANAGER_SET "a servant manager has been set already"
        17 => BAD_INV_ORDER_POA_DESTROYED "the adapter is being destroyed"
        14 => BAD_PARAM_FOREIGN_ID "the object id was not made by this adapter"
        1 => OBJ_ADAPTER_ACTIVATOR_FAILED "the adapter activator failed"
        3 => OBJ_ADAPTER_NO_DEFAULT_SERVANT "the adapter has no default servant"
        4 => OBJ_ADAPTER_NO_SERVANT_MANAGER "the adapter has no servant manager"
        5 => OBJ_ADAPTER_BAD_INCARNATION "the servant activator gave a servant that the adapter's policies do not allow"
        1 => TRANSIENT_DISCARDED "the adapter's manager discards requests, or too many wait"
        4 => TRANSIENT_POA_DESTROYED "the adapter is being destroyed"
        2 => OBJECT_NOT_EXIST_NO_ADAPTER "the adapter cannot be found or made"
        1 => INTF_REPOS_UNAVAILABLE "no interface repository is available"
    }
    IRONORB_VMCID {
        1 => CONNECT_REFUSED "no endpoint of the reference could be connected"
        2 => CONNECT_TIMEOUT "the connection was not made in time"
        3 => CONNECTION_LOST "the connection was lost while the reply was awaited"
        4 => CALL_TIMEOUT "the deadline passed before the reply came"
        5 => SEND_FAILED "the request could not be written to the connection"
        6 => FORWARD_LOOP "the reference was forwarded too many times"
        7 => NO_USABLE_PROFILE "the reference has no profile that this ORB can use"
        8 => TOO_MANY_CALLS "too many calls are in flight on one connection"
        9 => TOO_MANY_CONNECTIONS "the limit of connections is reached"
        10 => PEER_CLOSED "the peer closed the connection in order, without handling the request"
        11 => PEER_MESSAGE_ERROR "the peer answered with MessageError"
        12 => MALFORMED_REQUEST "the request's bytes are not what its operation takes"
        13 => MALFORMED_REPLY "the reply's bytes are not what its operation gives"
        14 => UNSENDABLE_ARGUMENT "an argument cannot be sent as its IDL type"
        15 => UNSENDABLE_RESULT "a result of the servant cannot be sent as its IDL type"
        16 => SERVANT_PANICKED "the servant panicked"
        17 => NO_SUCH_OPERATION "the object's interface has no such operation"
        18 => NO_SUCH_OBJECT "the object key names no active object"
        19 => NO_SUCH_ADAPTER "the object key names no object adapter"
        20 => STALE_KEY "the object key belongs to an object that has been deactivated or to an earlier process"
        21 => MANAGER_DISCARDING "the adapter's manager discards requests"
        22 => MANAGER_INACTIVE "the adapter's manager is inactive"
        23 => ORB_SHUT_DOWN "the ORB has been shut down"
        24 => TOO_MANY_HELD "too many requests are held by a manager"
        25 => WRONG_INTERFACE "the object does not have the interface asked for"
        26 => NIL_REFERENCE "the reference is nil"
        27 => NOT_AN_EXCEPTION_LISTED "the servant's exception is not in the operation's raises clause"
        28 => WRONG_POLICY "the adapter's policies do not allow this"
        29 => NO_SUCH_INITIAL_REFERENCE "no initial reference has this name"
        30 => BAD_REFERENCE_TEXT "the text is not an object reference"
        31 => NO_ENDPOINT "the ORB listens nowhere, so its objects cannot be reached from outside"
        32 => REPLY_TOO_LARGE "the reply is larger than the message limit"
        33 => REQUEST_TOO_LARGE "the request is larger than the message limit"
        34 => ADDRESSING_NOT_UNDERSTOOD "the peer wants a target address that this reference lacks"
        35 => ENCODING_CHANGED "the object has moved to where its arguments are written otherwise; call again"
        40 => REPLY_GIVEN_UP "the servant gave its obligation to answer up"
        44 => MOVED_BODY "the body cannot be passed on to this GIOP version without its types"
        45 => UNKNOWN_VALUE_TYPE "a value cannot be passed on whole without its type"
        46 => ONEWAYS_LOST "the connection ended before oneways that waited had left"
        47 => RECEIVE_MEMORY_TAKEN "other messages have taken the memory that there is for large ones; a call again may succeed"
        48 => REQUEST_TOO_LATE "the caller had given up when the request reached the server"
        49 => UPCALL_OVERRUN "the servant ran longer than the wcet of its operation"
        57 => UNSUPPORTED_SCHEDULING_DISCIPLINE "the scheduling discipline needs a parameter that is not given"
        50 => NOT_IN_TIME "the server cannot end the request by its deadline, or one that it has admitted"
        56 => PEER_NOT_GIOP "the peer does not speak GIOP"
        61 => WRONG_LANE "the lane cannot serve the object"
        60 => OPERATION_LEFT_OUT "the servant leaves the operation out"
        65 => CALL_IN_UPDATE "a change of a cell makes no remote calls"
        64 => STATUS_NOT_FOR_CLIENT "the server does not tell this client its status (setting status)"
    }
}

/// Displays the number as vendors write it, and its meaning if it is known.
impl fmt::Debug for MinorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MinorCode({:#010x}", self.0)?;
        match self.text() {
            Some(text) => write!(f, ", {text})"),
            None => f.write_str(")"),
        }
    }
}

impl fmt::Display for MinorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text(), self.0 & !0xFFF) {
            (Some(text), _) => f.write_str(text),
            (None, OMG_VMCID) => write!(f, "OMG minor code {}", self.0 & 0xFFF),
            (None, _) => write!(f, "minor code {:#010x}", self.0),
        }
    }
}
