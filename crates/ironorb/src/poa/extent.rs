//! Extents: adapters whose objects are the elements of a row of states, in memory or in a file. An object takes eight bytes
//! beside its state, and is found by its index: there is no map, and no servant for each.

use std::fmt;
use std::sync::Arc;

use ironorb_extent::{Element, ElementError, ElementId, Elements, ExtentError, FileOptions, Generation};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::current::current_upcall;
use super::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, Poa, PoaError, PoaManager,
    PoaPolicies, RequestProcessing, ServantRetention,
};
use crate::cache::{CachedState, CellRef, HeldElements};
use crate::object::deadline::NoCalls;
use crate::object::extent_range::{ExtentRange, ID_BYTES};
use crate::object::{ObjectRef, TypedRef};
use crate::poa::servant::{InterfaceOf, Servant, servant};

/// Elements without the type of their states.
pub(crate) trait AnyElements: Send + Sync {
    /// How many there are.
    fn count(&self) -> u64;

    /// The first index from this one on whose element exists.
    fn first_from(&self, index: u64) -> Option<u64>;

    /// The element with this id, with its generation, if it exists.
    fn existing(&self, id: ElementId) -> Option<ElementId>;
}

impl<T: Element> AnyElements for Elements<T> {
    fn count(&self) -> u64 {
        self.len()
    }

    fn first_from(&self, index: u64) -> Option<u64> {
        (index..self.len()).find(|index| self.generation(*index).is_ok())
    }

    #[inline]
    fn existing(&self, id: ElementId) -> Option<ElementId> {
        self.prefetch(id.index);
        let generation = self.generation(id).ok()?;
        Some(ElementId { index: id.index, generation: Some(generation) })
    }
}

/// Where the generation begins in an id. Below it is the index; above it 0 for whichever element has the index, or the
/// generation plus 1.
const GENERATION_AT: u32 = 40;

/// The most elements of an extent.
const ELEMENTS_MAX: u64 = 1 << GENERATION_AT;

/// The element that an id names, if it is the id of one.
#[inline]
pub(super) fn element_id_of(id: &[u8]) -> Option<ElementId> {
    let number = u64::from_be_bytes(*<&[u8; ID_BYTES]>::try_from(id).ok()?);
    let generation = (number >> GENERATION_AT).checked_sub(1).map(|it| Generation(it as u32));
    Some(ElementId { index: number % ELEMENTS_MAX, generation })
}

/// The id of an element.
pub(super) fn object_id_of(id: ElementId) -> ObjectId {
    let generation = id.generation.map_or(0, |it| u64::from(it.0) + 1);
    ObjectId::from(&((generation << GENERATION_AT) | id.index).to_be_bytes()[..])
}

/// The ids of an adapter's active objects ([`Poa::active_ids`]).
#[allow(missing_debug_implementations)]
pub struct ActiveIds(Ids);

enum Ids {
    Kept(std::vec::IntoIter<ObjectId>),
    Elements { elements: Arc<dyn AnyElements>, next: u64 },
}

impl ActiveIds {
    pub(super) fn kept(ids: Vec<ObjectId>) -> ActiveIds {
        ActiveIds(Ids::Kept(ids.into_iter()))
    }

    pub(super) fn of(elements: &Arc<dyn AnyElements>) -> ActiveIds {
        ActiveIds(Ids::Elements { elements: elements.clone(), next: 0 })
    }
}

impl Iterator for ActiveIds {
    type Item = ObjectId;

    fn next(&mut self) -> Option<ObjectId> {
        match &mut self.0 {
            Ids::Kept(ids) => ids.next(),
            Ids::Elements { elements, next } => {
                let index = elements.first_from(*next)?;
                *next = index + 1;
                Some(object_id_of(index.into()))
            }
        }
    }
}

/// How an extent is made.
#[derive(Debug, Clone, Default)]
pub struct ExtentConfig {
    file: Option<FileOptions>,
    manager: Option<PoaManager>,
    policies: PoaPolicies,
    lifespan: Option<Lifespan>,
}

impl ExtentConfig {
    /// Elements in memory, which the system gives at once. They end with the process, and so do their references.
    pub fn in_memory() -> ExtentConfig {
        ExtentConfig::default()
    }

    /// Elements in a file. They outlive the process, and so do their references.
    pub fn in_file(file: FileOptions) -> ExtentConfig {
        ExtentConfig { file: Some(file), ..ExtentConfig::default() }
    }

