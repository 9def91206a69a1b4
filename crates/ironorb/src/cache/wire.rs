//! The messages of caching proxies, as CDR; `docs/wire.md` lists them.

use ironorb_cache::{
    Answer, Change, Epoch, Fill, Filled, Members, Opened, Position, Probe, SessionId, Token, Unit,
};
use ironorb_giop::cdr::Environment;
use ironorb_giop::{ByteOrder, Encoding, Malformed, MalformedKind, Misuse, Reader, Writer};

use super::cell::WriteMembers;
use super::log::CellNumber;
use super::peer::NO_SESSION;
use super::state::CachedState;
use crate::object::ObjectRef;
use crate::object::wire_numbers::CACHE_CONTEXT;

/// The operation by which a client asks an object for its cached state.
pub(crate) const FILL: &str = "_ironorb_fill";
/// The plain key of the object that opens sessions and answers probes.
pub(crate) const CACHE_KEY: &str = "IronORBCache";
/// Its repository id.
pub(crate) const CACHE_ID: &str = "IDL:IronORB/Cache:1.0";
/// Its operations.
pub(crate) const OPEN: &str = "open";
pub(crate) const PROBE: &str = "probe";
pub(crate) const WAIT: &str = "wait";

/// Values in an encapsulation, and how their strings are encoded.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) octets: Vec<u8>,
    pub(crate) encoding: Encoding,
}

impl Values {
    /// A reader at the values.
    pub(crate) fn reader<'v>(&'v self, environment: &'v dyn Environment) -> Result<Reader<'v>, Malformed> {
        Ok(Reader::encapsulated(&self.octets, self.encoding)?.with_environment(environment))
    }

    /// The whole state that the values are.
    pub(crate) fn read_state<S: CachedState>(&self, environment: &dyn Environment) -> Result<S, Malformed> {
        S::read(&mut self.reader(environment)?)
    }

    fn read(r: &mut Reader<'_>) -> Result<Values, Malformed> {
        Ok(Values { octets: r.read_octets()?.to_vec(), encoding: r.encoding() })
    }
}

fn write_opened(opened: Opened, w: &mut Writer<'_>) {
    w.write_u64(opened.epoch.0);
    w.write_u64(opened.session.0);
}

fn read_opened(r: &mut Reader<'_>) -> Result<Opened, Malformed> {
    Ok(Opened { epoch: Epoch(r.read_u64()?), session: SessionId(r.read_u64()?) })
}

/// Writes the arguments of [`FILL`]. A client without a session names none.
pub(crate) fn write_fill(interface: &str, of: Opened, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.write_str(interface)?;
    write_opened(of, w);
    Ok(())
}

/// Reads the arguments of [`FILL`]: the interface, and the session.
pub(crate) fn read_fill(r: &mut Reader<'_>) -> Result<(String, Opened), Malformed> {
    Ok((r.read_str()?.into_owned(), read_opened(r)?))
}

const STATE: u8 = 0;
const REFUSED: u8 = 1;
const UNKNOWN: u8 = 2;

/// Writes the results of [`FILL`]: the state is an encapsulation without its length. `cache` opens sessions, where that of the
/// client is not known.
pub(crate) fn write_filled(
    filled: &Filled<CellNumber>,
    (epoch, cache): (Epoch, Option<&ObjectRef>),
    state: &[u8],
    w: &mut Writer<'_>,
) -> Result<(), Misuse> {
    match filled {
        Filled::State { object, version, head, .. } => {
            w.write_u8(STATE);
            w.write_u64(*object);
            w.write_u64(version.0);
            w.write_u64(head.0);
        }
        Filled::Refused { .. } => w.write_u8(REFUSED),
        Filled::Unknown { .. } => {
            w.write_u8(UNKNOWN);
            w.write_u64(epoch.0);
            w.put(&cache)?;
        }
    }
    w.write_octets(state)
}

