//! Data-parallel calls: the parts of an object that is registered under one name.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ironorb::parallel::{ParallelRef, PartEnd as CallEnd, Parts, PartsBegun, PartsCalled, parts_needed};
use ironorb::{ObjectRef, SystemException, TypedRef};

use crate::generated::iron_orb::JobDaemonRef;
use crate::job::{Job, JobEnd};
use crate::jobs::Jobs;
use crate::part::{PartEnd, PartOptions, Reply};
use crate::target::{InTurn, no_server};

/// The property of a server's registration that says which part of the object it is: a [`PartNumber`].
pub const PART_PROPERTY: &str = "part";

/// Which part of an object a server is, of how many: `2/8`. Counted from 1.
///
/// ```
/// use ironorb_jobs::{PART_PROPERTY, PartNumber};
///
/// let second = PartNumber::new(2, 8).ok_or("no such part")?;
/// assert_eq!((PART_PROPERTY, second.to_string()), ("part", "2/8".to_owned()));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartNumber {
    number: u32,
    of: u32,
}

impl PartNumber {
    /// A part of so many. `None` unless it is from 1 to that number.
    pub fn new(number: u32, of: u32) -> Option<PartNumber> {
        (1..=of).contains(&number).then_some(PartNumber { number, of })
    }

    /// From 1 on.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many parts the object has.
    pub fn of(&self) -> u32 {
        self.of
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// A text that is no part such as `2/8`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no part: write `2/8` for the second of eight")]
pub struct NotAPart(String);

impl FromStr for PartNumber {
    type Err = NotAPart;

    fn from_str(text: &str) -> Result<PartNumber, NotAPart> {
        let numbers =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        numbers.and_then(|(number, of)| PartNumber::new(number, of)).ok_or_else(|| NotAPart(text.to_owned()))
    }
}

impl Jobs {
    /// The object with a name, which may be several parts: servers that are registered with [`PART_PROPERTY`]. Its operations with
    /// `@parallel` are methods of what this returns.
    ///
    /// Each call resolves the name and calls all parts at once, as a job. Several servers of one part are equals: any of them is
    /// called, and for an operation that is `@idempotent`, or called so by the options, another when one fails or is late. If a part
    /// has no server, the call raises TRANSIENT, which names it, and sends nothing.
    ///
    /// Servers without the property are equals that each have the whole object: the call is a plain call of one of them.
    ///
    /// ```no_run
    /// # mod sums { ironorb::include_idl!("ironorb_jobs_example"); }
    /// use ironorb::parallel::ParallelRef;
    /// use ironorb_jobs::{AgentHandles, Jobs, PART_PROPERTY, PartOptions};
    /// use sums::sums::{SummatorParallel, SummatorRef};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let orb = ironorb::Orb::builder().build()?;
    /// # let client = ironorb_agent::AgentClient::connect(&orb, ["localhost"])?;
    /// # let summator: SummatorRef = orb.resolve("corbaloc::localhost/x")?;
    /// // A server: the second of four.
    /// let registration = client.register("sums", &summator)?.property(PART_PROPERTY, "2/4").start()?;
    ///
    /// // A client: each part gets a quarter of the numbers, and their sums are added up.
    /// let jobs = Jobs::builder(&orb).handles(AgentHandles::new(&client)).build();
    /// let sums = jobs.parallel::<SummatorRef>("sums", PartOptions::new());
    /// let total = sums.total(&[1.5, 2.5, 3.5, 4.5, 5.5])?;
    ///
    /// // The same while the program goes on.
    /// let pending = sums.total_async(&[1.5, 2.5, 3.5]);
    /// let total = pending.wait()?; // or .await
    ///
    /// // Any one object by the same code, also one that no agent knows: a plain call.
    /// let total = ParallelRef::of(&summator).total(&[1.5, 2.5])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn parallel<T: TypedRef>(&self, name: &str, options: PartOptions) -> ParallelRef<T> {
        ParallelRef::by(Arc::new(Named { jobs: self.clone(), name: name.to_owned(), options }))
    }
}

/// The parts of the object with a name.
struct Named {
    jobs: Jobs,
    name: String,
    options: PartOptions,
}

impl Parts for Named {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn call(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<PartsCalled, SystemException> {
        Ok(match self.prepare(length, begin)? {
            Prepared::Job(parts, job) => ended(parts, job.run()),
            Prepared::Unsent(called) => called,
        })
    }

    /// Blocks only to find the servers of the name, where they are not known here.
    fn begin(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<PartsBegun, SystemException> {
        Ok(match self.prepare(length, begin)? {
            Prepared::Job(parts, job) => {
                let running = job.begin();
                Box::pin(async move { ended(parts, running.await) })
            }
            Prepared::Unsent(called) => Box::pin(std::future::ready(called)),
        })
    }
}

/// The calls of the parts.
enum Prepared {
    /// As a job, and how many parts the object has.
    Job(usize, Job<Vec<Begun>>),
    /// Nothing is to be sent.
    Unsent(PartsCalled),
}

impl Named {
    fn prepare(
        &self,
        length: usize,
        begin: &mut dyn FnMut(&ObjectRef, usize, usize),
    ) -> Result<Prepared, SystemException> {
        let parts = arrange(&self.name, self.jobs.0.part_servers(&self.name)?)?;
        let (count, called) = (parts.len(), parts_needed(length, parts.len()));
        let mut job = self.jobs.job().list::<Begun>();
        for (part, servers) in parts.into_iter().take(called).enumerate() {
            // The type of the reference says nothing: `begin` narrows it.
            let begin = |stands_for: &JobDaemonRef| {
                begin(stands_for.object(), part, called);
                Begun
            };
            job = job.call_any(InTurn::anywhere(servers), self.options, begin);
        }
        let written = job.written();
        if written.contains(&false) {
            // Arguments that cannot be sent to one part are sent to none: its call has the exception.
            let end = |is_written| match is_written {
                true => CallEnd::Cancelled { may_be_executed: false },
                false => CallEnd::Answered,
            };
            let ends = written.into_iter().map(end).collect();
            return Ok(Prepared::Unsent(PartsCalled { parts: count, ends }));
        }
        Ok(Prepared::Job(count, job))
    }
}

/// What has become of the calls of an object that has so many parts.
fn ended(parts: usize, end: JobEnd<Vec<PartEnd<(), Infallible>>>) -> PartsCalled {
    let ends = end.parts.into_iter().map(|end| match end {
        PartEnd::Result(()) | PartEnd::Exception(_) => CallEnd::Answered,
        PartEnd::Cancelled { may_be_executed } => CallEnd::Cancelled { may_be_executed },
        PartEnd::Unknown(e) => CallEnd::Unknown(e),
    });
    PartsCalled { parts, ends: ends.collect() }
}

/// The reply of a part's call, which the caller reads.
struct Begun;

impl Reply for Begun {
    type Value = ();
    type Error = Infallible;

    fn take(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// The servers of each part, in the order of the parts; all servers as one part where none says which part it is.
fn arrange(
    name: &str,
    servers: Vec<(ObjectRef, Option<String>)>,
) -> Result<Vec<Vec<ObjectRef>>, SystemException> {
    if servers.is_empty() {
        return Err(no_server(name));
    }
    let mut whole = Vec::new();
    let mut parts: BTreeMap<PartNumber, Vec<ObjectRef>> = BTreeMap::new();
    for (object, part) in servers {
        match part {
            None => whole.push(object),
            Some(part) => {
                let number = part.parse().map_err(|why: NotAPart| unlike(name, &why.to_string()))?;
                parts.entry(number).or_default().push(object);
            }
        }
    }
    let Some(first) = parts.keys().next().copied() else { return Ok(vec![whole]) };
    if !whole.is_empty() {
        // It has the whole object, or nobody has told it which part it has.
        return Err(unlike(name, "some say which part they are, others do not"));
    }
    if let Some(other) = parts.keys().find(|part| part.of != first.of) {
        return Err(unlike(name, &format!("there are parts {first} and {other}")));
    }
    let mut arranged = Vec::with_capacity(parts.len());
    for number in 1..=first.of {
        match parts.remove(&PartNumber { number, of: first.of }) {
            Some(servers) => arranged.push(servers),
            None => return Err(no_server(&format!("part {number} of {} of {name}", first.of))),
        }
    }
    Ok(arranged)
}

/// Servers that are not the parts of one object.
#[cold]
fn unlike(name: &str, why: &str) -> SystemException {
    no_server(name).with_detail(format!("the servers of {name} are not the parts of one object: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironorb::{CompletionStatus, Orb, SystemExceptionKind};

    /// What is made of servers that say these parts: for each part the places of its servers.
    fn arranged(parts: &[Option<&str>]) -> Result<Vec<Vec<usize>>, String> {
        let orb = Orb::builder().build().unwrap();
        let object = |at: usize| orb.string_to_object(&format!("corbaloc::192.0.2.1:1/{}", at + 1)).unwrap();
        let servers: Vec<_> =
            parts.iter().enumerate().map(|(at, part)| (object(at), part.map(str::to_owned))).collect();
        let place = |server: &ObjectRef| servers.iter().position(|(object, _)| object == server).unwrap();
        match arrange("rows", servers.clone()) {
            Ok(parts) => Ok(parts.iter().map(|servers| servers.iter().map(place).collect()).collect()),
            Err(e) => {
                assert_eq!((e.kind, e.completed), (SystemExceptionKind::Transient, CompletionStatus::No));
                Err(e.detail().unwrap_or_default().to_owned())
            }
        }
    }

    #[test]
    fn servers_are_ordered_by_their_parts() {
        let parts = [Some("3/3"), Some("1/3"), Some("2/3"), Some("1/3")];
        assert_eq!(arranged(&parts), Ok(vec![vec![1, 3], vec![2], vec![0]]));
        assert_eq!(arranged(&[Some("1/1")]), Ok(vec![vec![0]]));
    }

    #[test]
    fn servers_that_say_nothing_are_equals() {
        assert_eq!(arranged(&[None, None]), Ok(vec![vec![0, 1]]));
    }

    #[test]
    fn a_part_without_a_server_is_named() {
        let missing = "no server is known for part 2 of 3 of rows".to_owned();
        assert_eq!(arranged(&[Some("3/3"), Some("1/3")]), Err(missing));
        // However many there are said to be.
        let e = arranged(&[Some("1/4294967295")]).unwrap_err();
        assert!(e.contains("part 2 of 4294967295"), "{e}");
        assert!(arranged(&[]).is_err());
    }

    #[test]
    fn servers_that_contradict_each_other_are_not_called() {
        for parts in
            [["1/2", "2/3"], ["1/1", "1/2"], ["1/2", "0/2"], ["1/2", "3/2"], ["1/2", "two"], ["", "1/1"]]
        {
            let e = arranged(&parts.map(Some)).unwrap_err();
            assert!(e.contains("not the parts of one object"), "{e}");
        }
        let e = arranged(&[Some("1/1"), None]).unwrap_err();
        assert!(e.contains("not the parts of one object"), "{e}");
    }
}
