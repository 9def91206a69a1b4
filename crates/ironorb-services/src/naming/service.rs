//! The naming service: one method for each operation of CosNaming.
//!
//! Any thread may call any method. Readers see committed data and never wait for a writer. Writers run one at
//! a time, and each returns once its change is on disk.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::binding::{Binding, Bound, ContextId, ContextRef, Reference};
use super::error::NamingError;
use super::iterators::{Cursor, IteratorId, IteratorTable};
use super::limits::Limits;
use super::resolver::{Place, Step, walk};
use super::store::{Change, Lookup, Store};
use ironorb::naming::Name;

/// A naming service over a store.
///
/// The first argument of most methods is the context that was called. One transaction resolves the name and
/// writes the result: a compound `bind` is done wholly or not at all, independently of concurrent binds.
/// Methods that change something block until the change is on disk.
#[derive(Debug)]
pub struct NamingService {
    store: Store,
    limits: Limits,
    iterators: Mutex<IteratorTable>,
}

/// The result of [`NamingService::list`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The first bindings.
    pub bindings: Vec<Binding>,
    /// The iterator for the remaining bindings; `None` if there are none.
    pub iterator: Option<IteratorId>,
    /// An iterator that was reclaimed to make room. Its object may be deactivated.
    pub evicted: Option<IteratorId>,
}

impl NamingService {
    /// A service over this store, within these limits.
    pub fn new(store: Store, limits: Limits) -> Self {
        let iterators = Mutex::new(IteratorTable::new(limits.iterators_max));
        NamingService { store, limits, iterators }
    }

    /// Whether the context exists. The root always exists.
    pub fn has_context(&self, context: ContextId) -> Result<bool, NamingError> {
        Ok(self.store.read()?.has_context(context)?)
    }

    /// `resolve`: the target of a name.
    ///
    /// A binding to a destroyed context is still a binding, and its reference is returned.
    pub fn resolve(&self, context: ContextId, name: &Name) -> Result<Step<Bound>, NamingError> {
        match walk(&self.store.read()?, context, name)? {
            Step::Done(place) => Ok(Step::Done(place.require_bound()?)),
            Step::Forward { context, rest_of_name } => Ok(Step::Forward { context, rest_of_name }),
        }
    }

    /// `bind`: binds a free name to an object.
    pub fn bind(&self, context: ContextId, name: &Name, object: Reference) -> Result<Step<()>, NamingError> {
        self.put(context, name, Bound::Object(object), Over::Nothing)
    }

    /// `rebind`: binds a name to an object, and replaces the object that it is bound to, if any.
    pub fn rebind(
        &self,
        context: ContextId,
        name: &Name,
        object: Reference,
    ) -> Result<Step<()>, NamingError> {
        self.put(context, name, Bound::Object(object), Over::Like)
    }

    /// `bind_context`: binds a free name to a context, through which longer names lead.
    pub fn bind_context(
        &self,
        context: ContextId,
        name: &Name,
        bound: ContextRef,
    ) -> Result<Step<()>, NamingError> {
        self.put(context, name, Bound::Context(bound), Over::Nothing)
    }

    /// `rebind_context`: binds a name to a context, and replaces the context that it is bound to, if any.
    pub fn rebind_context(
        &self,
        context: ContextId,
        name: &Name,
        bound: ContextRef,
    ) -> Result<Step<()>, NamingError> {
        self.put(context, name, Bound::Context(bound), Over::Like)
    }

    /// `unbind`: removes a binding. A context that was bound lives on.
    pub fn unbind(&self, context: ContextId, name: &Name) -> Result<Step<()>, NamingError> {
        self.change(context, name, |change, place| {
            let (at, component) = (place.context, place.component);
            place.require_bound()?;
            change.remove(at, component)?;
            Ok(())
        })
    }

    /// `new_context`: creates an empty context, bound to no name.
    ///
    /// `caller` is the context that was called. The new context does not depend on it.
    pub fn new_context(&self, caller: ContextId) -> Result<ContextId, NamingError> {
        let change = self.store.change()?;
        if !change.has_context(caller)? {
            return Err(NamingError::NoSuchContext(caller));
        }
        let made = self.create_context(&change)?;
        change.commit()?;
        Ok(made)
    }

