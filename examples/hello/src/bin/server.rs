//! Serves one account under the name `bank/main`.

use std::sync::Mutex;

use hello::bank::{self, account::WithdrawError};
use ironorb::{Orb, SystemException};

#[derive(Default)]
struct Vault {
    balance: Mutex<i64>,
}

impl bank::Account for Vault {
    fn balance(&self) -> Result<i64, SystemException> {
        Ok(*self.balance.lock().unwrap())
    }

    fn deposit(&self, amount: i64) -> Result<i64, SystemException> {
        let mut balance = self.balance.lock().unwrap();
        *balance += amount;
        Ok(*balance)
    }

    fn withdraw(&self, amount: i64) -> Result<i64, WithdrawError> {
        let mut balance = self.balance.lock().unwrap();
        if *balance < amount {
            return Err(bank::InsufficientFunds { missing: amount - *balance }.into());
        }
        *balance -= amount;
        Ok(*balance)
    }

    fn note(&self, text: &str) -> Result<(), SystemException> {
        println!("note: {text}");
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let account: bank::AccountRef = orb.root_poa().activate(Vault::default())?;
    orb.naming()?.rebind("bank/main", &account)?;
    println!("serving bank/main");
    orb.run()?;
    Ok(())
}
