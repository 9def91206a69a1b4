//! The thread that writes: calls hand over what has ended and go on.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ironorb_model::record::{CallId, Head, RecordWriter};

use crate::calls::{EndedCall, EndedRequest};

/// Calls and requests that may wait to be written. Worst case: some 400 octets each, and the bodies of a bridge.
pub const QUEUE_CALLS: usize = 8_192;

/// Octets of bodies that may wait to be written.
pub const BODIES_OCTETS_MAX: usize = 16 << 20;

/// A program that is killed loses what it recorded in this time.
const FLUSH_AFTER: Duration = Duration::from_millis(200);

/// Recordings of this process that have not ended.
static OPEN: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

pub(crate) fn wait_for_ends(longest: Duration) -> bool {
    let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = ENDED.wait_timeout_while(open, longest, |open| *open > 0);
    *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
}

/// What has been recorded so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Calls and requests that have been written.
    pub written: u64,
    /// Those that have not been and will not be: the disk did not keep up, or failed.
    pub dropped: u64,
}

/// Where ended calls wait.
#[derive(Debug)]
pub(crate) struct Queue {
    /// `None` when it is being dropped.
    sender: Option<SyncSender<Ended>>,
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
    head: Head,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Shared {
    written: AtomicU64,
    dropped: AtomicU64,
    body_octets: AtomicUsize,
    has_failed: AtomicBool,
}

#[derive(Debug)]
enum Ended {
    Call(Box<EndedCall>),
    Request(Box<EndedRequest>),
    Flush(SyncSender<()>),
}

impl Queue {
    pub(crate) fn begin(file: File, path: &Path, head: Head) -> io::Result<Queue> {
        let out = BufWriter::with_capacity(64 << 10, file);
        let mut writer = RecordWriter::begin(out, &head)?;
        writer.flush()?; // an error shows now
        let (sender, receiver) = sync_channel(QUEUE_CALLS);
        let shared = Arc::new(Shared::default());
        let writing = Writing { writer: Some(writer), path: path.to_owned(), shared: shared.clone() };
        let thread = thread::Builder::new().name("ironorb-record".to_owned());
        let thread = thread.spawn(move || writing.run(&receiver))?;
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        let (writer, next) = (Mutex::new(Some(thread)), AtomicU64::new(1));
        Ok(Queue { sender: Some(sender), shared, writer, head, next })
    }

    /// A number for a call or a request that begins.
    pub(crate) fn number(&self) -> CallId {
        CallId { recording: self.head.id, number: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// Nanoseconds since the recording began, of a moment of the host's clock.
    pub(crate) fn since_begin(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.head.monotonic_ns)
    }

    pub(crate) fn call(&self, mut call: EndedCall) {
        let octets = call.body_octets();
        if octets > 0
            && self.shared.body_octets.fetch_add(octets, Ordering::Relaxed) + octets > BODIES_OCTETS_MAX
        {
            self.shared.body_octets.fetch_sub(octets, Ordering::Relaxed);
            call.bodies = None;
        }
        self.put(Ended::Call(Box::new(call)));
    }

    pub(crate) fn request(&self, request: EndedRequest) {
        self.put(Ended::Request(Box::new(request)));
    }

    /// Counts a call that is not recorded.
    pub(crate) fn drop_one(&self) {
        self.shared.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn totals(&self) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Totals { written: read(&self.shared.written), dropped: read(&self.shared.dropped) }
    }

    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        if let Some(sender) = &self.sender
            && sender.send(Ended::Flush(done)).is_ok()
        {
            let _the_writer_has_ended = is_done.recv();
        }
    }

    fn put(&self, ended: Ended) {
        let Some(sender) = &self.sender else { return };
        if let Err(TrySendError::Full(ended) | TrySendError::Disconnected(ended)) = sender.try_send(ended) {
            if let Ended::Call(call) = ended {
                self.shared.body_octets.fetch_sub(call.body_octets(), Ordering::Relaxed);
            }
            self.drop_one();
        }
    }
}

/// The recording ends: what waits is written.
impl Drop for Queue {
    fn drop(&mut self) {
        drop(self.sender.take());
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            let _it_has_told = writer.join();
        }
        *OPEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_all();
    }
}

/// What the writing thread has.
struct Writing {
    /// `None` after a failure.
    writer: Option<RecordWriter<BufWriter<File>>>,
    path: PathBuf,
    shared: Arc<Shared>,
}

impl Writing {
    fn run(mut self, ended: &Receiver<Ended>) {
        let mut flushed = Instant::now();
        loop {
            match ended.recv_timeout(FLUSH_AFTER) {
                Ok(ended) => self.write(&ended),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Also while calls never stop.
            if flushed.elapsed() >= FLUSH_AFTER {
                self.flush();
                flushed = Instant::now();
            }
        }
        self.flush();
        if let Some(writer) = self.writer.take()
            && let Err(e) = writer.end()
        {
            self.fail(&e);
        }
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            self.tell(format_args!("{dropped} calls were not recorded"));
        }
    }

    fn write(&mut self, ended: &Ended) {
        let Some(writer) = &mut self.writer else {
            match ended {
                Ended::Flush(done) => {
                    let _ = done.send(());
                }
                Ended::Call(_) | Ended::Request(_) => {
                    self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            return;
        };
        let written = match ended {
            Ended::Call(call) => {
                let written = writer.call(&call.seen());
                self.shared.body_octets.fetch_sub(call.body_octets(), Ordering::Relaxed);
                written
            }
            Ended::Request(request) => writer.served(&request.seen()),
            Ended::Flush(done) => {
                self.flush();
                let _ = done.send(());
                return;
            }
        };
        match written {
            Ok(()) => {
                self.shared.written.fetch_add(1, Ordering::Relaxed);
            }
            Err(e) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                self.fail(&e);
            }
        }
    }

    fn flush(&mut self) {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if let Some(writer) = &mut self.writer
            && let Err(e) = writer.dropped(dropped).and_then(|()| writer.flush())
        {
            self.fail(&e);
        }
    }

    /// Gives up writing. The program goes on.
    fn fail(&mut self, e: &io::Error) {
        self.writer = None;
        if !self.shared.has_failed.swap(true, Ordering::Relaxed) {
            self.tell(format_args!("calls are no longer recorded: {e}"));
        }
    }

    fn tell(&self, what: std::fmt::Arguments<'_>) {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "ironorb-record: {}: {what}", self.path.display());
    }
}
