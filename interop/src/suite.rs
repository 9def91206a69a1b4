//! IronORB's servant of `interop::Suite`. Every operation does what `idl/interop.idl` says.

mod later;
mod objects;
mod parts;
mod values;

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ironorb::poa::{IdAssignment, Poa, PoaCurrent, PoaError, PoaPolicies, RequestProcessing};
use ironorb::{
    CompletionStatus, Context, MinorCode, ObjectRef, SystemException, SystemExceptionKind, TypedRef, WString,
    nil_reference,
};

use crate::interop::{self, *};
use objects::{Forwarder, GaugeServant, NodeServant, SkewServant, SpriteServant};

/// The name of the adapter whose references are forwarded.
const FORWARDER: &str = "forwarder";

/// Serves all interfaces of the contract. Creates further objects in the root adapter of the ORB that calls
/// it.
#[derive(Debug, Default)]
pub struct SuiteServant {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    attributes: Values,
    tokens: Vec<i32>,
    gates: HashMap<String, Gate>,
    closing: bool,
}

/// The values of the attributes.
#[derive(Debug)]
struct Values {
    count: i32,
    low: i16,
    high: i16,
    title: String,
    tint: Color,
    bin: BinStruct,
    compound: Variable,
    numbers: LongSeq,
    cells: Matrix,
    choice: ByLong,
    partner: Option<NodeRef>,
    guarded: i32,
}

impl Default for Values {
    fn default() -> Self {
        Values {
            count: 0,
            low: 0,
            high: 0,
            title: String::new(),
            tint: Color::Red,
            bin: BinStruct::default(),
            compound: Variable::default(),
            numbers: Vec::new(),
            cells: Matrix::default(),
            choice: ByLong::Number { label: 1, value: 0 },
            partner: None,
            guarded: 0,
        }
    }
}

#[derive(Debug, Default)]
struct Gate {
    waiting: u32,
    openings: i32,
}

/// Creates the adapter that `References::forwarded` needs. Call it once per ORB, before the first request.
pub fn create_forwarder(root: &Poa) -> Result<(), PoaError> {
    let policies = PoaPolicies {
        id_assignment: IdAssignment::User,
        request_processing: RequestProcessing::ServantManager,
        ..PoaPolicies::default()
    };
    let poa = root.create_poa(FORWARDER, Some(root.manager().clone()), policies)?;
    poa.set_servant_activator(std::sync::Arc::new(Forwarder))
}

impl SuiteServant {
    /// Releases all calls that wait at a gate, now and later.
    pub fn open_all_gates(&self) {
        self.state().closing = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The root adapter of the ORB that makes this upcall.
fn root_poa() -> Result<Poa, SystemException> {
    PoaCurrent
        .poa()
        .map(|poa| poa.orb().root_poa())
        .ok_or_else(|| internal("a servant was called by hand, not by its ORB"))
}

fn adapter_error(e: PoaError) -> SystemException {
    internal(&e.to_string())
}

fn internal(why: &str) -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::No)
        .with_detail(why)
}

fn detailed(depth: i16) -> Detailed {
    let number = i32::from(depth);
    Detailed {
        at: BinStruct { s: depth, c: b'd', l: 2 * number, o: 255, d: 0.5 },
        trail: (0..depth).map(|i| i.to_string()).collect(),
        tint: Color::Green,
        pair: deep::Pair { first: "deep".to_owned(), outer: Pair { first: number, second: -number } },
    }
}

type Echo<T> = Result<(T, T, T), SystemException>;

/// Echoes of types that are passed by value.
macro_rules! echo_values {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation(&self, x: $type, y: $type) -> Echo<$type> {
            Ok((x, x, y))
        }
    )*};
}

/// Echoes of types that are borrowed, with the type that owns their values.
macro_rules! echo_borrowed {
    ($($operation:ident: $borrowed:ty, $type:ty;)*) => {$(
        fn $operation(&self, x: &$borrowed, y: &$borrowed) -> Echo<$type> {
            Ok((x.to_owned(), x.to_owned(), y.to_owned()))
        }
    )*};
}

/// Echoes of wide strings, which are borrowed as `str`.
macro_rules! echo_wide {
    ($($operation:ident;)*) => {$(
        fn $operation(&self, x: &str, y: &str) -> Echo<WString> {
            Ok((x.into(), x.into(), y.into()))
        }
    )*};
}