/// Some members of a state as an encapsulation, without its length.
pub(crate) fn encapsulated(
    members: Members,
    write: WriteMembers<'_>,
    encoding: Encoding,
) -> Result<Vec<u8>, Misuse> {
    let mut octets = vec![u8::from(encoding.order == ByteOrder::Little)];
    write(members, &mut Writer::continuing(&mut octets, 0, encoding))?;
    Ok(octets)
}

/// The results of [`FILL`].
#[derive(Debug)]
pub(crate) struct FillResults {
    pub(crate) filled: Filled<CellNumber>,
    /// The server's life, and what opens sessions of it; where the session of the fill is not known.
    pub(crate) server: Option<(Epoch, ObjectRef)>,
    /// The state, which is there in any case.
    pub(crate) state: Values,
}

impl FillResults {
    /// The results as those of this fill.
    pub(crate) fn of(mut self, fill: &Fill) -> FillResults {
        let Fill { of: session, token: asked } = *fill;
        match &mut self.filled {
            Filled::State { of, token, .. } | Filled::Refused { of, token } => {
                (*of, *token) = (session, asked)
            }
            Filled::Unknown { of } => *of = session,
        }
        self
    }
}

/// Reads the results of [`FILL`]. The message does not say [of which](FillResults::of).
pub(crate) fn read_filled(r: &mut Reader<'_>) -> Result<FillResults, Malformed> {
    let Fill { of, token } = NO_SESSION;
    let mut server = None;
    let filled = match r.read_u8()? {
        STATE => {
            let (object, version, head) = (r.read_u64()?, Position(r.read_u64()?), Position(r.read_u64()?));
            Filled::State { of, token, object, version, head }
        }
        REFUSED => Filled::Refused { of, token },
        UNKNOWN => {
            let epoch = Epoch(r.read_u64()?);
            server = r.get::<Option<ObjectRef>>()?.map(|cache| (epoch, cache));
            Filled::Unknown { of }
        }
        _ => return Err(r.malformed(MalformedKind::BadEncapsulation)),
    };
    Ok(FillResults { filled, server, state: Values::read(r)? })
}

/// Writes the results of [`OPEN`].
pub(crate) fn write_open(opened: Opened, w: &mut Writer<'_>) {
    write_opened(opened, w);
}

/// Reads the results of [`OPEN`].
pub(crate) fn read_open(r: &mut Reader<'_>) -> Result<Opened, Malformed> {
    read_opened(r)
}

/// Writes the arguments of [`PROBE`].
pub(crate) fn write_probe(probe: &Probe, w: &mut Writer<'_>) {
    write_opened(probe.of, w);
    w.write_u64(probe.taken.0);
    w.write_u64(probe.room.try_into().unwrap_or(u64::MAX));
}

/// Reads the arguments of [`PROBE`].
pub(crate) fn read_probe(r: &mut Reader<'_>) -> Result<Probe, Malformed> {
    let (of, taken) = (read_opened(r)?, Position(r.read_u64()?));
    let room = r.read_u64()?.try_into().unwrap_or(usize::MAX);
    Ok(Probe { of, taken, room, token: Token(0) })
}

const NOT_KNOWN: u8 = 0;
const ALL: u8 = 1;
const PART: u8 = 2;

/// Writes the results of [`PROBE`]. The values have been encoded before, each as an encapsulation without its length.
pub(crate) fn write_answer(answer: &Answer<CellNumber, Vec<u8>>, w: &mut Writer<'_>) -> Result<(), Misuse> {
    let Answer::Changes { head, units, is_part, .. } = answer else {
        w.write_u8(NOT_KNOWN);
        return Ok(());
    };
    w.write_u8(if *is_part { PART } else { ALL });
    w.write_u64(head.0);
    w.write_length(units.len())?;
    for Unit { object, at, change } in units {
        w.write_u64(*object);
        w.write_u64(at.0);
        let (members, values) = match change {
            Change::Members(members, values) => (*members, &**values),
            Change::Dropped => (Members::NONE, &[][..]),
        };
        w.write_u64(members.0);
        w.write_octets(values)?;
    }
    Ok(())
}

