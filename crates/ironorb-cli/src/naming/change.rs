//! The commands that change bindings.

use clap::Args;
use ironorb::naming::cos_naming::{
    BindingIterator as _, NameComponent, NamingContext as _, NamingContextRef,
};
use ironorb::{ObjectRef, TypedRef as _};

use super::explain::{Fault, explain, name_of, system};
use super::place::{Place, Session, components};
use crate::failure::Failure;
use crate::{call, output, reference};

#[derive(Debug, Args)]
pub(crate) struct Binding {
    #[command(flatten)]
    place: Place,
    /// Make the missing contexts on the way.
    #[arg(short, long)]
    parents: bool,
    /// Bind the object as a naming context, through which longer names lead.
    #[arg(long)]
    context: bool,
    /// The name.
    name: String,
    /// What to bind: an IOR, a corbaloc or a corbaname.
    reference: String,
}

pub(super) fn bind(binding: &Binding) -> Result<(), Failure> {
    binding.run("bind", |context, name, bound| match bound {
        Bound::Object(object) => context.bind(name, Some(object)).map_err(Fault::from),
        Bound::Context(bound) => context.bind_context(name, Some(bound)).map_err(Fault::from),
    })
}

pub(super) fn rebind(binding: &Binding) -> Result<(), Failure> {
    binding.run("rebind", |context, name, bound| match bound {
        Bound::Object(object) => context.rebind(name, Some(object)).map_err(Fault::from),
        Bound::Context(bound) => context.rebind_context(name, Some(bound)).map_err(Fault::from),
    })
}

/// Removes a binding. Without `force` it keeps a context that is not empty, because its bindings might become
/// unreachable.
pub(super) fn unbind(place: &Place, name: &str, force: bool) -> Result<(), Failure> {
    let session = place.open()?;
    if !force && bindings_in(&session, name)? {
        return Err(Failure::new(format!("cannot unbind `{name}`: it is a context that is not empty")).with_help(
            "--force takes the binding away and leaves the context; `ironorb naming destroy` ends an empty context",
        ));
    }
    let unbound = session.start.unbind(&components(name)?);
    unbound.map_err(|e| explain(&format!("cannot unbind `{name}`"), &session, e.into()))
}

/// Whether a name is bound to a context that has bindings. A reference of another type is not called.
fn bindings_in(session: &Session, name: &str) -> Result<bool, Failure> {
    let object = match session.start.resolve(&components(name)?) {
        Ok(Some(object)) => object,
        // The unbind that follows reports what is wrong with the name.
        Ok(None) | Err(_) => return Ok(false),
    };
    let id = object.type_id();
    if !(id.is_empty() || id.starts_with("IDL:omg.org/CosNaming/NamingContext")) {
        return Ok(false);
    }
    // A context that does not answer cannot lose anything more.
    let Ok(Some(context)) = object.narrow::<NamingContextRef>() else { return Ok(false) };
    let Ok((first, iterator)) = context.list(1) else { return Ok(false) };
    if let Some(iterator) = iterator {
        let _ = iterator.destroy();
    }
    Ok(!first.is_empty())
}

pub(super) fn new_context(place: &Place, name: Option<&str>, parents: bool) -> Result<(), Failure> {
    let session = place.open()?;
    let Some(name) = name else {
        let made = session.start.new_context().map_err(|e| system("cannot make a context", &session, &e))?;
        let made = made.ok_or_else(|| Failure::new("the naming service gave a nil context"))?;
        return output::line(made.object().to_ior_string());
    };
    let components = components(name)?;
    with_parents(&session, &components, parents, || {
        session.start.bind_new_context(&components).map(drop).map_err(Fault::from)
    })
    .map_err(|fault| explain(&format!("cannot make the context `{name}`"), &session, fault))
}

/// Destroys the context first, which fails when it is not empty, and then removes the binding, which would
/// dangle.
pub(super) fn destroy(place: &Place, name: &str) -> Result<(), Failure> {
    let session = place.open()?;
    let context = session.context(Some(name))?;
    let what = format!("cannot destroy `{name}`");
    context.destroy().map_err(|e| explain(&what, &session, e.into()))?;
    let unbound = session.start.unbind(&components(name)?);
    unbound.map_err(|e| explain(&format!("`{name}` was destroyed, but not unbound"), &session, e.into()))
}

enum Bound {
    Object(ObjectRef),
    Context(NamingContextRef),
}

impl Binding {
    fn run(
        &self,
        verb: &str,
        bind: impl Fn(&NamingContextRef, &[NameComponent], &Bound) -> Result<(), Fault>,
    ) -> Result<(), Failure> {
        let session = self.place.open()?;
        let object = reference::object(&session.orb, &self.reference)
            .map_err(|e| call::explain_reference(&self.reference, &e))?;
        let bound = match self.context {
            true => Bound::Context(object.narrow_unchecked()),
            false => Bound::Object(object),
        };
        let name = components(&self.name)?;
        with_parents(&session, &name, self.parents, || bind(&session.start, &name, &bound))
            .map_err(|fault| explain(&format!("cannot {verb} `{}`", self.name), &session, fault))
    }
}

/// Runs a change. Where a context on the way is missing, it makes the missing contexts and tries again.
fn with_parents(
    session: &Session,
    name: &[NameComponent],
    parents: bool,
    work: impl Fn() -> Result<(), Fault>,
) -> Result<(), Fault> {
    match work() {
        Err(fault) if parents && fault.is_missing_node() && name.len() > 1 => {}
        other => return other,
    }
    for end in 1..name.len() {
        match session.start.bind_new_context(&name[..end]).map_err(Fault::from) {
            Ok(_) => output::note(format_args!("made the context `{}`", name_of(&name[..end]))),
            Err(Fault::AlreadyBound) => {}
            Err(other) => return Err(other),
        }
    }
    work()
}
