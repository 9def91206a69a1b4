//! Stubs and skeletons over the real ORB: every kind of argument, over a connection and in the same process.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use ironorb::generated::{Any, Deferred, Native, Reply, TypeCode};
use ironorb::giop::Misuse;
use ironorb::poa::PoaError;
use ironorb::{CompletionStatus, Context, Orb, SystemException, SystemExceptionKind, TypedRef};

use crate::compiled::{any, bounds, inheritance, local_native, many_results, operations};

use any::dynamic::{Either, Property, Store, StoreRef, TC_PROPERTIES, TC_WORD, Unfit, store::TypeOfError};
use bounds::bounds::{Checker, CheckerRef, Choice, Flags, Holder};
use inheritance::base::{Shape, ShapeRef, shape};
use inheritance::shapes::deep::{Tag, TagRef, sprite::DrawError};
use inheritance::shapes::{Movable, MovableRef, Scalable};
use local_native::nearby::{Bag, Depot, DepotRef, Guest, Post, Visitor, post, visitor};
use operations::bank::account::{DepositError, GetGuardedError, SetGuardedError, TransferError};
use operations::bank::{
    Account, AccountAsync, AccountRef, DeferredAccount, Entry, Frozen, Insufficient, Kind,
};

/// An ORB for the server and one for the client, so that calls use a connection.
struct World {
    server: Orb,
    client: Orb,
}

impl World {
    fn new() -> Self {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        World { server, client }
    }

    /// The server's reference, which calls in the same process, and the client's.
    fn both<R: TypedRef + Clone>(&self, local: &R) -> [R; 2] {
        let url = self.server.object_to_string(local.object()).unwrap();
        [local.clone(), self.client.resolve(&url).unwrap()]
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.client.shutdown(true);
        let _ = self.server.shutdown(true);
    }
}

struct Vault {
    balance: Mutex<i64>,
    notes: Mutex<Sender<String>>,
}

impl Vault {
    fn new() -> (Self, Receiver<String>) {
        let (notes, received) = channel();
        (Vault { balance: Mutex::new(0), notes: Mutex::new(notes) }, received)
    }
}

impl Account for Vault {
    fn deposit(&self, amount: i64) -> Result<i64, DepositError> {
        let mut balance = self.balance.lock().unwrap();
        if *balance + amount < 0 {
            return Err(Insufficient { missing: -(*balance + amount) }.into());
        }
        *balance += amount;
        Ok(*balance)
    }

    fn transfer(&self, to: Option<&AccountRef>, amount: i64, text: &str) -> Result<(), TransferError> {
        match to {
            None => Err(Frozen {}.into()),
            Some(to) => {
                to.deposit(amount).map_err(|error| match error {
                    DepositError::Insufficient(error) => TransferError::from(error),
                    DepositError::System(error) => error.into(),
                })?;
                self.notify(text)?;
                Ok(())
            }
        }
    }

    fn notify(&self, text: &str) -> Result<(), SystemException> {
        self.notes.lock().unwrap().send(text.to_owned()).unwrap();
        Ok(())
    }

    fn swap(
        &self,
        entry: &Entry,
        numbers: &[i32],
    ) -> Result<(bool, Entry, Vec<i32>, Kind, Option<ironorb::ObjectRef>), SystemException> {
        let entry = Entry { text: entry.text.to_uppercase(), amount: -entry.amount };
        Ok((true, entry, numbers.iter().rev().copied().collect(), Kind::Savings, None))
    }

    fn lend(
        &self,
        words: &[String],
        raw: &[u8],
        rates: &[f64; 3],
        kind: Kind,
        wide: &str,
    ) -> Result<(), SystemException> {
        self.notify(&format!("{words:?} {raw:?} {rates:?} {kind:?} {wide}"))
    }

    fn find(&self, pattern: &str) -> Result<i32, SystemException> {
        for (name, value) in Context::received().iter() {
            self.notify(&format!("{name}={value}"))?;
        }
        Ok(pattern.len() as i32)
    }

