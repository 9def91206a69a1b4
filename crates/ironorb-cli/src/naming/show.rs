//! The commands that query names: list, tree and resolve.

use std::io::{self, Write};

use ironorb::naming::cos_naming::{
    Binding, BindingIterator as _, BindingType, NamingContext as _, NamingContextRef,
};
use ironorb::{SystemException, TypedRef as _};

use super::explain::{name_of, system};
use super::place::{Place, Session, address_of};
use crate::failure::{Failure, printed};
use crate::output;

pub(super) fn list(place: &Place, name: Option<&str>) -> Result<(), Failure> {
    let session = place.open()?;
    let context = session.context(name)?;
    let what =
        format!("cannot list {}", name.map_or("the root context".to_owned(), |name| format!("`{name}`")));
    let mut out = io::stdout().lock();
    let mut stopped = Ok(());
    each_binding(&context, |binding| {
        stopped = writeln!(out, "{}", shown(binding));
        stopped.is_ok()
    })
    .map_err(|e| system(&what, &session, &e))?;
    printed(stopped)
}

pub(super) fn resolve(place: &Place, name: &str) -> Result<(), Failure> {
    let session = place.open()?;
    let object = session.resolve(name)?;
    output::line(object.to_ior_string())
}

pub(super) fn tree(place: &Place, name: Option<&str>, depth: usize) -> Result<(), Failure> {
    let session = place.open()?;
    let context = session.context(name)?;
    let mut bindings = Vec::new();
    each_binding(&context, |binding| {
        bindings.push(binding.clone());
        true
    })
    .map_err(|e| system("cannot list the root of the tree", &session, &e))?;
    let mut walk = Walk {
        out: io::stdout().lock(),
        session: &session,
        path: vec![context],
        depth,
        contexts: 1,
        objects: 0,
    };
    let head = name.map_or_else(|| format!("naming service at {}", session.shown), str::to_owned);
    printed(
        writeln!(walk.out, "{head}").and_then(|()| walk.bindings("", &bindings)).and_then(|()| walk.finish()),
    )
}

/// Prints depth first, so that memory is bounded by the bindings of the contexts on one path.
struct Walk<'a, W: Write> {
    out: W,
    session: &'a Session,
    /// The contexts above, to detect a context that leads back to one of them.
    path: Vec<NamingContextRef>,
    depth: usize,
    contexts: usize,
    objects: usize,
}

impl<W: Write> Walk<'_, W> {
    fn bindings(&mut self, lead: &str, bindings: &[Binding]) -> io::Result<()> {
        for (index, binding) in bindings.iter().enumerate() {
            let is_last = index + 1 == bindings.len();
            write!(self.out, "{lead}{}{}", if is_last { "└── " } else { "├── " }, shown(binding))?;
            if binding.binding_type == BindingType::Nobject {
                self.objects += 1;
                writeln!(self.out)?;
                continue;
            }
            self.contexts += 1;
            let below = format!("{lead}{}", if is_last { "    " } else { "│   " });
            self.context(&below, binding)?;
        }
        Ok(())
    }

    /// Ends the context's line with the reason why it cannot be shown, or prints its bindings below.
    fn context(&mut self, lead: &str, binding: &Binding) -> io::Result<()> {
        let context = match self.open(binding) {
            Ok(context) => context,
            Err(why) => return writeln!(self.out, "  ({why})"),
        };
        if self.path.iter().any(|above| above.object().is_equivalent(context.object())) {
            return writeln!(self.out, "  (leads back to a context above)");
        }
        if self.path.len() >= self.depth {
            return writeln!(self.out, "  (deeper than --depth)");
        }
        let mut bindings = Vec::new();
        let listed = each_binding(&context, |binding| {
            bindings.push(binding.clone());
            true
        });
        match listed {
            Ok(()) => writeln!(self.out, "{}", self.elsewhere(&context))?,
            Err(e) => return writeln!(self.out, "  (cannot be listed: {e})"),
        }
        self.path.push(context);
        self.bindings(lead, &bindings)?;
        self.path.pop();
        Ok(())
    }

    fn open(&self, binding: &Binding) -> Result<NamingContextRef, String> {
        let parent = self.path.last().unwrap_or(&self.session.start);
        match parent.resolve(&binding.binding_name) {
            Ok(Some(object)) => Ok(object.narrow_unchecked()),
            Ok(None) => Err("nil".to_owned()),
            Err(e) => Err(format!("cannot be resolved: {e}")),
        }
    }

    /// The address of a context that is in another naming service than the context above it.
    fn elsewhere(&self, context: &NamingContextRef) -> String {
        let at = |context: &NamingContextRef| address_of(context.object());
        match self.path.last() {
            Some(above) if self.path.len() > 1 && at(above) != at(context) => {
                format!("  (at {})", at(context))
            }
            _ => String::new(),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let plural =
            |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        writeln!(self.out, "{}, {}", plural(self.contexts, "context"), plural(self.objects, "object"))
    }
}

/// Calls `seen` with each binding, page by page, until it returns false.
fn each_binding(
    context: &NamingContextRef,
    mut seen: impl FnMut(&Binding) -> bool,
) -> Result<(), SystemException> {
    let (bindings, iterator) = context.list(PAGE_BINDINGS)?;
    let mut goes_on = bindings.iter().all(&mut seen);
    let Some(iterator) = iterator else { return Ok(()) };
    let mut outcome = Ok(());
    while goes_on {
        match iterator.next_n(PAGE_BINDINGS) {
            Ok((more, bindings)) => goes_on = more && bindings.iter().all(&mut seen),
            Err(e) => {
                goes_on = false;
                outcome = Err(e);
            }
        }
    }
    // The service reclaims forgotten iterators by itself, so a failure does not matter.
    let _ = iterator.destroy();
    outcome
}

fn shown(binding: &Binding) -> String {
    let name = name_of(&binding.binding_name);
    match binding.binding_type {
        BindingType::Nobject => name,
        BindingType::Ncontext => format!("{name}/"),
    }
}

const PAGE_BINDINGS: u32 = 200;
