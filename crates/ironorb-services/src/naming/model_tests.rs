//! Random operations on the service and on a plain map with the meaning of CosNaming. Both must give equal
//! results.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::*;

/// The outcome of an operation, in terms that the model has too.
#[derive(Debug, PartialEq)]
enum Outcome {
    Nothing,
    Found(Bound),
    Made(ContextId),
    Listed(Vec<(NameComponent, BindingType)>),
    Forwarded(Reference, String),
    NotFound(NotFoundReason, String),
    CannotProceed(ContextId, String),
    AlreadyBound,
    NotEmpty,
    RootContext,
    NoSuchContext,
    BadParam,
}

#[derive(Clone, Debug)]
enum Operation {
    Resolve(Name),
    Bind(Name, u8),
    Rebind(Name, u8),
    BindContext(Name, ContextRef),
    RebindContext(Name, ContextRef),
    Unbind(Name),
    NewContext,
    BindNewContext(Name),
    Destroy,
    /// Lists the context in pages of this size.
    List(u32),
}

type Context = BTreeMap<NameComponent, Bound>;

struct Model {
    contexts: HashMap<ContextId, Context>,
    next: u64,
}

impl Model {
    fn new() -> Self {
        Model { contexts: HashMap::from([(ContextId::ROOT, Context::new())]), next: 1 }
    }

    fn run(&mut self, context: ContextId, operation: &Operation) -> Outcome {
        self.try_run(context, operation).unwrap_or_else(|fault| fault)
    }

    fn try_run(&mut self, context: ContextId, operation: &Operation) -> Result<Outcome, Outcome> {
        if context == ContextId::ROOT && matches!(operation, Operation::Destroy) {
            return Err(Outcome::RootContext);
        }
        let here = self.contexts.get(&context).ok_or(Outcome::NoSuchContext)?;
        match operation {
            Operation::Resolve(name) => {
                let (at, last) = self.walk(context, name.components())?;
                let missing = Outcome::NotFound(NotFoundReason::MissingNode, last.to_string());
                self.contexts[&at].get(&last).cloned().map(Outcome::Found).ok_or(missing)
            }
            Operation::Bind(name, object) => {
                self.put(context, name, Bound::Object(reference(*object)), false)
            }
            Operation::Rebind(name, object) => {
                self.put(context, name, Bound::Object(reference(*object)), true)
            }
            Operation::BindContext(name, to) => self.put(context, name, Bound::Context(to.clone()), false),
            Operation::RebindContext(name, to) => self.put(context, name, Bound::Context(to.clone()), true),
            Operation::Unbind(name) => {
                let (at, last) = self.walk(context, name.components())?;
                let missing = Outcome::NotFound(NotFoundReason::MissingNode, last.to_string());
                let removed = self.contexts.get_mut(&at).and_then(|bindings| bindings.remove(&last));
                removed.map(|_| Outcome::Nothing).ok_or(missing)
            }
            Operation::NewContext => Ok(Outcome::Made(self.make())),
            Operation::BindNewContext(name) => {
                let (at, last) = self.walk(context, name.components())?;
                if self.contexts[&at].contains_key(&last) {
                    return Err(Outcome::AlreadyBound);
                }
                let made = self.make();
                let bound = Bound::Context(ContextRef::Local(made));
                self.contexts.get_mut(&at).unwrap().insert(last, bound);
                Ok(Outcome::Made(made))
            }
            Operation::Destroy if !here.is_empty() => Err(Outcome::NotEmpty),
            Operation::Destroy => {
                self.contexts.remove(&context);
                Ok(Outcome::Nothing)
            }
            Operation::List(_) => Ok(Outcome::Listed(
                here.iter().map(|(name, bound)| (name.clone(), bound.binding_type())).collect(),
            )),
        }
    }

    fn make(&mut self) -> ContextId {
        let made = ContextId::from_number(self.next);
        self.next += 1;
        self.contexts.insert(made, Context::new());
        made
    }

    /// Recursive, as the standard defines compound names: resolves the first component, then the rest from
    /// there.
    fn walk(&self, at: ContextId, rest: &[NameComponent]) -> Result<(ContextId, NameComponent), Outcome> {
        let [first, behind @ ..] = rest else { unreachable!("names are not empty") };
        if behind.is_empty() {
            return Ok((at, first.clone()));
        }
        let text = |part: &[NameComponent]| part.iter().map(|c| c.to_string()).collect::<Vec<_>>().join("/");
        match self.contexts[&at].get(first) {
            None => Err(Outcome::NotFound(NotFoundReason::MissingNode, text(rest))),
            Some(Bound::Object(_)) => Err(Outcome::NotFound(NotFoundReason::NotContext, text(rest))),
            Some(Bound::Context(ContextRef::Foreign(far))) => {
                Err(Outcome::Forwarded(far.clone(), text(behind)))
            }
            Some(Bound::Context(ContextRef::Local(next))) if self.contexts.contains_key(next) => {
                self.walk(*next, behind)
            }
            Some(Bound::Context(ContextRef::Local(_))) => Err(Outcome::CannotProceed(at, text(rest))),
        }
    }