    /// How long references are good. A server with elements in memory that it fills anew at each start has persistent ones.
    pub fn lifespan(mut self, lifespan: Lifespan) -> Self {
        self.lifespan = Some(lifespan);
        self
    }

    /// The manager of the adapter. Without this it has one of its own, which is active.
    pub fn manager(mut self, manager: PoaManager) -> Self {
        self.manager = Some(manager);
        self
    }

    /// Policies of the adapter that concern threads and real time. Those of ids, retention and processing are an extent's
    /// own.
    pub fn policies(mut self, policies: PoaPolicies) -> Self {
        self.policies = policies;
        self
    }

    fn adapter_policies(&self) -> PoaPolicies {
        let by_storage = if self.file.is_some() { Lifespan::Persistent } else { Lifespan::Transient };
        PoaPolicies {
            lifespan: self.lifespan.unwrap_or(by_storage),
            id_assignment: IdAssignment::User,
            id_uniqueness: IdUniqueness::Multiple,
            implicit_activation: ImplicitActivation::No,
            servant_retention: ServantRetention::NonRetain,
            request_processing: RequestProcessing::DefaultServant,
            ..self.policies
        }
    }
}

/// Why an extent cannot be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum CannotCreateExtent {
    /// Its adapter cannot be made.
    Adapter(PoaError),
    /// Its elements cannot be made.
    Elements(ExtentError),
}

impl fmt::Display for CannotCreateExtent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotCreateExtent::Adapter(e) => e.fmt(f),
            CannotCreateExtent::Elements(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for CannotCreateExtent {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CannotCreateExtent::Adapter(e) => Some(e),
            CannotCreateExtent::Elements(e) => Some(e),
        }
    }
}

impl From<PoaError> for CannotCreateExtent {
    fn from(e: PoaError) -> Self {
        CannotCreateExtent::Adapter(e)
    }
}

impl From<ExtentError> for CannotCreateExtent {
    fn from(e: ExtentError) -> Self {
        CannotCreateExtent::Elements(e)
    }
}

/// An adapter whose objects are elements: up to a billion and more, one after another in memory or in a file, each with a state
/// of type `T`. One servant serves all; [`current`](Self::current) gives it the element that a request is to. Cheap to clone;
/// the clones are handles of one extent.
///
/// The id of an object is its index, in eight octets, big-endian. So references are computed, not kept:
/// [`reference`](Self::reference), [`range`](Self::range).
///
/// ```no_run
/// # use ironorb::{Extent, ExtentConfig, Orb, Servant};
/// # fn serve(orb: &Orb, servant: impl Fn(Extent<u32>) -> std::sync::Arc<dyn Servant>) -> Result<(), Box<dyn std::error::Error>> {
/// let counters: Extent<u32> =
///     orb.root_poa().create_extent("counters", 1_000_000, ExtentConfig::in_memory(), |_index| 0)?;
/// counters.serve_any(servant(counters.clone()))?;
/// // In the servant: `self.counters.current()?.update(|count| *count += 1)`.
/// # Ok(()) }
/// ```
pub struct Extent<T: Element> {
    poa: Poa,
    elements: Elements<T>,
}

impl Poa {
    /// Makes a child adapter whose objects are the elements of an extent. All of them exist: `state` gives the state of each,
    /// unless a file has them already. Blocks until memory or file have all their room: a billion elements of four bytes take
    /// seconds.
    pub fn create_extent<T: Element>(
        &self,
        name: &str,
        count: u64,
        config: ExtentConfig,
        state: impl FnMut(u64) -> T,
    ) -> Result<Extent<T>, CannotCreateExtent> {
        check_count(count)?;
        let memory = self.0.orb.adapter().memory();
        let bytes = bytes_in_memory::<T>(count, &config);
        if let Some(Err(available)) = memory.map(|plan| plan.take(bytes)) {
            return Err(ExtentError::NotEnoughMemory { needed: bytes, available }.into());
        }
        let made = match &config.file {
            None => Elements::in_memory(count, state),
            Some(file) => Elements::in_file(file, count, state),
        };
        let made = made.map_err(CannotCreateExtent::from);
        made.and_then(|elements| self.create_extent_of(name, elements, config)).inspect_err(|_| {
            if let Some(plan) = memory {
                plan.give_back(bytes);
            }
        })
    }

