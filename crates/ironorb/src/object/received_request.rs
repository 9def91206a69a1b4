//! Requests that are passed on. They are kept as they came, and their bodies are sent byte for byte.

use std::fmt;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::CodeSetComponent;
use ironorb_giop::message::{
    Message, PADDING, RawBody, Request, RequestId, RequestTarget, Response, write_raw_request,
};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{
    BI_DIR_IIOP, CODE_SETS, RT_CORBA_PRIORITY_RANGE, SENDING_CONTEXT_RUN_TIME, ServiceContext,
    ServiceContexts,
};
use ironorb_giop::{
    CharSet, Encoding, Malformed, Misuse, Reader, TransmissionCodeSets, Version, WideCharSet, Writer,
};

use crate::object::{ObjectRef, WireProfile};

/// A request as it came, in memory of its own.
pub struct ReceivedRequest {
    /// A message that has been parsed before.
    message: Message,
    operation: String,
    response: Response,
    code_sets: TransmissionCodeSets,
    characters: Characters,
}

/// Which characters of a body have bytes that depend on the code sets. More is assumed where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Characters {
    /// None: the body means the same in all code sets.
    Plain,
    /// Those of strings.
    Narrow,
    /// Those of wide strings, whose bytes depend on the GIOP version as well, and maybe those of strings.
    Wide,
}

impl ReceivedRequest {
    /// Copies the request whose arguments are about to be read.
    pub(crate) fn keep(arguments: &Reader<'_>, operation: &str) -> Result<Self, Malformed> {
        let message = Message::copied_from(arguments)?;
        let response = message.parse_request()?.response;
        let code_sets = arguments.encoding().code_sets();
        let characters = Characters::at_most(code_sets);
        Ok(ReceivedRequest { message, operation: operation.to_owned(), response, code_sets, characters })
    }

    /// Writes a request that is to be passed on to whichever object. Its body has characters in these code sets. The length of the
    /// whole message is bounded by GIOP alone.
    pub fn written(
        operation: &str,
        response: Response,
        contexts: &[ServiceContext<'_>],
        body: RawBody<'_>,
        code_sets: TransmissionCodeSets,
    ) -> Result<Self, Misuse> {
        let nobody = RequestTarget::new(Version::V1_2, None, &[]);
        let (mut bytes, id) = (Vec::with_capacity(64 + operation.len() + body.bytes.len()), RequestId(0));
        write_raw_request(&mut bytes, &nobody, id, response, operation, contexts, body, usize::MAX)?;
        let message = Message::from_bytes(bytes, code_sets).map_err(|_| Misuse::TooLarge)?;
        let characters = Characters::at_most(code_sets);
        Ok(ReceivedRequest { message, operation: operation.to_owned(), response, code_sets, characters })
    }

    /// The same request, of whose characters so much is known.
    #[must_use]
    pub fn with_characters(self, characters: Characters) -> Self {
        ReceivedRequest { characters, ..self }
    }

    /// Which of its characters depend on the code sets.
    pub fn characters(&self) -> Characters {
        self.characters
    }

    /// A reference to the same object, whose server reads the body's characters as what they are. That is `target` itself where
    /// the server is told the code sets of the body anyway, or where nothing depends on them. Neither blocks nor sends.
    ///
    /// An error, COMPLETED_NO, if its reference says that the server has not these code sets (CODESET_INCOMPATIBLE), or if the body
    /// may have wide characters and its GIOP is older than 1.2 (DATA_CONVERSION). A reference that names no code sets, as a
    /// `corbaloc:`, is no objection: the server is told them, and refuses those that it does not have.
    pub fn readable_by(&self, target: &ObjectRef) -> Result<ObjectRef, SystemException> {
        if self.characters == Characters::Plain {
            return Ok(target.clone());
        }
        // What is wrong with a reference, its call says.
        let Ok(route) = target.routes().current() else { return Ok(target.clone()) };
        let Some(known) = route.target(0) else { return Ok(target.clone()) };
        let (version, told) = (known.request.version(), known.request.code_sets());
        let has_wide = self.characters == Characters::Wide;
        if has_wide && version < Version::V1_2 {
            return Err(unreadable(SystemExceptionKind::DataConversion, "wide characters of GIOP 1.2"));
        }
        let here = self.code_sets;
        let is_told = match told {
            Some(told) => told.char_set == here.char_set && (!has_wide || told.wide_set == here.wide_set),
            None => !has_wide && here.char_set == CharSet::Latin1,
        };
        if is_told {
            return Ok(target.clone());
        }
        let offered = target.ior().iiop_profiles().find_map(|profile| profile.code_sets());
        let has = |set: &CodeSetComponent, id: u32| {
            set.native_code_set == id || set.conversion_code_sets.contains(&id)
        };
        let takes = match &offered {
            Some(offered) => {
                let takes_wide = |wide: WideCharSet| has(&offered.for_wchar_data, wide.registry_id());
                has(&offered.for_char_data, here.char_set.registry_id())
                    && (!has_wide || here.wide_set.is_none_or(takes_wide))
            }
            None => version > Version::V1_0,
        };
        if !takes {
            return Err(unreadable(
                SystemExceptionKind::CodesetIncompatible,
                "characters in these code sets",
            ));
        }
        // Those of its replies may be wide.
        let wide_set = match (has_wide, told) {
            (false, Some(told)) => told.wide_set,
            _ => here.wide_set,
        };
        let code_sets = Some(TransmissionCodeSets { wide_set, ..here });
        Ok(target.with_wire_profile(WireProfile { version, code_sets }))
    }

    fn parsed<T>(&self, then: impl FnOnce(Request<'_>) -> T, otherwise: T) -> T {
        match self.message.parse_request() {
            Ok(request) => then(request),
            Err(_) => otherwise, // it has been parsed successfully before
        }
    }

    /// The operation's name on the wire.
    pub fn operation(&self) -> &str {
        &self.operation
    }

    /// The GIOP version of the request.
    pub fn version(&self) -> Version {
        self.message.header().version
    }

    /// The response that the client asks for.
    pub fn response(&self) -> Response {
        self.response
    }

    /// The code sets that the client has chosen; `None` when it has announced none, or could not in GIOP 1.0.
    pub fn code_sets(&self) -> Option<TransmissionCodeSets> {
        (self.code_sets != TransmissionCodeSets::UNNEGOTIATED).then_some(self.code_sets)
    }

    /// The service contexts of the request.
    pub fn contexts(&self) -> ServiceContexts<'_> {
        match self.message.parse_request() {
            Ok(request) => request.contexts,
            Err(_) => ServiceContexts::none(),
        }
    }

    /// The service contexts that concern the call, and not the connection over which it came.
    pub(crate) fn contexts_to_pass_on(&self) -> impl Iterator<Item = ServiceContext<'_>> {
        self.contexts().filter(is_about_the_call)
    }

