//! Mistakes that people make, each in a module. What the compiler says of each stands in `mistakes.stderr`.

include!("../emit/operations/out.rs");
include!("../emit/owned/out.rs");

mod nothing_implemented {
    struct Teller;

    fn activate(poa: &ironorb::Poa) {
        let _ = poa.activate::<crate::bank::AccountRef, _>(Teller);
    }
}

mod operation_left_out {
    use crate::bank::{AccountRef, Accounts, Office};

    struct Branch;

    impl Office for Branch {
        fn open(&self, _: &str) -> Result<Option<AccountRef>, ironorb::SystemException> {
            Ok(None)
        }
    }
}

mod not_wrapped_as_deferred {
    use crate::bank::{DeferredOffice, AccountRef, Accounts, OfficeRef};
    use ironorb::generated::Reply;

    struct Later;

    impl DeferredOffice for Later {
        fn open(&self, _: &str, _: Reply<Option<AccountRef>, ironorb::SystemException>) {}
        fn all(&self, _: &[Option<AccountRef>], _: Reply<Accounts, ironorb::SystemException>) {}
    }

    fn activate(poa: &ironorb::Poa) {
        let _ = poa.activate::<OfficeRef, _>(Later);
    }
}

mod servant_in_place_of_reference {
    struct Teller;

    fn narrow(object: &ironorb::ObjectRef) {
        let _ = object.narrow::<Teller>();
    }
}

mod reference_of_another_interface {
    use crate::bank::{Account, AccountRef, OfficeRef};

    fn transfer(from: &AccountRef, office: &OfficeRef) {
        let _ = from.transfer(Some(office), 5, "rent");
    }
}

mod bound_on_another_interface {
    use crate::bank::{Account, OfficeRef};
    use ironorb::generated::RefTo;

    fn total(account: &impl RefTo<dyn Account>) {}

    fn ask(office: &OfficeRef) {
        total(office);
    }
}

mod untyped_reference {
    use crate::bank::Account;

    fn pay(object: &ironorb::ObjectRef) {
        let _ = object.deposit(5);
    }
}

mod trait_not_in_scope {
    fn pay(account: &crate::bank::AccountRef) {
        let _ = account.deposit(5);
    }
}

mod nil_not_looked_at {
    use crate::bank::{Account, Office, OfficeRef};

    fn pay(office: &OfficeRef) -> Result<(), ironorb::SystemException> {
        let _ = office.open("me")?.balance();
        Ok(())
    }
}

mod not_of_idl {
    fn write(w: &mut ironorb::giop::Writer<'_>) {
        let _ = w.put(&5_usize);
    }
}

mod error_of_another_kind {
    use crate::bank::account::DepositError;

    fn log() -> Result<(), DepositError> {
        std::fs::read("log")?;
        Ok(())
    }
}

mod slice_in_place_of_ownable {
    fn send(shop: &crate::depot::ShopRef, data: &Vec<u8>) {
        use crate::depot::Store;
        let _ = shop.put("it", data);
    }
}

mod servant_takes_a_slice {
    struct Shelf;

    impl crate::depot::DeferredStore for Shelf {
        fn put(&self, _: &str, data: &[u8], _: ironorb::generated::Reply<(), ironorb::SystemException>) {}
    }
}

mod kept_without_owning {
    struct Shelf(std::sync::Mutex<Vec<ironorb::OwnedSlice<u8>>>);

    impl Shelf {
        fn put(&self, data: ironorb::Ownable<'_, u8>) {
            self.0.lock().unwrap().push(data);
        }
    }
}
