//! Calls the account of the server.

use hello::bank::{self, Account};
use ironorb::Orb;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::init()?;
    let account: bank::AccountRef = orb.resolve("corbaloc::1.2@127.0.0.1:2810/account")?;
    println!("balance {}", account.deposit(100)?);
    account.set_owner("Grażyna")?;
    println!("owner {}", account.owner()?);
    account.note("hello from the client")?;
    match account.withdraw(1000) {
        Err(bank::account::WithdrawError::InsufficientFunds(e)) => println!("missing {}", e.missing),
        other => println!("{other:?}"),
    }
    println!("balance {}", account.balance()?);
    Ok(())
}