    fn balance(&self) -> Result<i64, SystemException> {
        Ok(*self.balance.lock().unwrap())
    }

    fn owner(&self) -> Result<String, SystemException> {
        Ok("nobody".to_owned())
    }

    fn set_owner(&self, value: &str) -> Result<(), SystemException> {
        self.notify(value)
    }

    fn guarded(&self) -> Result<i32, GetGuardedError> {
        Err(Frozen {}.into())
    }

    fn set_guarded(&self, value: i32) -> Result<(), SetGuardedError> {
        if value < 0 { Err(Insufficient { missing: value.into() }.into()) } else { Ok(()) }
    }
}

#[test]
fn arguments_and_results_travel() {
    let world = World::new();
    let (vault, notes) = Vault::new();
    let local: AccountRef = world.server.root_poa().activate(vault).unwrap();
    for account in world.both(&local) {
        let before = account.balance().unwrap();
        assert_eq!(account.deposit(100).unwrap(), before + 100);
        let missing = Insufficient { missing: 1 };
        assert_eq!(account.deposit(-before - 101), Err(DepositError::Insufficient(missing)));

        account.transfer(Some(&account), 5, "żółw").unwrap();
        assert_eq!(notes.recv().unwrap(), "żółw");
        assert_eq!(account.transfer(None, 5, ""), Err(TransferError::Frozen(Frozen {})));

        account.notify("oneway").unwrap();
        assert_eq!(notes.recv().unwrap(), "oneway");

        let entry = Entry { text: "text".to_owned(), amount: 7 };
        let (done, entry, numbers, kind, object) = account.swap(&entry, &[1, 2, 3]).unwrap();
        assert_eq!((done, entry.text.as_str(), entry.amount), (true, "TEXT", -7));
        assert_eq!((numbers, kind, object), (vec![3, 2, 1], Kind::Savings, None));

        let words = ["a".to_owned(), String::new()];
        account.lend(&words, &[1, 255], &[0.5, 1.0, -2.0], Kind::Plain, "wide 𝄞").unwrap();
        assert_eq!(notes.recv().unwrap(), "[\"a\", \"\"] [1, 255] [0.5, 1.0, -2.0] Plain wide 𝄞");

        assert_eq!(account.find("four").unwrap(), 4);
        assert_eq!(account.owner().unwrap(), "nobody");
        account.set_owner("somebody").unwrap();
        assert_eq!(notes.recv().unwrap(), "somebody");
        assert_eq!(account.guarded(), Err(GetGuardedError::Frozen(Frozen {})));
        account.set_guarded(1).unwrap();
        let refused = Insufficient { missing: -1 };
        assert_eq!(account.set_guarded(-1), Err(SetGuardedError::Insufficient(refused)));
    }
}

struct Echo;

impl Checker for Echo {
    fn check(&self, a: &str, b: &[String], wide: &str) -> Result<(String, Vec<String>), SystemException> {
        Ok((format!("{a}{wide}"), b.iter().map(|code| format!("{code}!")).collect()))
    }

    fn all(&self, _: &Holder, _: &[Vec<String>; 2], _: &Choice) -> Result<(), SystemException> {
        Ok(())
    }

    fn turn(&self, asked: &Flags) -> Result<Flags, SystemException> {
        Ok(Flags { shift: -asked.shift, ..*asked })
    }

    fn current(&self) -> Result<Vec<String>, SystemException> {
        Ok(vec![String::new(); 4])
    }