    /// `bind_new_context`: creates an empty context and binds it to a free name. If the name cannot be bound,
    /// no context is created.
    pub fn bind_new_context(&self, context: ContextId, name: &Name) -> Result<Step<ContextId>, NamingError> {
        self.change(context, name, |change, place| {
            place.require_free()?;
            self.check_room(change)?;
            let made = self.create_context(change)?;
            change.put(place.context, place.component, &Bound::Context(ContextRef::Local(made)))?;
            Ok(made)
        })
    }

    /// `destroy`: destroys an empty context. Bindings to it elsewhere stay and dangle until they are unbound.
    pub fn destroy(&self, context: ContextId) -> Result<(), NamingError> {
        if context == ContextId::ROOT {
            return Err(NamingError::RootContext);
        }
        let change = self.store.change()?;
        if !change.has_context(context)? {
            return Err(NamingError::NoSuchContext(context));
        }
        if !change.is_context_empty(context)? {
            return Err(NamingError::NotEmpty);
        }
        change.remove_context(context)?;
        Ok(change.commit()?)
    }

    /// `list`: the first `how_many` bindings, fewer if the result would exceed [`Limits::page_bytes_max`],
    /// and an iterator for the rest. Bindings are ordered by id, then kind, both as bytes.
    pub fn list(&self, context: ContextId, how_many: u32) -> Result<Listing, NamingError> {
        let view = self.store.read()?;
        if !view.has_context(context)? {
            return Err(NamingError::NoSuchContext(context));
        }
        let page = view.list(context, None, count(how_many), self.limits.page_bytes_max)?;
        let mut listing = Listing { bindings: page.bindings, iterator: None, evicted: None };
        if page.more {
            let after = listing.bindings.last().map(|binding| binding.component.clone());
            let (made, evicted) = self.iterators().create(Cursor { context, after });
            listing.iterator = Some(made);
            listing.evicted = evicted;
        }
        Ok(listing)
    }

    /// `BindingIterator::next_one`: the next binding; `None` at the end.
    pub fn next_one(&self, iterator: IteratorId) -> Result<Option<Binding>, NamingError> {
        Ok(self.next_n(iterator, 1)?.pop())
    }

    /// `BindingIterator::next_n`: the next `how_many` bindings, fewer if the result would exceed
    /// [`Limits::page_bytes_max`]; none at the end.
    ///
    /// Bindings that are added or removed meanwhile are returned or not, depending on their place in the
    /// order. Every other binding is returned exactly once.
    pub fn next_n(&self, iterator: IteratorId, how_many: u32) -> Result<Vec<Binding>, NamingError> {
        if how_many == 0 {
            return Err(NamingError::BadParam("next_n needs a how_many of 1 or more"));
        }
        // The table stays locked, so that two concurrent calls on one iterator get different bindings.
        let mut iterators = self.iterators();
        let cursor = iterators.touch(iterator).ok_or(NamingError::NoSuchIterator)?;
        let view = self.store.read()?;
        let bindings = view
            .list(cursor.context, cursor.after.as_ref(), count(how_many), self.limits.page_bytes_max)?
            .bindings;
        if let Some(last) = bindings.last() {
            cursor.after = Some(last.component.clone());
        }
        Ok(bindings)
    }

    /// `BindingIterator::destroy`: removes the iterator.
    pub fn destroy_iterator(&self, iterator: IteratorId) -> Result<(), NamingError> {
        if self.iterators().remove(iterator) { Ok(()) } else { Err(NamingError::NoSuchIterator) }
    }

    fn put(
        &self,
        context: ContextId,
        name: &Name,
        bound: Bound,
        over: Over,
    ) -> Result<Step<()>, NamingError> {
        self.check_reference(&bound)?;
        self.change(context, name, |change, place| {
            match over {
                Over::Nothing => place.require_free()?,
                Over::Like => place.require_free_or_like(&bound)?,
            }
            if let Bound::Context(ContextRef::Local(target)) = bound
                && !change.has_context(target)?
            {
                return Err(NamingError::BadParam("the context to be bound was destroyed"));
            }
            if place.bound.is_none() {
                self.check_room(change)?;
            }
            change.put(place.context, place.component, &bound)?;
            Ok(())
        })
    }