/// Echoes of references.
macro_rules! echo_references {
    ($($operation:ident: $type:ty;)*) => {$(
        fn $operation(&self, x: Option<&$type>, y: Option<&$type>) -> Echo<Option<$type>> {
            Ok((x.cloned(), x.cloned(), y.cloned()))
        }
    )*};
}

pub use values::{TicketOffice, length, register_values, ring};
use {echo_borrowed, echo_values};

/// Attributes that keep their value.
macro_rules! attributes {
    ($($get:ident $set:ident: $borrowed:ty, $type:ty;)*) => {$(
        fn $get(&self) -> Result<$type, SystemException> {
            Ok(self.state().attributes.$get.clone())
        }

        fn $set(&self, value: $borrowed) -> Result<(), SystemException> {
            self.state().attributes.$get = value.to_owned();
            Ok(())
        }
    )*};
}

impl interop::Suite for SuiteServant {
    fn orb_name(&self) -> Result<String, SystemException> {
        Ok("IronORB".to_owned())
    }

    fn part(&self, name: &str) -> Result<Option<ObjectRef>, SystemException> {
        parts::part(&root_poa()?, name)
    }
}

impl interop::Basics for SuiteServant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    echo_values! {
        echo_short: i16;
        echo_ushort: u16;
        echo_long: i32;
        echo_ulong: u32;
        echo_llong: i64;
        echo_ullong: u64;
        echo_float: f32;
        echo_double: f64;
        echo_char: u8;
        echo_boolean: bool;
        echo_octet: u8;
        echo_color: Color;
        echo_single: Single;
        echo_height: Height;
    }

    echo_borrowed! {
        echo_string: str, String;
        echo_short_string: str, ShortString;
        echo_label: str, Label;
    }

    fn constants(&self) -> Result<basics::ConstantValues, SystemException> {
        Ok(basics::ConstantValues {
            s: C_SHORT,
            us: C_USHORT,
            l: C_LONG,
            ul: C_ULONG,
            ll: C_LLONG,
            ull: C_ULLONG,
            f: C_FLOAT,
            d: C_DOUBLE,
            c: C_CHAR,
            b: C_BOOLEAN,
            o: C_OCTET,
            str: C_STRING.to_owned(),
            tint: C_COLOR,
        })
    }

    fn outs(&self) -> Result<(u8, f64, String, i16, LongSeq), SystemException> {
        Ok((1, 2.5, "three".to_owned(), -4, vec![5, -6]))
    }

    fn inouts(&self, a: u8, b: f64, c: &str) -> Result<(u8, f64, String), SystemException> {
        Ok((a.wrapping_add(1), b * 2.0, c.repeat(2)))
    }

    fn mix(&self, a: &str, n: i64, b: u8, c: f64) -> Result<(f64, u8, i64, String), SystemException> {
        Ok((c + f64::from(b), b, -n, format!("{a}/{b}")))
    }

    fn sum(
        &self,
        a: u8,
        b: i16,
        c: u8,
        d: i32,
        e: u8,
        f: i64,
        g: u8,
        h: f64,
    ) -> Result<i32, SystemException> {
        let octets = i64::from(a) + i64::from(c) + i64::from(e) + i64::from(g);
        Ok((octets + i64::from(b) + i64::from(d) + f + h as i64) as i32)
    }

    fn default(&self, in_: i32, match_: i32) -> Result<(i32, i32), SystemException> {
        Ok((in_ + match_, in_ - match_))
    }

    fn type_(&self, fn_: &str, ref_: &str) -> Result<String, SystemException> {
        Ok(format!("{fn_}&{ref_}"))
    }
}

