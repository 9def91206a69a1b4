//! Serves one account until it is killed.

use hello::{Vault, bank};
use ironorb::{Orb, TypedRef};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:2810")?.build()?;
    let account: bank::AccountRef = orb.root_poa().activate(Vault::default())?;
    orb.bind_key("account", account.object())?;
    println!("serving corbaloc::1.2@127.0.0.1:2810/account");
    orb.run()?;
    Ok(())
}