    /// Walks to the end of the name, calls `work` there and commits, all in one transaction.
    fn change<T>(
        &self,
        context: ContextId,
        name: &Name,
        work: impl FnOnce(&Change, Place<'_>) -> Result<T, NamingError>,
    ) -> Result<Step<T>, NamingError> {
        let change = self.store.change()?;
        match walk(&change, context, name)? {
            Step::Done(place) => {
                let done = work(&change, place)?;
                change.commit()?;
                Ok(Step::Done(done))
            }
            Step::Forward { context, rest_of_name } => Ok(Step::Forward { context, rest_of_name }),
        }
    }

    fn create_context(&self, change: &Change) -> Result<ContextId, NamingError> {
        let max = self.limits.contexts_max;
        if change.contexts_count()? >= max {
            return Err(NamingError::Limit { what: "contexts_max", max });
        }
        Ok(change.create_context()?)
    }

    fn check_room(&self, change: &Change) -> Result<(), NamingError> {
        let max = self.limits.bindings_max;
        if change.bindings_count()? >= max {
            return Err(NamingError::Limit { what: "bindings_max", max });
        }
        Ok(())
    }

    fn check_reference(&self, bound: &Bound) -> Result<(), NamingError> {
        let max = self.limits.reference_bytes_max;
        match bound {
            Bound::Object(reference) | Bound::Context(ContextRef::Foreign(reference))
                if reference.as_bytes().len() > max =>
            {
                Err(NamingError::Limit { what: "reference_bytes_max", max: max as u64 })
            }
            _ => Ok(()),
        }
    }

    fn iterators(&self) -> MutexGuard<'_, IteratorTable> {
        // Each use leaves the table consistent, so a panic elsewhere must not end listing.
        self.iterators.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bindings that a new one may replace.
#[derive(Clone, Copy)]
enum Over {
    Nothing,
    Like,
}

fn count(how_many: u32) -> usize {
    usize::try_from(how_many).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::{NameComponent, NotFoundReason};
    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).unwrap()
    }

    fn reference(text: &str) -> Reference {
        Reference::new(text.as_bytes())
    }

    /// `ctx/inner` is a local context, `ctx/obj` an object, `ctx/far` a foreign context, `ctx/gone` a
    /// destroyed one.
    struct Fixture {
        service: NamingService,
        ctx: ContextId,
        inner: ContextId,
    }

    fn fixture_within(limits: Limits) -> Fixture {
        let service = NamingService::new(Store::in_memory().unwrap(), limits);
        let make = |text| match service.bind_new_context(ContextId::ROOT, &name(text)).unwrap() {
            Step::Done(made) => made,
            forward => panic!("{forward:?}"),
        };
        let (ctx, inner, gone) = (make("ctx"), make("ctx/inner"), make("ctx/gone"));
        service.destroy(gone).unwrap();
        done(service.bind(ctx, &name("obj"), reference("o")));
        done(service.bind_context(ctx, &name("far"), ContextRef::Foreign(reference("f"))));
        Fixture { service, ctx, inner }
    }

    fn fixture() -> Fixture {
        fixture_within(Limits::default())
    }

    #[track_caller]
    fn done<T>(outcome: Result<Step<T>, NamingError>) -> T {
        match outcome {
            Ok(Step::Done(done)) => done,
            Ok(Step::Forward { rest_of_name, .. }) => panic!("forwarded with {rest_of_name}"),
            Err(fault) => panic!("{fault}"),
        }
    }

