//! Builds the peers of all ORBs, where they are not built yet.

use ironorb_interop::peer::Peer;

fn main() {
    for peer in Peer::ALL {
        println!("{} {}", peer.name(), peer.build().display());
    }
}