/// Object, position, members and the length of their values.
pub(crate) const UNIT_BYTES_MIN: usize = 28;

/// Reads the results of [`PROBE`].
pub(crate) fn read_answer(
    probe: &Probe,
    r: &mut Reader<'_>,
) -> Result<Answer<CellNumber, Values>, Malformed> {
    let Probe { of, token, .. } = *probe;
    let is_part = match r.read_u8()? {
        NOT_KNOWN => return Ok(Answer::Unknown { of }),
        ALL => false,
        PART => true,
        _ => return Err(r.malformed(MalformedKind::BadEncapsulation)),
    };
    let head = Position(r.read_u64()?);
    let count = r.read_length(UNIT_BYTES_MIN)?;
    let mut units = Vec::with_capacity(count);
    for _ in 0..count {
        let (object, at, members) = (r.read_u64()?, Position(r.read_u64()?), Members(r.read_u64()?));
        let values = Values::read(r)?;
        let change = match members {
            Members::NONE => Change::Dropped,
            members => Change::Members(members, values),
        };
        units.push(Unit { object, at, change });
    }
    Ok(Answer::Changes { of, token, head, units, is_part })
}

/// The request's context that asks for the end of the log: a client that caches sends it. Its number, and the
/// length of its data: there is none.
pub(crate) fn encoded_question() -> [u8; QUESTION_BYTES] {
    let mut context = [0; QUESTION_BYTES];
    context[..4].copy_from_slice(&CACHE_CONTEXT.to_ne_bytes());
    context
}

/// The bytes of the question, with its number and its length.
pub(crate) const QUESTION_BYTES: usize = 8;

/// What a request of a client that caches asks of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogQuestion {
    /// Its end.
    End,
    /// The same, and what has changed.
    Changes(CarriedProbe),
}

impl LogQuestion {
    /// Reads the data of a request's context. What cannot be read asks for the end, as a context without data does.
    pub(crate) fn decode(data: &[u8]) -> LogQuestion {
        CarriedProbe::decode(data).map_or(LogQuestion::End, LogQuestion::Changes)
    }
}

/// A probe that a request carries: the reply answers it beside telling the end of the log. It goes only where the server of the
/// session is, and so names no epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CarriedProbe {
    session: SessionId,
    taken: Position,
    token: Token,
    room: u32,
}

/// Its bytes, with its number and its length.
pub(crate) const CARRIED_PROBE_BYTES: usize = 8 + CARRIED_DATA_BYTES;

const CARRIED_DATA_BYTES: usize = 32;

/// What a server adds to a reply at most, in octets. A longer answer is asked for by a message of its own.
const CARRIED_ANSWER_BYTES_MAX: u32 = ironorb_cache::UPDATE_BYTES as u32;

impl CarriedProbe {
    /// Has a request carry a probe.
    pub(crate) fn of(probe: &Probe) -> CarriedProbe {
        let Probe { of, taken, token, room } = *probe;
        CarriedProbe { session: of.session, taken, token, room: room.try_into().unwrap_or(u32::MAX) }
    }

    /// The probe, at the server with this epoch.
    pub(super) fn at(&self, epoch: Epoch) -> Probe {
        let CarriedProbe { session, taken, token, room } = *self;
        let room = room.min(CARRIED_ANSWER_BYTES_MAX) as usize;
        Probe { of: Opened { epoch, session }, taken, token, room }
    }

    /// The data of the request's context: an encapsulation.
    pub(crate) fn data(&self) -> [u8; CARRIED_DATA_BYTES] {
        let mut data = [0; CARRIED_DATA_BYTES];
        data[0] = u8::from(ByteOrder::NATIVE == ByteOrder::Little);
        data[4..8].copy_from_slice(&self.room.to_ne_bytes());
        data[8..16].copy_from_slice(&self.session.0.to_ne_bytes());
        data[16..24].copy_from_slice(&self.taken.0.to_ne_bytes());
        data[24..].copy_from_slice(&self.token.0.to_ne_bytes());
        data
    }