    fn set_current(&self, _: &[String]) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Checks the bounds over a connection and in the same process, where nothing is sent.
#[test]
fn bounds_hold_for_arguments_and_results() {
    let world = World::new();
    let local: CheckerRef = world.server.root_poa().activate(Echo).unwrap();
    world.both(&local).iter().for_each(check_bounds);
}

fn check_bounds(checker: &CheckerRef) {
    let code = |text: &str| text.to_owned();
    let (joined, marked) = checker.check("abc", &[code("1234")], "de").unwrap();
    assert_eq!((joined.as_str(), marked), ("abcde", vec![code("1234!")]));
    let pages = [vec![code("x")], vec![]];
    checker.all(&Holder::default(), &pages, &Choice::Tag(code("12345"))).unwrap();

    let kind = |result: Result<(), SystemException>| result.unwrap_err().kind;
    let bad = SystemExceptionKind::BadParam;
    assert_eq!(kind(checker.check("sixsix", &[], "").map(drop)), bad);
    assert_eq!(kind(checker.check("", &[code("sixsix")], "").map(drop)), bad);
    assert_eq!(kind(checker.check("", &vec![code(""); 4], "").map(drop)), bad);
    assert_eq!(kind(checker.check("", &[], "four").map(drop)), bad);
    assert_eq!(kind(checker.all(&Holder::default(), &pages, &Choice::Tag(code("sixsix")))), bad);
    assert_eq!(kind(checker.set_current(&vec![code(""); 4])), bad);
    // Here the server breaks the bound, and the reply reports that.
    assert!(checker.current().is_err());
    let exceeded = checker.check("abc", &[code("12345")], "").unwrap_err();
    assert_eq!(exceeded.completed, CompletionStatus::Yes, "{exceeded}");
    // The fields of a bitset have bounds too.
    let flags = |level, shift| Flags { level, shift };
    assert_eq!(checker.turn(&flags(7, -15)), Ok(flags(7, 15)));
    assert_eq!(kind(checker.turn(&flags(8, 0)).map(drop)), bad);
    assert_eq!(checker.turn(&flags(0, -16)).unwrap_err().completed, CompletionStatus::Yes);
    let deep = Holder { tags: vec![code(""); 4], ..Holder::default() };
    assert_eq!(kind(checker.all(&deep, &pages, &Choice::default())), bad);
}

struct Label(Mutex<String>);

impl Shape for Label {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }
    fn set_name(&self, value: &str) -> Result<(), SystemException> {
        value.clone_into(&mut self.0.lock().unwrap());
        Ok(())
    }
    fn area(&self) -> Result<f64, shape::AreaError> {
        Err(shape::Flat {}.into())
    }
}

impl Movable for Label {
    fn move_(&self, dx: f64, to: shape::Side) -> Result<(), SystemException> {
        self.set_name(&format!("{dx} {to:?}"))
    }
}

impl Scalable for Label {
    fn scale(&self, factor: f64) -> Result<(), SystemException> {
        self.set_name(&factor.to_string())
    }
}

impl inheritance::shapes::deep::Sprite for Label {
    fn draw(&self, on: Option<&MovableRef>) -> Result<String, DrawError> {
        match on {
            Some(on) => Ok(format!("on {}", on.name()?)),
            None => Err(shape::Flat {}.into()),
        }
    }
}

impl Tag for Label {}

#[test]
fn inherited_operations_are_reached_through_every_base() {
    use inheritance::shapes::deep::Sprite;

    let world = World::new();
    let local: TagRef = world.server.root_poa().activate(Label(Mutex::default())).unwrap();
    for tag in world.both(&local) {
        tag.set_name("first").unwrap();
        assert_eq!(tag.name().unwrap(), "first");
        tag.move_(1.5, shape::Side::Right).unwrap();
        assert_eq!(ShapeRef::from(tag.clone()).name().unwrap(), "1.5 Right");
        tag.scale(2.0).unwrap();
        assert_eq!(tag.area(), Err(shape::AreaError::Flat(shape::Flat {})));
        assert_eq!(tag.draw(Some(&tag.clone().into())).unwrap(), "on 2");
        assert_eq!(tag.draw(None), Err(DrawError::Flat(shape::Flat {})));
        let shape = ShapeRef::from(tag);
        assert!(TagRef::narrow(shape.object()).unwrap().is_some());
        assert!(AccountRef::narrow(shape.object()).unwrap().is_none());
    }
}