impl interop::Sequences for SuiteServant {
    echo_borrowed! {
        echo_shorts: [i16], ShortSeq;
        echo_ushorts: [u16], UShortSeq;
        echo_longs: [i32], LongSeq;
        echo_ulongs: [u32], ULongSeq;
        echo_llongs: [i64], LongLongSeq;
        echo_ullongs: [u64], ULongLongSeq;
        echo_floats: [f32], FloatSeq;
        echo_doubles: [f64], DoubleSeq;
        echo_chars: [u8], CharSeq;
        echo_booleans: [bool], BooleanSeq;
        echo_octets: [u8], OctetSeq;
        echo_bounded_longs: [i32], BoundedLongSeq;
        echo_strings: [String], StringSeq;
        echo_short_strings: [ShortString], ShortStringSeq;
        echo_colors: [Color], ColorSeq;
        echo_bins: [BinStruct], BinSeq;
        echo_nameds: [Named], NamedSeq;
        echo_longs_seq: [LongSeq], LongSeqSeq;
        echo_string_table: [Vec<String>], StringTable;
        echo_readings: [i32], Readings;
        echo_nesteds: [Nested], NestedSeq;
        echo_by_longs: [ByLong], ByLongSeq;
        echo_long_arrays: [LongArray], LongArraySeq;
    }

    fn reflect_octets(&self, data: &[u8]) -> Result<OctetSeq, SystemException> {
        Ok(data.to_owned())
    }

    fn reflect_longs(&self, data: &[i32]) -> Result<LongSeq, SystemException> {
        Ok(data.to_owned())
    }

    fn reflect_doubles(&self, data: &[f64]) -> Result<DoubleSeq, SystemException> {
        Ok(data.to_owned())
    }

    fn reflect_bins(&self, data: &[BinStruct]) -> Result<BinSeq, SystemException> {
        Ok(data.to_owned())
    }

    fn reflect_strings(&self, data: &[String]) -> Result<StringSeq, SystemException> {
        Ok(data.to_owned())
    }

    fn swallow(&self, data: &[u8]) -> Result<u32, SystemException> {
        Ok(data.len() as u32)
    }

    fn produce(&self, length: u32) -> Result<OctetSeq, SystemException> {
        Ok((0..length).map(|i| (i % 251) as u8).collect())
    }
}

impl interop::Arrays for SuiteServant {
    echo_borrowed! {
        echo_long_array: LongArray, LongArray;
        echo_matrix: Matrix, Matrix;
        echo_cube: Cube, Cube;
        echo_string_array: StringArray, StringArray;
        echo_string_grid: StringGrid, StringGrid;
        echo_bin_array: BinArray, BinArray;
        echo_named_array: NamedArray, NamedArray;
        echo_long_seq_array: LongSeqArray, LongSeqArray;
        echo_vector: Vector, Vector;
    }
}

impl interop::Structs for SuiteServant {
    echo_borrowed! {
        echo_bin: BinStruct, BinStruct;
        echo_one_octet: OneOctet, OneOctet;
        echo_all_basics: AllBasics, AllBasics;
        echo_named: Named, Named;
        echo_variable: Variable, Variable;
        echo_nested: Nested, Nested;
        echo_sample: Sample, Sample;
        echo_tree: Tree, Tree;
        echo_chain: Chain, Chain;
        echo_deep_pair: deep::Pair, deep::Pair;
    }
}

impl interop::Unions for SuiteServant {
    echo_borrowed! {
        echo_by_short: ByShort, ByShort;
        echo_by_ushort: ByUShort, ByUShort;
        echo_by_long: ByLong, ByLong;
        echo_by_ulong: ByULong, ByULong;
        echo_by_llong: ByLongLong, ByLongLong;
        echo_by_ullong: ByULongLong, ByULongLong;
        echo_by_char: ByChar, ByChar;
        echo_by_boolean: ByBoolean, ByBoolean;
        echo_half_boolean: HalfBoolean, HalfBoolean;
        echo_by_color: ByColor, ByColor;
        echo_by_alias: ByAlias, ByAlias;
        echo_expr: Expr, Expr;
    }
}

impl interop::Wide for SuiteServant {
    echo_values! { echo_wchar: char; }

    echo_wide! { echo_wstring; echo_short_wstring; }

    echo_borrowed! {
        echo_wchars: [char], wide::WCharSeq;
        echo_wstrings: [WString], wide::WStringSeq;
        echo_wchar_array: wide::WCharArray, wide::WCharArray;
        echo_wide_struct: wide::WideStruct, wide::WideStruct;
        echo_wide_union: wide::WideUnion, wide::WideUnion;
    }

    fn raise_wide(&self, why: &str) -> Result<(), wide::RaiseWideError> {
        Err(wide::WideError { why: why.into() }.into())
    }

    fn wide_constants(&self) -> Result<(char, WString), SystemException> {
        Ok((wide::C_WCHAR, wide::C_WSTRING.into()))
    }
}