    /// Makes a child adapter whose objects are elements that the program has already. It ignores the file in `config`.
    pub fn create_extent_of<T: Element>(
        &self,
        name: &str,
        elements: Elements<T>,
        config: ExtentConfig,
    ) -> Result<Extent<T>, CannotCreateExtent> {
        check_count(elements.len())?;
        let policies = config.adapter_policies();
        let poa = self.create_child(name, config.manager, policies, Some(Arc::new(elements.clone())))?;
        Ok(Extent { poa, elements })
    }
}

/// What an extent takes of the process's own memory.
fn bytes_in_memory<T>(count: u64, config: &ExtentConfig) -> u64 {
    let each = match &config.file {
        None => size_of::<T>() + Elements::<u8>::BYTES_BESIDE_STATE,
        // The locks.
        Some(_) => size_of::<u32>(),
    };
    count.saturating_mul(each as u64)
}

fn check_count(count: u64) -> Result<(), ExtentError> {
    match count <= ELEMENTS_MAX {
        true => Ok(()),
        false => Err(ExtentError::TooManyElements { max: ELEMENTS_MAX }),
    }
}

impl<T: Element> Extent<T> {
    /// The adapter.
    pub fn poa(&self) -> &Poa {
        &self.poa
    }

    /// The elements, for the program itself.
    pub fn elements(&self) -> &Elements<T> {
        &self.elements
    }

    /// Has a servant serve all elements. The type of the references determines its interface.
    pub fn serve<R, S>(&self, implementation: S) -> Result<(), PoaError>
    where
        R: TypedRef,
        R::Interface: InterfaceOf<S> + 'static,
        S: Send + Sync + 'static,
    {
        self.serve_any(servant::<R, S>(Arc::new(implementation)))
    }

    /// Has a servant without its type serve all elements: one for the dynamic skeleton interface, for instance.
    pub fn serve_any(&self, servant: Arc<dyn Servant>) -> Result<(), PoaError> {
        self.poa.set_default_servant(servant)
    }

    /// The element that the calling thread's upcall is to. OBJ_ADAPTER outside an upcall to this extent.
    #[inline]
    pub fn current(&self) -> Result<UsedElement<'_, T>, SystemException> {
        match current_upcall(|upcall| upcall.element_of(&self.poa.0)).flatten() {
            Some(id) => Ok(UsedElement { elements: &self.elements, id }),
            None => Err(not_here(SystemExceptionKind::ObjAdapter, MinorCode::NONE)),
        }
    }

    /// Lets clients hold cached attributes of the elements: `S` is the state of an interface with such, `ThingState`, and is made of
    /// an element's. Clients are told of every change, whoever makes it. [`PoaError::WrongPolicy`] the second time.
    ///
    /// The attributes are neither `linearizable` nor bounded by `updates`: writes of elements wait for no client.
    pub fn cells<S>(&self) -> Result<ElementCells<T, S>, PoaError>
    where
        S: CachedState + for<'t> From<&'t T>,
    {
        let held = HeldElements::of(&self.elements);
        let held = held.ok_or(PoaError::WrongPolicy("clients are told of its elements' changes already"))?;
        // The elements have one watcher, so this is the first.
        let _first = self.poa.0.held_elements.set(held.clone());
        Ok(ElementCells { extent: self.clone(), held })
    }

    /// The reference to the element with an index, whether it exists or not, and whichever it is when it is called.
    pub fn reference<R: TypedRef>(&self, index: u64) -> Result<R, PoaError> {
        self.reference_to(index.into())
    }

    /// The reference to the element that exists now. Once that has been destroyed the reference is to none, whatever is made in
    /// its place.
    pub fn exact_reference<R: TypedRef>(&self, index: u64) -> Result<R, PoaError> {
        let generation = self.elements.generation(index).map_err(|_| PoaError::ObjectNotActive)?;
        self.reference_to(ElementId { index, generation: Some(generation) })
    }

    fn reference_to<R: TypedRef>(&self, id: ElementId) -> Result<R, PoaError> {
        if id.index >= self.elements.len() {
            return Err(PoaError::ForeignId);
        }
        let reference = self.poa.create_reference_with_id(object_id_of(id), R::REPOSITORY_ID)?;
        Ok(R::from_object(reference))
    }

    /// The index of the element that a reference is to.
    pub fn index_of(&self, reference: &ObjectRef) -> Result<u64, PoaError> {
        let id = self.poa.reference_to_id(reference)?;
        element_id_of(id.as_bytes()).map(|id| id.index).ok_or(PoaError::WrongAdapter)
    }

    /// References to all elements, each computed when it is asked for. `None` for an extent without elements.
    pub fn range<R: TypedRef>(&self) -> Result<Option<ExtentRange<R>>, PoaError> {
        if self.elements.is_empty() {
            return Ok(None);
        }
        Ok(ExtentRange::of(&self.reference(0)?))
    }
}