#[test]
fn calls_begin_without_waiting_for_their_replies() {
    let world = World::new();
    let (vault, notes) = Vault::new();
    let local: AccountRef = world.server.root_poa().activate(vault).unwrap();
    for account in world.both(&local) {
        let before = account.balance_async().wait().unwrap();
        let first = account.deposit_async(100);
        let second = account.deposit_async(-before - 101);
        assert_eq!(first.wait().unwrap(), before + 100);
        assert_eq!(second.wait(), Err(DepositError::Insufficient(Insufficient { missing: 1 })));

        // The borrows of the arguments end as soon as the method returns.
        let sent = {
            let words = vec!["a".to_owned()];
            account.lend_async(&words, &[1], &[0.5; 3], Kind::Plain, "wide")
        };
        sent.wait().unwrap();
        assert_eq!(notes.recv().unwrap(), "[\"a\"] [1] [0.5, 0.5, 0.5] Plain wide");

        let entry = Entry { text: "text".to_owned(), amount: 7 };
        let swapped = account.swap_async(&entry, &[1, 2]).wait().unwrap();
        assert_eq!((swapped.1.text.as_str(), swapped.2), ("TEXT", vec![2, 1]));

        let (sender, receiver) = channel();
        account.set_owner_async("somebody").on_reply(move |result| sender.send(result).unwrap());
        assert_eq!(notes.recv().unwrap(), "somebody");
        receiver.recv().unwrap().unwrap();
    }
}

#[test]
fn inherited_operations_are_called_asynchronously_too() {
    use inheritance::base::ShapeAsync;
    use inheritance::shapes::MovableAsync;

    let world = World::new();
    let local: TagRef = world.server.root_poa().activate(Label(Mutex::default())).unwrap();
    for tag in world.both(&local) {
        tag.move_async(1.5, shape::Side::Right).wait().unwrap();
        assert_eq!(tag.name_async().wait().unwrap(), "1.5 Right");
        assert_eq!(tag.area_async().wait(), Err(shape::AreaError::Flat(shape::Flat {})));
    }
}

/// A servant that replies from another thread, when the test makes it do so.
struct Slow(Mutex<Sender<Box<dyn FnOnce() + Send>>>);

impl Slow {
    fn later(&self, work: impl FnOnce() + Send + 'static) {
        self.0.lock().unwrap().send(Box::new(work)).unwrap();
    }
}

impl DeferredAccount for Slow {
    fn deposit(&self, amount: i64, reply: Reply<i64, DepositError>) {
        self.later(move || {
            reply.send(if amount < 0 { Err(Insufficient { missing: -amount }.into()) } else { Ok(amount) });
        });
    }
    fn transfer(&self, _: Option<&AccountRef>, _: i64, text: &str, reply: Reply<(), TransferError>) {
        let is_empty = text.is_empty();
        self.later(move || reply.send(if is_empty { Err(Frozen {}.into()) } else { Ok(()) }));
    }
    fn notify(&self, text: &str) {
        let _length = text.len();
    }
    fn swap(
        &self,
        entry: &Entry,
        numbers: &[i32],
        reply: Reply<(bool, Entry, Vec<i32>, Kind, Option<ironorb::ObjectRef>), SystemException>,
    ) {
        let (entry, numbers) = (entry.clone(), numbers.to_vec());
        self.later(move || reply.send(Ok((false, entry, numbers, Kind::Plain, None))));
    }
    fn lend(
        &self,
        _: &[String],
        _: &[u8],
        _: &[f64; 3],
        _: Kind,
        _: &str,
        reply: Reply<(), SystemException>,
    ) {
        drop(reply);
    }
    fn find(&self, pattern: &str, reply: Reply<i32, SystemException>) {
        reply.send(Ok(pattern.len() as i32));
    }
    fn balance(&self, reply: Reply<i64, SystemException>) {
        reply.send(Ok(1));
    }
    fn owner(&self, reply: Reply<String, SystemException>) {
        reply.send(Ok("nobody".to_owned()));
    }
    fn set_owner(&self, _: &str, reply: Reply<(), SystemException>) {
        reply.send(Ok(()));
    }
    fn guarded(&self, reply: Reply<i32, GetGuardedError>) {
        reply.send(Err(Frozen {}.into()));
    }
    fn set_guarded(&self, _: i32, reply: Reply<(), SetGuardedError>) {
        reply.send(Ok(()));
    }
}

