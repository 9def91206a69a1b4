//! The five-minute guide: what `idl/bank.idl` becomes, and a servant for it.

#![allow(missing_docs)] // of the generated code's helpers

ironorb::include_idl!("bank");

use std::sync::Mutex;

use bank::account::WithdrawError;
use ironorb::SystemException;

/// An account in memory.
#[derive(Debug, Default)]
pub struct Vault {
    balance: Mutex<i64>,
    owner: Mutex<String>,
}

impl bank::Account for Vault {
    fn balance(&self) -> Result<i64, SystemException> {
        Ok(*self.balance.lock().unwrap())
    }

    fn owner(&self) -> Result<String, SystemException> {
        Ok(self.owner.lock().unwrap().clone())
    }

    fn set_owner(&self, owner: &str) -> Result<(), SystemException> {
        *self.owner.lock().unwrap() = owner.to_owned();
        Ok(())
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