/// The cells of an extent's elements ([`Extent::cells`]): what a servant with cached attributes has in the place of a
/// [`Cell`](crate::cache::Cell).
pub struct ElementCells<T: Element, S> {
    extent: Extent<T>,
    held: Arc<HeldElements<T, S>>,
}

impl<T, S> ElementCells<T, S>
where
    T: Element,
    S: CachedState + for<'t> From<&'t T>,
{
    /// The cell of the element that the calling thread's upcall is to: what the servant's method `cell` returns.
    pub fn current(&self) -> CellRef<'_, S> {
        match self.extent.current() {
            Ok(element) => CellRef::of_element(&*self.held, element.id),
            Err(_) => CellRef::ELSEWHERE,
        }
    }

    /// The extent.
    pub fn extent(&self) -> &Extent<T> {
        &self.extent
    }
}

impl<T: Element, S> fmt::Debug for ElementCells<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElementCells").field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// The element that an upcall is to.
#[derive(Debug, Clone, Copy)]
pub struct UsedElement<'e, T: Element> {
    elements: &'e Elements<T>,
    id: ElementId,
}

impl<T: Element> UsedElement<'_, T> {
    /// The index of the element.
    pub fn index(&self) -> u64 {
        self.id.index
    }

    /// Looks at the element, as [`Elements::read`] does. OBJECT_NOT_EXIST if it has been destroyed, BAD_INV_ORDER from within
    /// a closure at this element.
    #[inline]
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> Result<R, SystemException> {
        self.elements.read(self.id, look).map_err(exception_of_element)
    }

    /// Changes the element, as [`Elements::update`] does. A remote call in `change` fails with BAD_INV_ORDER. Exceptions are those of [`read`](Self::read), and PERSIST_STORE
    /// where its file cannot be written.
    #[inline]
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, SystemException> {
        let _holds_the_element = NoCalls::enter();
        self.elements.update(self.id, change).map_err(exception_of_element)
    }

    /// Destroys the element. Exceptions as above.
    pub fn destroy(&self) -> Result<(), SystemException> {
        self.elements.destroy(self.id).map_err(exception_of_element)
    }
}

/// What the caller of an element that cannot be used gets.
#[cold]
pub(crate) fn exception_of_element(e: ElementError) -> SystemException {
    match e {
        ElementError::Reentered | ElementError::Circle => {
            not_here(SystemExceptionKind::BadInvOrder, MinorCode::BAD_INV_ORDER_WOULD_DEADLOCK)
        }
        ElementError::Io(_) => not_here(SystemExceptionKind::PersistStore, MinorCode::NONE),
        _ => not_here(SystemExceptionKind::ObjectNotExist, MinorCode::NO_SUCH_OBJECT),
    }
}

fn not_here(kind: SystemExceptionKind, minor: MinorCode) -> SystemException {
    SystemException::new(kind, minor, CompletionStatus::No)
}

impl<T: Element> Clone for Extent<T> {
    fn clone(&self) -> Self {
        Extent { poa: self.poa.clone(), elements: self.elements.clone() }
    }
}

impl<T: Element> fmt::Debug for Extent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extent").field("poa", &self.poa).field("elements", &self.elements).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_element_is_its_index_and_may_name_a_generation() {
        for index in [0, 1, 1 << 39, ELEMENTS_MAX - 1] {
            assert_eq!(object_id_of(index.into()).as_bytes(), index.to_be_bytes());
            for generation in [0, 1, 0xFF_FFFE] {
                let id = ElementId { index, generation: Some(Generation(generation)) };
                assert_eq!(element_id_of(object_id_of(id).as_bytes()), Some(id));
            }
            assert_eq!(element_id_of(&index.to_be_bytes()), Some(index.into()));
        }
        for no_id in [&b""[..], b"7", b"1234567", b"123456789"] {
            assert_eq!(element_id_of(no_id), None);
        }
    }
}