#[test]
fn a_servant_answers_later_from_another_thread() {
    let world = World::new();
    let (work, to_do) = channel::<Box<dyn FnOnce() + Send>>();
    let worker = std::thread::spawn(move || to_do.iter().for_each(|work| work()));
    let slow = Deferred(Slow(Mutex::new(work)));
    let local: AccountRef = world.server.root_poa().activate(slow).unwrap();
    for account in world.both(&local) {
        assert_eq!(account.deposit(5).unwrap(), 5);
        assert_eq!(account.deposit(-5), Err(DepositError::Insufficient(Insufficient { missing: 5 })));
        assert_eq!(account.transfer(None, 1, ""), Err(TransferError::Frozen(Frozen {})));
        account.notify("oneway").unwrap();
        let entry = Entry { text: "text".to_owned(), amount: 7 };
        assert_eq!(account.swap(&entry, &[3]).unwrap(), (false, entry, vec![3], Kind::Plain, None));
        let dropped = account.lend(&[], &[], &[0.0; 3], Kind::Plain, "").unwrap_err();
        assert_eq!(dropped.kind, SystemExceptionKind::Unknown);
        assert_eq!(account.balance().unwrap(), 1);
        assert_eq!(account.guarded(), Err(GetGuardedError::Frozen(Frozen {})));
        assert_eq!(account.deposit_async(6).wait().unwrap(), 6);
    }
    drop(world);
    drop(local);
    worker.join().unwrap();
}

type Results = (i32, i32, String, i16, f64, u8, bool, u8, i32, i32, i32, i32, i32, ironorb::WString, f32);

struct Generous;

impl many_results::Many for Generous {
    fn all(&self, d: f64) -> Result<Results, SystemException> {
        Ok((0, 1, "b".to_owned(), 3, d, 5, true, b'g', 8, 9, 10, 11, 12, "m".into(), 14.0))
    }
}

#[test]
fn operations_have_more_results_than_tuples_have_traits() {
    let world = World::new();
    let local: many_results::ManyRef = world.server.root_poa().activate(Generous).unwrap();
    for many in world.both(&local) {
        use many_results::Many;
        let results = many.all(4.5).unwrap();
        assert_eq!((results.2.as_str(), results.4, results.12, results.14), ("b", 4.5, 12, 14.0));
    }
}

struct Shelf(Mutex<Any>);

impl Store for Shelf {
    fn echo(&self, value: &Any) -> Result<Any, SystemException> {
        Ok(value.clone())
    }

    fn type_of(&self, value: &Any, wanted: &TypeCode) -> Result<(TypeCode, TypeCode), TypeOfError> {
        if value.type_code().equivalent(wanted) {
            Ok((value.type_code().clone(), wanted.compact()))
        } else {
            Err(Unfit { value: value.clone(), wanted: wanted.clone() }.into())
        }
    }

    fn list(&self, values: &[Any], first: &Any) -> Result<(Vec<Property>, Any, Either), SystemException> {
        let name = |at: usize| format!("value {at}");
        let named = |(at, value): (usize, &Any)| Property { name: name(at), value: value.clone() };
        let last = Either::Type(first.type_code().clone());
        Ok((values.iter().enumerate().map(named).collect(), values[0].clone(), last))
    }