impl interop::Attributes for SuiteServant {
    attributes! {
        count set_count: i32, i32;
        low set_low: i16, i16;
        high set_high: i16, i16;
        title set_title: &str, String;
        tint set_tint: Color, Color;
        bin set_bin: &BinStruct, BinStruct;
        compound set_compound: &Variable, Variable;
        numbers set_numbers: &[i32], LongSeq;
        cells set_cells: &Matrix, Matrix;
        choice set_choice: &ByLong, ByLong;
    }

    fn partner(&self) -> Result<Option<NodeRef>, SystemException> {
        Ok(self.state().attributes.partner.clone())
    }

    fn set_partner(&self, value: Option<&NodeRef>) -> Result<(), SystemException> {
        self.state().attributes.partner = value.cloned();
        Ok(())
    }

    fn answer(&self) -> Result<u64, SystemException> {
        Ok(42)
    }

    fn guarded(&self) -> Result<i32, attributes::GetGuardedError> {
        match self.state().attributes.guarded {
            0 => Err(Empty {}.into()),
            value => Ok(value),
        }
    }

    fn set_guarded(&self, value: i32) -> Result<(), attributes::SetGuardedError> {
        match value {
            ..0 => Err(Refused { why: "negative".to_owned(), code: value }.into()),
            13 => Err(Empty {}.into()),
            _ => {
                self.state().attributes.guarded = value;
                Ok(())
            }
        }
    }

    fn locked(&self) -> Result<i32, attributes::GetLockedError> {
        Err(detailed(1).into())
    }
}

impl interop::Faults for SuiteServant {
    fn raise_empty(&self) -> Result<(), faults::RaiseEmptyError> {
        Err(Empty {}.into())
    }

    fn raise_one_of(&self, which: i32) -> Result<i32, faults::RaiseOneOfError> {
        match which {
            1 => Err(Empty {}.into()),
            2 => Err(Refused { why: "asked".to_owned(), code: which }.into()),
            3 => Err(Occupied { holder: None }.into()),
            _ => Ok(2 * which + 1),
        }
    }

    fn raise_detailed(&self, depth: i16) -> Result<(), faults::RaiseDetailedError> {
        Err(detailed(depth).into())
    }

    fn raise_occupied(&self, holder: Option<&NodeRef>) -> Result<(), faults::RaiseOccupiedError> {
        Err(Occupied { holder: holder.cloned() }.into())
    }

    fn raise_system(
        &self,
        what: Fault,
        minor_code: u32,
        completed: Completion,
    ) -> Result<(), SystemException> {
        let kind = match what {
            Fault::BadParam => SystemExceptionKind::BadParam,
            Fault::NoPermission => SystemExceptionKind::NoPermission,
            Fault::ImpLimit => SystemExceptionKind::ImpLimit,
            Fault::Internal => SystemExceptionKind::Internal,
            Fault::NoResources => SystemExceptionKind::NoResources,
            Fault::NoImplement => SystemExceptionKind::NoImplement,
            Fault::InvPolicy => SystemExceptionKind::InvPolicy,
            Fault::DataConversion => SystemExceptionKind::DataConversion,
        };
        let completed = match completed {
            Completion::CompletedYes => CompletionStatus::Yes,
            Completion::CompletedNo => CompletionStatus::No,
            Completion::CompletedMaybe => CompletionStatus::Maybe,
        };
        Err(SystemException::new(kind, MinorCode(minor_code), completed))
    }

    fn skewed(&self) -> Result<Option<ObjectRef>, SystemException> {
        let skew: SkewServerRef = root_poa()?.activate(SkewServant).map_err(adapter_error)?;
        Ok(Some(skew.into()))
    }
}

impl interop::References for SuiteServant {
    echo_references! {
        echo_node: NodeRef;
        echo_object: ObjectRef;
    }

    echo_borrowed! {
        echo_nodes: [Option<NodeRef>], NodeSeq;
        echo_objects: [Option<ObjectRef>], ObjectSeq;
        echo_link: Link, Link;
        echo_node_or_name: NodeOrName, NodeOrName;
    }

    fn create_node(&self, id: i32) -> Result<Option<NodeRef>, SystemException> {
        root_poa()?.activate(NodeServant { id }).map(Some).map_err(adapter_error)
    }