    /// The request's context, with its number and its length.
    pub(crate) fn encoded(&self) -> [u8; CARRIED_PROBE_BYTES] {
        let mut context = [0; CARRIED_PROBE_BYTES];
        context[..4].copy_from_slice(&CACHE_CONTEXT.to_ne_bytes());
        context[4..8].copy_from_slice(&(CARRIED_DATA_BYTES as u32).to_ne_bytes());
        context[8..].copy_from_slice(&self.data());
        context
    }

    /// Reads the data of a request's context. `None` if it has no probe, or one that cannot be read.
    pub(crate) fn decode(data: &[u8]) -> Option<CarriedProbe> {
        let mut r = Reader::encapsulated(data, Encoding::NATIVE).ok()?;
        let room = r.read_u32().ok()?;
        let mut number = || r.read_u64().ok();
        Some(CarriedProbe {
            session: SessionId(number()?),
            taken: Position(number()?),
            token: Token(number()?),
            room,
        })
    }

    /// The data of the reply's context: the end of the log as [`encoded_end`] has it, the session and the token of the probe, and
    /// its answer. `None` if that is too long.
    pub(super) fn encoded_answer(
        (epoch, head): (Epoch, Position),
        probe: &Probe,
        answer: &Answer<CellNumber, Vec<u8>>,
        encoding: Encoding,
    ) -> Result<Option<Vec<u8>>, Misuse> {
        let mut octets = Vec::with_capacity(128);
        octets.push(u8::from(encoding.order == ByteOrder::Little));
        let mut w = Writer::continuing(&mut octets, 0, encoding);
        [epoch.0, head.0, probe.of.session.0, probe.token.0]
            .into_iter()
            .for_each(|number| w.write_u64(number));
        write_answer(answer, &mut w)?;
        let is_too_long = octets.len() > CARRIED_ANSWER_BYTES_MAX as usize;
        Ok((!is_too_long).then_some(octets))
    }

    /// Reads the answer in the data of a reply's context. `None` if there is none, or one that cannot be read.
    pub(crate) fn decode_answer(data: &[u8], encoding: Encoding) -> Option<Answer<CellNumber, Values>> {
        if data.len() <= END_BYTES {
            return None;
        }
        let mut r = Reader::encapsulated(data, encoding).ok()?;
        let mut number = || r.read_u64().ok();
        let (epoch, _head) = (Epoch(number()?), number()?);
        let of = Opened { epoch, session: SessionId(number()?) };
        let probe = Probe { of, token: Token(number()?), taken: Position::START, room: 0 };
        read_answer(&probe, &mut r).ok()
    }
}

/// The reply's context that tells the end of the log: its number, the length of its data, and an encapsulation with the server's
/// epoch and the position.
pub(crate) fn encoded_end(epoch: Epoch, head: Position) -> [u8; 32] {
    let mut context = [0; 32];
    context[..4].copy_from_slice(&CACHE_CONTEXT.to_ne_bytes());
    context[4..8].copy_from_slice(&(END_BYTES as u32).to_ne_bytes());
    context[8] = u8::from(ByteOrder::NATIVE == ByteOrder::Little);
    context[16..24].copy_from_slice(&epoch.0.to_ne_bytes());
    context[24..].copy_from_slice(&head.0.to_ne_bytes());
    context
}

const END_BYTES: usize = 24;