    /// Every operation that takes a name, so that each failing step is checked for all of them.
    type Operation = (&'static str, fn(&NamingService, &Name) -> Result<Step<()>, NamingError>);

    fn operations() -> [Operation; 7] {
        fn void<T>(outcome: Result<Step<T>, NamingError>) -> Result<Step<()>, NamingError> {
            outcome.map(|step| match step {
                Step::Done(_) => Step::Done(()),
                Step::Forward { context, rest_of_name } => Step::Forward { context, rest_of_name },
            })
        }
        [
            ("resolve", |s, n| void(s.resolve(ContextId::ROOT, n))),
            ("bind", |s, n| s.bind(ContextId::ROOT, n, reference("new"))),
            ("rebind", |s, n| s.rebind(ContextId::ROOT, n, reference("new"))),
            ("bind_context", |s, n| {
                s.bind_context(ContextId::ROOT, n, ContextRef::Foreign(reference("new")))
            }),
            ("rebind_context", |s, n| {
                s.rebind_context(ContextId::ROOT, n, ContextRef::Foreign(reference("new")))
            }),
            ("unbind", |s, n| s.unbind(ContextId::ROOT, n)),
            ("bind_new_context", |s, n| void(s.bind_new_context(ContextId::ROOT, n))),
        ]
    }

    fn check_not_found(text: &str, expected_why: NotFoundReason, expected_rest: &str) {
        for (operation, run) in operations() {
            match run(&fixture().service, &name(text)) {
                Err(NamingError::NotFound { why, rest_of_name }) => {
                    assert_eq!(
                        (why, rest_of_name),
                        (expected_why, name(expected_rest)),
                        "{operation} {text}"
                    );
                }
                other => panic!("{operation} {text} gave {other:?}"),
            }
        }
    }

    #[test]
    fn every_operation_names_the_step_that_failed() {
        check_not_found("nope/x/y", NotFoundReason::MissingNode, "nope/x/y");
        check_not_found("ctx/nope/y", NotFoundReason::MissingNode, "nope/y");
        check_not_found("ctx/inner/nope/y", NotFoundReason::MissingNode, "nope/y");
        check_not_found("ctx/obj/y", NotFoundReason::NotContext, "obj/y");
        check_not_found("ctx/obj/y/z", NotFoundReason::NotContext, "obj/y/z");
    }

    #[test]
    fn every_operation_is_forwarded_at_a_foreign_context() {
        for (operation, run) in operations() {
            let expected = Step::Forward { context: reference("f"), rest_of_name: name("a.k/b") };
            assert_eq!(run(&fixture().service, &name("ctx/far/a.k/b")).unwrap(), expected, "{operation}");
        }
    }

    #[test]
    fn every_operation_stops_at_a_destroyed_context() {
        for (operation, run) in operations() {
            let f = fixture();
            match run(&f.service, &name("ctx/gone/a")) {
                Err(NamingError::CannotProceed { context, rest_of_name }) => {
                    assert_eq!((context, rest_of_name), (f.ctx, name("gone/a")), "{operation}");
                }
                other => panic!("{operation} gave {other:?}"),
            }
        }
    }

    #[test]
    fn a_missing_last_component_matters_to_resolve_and_unbind() {
        let f = fixture();
        for outcome in [
            f.service.resolve(f.ctx, &name("inner/x")).map(|_| ()),
            f.service.unbind(f.ctx, &name("inner/x")).map(|_| ()),
        ] {
            match outcome {
                Err(NamingError::NotFound { why: NotFoundReason::MissingNode, rest_of_name }) => {
                    assert_eq!(rest_of_name, name("x"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn bind_keeps_what_is_bound() {
        let f = fixture();
        for taken in ["ctx/obj", "ctx/inner", "ctx/far", "ctx/gone"] {
            for (operation, run) in operations().into_iter().filter(|(name, _)| name.starts_with("bind")) {
                let outcome = run(&f.service, &name(taken));
                assert!(
                    matches!(outcome, Err(NamingError::AlreadyBound)),
                    "{operation} {taken}: {outcome:?}"
                );
            }
        }
        assert_eq!(done(f.service.resolve(f.ctx, &name("obj"))), Bound::Object(reference("o")));
    }

    #[test]
    fn rebind_replaces_like_by_like_only() {
        let f = fixture();
        done(f.service.rebind(f.ctx, &name("obj"), reference("p")));
        assert_eq!(done(f.service.resolve(f.ctx, &name("obj"))), Bound::Object(reference("p")));
        done(f.service.rebind(f.ctx, &name("fresh"), reference("q")));
        done(f.service.rebind_context(f.ctx, &name("far"), ContextRef::Local(f.inner)));
        let far = done(f.service.resolve(f.ctx, &name("far")));
        assert_eq!(far, Bound::Context(ContextRef::Local(f.inner)));

        let over_context = f.service.rebind(f.ctx, &name("inner"), reference("p"));
        let not_object = NotFoundReason::NotObject;
        assert!(matches!(over_context, Err(NamingError::NotFound { why, rest_of_name })
                if why == not_object && rest_of_name == name("inner")));
        let over_object = f.service.rebind_context(f.ctx, &name("obj"), ContextRef::Local(f.inner));
        let not_context = NotFoundReason::NotContext;
        assert!(matches!(over_object, Err(NamingError::NotFound { why, rest_of_name })
                if why == not_context && rest_of_name == name("obj")));
    }

    #[test]
    fn names_do_not_lead_through_a_context_bound_as_an_object() {
        let f = fixture();
        done(f.service.bind(f.ctx, &name("as-object"), reference("a context")));
        let outcome = f.service.resolve(f.ctx, &name("as-object/x"));
        assert!(matches!(outcome, Err(NamingError::NotFound { why: NotFoundReason::NotContext, .. })));
    }

    #[test]
    fn contexts_may_lead_to_each_other() {
        let f = fixture();
        done(f.service.bind_context(f.inner, &name("up"), ContextRef::Local(ContextId::ROOT)));
        let found = done(f.service.resolve(f.ctx, &name("inner/up/ctx/inner/up/ctx/obj")));
        assert_eq!(found, Bound::Object(reference("o")));
    }

    #[test]
    fn destroy_wants_an_empty_context_that_is_not_the_root() {
        let f = fixture();
        assert!(matches!(f.service.destroy(ContextId::ROOT), Err(NamingError::RootContext)));
        assert!(matches!(f.service.destroy(f.ctx), Err(NamingError::NotEmpty)));
        f.service.destroy(f.inner).unwrap();
        assert!(matches!(f.service.destroy(f.inner), Err(NamingError::NoSuchContext(c)) if c == f.inner));
        assert!(!f.service.has_context(f.inner).unwrap());
        // The binding dangles, resolves as the last component, and can be removed.
        let dangling = done(f.service.resolve(f.ctx, &name("inner")));
        assert_eq!(dangling, Bound::Context(ContextRef::Local(f.inner)));
        done(f.service.unbind(f.ctx, &name("inner")));
        let again = f.service.bind_context(f.ctx, &name("inner"), ContextRef::Local(f.inner));
        assert!(matches!(again, Err(NamingError::BadParam(_))));
    }

    #[test]
    fn a_destroyed_context_answers_no_operation() {
        let f = fixture();
        f.service.destroy(f.inner).unwrap();
        let gone = |fault| assert!(matches!(fault, NamingError::NoSuchContext(c) if c == f.inner), "{fault}");
        gone(f.service.resolve(f.inner, &name("x")).unwrap_err());
        gone(f.service.bind(f.inner, &name("x"), reference("o")).unwrap_err());
        gone(f.service.new_context(f.inner).unwrap_err());
        gone(f.service.list(f.inner, 1).unwrap_err());
    }

    #[test]
    fn new_contexts_are_apart_from_their_maker() {
        let f = fixture();
        let made = f.service.new_context(f.inner).unwrap();
        f.service.destroy(f.inner).unwrap();
        done(f.service.bind(made, &name("x"), reference("o")));
        assert!(f.service.has_context(made).unwrap());
    }

    fn texts(bindings: &[Binding]) -> Vec<String> {
        bindings.iter().map(|binding| binding.component.to_string()).collect()
    }

    #[test]
    fn a_listing_and_its_iterator_give_each_binding_once() {
        let f = fixture();
        let all = f.service.list(f.ctx, 100).unwrap();
        assert_eq!(texts(&all.bindings), ["far", "gone", "inner", "obj"]);
        assert_eq!(all.iterator, None);

        let listing = f.service.list(f.ctx, 1).unwrap();
        assert_eq!(texts(&listing.bindings), ["far"]);
        let iterator = listing.iterator.unwrap();
        assert_eq!(texts(&f.service.next_n(iterator, 2).unwrap()), ["gone", "inner"]);
        assert_eq!(f.service.next_one(iterator).unwrap().unwrap().component, NameComponent::new("obj", ""));
        assert_eq!(f.service.next_one(iterator).unwrap(), None);
        assert_eq!(f.service.next_n(iterator, u32::MAX).unwrap(), []);
        assert!(matches!(f.service.next_n(iterator, 0), Err(NamingError::BadParam(_))));
        f.service.destroy_iterator(iterator).unwrap();
        assert!(matches!(f.service.next_one(iterator), Err(NamingError::NoSuchIterator)));
        assert!(matches!(f.service.destroy_iterator(iterator), Err(NamingError::NoSuchIterator)));
    }

    #[test]
    fn a_how_many_of_zero_leaves_all_to_the_iterator() {
        let f = fixture();
        let listing = f.service.list(f.ctx, 0).unwrap();
        assert_eq!(listing.bindings, []);
        assert_eq!(f.service.next_n(listing.iterator.unwrap(), 100).unwrap().len(), 4);
        assert_eq!(f.service.list(f.inner, 0).unwrap().iterator, None);
    }

    #[test]
    fn an_iterator_sees_changes_behind_its_place_and_outlives_its_context() {
        let f = fixture();
        let iterator = f.service.list(f.ctx, 1).unwrap().iterator.unwrap();
        done(f.service.unbind(f.ctx, &name("gone")));
        done(f.service.bind(f.ctx, &name("a"), reference("o")));
        done(f.service.bind(f.ctx, &name("z"), reference("o")));
        assert_eq!(texts(&f.service.next_n(iterator, 2).unwrap()), ["inner", "obj"]);
        for text in ["a", "far", "inner", "obj", "z"] {
            done(f.service.unbind(f.ctx, &name(text)));
        }
        f.service.destroy(f.ctx).unwrap();
        assert_eq!(f.service.next_n(iterator, 2).unwrap(), []);
    }

    #[test]
    fn limits_refuse_one_more() {
        let reached = |outcome: Result<Step<()>, NamingError>, what: &str| match outcome {
            Err(NamingError::Limit { what: found, .. }) => assert_eq!(found, what),
            other => panic!("{other:?}"),
        };
        // The fixture leaves 3 contexts, the root included, and 5 bindings.
        let limits = Limits {
            bindings_max: 5,
            contexts_max: 4,
            reference_bytes_max: 4,
            iterators_max: 1,
            page_bytes_max: 1,
        };
        let f = fixture_within(limits);
        reached(f.service.bind(f.inner, &name("x"), reference("o")), "bindings_max");
        reached(f.service.bind_new_context(f.inner, &name("x")).map(|_| Step::Done(())), "bindings_max");
        reached(f.service.rebind(f.ctx, &name("obj"), reference("12345")), "reference_bytes_max");
        done(f.service.rebind(f.ctx, &name("obj"), reference("1234")));
        f.service.new_context(f.ctx).unwrap();
        reached(f.service.new_context(f.ctx).map(|_| Step::Done(())), "contexts_max");

        let first = f.service.list(f.ctx, 100).unwrap();
        assert_eq!((first.bindings.len(), first.evicted), (1, None));
        let second = f.service.list(f.ctx, 100).unwrap();
        assert_eq!(second.evicted, first.iterator);
        assert!(matches!(f.service.next_one(first.iterator.unwrap()), Err(NamingError::NoSuchIterator)));
        assert_eq!(f.service.next_n(second.iterator.unwrap(), 100).unwrap().len(), 1);
    }

    #[test]
    fn of_many_threads_binding_one_name_one_wins() {
        let f = fixture();
        let wins: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|i| {
                    let service = &f.service;
                    scope.spawn(move || {
                        service.bind(ContextId::ROOT, &name("ctx/race"), reference(&i.to_string())).is_ok()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
        });
        assert_eq!(wins, 1);
    }
}
