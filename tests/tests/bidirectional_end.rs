//! What remains when a client leaves while its server waits for it. The test counts threads, so it has a
//! process of its own.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

use ironorb::{Orb, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::relay::Relay;
use ironorb_tests::wires::{Exchange, ExchangeAsync, ExchangeRef, Listener, ListenerRef};
use ironorb_tests::{Exchanging, Listening, eventually, raw, threads_called};

/// Twenty requests call back and get no answer. When the client closes the connection, the server's threads
/// that wait for it end although their calls have no deadline. The server then calls another client with
/// the same advertised address at once.
#[test]
fn a_client_leaves_without_answering_callbacks() {
    let silent = Arc::new(Silent::default());
    for concurrency in [
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 4 },
        ServerConcurrency::Hybrid { threads_max: 4 },
    ] {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        builder.config().bidirectional = true;
        builder.config().call_timeout = None;
        let server = builder.build().unwrap();
        let servant = Arc::new(Exchanging::default());
        let exchange: ExchangeRef = server.root_poa().activate_shared(servant.clone()).unwrap();
        let (listener, port) = raw::listen();
        drop(listener); // no process listens at its address
        let client = || {
            let mut builder = Orb::builder().no_endpoint().publish(&format!("127.0.0.1:{port}"));
            builder.config().bidirectional = true;
            builder.config().connections_per_endpoint_max = 1;
            builder.config().callback_threads_max = 20;
            builder.build().unwrap()
        };

        let first = client();
        let listener: ListenerRef = first.root_poa().activate_shared(silent.clone()).unwrap();
        let relay = Relay::to(exchange.object());
        let remote: ExchangeRef = first.resolve(&relay.ior_of(exchange.object())).unwrap();
        let pending: Vec<_> = (0..20).map(|_| remote.call_back_async(Some(&listener), 0)).collect();
        let waiting = match concurrency {
            ServerConcurrency::ThreadPerConnection => 16,
            _ => 4,
        };
        eventually("all threads wait", || silent.asked() == waiting);
        relay.cut();
        for answer in pending {
            answer.wait().unwrap_err();
        }
        eventually("the threads end", || {
            ["ironorb-helper", "ironorb-connection"].iter().all(|name| threads_called(&server, name) == 0)
        });
        eventually("the bidirectional receivers end", || threads_called(&server, "ironorb-bidir") == 0);
        // The server does not make the remaining calls: their client is gone.
        assert_eq!(servant.called_back.load(Ordering::SeqCst), waiting);

        let second = client();
        let listener: ListenerRef = second.root_poa().activate(Listening::default()).unwrap();
        let remote: ExchangeRef = second.resolve(&exchange.object().to_ior_string()).unwrap();
        assert_eq!(remote.call_back(Some(&listener), 0).unwrap(), 1);
        silent.release();
        second.shutdown(true).unwrap();
        server.shutdown(true).unwrap();
        first.shutdown(true).unwrap();
    }
}

/// Answers only after it is released.
#[derive(Default)]
struct Silent {
    asked: Mutex<usize>,
    released: Condvar,
}

impl Silent {
    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }

    fn release(&self) {
        *self.asked.lock().unwrap() = 0;
        self.released.notify_all();
    }
}

impl Listener for Silent {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        drop(self.released.wait_while(asked, |asked| *asked > 0));
        Ok(1)
    }

    fn notify(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn filled(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }
}