    fn put(&mut self, context: ContextId, name: &Name, bound: Bound, over: bool) -> Result<Outcome, Outcome> {
        let (at, last) = self.walk(context, name.components())?;
        match (self.contexts[&at].get(&last), &bound) {
            (Some(_), _) if !over => return Err(Outcome::AlreadyBound),
            (Some(Bound::Context(_)), Bound::Object(_)) => {
                return Err(Outcome::NotFound(NotFoundReason::NotObject, last.to_string()));
            }
            (Some(Bound::Object(_)), Bound::Context(_)) => {
                return Err(Outcome::NotFound(NotFoundReason::NotContext, last.to_string()));
            }
            _ => {}
        }
        if let Bound::Context(ContextRef::Local(target)) = &bound
            && !self.contexts.contains_key(target)
        {
            return Err(Outcome::BadParam);
        }
        self.contexts.get_mut(&at).unwrap().insert(last, bound);
        Ok(Outcome::Nothing)
    }
}

fn run(service: &NamingService, context: ContextId, operation: &Operation) -> Outcome {
    let void = |step: Result<Step<()>, NamingError>| step.map(|step| seen(step, |()| Outcome::Nothing));
    let outcome = match operation {
        Operation::Resolve(name) => service.resolve(context, name).map(|step| seen(step, Outcome::Found)),
        Operation::Bind(name, object) => void(service.bind(context, name, reference(*object))),
        Operation::Rebind(name, object) => void(service.rebind(context, name, reference(*object))),
        Operation::BindContext(name, to) => void(service.bind_context(context, name, to.clone())),
        Operation::RebindContext(name, to) => void(service.rebind_context(context, name, to.clone())),
        Operation::Unbind(name) => void(service.unbind(context, name)),
        Operation::NewContext => service.new_context(context).map(Outcome::Made),
        Operation::BindNewContext(name) => {
            service.bind_new_context(context, name).map(|step| seen(step, Outcome::Made))
        }
        Operation::Destroy => service.destroy(context).map(|()| Outcome::Nothing),
        Operation::List(page) => list(service, context, *page),
    };
    outcome.unwrap_or_else(|fault| match fault {
        NamingError::NotFound { why, rest_of_name } => Outcome::NotFound(why, rest_of_name.to_string()),
        NamingError::CannotProceed { context, rest_of_name } => {
            Outcome::CannotProceed(context, rest_of_name.to_string())
        }
        NamingError::AlreadyBound => Outcome::AlreadyBound,
        NamingError::NotEmpty => Outcome::NotEmpty,
        NamingError::RootContext => Outcome::RootContext,
        NamingError::NoSuchContext(_) => Outcome::NoSuchContext,
        NamingError::BadParam(_) => Outcome::BadParam,
        other => panic!("the model knows no {other:?}"),
    })
}

fn seen<T>(step: Step<T>, done: impl FnOnce(T) -> Outcome) -> Outcome {
    match step {
        Step::Done(result) => done(result),
        Step::Forward { context, rest_of_name } => Outcome::Forwarded(context, rest_of_name.to_string()),
    }
}

fn list(service: &NamingService, context: ContextId, page: u32) -> Result<Outcome, NamingError> {
    let Listing { mut bindings, iterator, .. } = service.list(context, page)?;
    if let Some(iterator) = iterator {
        loop {
            let more = service.next_n(iterator, page.max(1))?;
            if more.is_empty() {
                break;
            }
            bindings.extend(more);
        }
        service.destroy_iterator(iterator)?;
    }
    Ok(Outcome::Listed(bindings.into_iter().map(|b| (b.component, b.binding_type)).collect()))
}

fn reference(number: u8) -> Reference {
    Reference::new([number])
}

/// A few different names and contexts, so that operations meet.
fn any_name() -> impl Strategy<Value = Name> {
    let component = ("[ab]?", "[k]?").prop_map(|(id, kind)| NameComponent { id, kind });
    prop::collection::vec(component, 1..4).prop_map(|components| Name::new(components).unwrap())
}

fn any_context() -> impl Strategy<Value = ContextId> {
    prop_oneof![3 => Just(0), 2 => 0..6u64].prop_map(ContextId::from_number)
}

fn any_context_ref() -> impl Strategy<Value = ContextRef> {
    prop_oneof![
        4 => any_context().prop_map(ContextRef::Local),
        1 => any::<u8>().prop_map(|number| ContextRef::Foreign(reference(number))),
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => any_name().prop_map(Operation::Resolve),
        3 => (any_name(), any::<u8>()).prop_map(|(name, object)| Operation::Bind(name, object)),
        2 => (any_name(), any::<u8>()).prop_map(|(name, object)| Operation::Rebind(name, object)),
        2 => (any_name(), any_context_ref()).prop_map(|(name, to)| Operation::BindContext(name, to)),
        1 => (any_name(), any_context_ref()).prop_map(|(name, to)| Operation::RebindContext(name, to)),
        2 => any_name().prop_map(Operation::Unbind),
        1 => Just(Operation::NewContext),
        4 => any_name().prop_map(Operation::BindNewContext),
        2 => Just(Operation::Destroy),
        1 => (0..4u32).prop_map(Operation::List),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_service_answers_as_the_model(
        operations in prop::collection::vec((any_context(), any_operation()), 1..60)
    ) {
        let service = NamingService::new(Store::in_memory().unwrap(), Limits::default());
        let mut model = Model::new();
        for (context, operation) in &operations {
            prop_assert_eq!(
                run(&service, *context, operation),
                model.run(*context, operation),
                "{:?} on {}", operation, context
            );
        }
        for context in (0..model.next).map(ContextId::from_number) {
            prop_assert_eq!(
                run(&service, context, &Operation::List(2)),
                model.run(context, &Operation::List(2))
            );
        }
    }
}