    fn current(&self) -> Result<Any, SystemException> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn set_current(&self, value: &Any) -> Result<(), SystemException> {
        *self.0.lock().unwrap() = value.clone();
        Ok(())
    }
}

#[test]
fn values_of_any_type_travel_with_their_types() {
    let world = World::new();
    let local: StoreRef = world.server.root_poa().activate(Shelf(Mutex::default())).unwrap();
    let account: AccountRef = world.server.root_poa().activate(Vault::new().0).unwrap();
    for store in world.both(&local) {
        assert!(store.current().unwrap().is_empty());
        let properties = vec![
            Property { name: "a number".to_owned(), value: Any::new(&5i32).unwrap() },
            Property { name: "an any".to_owned(), value: Any::new(&Any::new("text").unwrap()).unwrap() },
        ];
        let list = Any::with_type(&TC_PROPERTIES, &properties).unwrap();
        let back = store.echo(&list).unwrap();
        assert_eq!(back, list);
        assert_eq!(back.type_code().name().unwrap(), "Properties");
        let found: Vec<Property> = back.extract().unwrap();
        assert_eq!(found, properties);
        assert_eq!(found[1].value.extract::<Any>().unwrap().extract::<String>().unwrap(), "text");
        assert!(back.extract::<i32>().is_err());

        // An array of an alias of `char`, which Rust cannot tell from octets.
        let word = store.echo(&Any::with_type(&TC_WORD, b"word").unwrap()).unwrap();
        assert!(word.extract::<[u8; 4]>().is_err(), "it is not an array of octets");
        assert_eq!(word.extract_as::<[u8; 4]>(&TC_WORD).unwrap(), *b"word");

        // A reference still leads to its object; an exception and an enum are unchanged.
        let object = store.echo(&Any::new(&Some(account.clone())).unwrap()).unwrap();
        let found: Option<AccountRef> = object.extract().unwrap();
        assert_eq!(found.unwrap().owner().unwrap(), "nobody");
        let insufficient = store.echo(&Any::new(&Insufficient { missing: 3 }).unwrap()).unwrap();
        assert_eq!(insufficient.extract::<Insufficient>().unwrap().missing, 3);
        let kind = store.echo(&Any::new(&Kind::Savings).unwrap()).unwrap();
        assert_eq!(kind.extract::<Kind>().unwrap(), Kind::Savings);

        let wanted = TypeCode::from(&TC_PROPERTIES);
        let (found, compact) = store.type_of(&list, &wanted).unwrap();
        assert_eq!(found, wanted);
        assert!(compact.equivalent(&wanted));
        let number = Any::new(&1u64).unwrap();
        let Err(TypeOfError::Unfit(unfit)) = store.type_of(&number, &wanted) else { panic!() };
        assert_eq!((unfit.value, unfit.wanted), (number.clone(), wanted));

        let (listed, first, last) = store.list(&[number.clone(), list], &kind).unwrap();
        assert_eq!((listed[1].name.as_str(), listed.len(), first), ("value 1", 2, number));
        assert_eq!(last, Either::Type(TypeCode::for_type::<Kind>()));
        store.set_current(&kind).unwrap();
        assert_eq!(store.current().unwrap(), kind);
        store.set_current(&Any::default()).unwrap();
    }
}

/// Operations with exceptions of their own convert errors by `?` as operations without them do.
#[test]
fn local_errors_become_system_exceptions() {
    fn kind(made: impl FnOnce() -> Result<(), TypeOfError>) -> SystemExceptionKind {
        let Err(TypeOfError::System(exception)) = made() else { panic!("not a system exception") };
        exception.kind
    }
    let number = Any::new(&1i32).unwrap();
    let wrong = || number.extract::<String>().map(drop);
    assert_eq!(kind(|| Ok(wrong()?)), SystemExceptionKind::BadParam);
    let misused = || Any::with_type(&TC_WORD, "abc").map(drop);
    assert_eq!(kind(|| Ok(misused()?)), SystemExceptionKind::BadParam);
    assert_eq!(kind(|| Err(PoaError::WouldDeadlock)?), SystemExceptionKind::BadInvOrder);
}

