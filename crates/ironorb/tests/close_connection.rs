//! A server once sent CloseConnection while a servant was at work. CloseConnection promises that requests
//! without an answer were not carried out (CORBA 3.3 part 2, 9.4.7). So the client sent the request again,
//! and the call was refused as not carried out, or carried out twice.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use ironorb::dynamic::{DynamicError, OperationDescription, Request};
use ironorb::generated::{Call, Replied, SystemException};
use ironorb::{CompletionStatus, Orb, Servant, SystemExceptionKind};

/// A servant that reports its beginning and ends when the test lets it.
struct SlowWorker {
    begun: Sender<()>,
    may_end: Mutex<Receiver<()>>,
    calls: Arc<AtomicU32>,
}

impl Servant for SlowWorker {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:ironorb.test/Worker:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.twoway::<(), SystemException>(
            |_| {
                self.calls.fetch_add(1, Ordering::SeqCst);
                self.begun.send(()).unwrap();
                self.may_end.lock().unwrap().recv().unwrap();
                Ok(Ok(()))
            },
            |_, ()| Ok(()),
        )
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

#[test]
fn a_server_that_stops_while_a_servant_works_does_not_say_that_nothing_was_done() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let (begun, has_begun) = channel();
    let (end, may_end) = channel();
    let calls = Arc::new(AtomicU32::new(0));
    let worker = SlowWorker { begun, may_end: Mutex::new(may_end), calls: calls.clone() };
    let poa = server.root_poa();
    let id = poa.activate_object(Arc::new(worker)).unwrap();
    let ior = poa.id_to_reference(&id).unwrap().to_ior_string();

    let client = Orb::builder().no_endpoint().build().unwrap();
    let worker = client.string_to_object(&ior).unwrap();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let mut request = Request::new(&worker, OperationDescription::new("work"));
            request.invoke().map(|_| ())
        });
        has_begun.recv().unwrap();
        server.shutdown(false).unwrap();
        let outcome = caller.join().unwrap();
        end.send(()).unwrap();
        let Err(DynamicError::System(e)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((e.kind, e.completed), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{e}");
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