    /// The service contexts that concern the call, and the body. Parses the message once for both.
    pub(crate) fn parts_to_pass_on(
        &self,
    ) -> Option<(impl Iterator<Item = ServiceContext<'_>>, Option<RawBody<'_>>)> {
        let request = self.message.parse_request().ok()?;
        Some((request.contexts.filter(is_about_the_call), request.body.raw()))
    }

    /// The bytes of the arguments; `None` when they came in fragments of GIOP 1.1, each aligned by itself.
    pub fn body(&self) -> Option<RawBody<'_>> {
        self.message.parse_request().ok()?.body.raw()
    }

    /// The length of the whole message, in bytes.
    pub fn message_bytes(&self) -> usize {
        self.message.bytes().len()
    }

    /// The length of the arguments, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.parsed(|request| self.message.bytes().len().saturating_sub(request.body.position()), 0)
    }

    /// A reader at the arguments.
    pub fn reader(&self) -> Option<Reader<'_>> {
        Some(self.message.parse_request().ok()?.body.reader())
    }

    /// The encoding of the arguments.
    pub(crate) fn encoding_here(&self) -> Encoding {
        let order = self.message.header().order;
        Encoding { order, ..Encoding::native(self.version(), self.code_sets) }
    }

    /// Writes the body, if its bytes are valid at the writer's position.
    pub(crate) fn write_here(&self, w: &mut Writer<'_>) -> Result<(), Misuse> {
        match self.body() {
            Some(body) if body.order == w.encoding().order && body.fits_at(w.position() % 8) => {
                w.write_encoded(body.bytes);
                Ok(())
            }
            _ => Err(Misuse::MovedBody),
        }
    }
}

impl Characters {
    fn at_most(code_sets: TransmissionCodeSets) -> Characters {
        code_sets.wide_set.map_or(Characters::Narrow, |_| Characters::Wide)
    }
}

#[cold]
fn unreadable(kind: SystemExceptionKind, what: &str) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the server cannot read {what}, in which the arguments have been written"))
}

impl fmt::Debug for ReceivedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceivedRequest").field("operation", &self.operation).finish_non_exhaustive()
    }
}

pub(crate) fn is_about_the_call(context: &ServiceContext<'_>) -> bool {
    ![CODE_SETS, BI_DIR_IIOP, SENDING_CONTEXT_RUN_TIME, RT_CORBA_PRIORITY_RANGE, PADDING]
        .contains(&context.id)
}