struct Guide;

impl Visitor for Guide {
    fn visit(&self, _: &str, _: &Native) -> Result<(), visitor::VisitError> {
        Ok(())
    }
    fn next(
        &self,
        after: Option<&Arc<dyn Visitor>>,
    ) -> Result<(Option<Arc<dyn Visitor>>, Native), SystemException> {
        Ok((after.cloned(), Native(Arc::new(5))))
    }
}

struct Office(Mutex<Option<Bag>>);

impl Post for Office {
    fn send(
        &self,
        what: &Bag,
        who: Option<&Arc<dyn Visitor>>,
        _: &Native,
    ) -> Result<Option<Arc<dyn Visitor>>, post::SendError> {
        *self.0.lock().unwrap() = Some(what.clone());
        Ok(who.cloned())
    }
    fn take(&self, of: &Guest) -> Result<(Bag, Guest), SystemException> {
        let bag = self.0.lock().unwrap().take();
        Ok((bag.unwrap_or_else(empty_bag), of.clone()))
    }
}

fn empty_bag() -> Bag {
    Bag { who: None, all: vec![], mark: Native(Arc::new(())) }
}

/// In one process a local object is a value like any other. It cannot be sent to another process.
#[test]
fn local_objects_stay_in_their_process() {
    let guide: Arc<dyn Visitor> = Arc::new(Guide);
    let bag = Bag { who: Some(guide.clone()), all: vec![Some(guide.clone())], ..empty_bag() };
    let post: Arc<dyn Post> = Arc::new(Office(Mutex::default()));
    assert_eq!(post.send(&bag, Some(&guide), &bag.mark).unwrap(), Some(guide.clone()));
    let guest = Guest::Unlisted { label: false };
    assert_eq!(post.take(&guest).unwrap(), (bag.clone(), guest));
    let (next, mark) = guide.next(Some(&guide)).unwrap();
    assert_eq!((next, mark.0.downcast_ref()), (Some(guide.clone()), Some(&5)));

    assert_eq!(Any::new(&bag).unwrap_err(), Misuse::LocalObject);
    assert_eq!(SystemException::from(Misuse::LocalObject).kind, SystemExceptionKind::Marshal);

    let world = World::new();
    let local: DepotRef = world.server.root_poa().activate(Keeper).unwrap();
    let [here, there] = world.both(&local);
    here.keep(&bag.mark).unwrap();
    let refused = there.keep(&bag.mark).unwrap_err();
    assert_eq!((refused.kind, refused.minor), {
        (SystemExceptionKind::Marshal, ironorb::MinorCode::MARSHAL_LOCAL_OBJECT)
    });
}

struct Keeper;

impl Depot for Keeper {
    fn keep(&self, _: &Native) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_context_is_sent_with_operations_that_declare_it() {
    let world = World::new();
    let (vault, notes) = Vault::new();
    let local: AccountRef = world.server.root_poa().activate(vault).unwrap();
    let context = Context::new()
        .with("region", "north")
        .with("colors", "many")
        .with("color.front", "red")
        .with("secret", "no clause names it");
    for account in world.both(&local) {
        assert_eq!(account.find("four").unwrap(), 4);
        assert!(notes.try_recv().is_err(), "nothing was sent");
        context.enter(|| {
            account.find("").unwrap();
            account.find_async("").wait().unwrap();
            account.set_owner("no clause").unwrap();
        });
        for _ in 0..2 {
            for expected in ["color.front=red", "colors=many", "region=north"] {
                assert_eq!(notes.recv().unwrap(), expected);
            }
        }
        assert_eq!(notes.recv().unwrap(), "no clause");
        assert!(Context::received().is_empty());
    }
}
