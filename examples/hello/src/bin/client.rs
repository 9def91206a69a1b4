//! Finds the account by name and calls it.

use hello::bank::{self, Account, account::WithdrawError};
use ironorb::Orb;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::init()?;
    let account: bank::AccountRef = orb.resolve("corbaname:rir:#bank/main")?;
    println!("balance after the deposit: {}", account.deposit(100)?);
    account.note("hello from the client")?;
    match account.withdraw(1000) {
        Ok(balance) => println!("balance after the withdrawal: {balance}"),
        Err(WithdrawError::InsufficientFunds(e)) => println!("missing: {}", e.missing),
        Err(e) => return Err(e.into()),
    }
    println!("balance: {}", account.balance()?);
    Ok(())
}
