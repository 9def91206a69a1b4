//! Contexts: properties that travel beside the arguments of operations with a `context` clause (CORBA 3.3 part 1,
//! 7.12.5 and 8.6; on the wire part 2, 9.4.2.2).
//!
//! Operations without the clause pay nothing for contexts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use ironorb_giop::{Malformed, Misuse, Reader, Writer};

/// Named texts that a caller shows to operations with a `context` clause. The clause selects them by a name,
/// or by the beginning of names followed by `*`.
///
/// ```
/// use ironorb::Context;
///
/// let context = Context::new().with("region", "north").with("color.front", "red");
/// context.enter(|| {
///     // Calls of this thread in here send what their clauses name.
///     assert_eq!(Context::current().get("region"), Some("north"));
/// });
/// assert!(Context::current().is_empty());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Context {
    properties: BTreeMap<String, String>,
}

thread_local! {
    /// The context that calls of this thread may send.
    static CURRENT: RefCell<Context> = const { RefCell::new(Context { properties: BTreeMap::new() }) };
    /// The context that came with the request that this thread serves.
    static RECEIVED: RefCell<Context> = const { RefCell::new(Context { properties: BTreeMap::new() }) };
}

impl Context {
    /// No properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the context with one property added or replaced (`set_one_value`).
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// True when there is no property.
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    /// Returns the properties that a clause names (`get_values`).
    pub fn matching(&self, patterns: &[&str]) -> Context {
        let is_named = |name: &str| {
            patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == *pattern,
            })
        };
        let named = self.iter().filter(|(name, _)| is_named(name));
        Context { properties: named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
    }

    /// Runs `body` with this context as that of the thread's calls.
    pub fn enter<T>(&self, body: impl FnOnce() -> T) -> T {
        let _back = Exchanged::new(&CURRENT, self.clone());
        body()
    }

    /// The context of the thread's calls; empty outside of [`enter`](Context::enter).
    pub fn current() -> Context {
        CURRENT.with_borrow(Clone::clone)
    }

    /// In a servant, the context that came with the request. Empty when its operation has no `context`
    /// clause, and on threads that the servant starts.
    pub fn received() -> Context {
        RECEIVED.with_borrow(Clone::clone)
    }
}

/// Restores a thread's context when it is dropped. For generated code.
#[derive(Debug)]
#[must_use]
pub struct Exchanged {
    cell: &'static std::thread::LocalKey<RefCell<Context>>,
    before: Context,
}

impl Exchanged {
    fn new(cell: &'static std::thread::LocalKey<RefCell<Context>>, context: Context) -> Self {
        Exchanged { cell, before: cell.replace(context) }
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        self.cell.set(std::mem::take(&mut self.before));
    }
}

/// Writes the properties that a clause names: names and values in turn.
#[cold]
pub fn put_context(patterns: &[&str], w: &mut Writer<'_>) -> Result<(), Misuse> {
    put_properties(&CURRENT.with_borrow(|current| current.matching(patterns)), w)
}

/// Writes all properties of a context.
#[cold]
pub(crate) fn put_properties(context: &Context, w: &mut Writer<'_>) -> Result<(), Misuse> {
    w.write_length(2 * context.properties.len())?;
    context.iter().try_for_each(|(name, value)| {
        w.write_str(name)?;
        w.write_str(value)
    })
}

/// Reads the context of a request, for the time of the upcall. Some clients leave the context out.
#[cold]
pub fn get_context(r: &mut Reader<'_>) -> Result<Exchanged, Malformed> {
    Ok(enter_received(read_properties(r)?))
}

/// Makes a context the received one, for the time of an upcall.
#[cold]
pub(crate) fn enter_received(context: Context) -> Exchanged {
    Exchanged::new(&RECEIVED, context)
}

/// Reads the properties of a context.
#[cold]
pub(crate) fn read_properties(r: &mut Reader<'_>) -> Result<Context, Malformed> {
    let texts: Vec<String> = if r.remaining() > 0 { r.get()? } else { Vec::new() };
    let mut texts = texts.into_iter();
    let mut properties = BTreeMap::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        properties.insert(name, value);
    }
    Ok(Context { properties })
}

/// Passes the caller's context to an upcall in the same process.
#[cold]
pub fn pass_context(patterns: &[&str]) -> Exchanged {
    Exchanged::new(&RECEIVED, CURRENT.with_borrow(|current| current.matching(patterns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clause_names_properties_or_their_beginnings() {
        let context =
            Context::new().with("region", "north").with("regional", "no").with("color.front", "red");
        let named: Vec<String> =
            context.matching(&["region", "color*"]).iter().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(named, ["color.front", "region"]);
        assert!(context.matching(&[]).is_empty());
        assert_eq!(context.matching(&["*"]), context);
    }

    #[test]
    fn contexts_nest() {
        let outer = Context::new().with("a", "1");
        outer.enter(|| {
            Context::new().enter(|| assert!(Context::current().is_empty()));
            assert_eq!(Context::current(), outer);
        });
        assert!(Context::current().is_empty());
    }
}
