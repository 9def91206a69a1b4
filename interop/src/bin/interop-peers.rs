//! Builds the peers of all ORBs where that has not been done.

use ironorb_interop::peer::Peer;

fn main() {
    for peer in Peer::ALL {
        println!("{} {}", peer.name(), peer.build().display());
    }
}