    fn create_sprite(&self, name: &str, area: f64) -> Result<Option<SpriteRef>, SystemException> {
        root_poa()?.activate(SpriteServant::new(name, area)).map(Some).map_err(adapter_error)
    }

    fn create_gauge(&self) -> Result<Option<deep::GaugeRef>, SystemException> {
        root_poa()?.activate(GaugeServant::default()).map(Some).map_err(adapter_error)
    }

    fn widen(&self, s: Option<&SpriteRef>) -> Result<Option<ShapeRef>, SystemException> {
        Ok(s.cloned().map(ShapeRef::from))
    }

    fn id_of(&self, n: Option<&NodeRef>) -> Result<i32, SystemException> {
        n.ok_or_else(nil_reference)?.id()
    }

    fn forwarded(&self, target: Option<&NodeRef>) -> Result<Option<NodeRef>, SystemException> {
        let target = target.ok_or_else(nil_reference)?.object();
        let forwarder = root_poa()?.find_poa(FORWARDER, false).map_err(adapter_error)?;
        let id = target.to_ior_string();
        let object = forwarder.create_reference_with_id(id.as_str(), NodeRef::REPOSITORY_ID);
        Ok(Some(object.map_err(adapter_error)?.narrow_unchecked()))
    }

    fn call_back(
        &self,
        to: Option<&ListenerRef>,
        question: i32,
        times: u32,
    ) -> Result<i32, references::CallBackError> {
        let to = to.ok_or_else(nil_reference)?;
        let mut total = 0;
        for _ in 0..times {
            total += to.ask(question).map_err(|e| match e {
                listener::AskError::Refused(refused) => references::CallBackError::Refused(refused),
                listener::AskError::System(e) => references::CallBackError::System(e),
            })?;
        }
        Ok(total)
    }

    fn hint_back(&self, to: Option<&ListenerRef>, count: u32) -> Result<(), SystemException> {
        let to = to.ok_or_else(nil_reference)?;
        (1..=count).try_for_each(|token| to.hint(token as i32))
    }

    fn describe_back(
        &self,
        to: Option<&ListenerRef>,
        v: &Variable,
        text: &str,
    ) -> Result<(String, String, LongSeq), SystemException> {
        to.ok_or_else(nil_reference)?.describe(v, text)
    }
}

impl interop::Control for SuiteServant {
    fn notify(&self, token: i32) -> Result<(), SystemException> {
        self.state().tokens.push(token);
        self.changed.notify_all();
        Ok(())
    }

    fn notify_blob(&self, blob: &[u8], _text: &str) -> Result<(), SystemException> {
        self.notify(blob.len() as i32)
    }

    fn take_tokens(&self, count: u32, wait_ms: u32) -> Result<LongSeq, SystemException> {
        let deadline = Instant::now() + Duration::from_millis(wait_ms.into());
        let mut state = self.state();
        while state.tokens.len() < count as usize {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(std::mem::take(&mut state.tokens))
    }

    fn block(&self, gate: &str) -> Result<i32, SystemException> {
        let mut state = self.state();
        let entered = state.gates.entry(gate.to_owned()).or_default();
        entered.waiting += 1;
        let before = entered.openings;
        loop {
            let openings = state.gates.get(gate).map_or(before, |gate| gate.openings);
            if openings > before || state.closing {
                return Ok(openings);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn release(&self, gate: &str) -> Result<u32, SystemException> {
        let mut state = self.state();
        let gate = state.gates.entry(gate.to_owned()).or_default();
        gate.openings += 1;
        let freed = std::mem::take(&mut gate.waiting);
        self.changed.notify_all();
        Ok(freed)
    }

    fn waiting(&self, gate: &str) -> Result<u32, SystemException> {
        Ok(self.state().gates.get(gate).map_or(0, |gate| gate.waiting))
    }

    fn with_context(&self, _number: i32) -> Result<StringSeq, SystemException> {
        let mut found: Vec<String> =
            Context::received().iter().map(|(name, value)| format!("{name}={value}")).collect();
        found.sort_unstable();
        Ok(found)
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.open_all_gates();
        let orb = root_poa()?.orb();
        // A servant cannot wait for its own request, which is answered before the shutdown ends.
        std::thread::spawn(move || orb.shutdown(true));
        Ok(())
    }
}