/// Reads the data of a reply's context. `None` if it cannot be read.
pub(crate) fn decode_end(data: &[u8]) -> Option<(Epoch, Position)> {
    let order = match data.first()? {
        0 => ByteOrder::Big,
        1 => ByteOrder::Little,
        _ => return None,
    };
    let number = |at: usize| {
        let bytes: [u8; 8] = data.get(at..at + 8)?.try_into().ok()?;
        Some(if order == ByteOrder::Big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    };
    Some((Epoch(number(8)?), Position(number(16)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_log_is_read_in_both_orders() {
        let told = (Epoch(0x0102_0304_0506_0708), Position(0x1112_1314_1516_1718));
        let native = encoded_end(told.0, told.1);
        assert_eq!(decode_end(&native[8..]), Some(told));
        let mut other = native;
        other[8] ^= 1;
        other[16..24].reverse();
        other[24..].reverse();
        assert_eq!(decode_end(&other[8..]), Some(told));
        for cut in 0..END_BYTES {
            assert_eq!(decode_end(&native[8..8 + cut]), None, "{cut} bytes");
        }
        assert_eq!(decode_end(&[2; END_BYTES]), None);
    }

    #[test]
    fn a_carried_probe_is_read_in_both_orders() {
        let of = Opened { epoch: Epoch(1), session: SessionId(0x0102_0304_0506_0708) };
        let probe = Probe { of, taken: Position(0x1112), token: Token(0x2122), room: 0x3132 };
        let carried = CarriedProbe::of(&probe);
        let data = carried.data();
        assert_eq!(carried.encoded()[8..], data);
        assert_eq!(CarriedProbe::decode(&data), Some(carried));
        let mut other = data;
        other[0] ^= 1;
        other[4..8].reverse();
        other[8..].chunks_mut(8).for_each(<[u8]>::reverse);
        assert_eq!(CarriedProbe::decode(&other), Some(carried));
        for cut in 0..data.len() {
            assert_eq!(LogQuestion::decode(&data[..cut]), LogQuestion::End, "{cut} bytes");
        }
        let of = Opened { epoch: Epoch(7), session: of.session };
        let room = CARRIED_ANSWER_BYTES_MAX as usize;
        assert_eq!(carried.at(Epoch(7)), Probe { of, room: 0x3132.min(room), ..probe });
    }

    #[test]
    fn a_carried_answer_stands_behind_the_end_of_the_log() {
        let of = Opened { epoch: Epoch(1), session: SessionId(2) };
        let probe = Probe { of, taken: Position(3), token: Token(4), room: 0 };
        let unit = Unit { object: 5, at: Position(6), change: Change::Members(Members(1), vec![1, 2, 3]) };
        let answer =
            Answer::Changes { of, token: probe.token, head: Position(7), units: vec![unit], is_part: true };
        let end = (Epoch(1), Position(8));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let encoding = Encoding { order, ..Encoding::NATIVE };
            let data = CarriedProbe::encoded_answer(end, &probe, &answer, encoding).unwrap().unwrap();
            assert_eq!(decode_end(&data), Some(end));
            let read = CarriedProbe::decode_answer(&data, Encoding::NATIVE).unwrap();
            assert_eq!((read.session(), read.is_part()), (of, true));
            let Answer::Changes { token, head, units, .. } = read else { panic!("{read:?}") };
            assert_eq!((token, head, units.len()), (probe.token, Position(7), 1));
            for cut in 0..data.len() {
                assert!(CarriedProbe::decode_answer(&data[..cut], Encoding::NATIVE).is_none(), "{cut} bytes");
            }
            let unknown = Answer::Unknown { of };
            let data = CarriedProbe::encoded_answer(end, &probe, &unknown, encoding).unwrap().unwrap();
            let read = CarriedProbe::decode_answer(&data, Encoding::NATIVE).unwrap();
            assert!(matches!(read, Answer::Unknown { of: read } if read == of));
        }
        let long = Unit { object: 5, at: Position(6), change: Change::Members(Members(1), vec![0; 1_400]) };
        let answer =
            Answer::Changes { of, token: probe.token, head: Position(7), units: vec![long], is_part: false };
        assert!(CarriedProbe::encoded_answer(end, &probe, &answer, Encoding::NATIVE).unwrap().is_none());
    }
}
