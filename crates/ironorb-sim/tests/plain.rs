//! Programs without an ORB: the standard library in virtual time.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use ironorb_sim::{Fault, Faults, Link, Sender, Sim};
use ironorb_threads::{Class, Thread};

#[ironorb_sim::test(seeds = 3)]
fn time_passes_only_when_nothing_else_can(sim: &mut Sim) {
    let host = sim.host("host", || {});
    let took = sim.on(&host, || {
        let begun = Instant::now();
        thread::sleep(Duration::from_secs(86_000));
        begun.elapsed()
    });
    assert!((Duration::from_secs(86_000)..Duration::from_secs(86_001)).contains(&took), "{took:?}");
}

#[ironorb_sim::test(seeds = 20)]
fn threads_locks_and_channels_work(sim: &mut Sim) {
    let host = sim.host("host", || {});
    let sum = sim.on(&host, || {
        let total = Arc::new((Mutex::new(0), Condvar::new()));
        let (send, receive) = mpsc::channel();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (total, send) = (total.clone(), send.clone());
                thread::spawn(move || {
                    for _ in 0..10 {
                        *total.0.lock().unwrap() += number;
                        thread::sleep(Duration::from_millis(number));
                    }
                    total.1.notify_all();
                    send.send(number).unwrap();
                })
            })
            .collect();
        drop(send);
        let mut sum = total.0.lock().unwrap();
        while *sum < 280 {
            sum = total.1.wait_timeout(sum, Duration::from_secs(1)).unwrap().0;
        }
        drop(sum);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        receive.iter().sum::<u64>()
    });
    assert_eq!(sum, 28);
}

fn echo() {
    let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
    for client in listener.incoming() {
        let mut client = client.unwrap();
        thread::spawn(move || {
            let mut octets = [0; 4_096];
            while let Ok(count @ 1..) = client.read(&mut octets) {
                client.write_all(&octets[..count]).unwrap();
            }
        });
    }
}

#[ironorb_sim::test(seeds = 10)]
fn streams_carry_all_that_is_sent(sim: &mut Sim) {
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.on(&client, || {
        let mut stream = TcpStream::connect("server:7000").unwrap();
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| (number * 7) as u8).collect();
        let mut writing = stream.try_clone().unwrap();
        let octets = sent.clone();
        let writer = thread::spawn(move || writing.write_all(&octets).unwrap());
        let mut come = vec![0; sent.len()];
        stream.read_exact(&mut come).unwrap();
        writer.join().unwrap();
        assert!(come == sent);
    });
    // 1 MB at 1 Gbit/s, there and back.
    assert!(sim.elapsed() > Duration::from_millis(8), "{:?}", sim.elapsed());
    assert!(sim.elapsed() < Duration::from_secs(2), "{:?}", sim.elapsed());
}

#[ironorb_sim::test(seeds = 3)]
fn a_killed_program_closes_and_a_crashed_host_is_silent(sim: &mut Sim) {
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    let connect = || TcpStream::connect("server:7000");
    let mut stream = sim.on(&client, connect).unwrap();
    sim.kill(&server);
    sim.on(&client, move || assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0));
    let refused = sim.on(&client, connect).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    let mut stream = sim.on(&client, connect).unwrap();
    sim.crash(&server);
    let silence = sim.on(&client, move || {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let kind = stream.read(&mut [0; 8]).unwrap_err().kind();
        (kind, stream)
    });
    assert_eq!(silence.0, std::io::ErrorKind::WouldBlock);
    sim.start(&server);
    let mut stream = silence.1;
    let reset = sim.on(&client, move || {
        stream.write_all(b"is anybody there").unwrap();
        stream.read(&mut [0; 8]).unwrap_err().kind()
    });
    assert_eq!(reset, std::io::ErrorKind::ConnectionReset);
}

#[ironorb_sim::test(seeds = 3)]
fn what_is_sent_over_a_cut_link_arrives_when_it_is_joined(sim: &mut Sim) {
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000")).unwrap();
    sim.cut(&server, &client);
    let sent = sim.elapsed();
    stream.write_all(b"hello").unwrap();
    sim.run_for(Duration::from_secs(10));
    sim.join(&server, &client);
    let mut stream = sim.on(&client, move || {
        let mut octets = [0; 5];
        stream.read_exact(&mut octets).unwrap();
        assert_eq!(&octets, b"hello");
        stream
    });
    assert!(sim.elapsed() - sent >= Duration::from_secs(10));
    let _ = stream.write(b"end");
}

#[ironorb_sim::test(seeds = 2)]
fn clocks_of_hosts_may_differ(sim: &mut Sim) {
    let right = sim.host("right", || {});
    let fast = sim.host("fast", || {});
    sim.set_clock_ahead(&fast, Duration::from_secs(3_600));
    let here = sim.on(&right, SystemTime::now);
    let there = sim.on(&fast, SystemTime::now);
    assert!(there.duration_since(here).unwrap() >= Duration::from_secs(3_600));
    sim.set_clock_behind(&fast, Duration::from_secs(3_600));
    let (here, there) = (sim.on(&right, SystemTime::now), sim.on(&fast, SystemTime::now));
    let behind = here.duration_since(there).unwrap();
    assert!(behind > Duration::from_secs(3_599), "{behind:?}");
}

/// A seed sets clocks wrong, either way, and right again.
#[ironorb_sim::test(seeds = 20)]
fn clocks_go_wrong_by_seed_and_are_set_right(sim: &mut Sim) {
    const AT_MOST: Duration = Duration::from_secs(60);
    let host = sim.host("host", || {});
    let begin = sim.on(&host, SystemTime::now);
    let began = sim.elapsed();
    let faults = Faults::within(Duration::ZERO..Duration::from_secs(5), 4).skewing([&host], AT_MOST);
    sim.plan(&faults);
    let mut wrong = Duration::ZERO;
    while sim.elapsed() < Duration::from_secs(8) {
        sim.run_for(Duration::from_millis(100));
        let right = begin + (sim.elapsed() - began);
        let shown = sim.on(&host, SystemTime::now);
        let error = shown.duration_since(right).unwrap_or_else(|e| e.duration());
        wrong = wrong.max(error);
        assert!(error < AT_MOST + Duration::from_millis(1), "{error:?}");
    }
    let right = begin + (sim.elapsed() - began);
    let left = sim.on(&host, SystemTime::now).duration_since(right).unwrap();
    assert!(left < Duration::from_millis(1), "{left:?} after {wrong:?}");
}

/// Writes a file of two pages, syncs the first, and goes on writing until it is stopped.
fn write_pages(path: &std::path::Path) {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::options().create(true).truncate(true).write(true).open(path).unwrap();
    file.write_all_at(&[1; 4_096], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 4_096], 4_096).unwrap();
    file.write_all_at(&[3; 100], 10).unwrap();
    thread::sleep(Duration::from_secs(1_000_000));
}

/// A kill loses nothing that was written; a loss of power may lose what was not synced, and nothing else.
#[ironorb_sim::test(seeds = 30)]
fn a_crash_loses_what_was_not_synced(sim: &mut Sim) {
    let path =
        std::env::temp_dir().join(format!("ironorb-sim-disk-{}-{}", sim.seed(), sim.elapsed().as_nanos()));
    let written = path.clone();
    let host = sim.host("host", move || write_pages(&written));
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    sim.kill(&host);
    let all = std::fs::read(&path).unwrap();
    assert_eq!((all.len(), all[10], all[4_096]), (8_192, 3, 2));
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    sim.crash(&host);
    let left = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        left[..4_096]
            .iter()
            .enumerate()
            .all(|(at, &octet)| octet == 1 || octet == 3 && (10..110).contains(&at))
    );
    assert!(left[4_096..].iter().all(|&octet| octet == 2));
    assert!(matches!(left.len() - 4_096, 0 | 512..=4_096));
    println!("{} octets left", left.len());
}

/// What was written and closed and not synced may be lost, and what opening a file cuts off may be there again.
#[ironorb_sim::test(seeds = 5)]
fn files_that_nobody_has_synced_are_lost_or_not(sim: &mut Sim) {
    let folder = std::env::temp_dir().join(format!("ironorb-sim-files-{}", sim.seed()));
    fs::create_dir_all(&folder).unwrap();
    let within = folder.clone();
    let path = move |number: u32| within.join(number.to_string());
    for number in 0..20 {
        let mut file = File::create(path(number)).unwrap();
        file.write_all(b"old").unwrap();
        // Another descriptor of the file syncs it as well.
        file.try_clone().unwrap().sync_all().unwrap();
    }
    let written = path.clone();
    let host =
        sim.host("host", move || (0..20).for_each(|number| fs::write(written(number), "new").unwrap()));
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    let contents =
        || -> Vec<String> { (0..20).map(|number| fs::read_to_string(path(number)).unwrap()).collect() };
    sim.kill(&host);
    assert!(contents().iter().all(|text| text == "new"));
    sim.crash(&host);
    let left = contents();
    fs::remove_dir_all(&folder).unwrap();
    assert!(left.iter().all(|text| ["old", "", "new"].contains(&&**text)), "{left:?}");
    assert!(left.iter().any(|text| text == "old") && left.iter().any(|text| text == "new"), "{left:?}");
}

/// A file that its program cannot read goes back to what was synced.
#[ironorb_sim::test(seeds = 10)]
fn what_was_synced_is_not_lost_with_what_overwrites_it(sim: &mut Sim) {
    let path = std::env::temp_dir().join(format!("ironorb-sim-log-{}", sim.seed()));
    let written = path.clone();
    let host = sim.host("host", move || {
        let mut file = File::create(&written).unwrap();
        file.write_all(b"synced").unwrap();
        file.sync_all().unwrap();
        drop(file);
        File::options().write(true).open(&written).unwrap().write_all(b"SYN").unwrap();
        File::options().append(true).open(&written).unwrap().write_all(b", more").unwrap();
    });
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    sim.crash(&host);
    let left = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(["synced", "SYNced", "synced, more", "SYNced, more"].contains(&&*left), "{left}");
}

/// The program of a server that keeps all that its only client sends.
fn hear_one(heard: &Arc<Mutex<String>>) -> impl Fn() + Send + Sync + 'static {
    let heard = heard.clone();
    move || {
        let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
        let mut all = String::new();
        client.read_to_string(&mut all).unwrap();
        *heard.lock().unwrap() = all;
    }
}

/// What was under way when a link was cut comes before what was sent later.
#[ironorb_sim::test(seeds = 5)]
fn octets_keep_their_order_over_a_cut(sim: &mut Sim) {
    let heard: Arc<Mutex<String>> = Arc::default();
    let server = sim.host("server", hear_one(&heard));
    let client = sim.host("client", || {});
    sim.set_link(&server, &client, far());
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000")).unwrap();
    stream.write_all(b"first, ").unwrap();
    sim.run_for(Duration::from_millis(1));
    sim.cut(&server, &client);
    stream.write_all(b"second, ").unwrap();
    sim.run_for(Duration::from_millis(20));
    stream.write_all(b"third").unwrap();
    drop(stream);
    sim.run_for(Duration::from_millis(20));
    sim.join(&server, &client);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(*heard.lock().unwrap(), "first, second, third");
}

/// A program that starts while a link is cut does not change the order of what is under way there.
#[ironorb_sim::test(seeds = 3)]
fn octets_keep_their_order_over_a_start_within_a_cut(sim: &mut Sim) {
    let heard: Arc<Mutex<String>> = Arc::default();
    let server = sim.host("server", hear_one(&heard));
    let other = sim.process(&server, "other", || {});
    let client = sim.host("client", || {});
    sim.set_link(&server, &client, far());
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000")).unwrap();
    stream.write_all(b"first, ").unwrap();
    sim.run_for(Duration::from_millis(3));
    stream.write_all(b"second, ").unwrap();
    sim.run_for(Duration::from_millis(1));
    sim.cut(&server, &client);
    stream.write_all(b"third").unwrap();
    drop(stream);
    // The first has come to the cut after 5 ms, the second comes there after 8.
    sim.run_for(Duration::from_millis(2));
    sim.start(&other);
    sim.run_for(Duration::from_millis(20));
    sim.join(&server, &client);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(*heard.lock().unwrap(), "first, second, third");
}

/// What a host has sent and what is held up is lost with its power: nobody sends it again. Its next life answers with a reset.
#[ironorb_sim::test(seeds = 3)]
fn what_is_held_up_is_lost_when_its_sender_loses_power(sim: &mut Sim) {
    let heard: Arc<Mutex<(String, Option<ErrorKind>)>> = Arc::default();
    let of_server = heard.clone();
    let server = sim.host("server", move || {
        let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
        let mut answering = client.try_clone().unwrap();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(40));
            answering.write_all(b"answer").unwrap();
        });
        let mut octets = [0; 100];
        let mut read =
            || client.read(&mut octets).map(|count| String::from_utf8_lossy(&octets[..count]).into_owned());
        loop {
            match read() {
                Ok(text) => of_server.lock().unwrap().0.push_str(&text),
                Err(e) => return of_server.lock().unwrap().1 = Some(e.kind()),
            }
        }
    });
    let client = sim.host("client", || {});
    sim.set_link(&server, &client, far());
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000")).unwrap();
    stream.write_all(b"first").unwrap();
    sim.run_for(Duration::from_millis(10));
    stream.write_all(b", second").unwrap();
    sim.run_for(Duration::from_millis(1));
    sim.cut(&server, &client);
    stream.write_all(b", third").unwrap();
    sim.run_for(Duration::from_millis(1));
    sim.crash(&client);
    std::mem::forget(stream); // the crash has closed it
    // The second comes to the cut now.
    sim.run_for(Duration::from_millis(50));
    sim.start(&client);
    sim.join(&server, &client);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(*heard.lock().unwrap(), ("first".to_owned(), Some(ErrorKind::ConnectionReset)));
}

/// A link of 5 ms.
fn far() -> Link {
    Link { latency: Duration::from_millis(5), ..Link::WITHIN_A_HOST }
}

/// A client that gives up while it connects leaves no connection at which its server waits for ever.
#[ironorb_sim::test(seeds = 5)]
fn who_gives_up_connecting_is_gone_at_the_server(sim: &mut Sim) {
    let heard: Arc<Mutex<Option<Result<usize, ErrorKind>>>> = Arc::default();
    let of_server = heard.clone();
    let server = sim.host("server", move || {
        let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
        let read = client.read(&mut [0]).map_err(|e| e.kind());
        *of_server.lock().unwrap() = Some(read);
    });
    let client = sim.host("client", || {});
    sim.set_link(&server, &client, far());
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    sim.on(&client, || {
        let address = "server:7000".to_socket_addrs().unwrap().next().unwrap();
        // The server knows of it after 5 ms, and the client would after 10.
        let error = TcpStream::connect_timeout(&address, Duration::from_millis(7)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    });
    sim.run_for(Duration::from_secs(1));
    assert_eq!(*heard.lock().unwrap(), Some(Err(ErrorKind::ConnectionReset)));
}

/// A client asks again until its server answers, as TCP does: after 1, 3 and 7 seconds.
#[ironorb_sim::test(seeds = 3)]
fn a_connection_is_there_soon_after_its_link(sim: &mut Sim) {
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    sim.cut(&server, &client);
    sim.inflict_after(Duration::from_secs(5), &Fault::Join(server.clone(), client.clone()));
    let connect = || {
        let begun = Instant::now();
        let connected = TcpStream::connect("server:7000").map(drop);
        (connected.map_err(|e| e.kind()), begun.elapsed())
    };
    let (connected, took) = sim.on(&client, connect);
    assert_eq!(connected, Ok(()));
    assert!((Duration::from_secs(7)..Duration::from_millis(7_001)).contains(&took), "{took:?}");
    sim.cut(&server, &client);
    let (connected, took) = sim.on(&client, connect);
    assert_eq!(connected, Err(ErrorKind::TimedOut));
    assert!((Duration::from_secs(127)..Duration::from_millis(127_001)).contains(&took), "{took:?}");
}

/// Time passes and others run while programs ask again and again without waiting, with or without an eye on the clock.
#[ironorb_sim::test(seeds = 10)]
#[expect(unsafe_code, reason = "`poll` of the C library, which the standard library does not have")]
fn programs_that_poll_hear_of_what_comes(sim: &mut Sim) {
    fn until_there<T>(mut ask: impl FnMut() -> std::io::Result<T>) -> T {
        loop {
            match ask() {
                Ok(there) => return there,
                Err(e) => assert_eq!(e.kind(), ErrorKind::WouldBlock),
            }
        }
    }
    sim.set_preemption(0.0);
    let server = sim.host("server", || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (mut client, _) = until_there(|| listener.accept());
        client.set_nonblocking(true).unwrap();
        let mut octets = [0; 2];
        for octet in &mut octets {
            until_there(|| client.read(std::slice::from_mut(octet)));
            client.write_all(&[*octet]).unwrap();
        }
        // All that there is room for, and again as soon as there is room for more.
        let mut left = 500_000;
        while left > 0 {
            left -= until_there(|| client.write(&[0; 500_000][..left]));
        }
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.on(&client, || {
        let mut stream = TcpStream::connect("server:7000").unwrap();
        stream.set_nonblocking(true).unwrap();
        let begun = Instant::now();
        stream.write_all(&[1]).unwrap();
        until_there(|| {
            assert!(begun.elapsed() < Duration::from_millis(1), "others do not run");
            stream.read(&mut [0])
        });
        stream.write_all(&[2]).unwrap();
        let mut entry = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: it is one entry.
        while unsafe { libc::poll(&raw mut entry, 1, 0) } == 0 {}
        stream.read_exact(&mut [0]).unwrap();
        let mut left = 500_000;
        while left > 0 {
            left -= until_there(|| stream.read(&mut [0; 10_000]));
        }
    });
    assert!(sim.elapsed() < Duration::from_millis(10), "{:?}", sim.elapsed());
}

/// Who has filled a socket hears of room, told before that there is none or not.
#[ironorb_sim::test(seeds = 3)]
#[expect(unsafe_code, reason = "`poll` of the C library, which the standard library does not have")]
fn who_fills_a_socket_hears_of_room(sim: &mut Sim) {
    let server = sim.host("server", || {
        let (mut client, _) = TcpListener::bind("0.0.0.0:7000").unwrap().accept().unwrap();
        thread::sleep(Duration::from_secs(1));
        client.read_exact(&mut [0; 100_000]).unwrap();
        thread::sleep(Duration::from_secs(1));
    });
    let client = sim.host("client", || {});
    sim.start(&server);
    sim.run_for(Duration::from_millis(1));
    sim.on(&client, || {
        let mut stream = TcpStream::connect("server:7000").unwrap();
        stream.set_nonblocking(true).unwrap();
        let sent = stream.write(&[0; 300_000]).unwrap();
        assert!(sent < 300_000, "{sent}");
        let mut entry = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: it is one entry.
        let ready = unsafe { libc::poll(&raw mut entry, 1, 10_000) };
        assert_eq!((ready, entry.revents), (1, libc::POLLOUT));
    });
}

#[ironorb_sim::test(seeds = 1)]
fn a_program_that_was_paused_runs_after_its_host_has_lost_power(sim: &mut Sim) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let host = sim.host("host", move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    sim.pause(&host);
    sim.crash(&host);
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// The mend of a crash starts all programs that ran on the host, and no other, whichever of them the crash names.
#[ironorb_sim::test(seeds = 10)]
fn all_that_ran_on_a_host_runs_again_after_its_crash(sim: &mut Sim) {
    let starts: [Arc<AtomicU32>; 4] = Default::default();
    let program = |number: usize, takes: u64| {
        let starts = starts[number].clone();
        move || {
            starts.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_secs(takes));
        }
    };
    let host = sim.host("host", program(0, 1_000));
    let second = sim.process(&host, "second", program(1, 1_000));
    let short = sim.process(&host, "short", program(2, 0));
    sim.process(&host, "never", program(3, 1_000));
    [&host, &second, &short].into_iter().for_each(|process| sim.start(process));
    sim.run_for(Duration::from_secs(1));
    sim.plan(&Faults::within(Duration::ZERO..Duration::from_secs(1), 1).crashing([&second]));
    sim.run_for(Duration::from_secs(5));
    let starts = starts.each_ref().map(|count| count.load(Ordering::Relaxed));
    // A seed has one crash or none.
    assert!(matches!(starts, [1, 1, 1, 0] | [2, 2, 1, 0]), "{starts:?}");
}

/// Programs start when the test's thread lets them. What befalls them before counts.
#[ironorb_sim::test(seeds = 1)]
fn a_program_that_is_killed_before_it_starts_does_not_start(sim: &mut Sim) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = count.clone();
    let host = sim.host("host", move || {
        counted.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(1_000));
    });
    sim.start(&host);
    sim.run_for(Duration::from_secs(1));
    sim.inflict_after(Duration::from_secs(1), &Fault::Start(host.clone()));
    sim.inflict_after(Duration::from_secs(2), &Fault::Start(host.clone()));
    thread::sleep(Duration::from_secs(3));
    sim.run_for(Duration::from_secs(1));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    sim.inflict_after(Duration::from_secs(1), &Fault::Start(host.clone()));
    sim.inflict_after(Duration::from_secs(2), &Fault::Kill(host.clone()));
    thread::sleep(Duration::from_secs(3));
    sim.run_for(Duration::from_secs(1));
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

/// A simulated host has the processors that the test gives it, whatever this machine has.
#[ironorb_sim::test(seeds = 1)]
fn programs_see_the_processors_of_their_host(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.set_cores(&host, 3);
    assert_eq!(sim.on(&host, || thread::available_parallelism().unwrap().get()), 3);
    assert!(sim.on(&host, || fs::read("/proc/self/cgroup").is_err()));
}

/// The test's thread joins its own threads whatever happens meanwhile.
#[ironorb_sim::test(seeds = 3)]
fn a_join_outlasts_what_is_told_meanwhile(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.start(&host);
    sim.inflict_after(Duration::from_secs(1), &Fault::Start(host.clone()));
    let number = thread::spawn(|| {
        thread::sleep(Duration::from_secs(3));
        7
    });
    assert_eq!(number.join().unwrap(), 7);
    assert!(sim.elapsed() >= Duration::from_secs(3));
}

/// Four threads of 10 ms each on two processors take 20 ms.
#[ironorb_sim::test(seeds = 3)]
fn threads_share_the_processors_of_their_host(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.set_cores(&host, 2);
    let took = sim.on(&host, || {
        let begun = Instant::now();
        let one = || ironorb_sim::compute(Duration::from_millis(10));
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(one)).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        begun.elapsed()
    });
    assert!((Duration::from_millis(20)..Duration::from_micros(20_100)).contains(&took), "{took:?}");
}

/// What calls of the system take is taken of processors, and so of time.
#[ironorb_sim::test(seeds = 3)]
fn calls_of_the_system_take_what_the_test_says(sim: &mut Sim) {
    let mut costs = ironorb_sim::Costs::default();
    (costs.send, costs.receive, costs.wake_up) =
        (Duration::from_micros(5), Duration::from_micros(3), Duration::from_micros(20));
    sim.set_costs(costs);
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    let took = sim.on(&client, || {
        let mut stream = TcpStream::connect("server:7000").unwrap();
        let mut round = || {
            let begun = Instant::now();
            stream.write_all(&[1]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            begun.elapsed()
        };
        round();
        round()
    });
    // Two ways of 100 us, twice 5 + 20 + 3; and some 79 octets at 1 Gbit/s each way.
    assert!((Duration::from_micros(256)..Duration::from_micros(258)).contains(&took), "{took:?}");
}

/// A paused program answers nothing and loses nothing.
#[ironorb_sim::test(seeds = 3)]
fn a_paused_program_goes_on_where_it_was(sim: &mut Sim) {
    let server = sim.host("server", echo);
    let client = sim.host("client", || {});
    sim.start(&server);
    let mut stream = sim.on(&client, || TcpStream::connect("server:7000")).unwrap();
    sim.pause(&server);
    stream.write_all(b"hello").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut stream = sim.on(&client, move || {
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        stream
    });
    sim.resume(&server);
    sim.on(&client, move || {
        let mut octets = [0; 5];
        stream.read_exact(&mut octets).unwrap();
        assert_eq!(&octets, b"hello");
    });
}

/// A thread that does nothing but read the clock is stopped by a kill as others are, and for good.
#[ironorb_sim::test(seeds = 3)]
fn a_kill_stops_threads_that_never_wait(sim: &mut Sim) {
    let count: Arc<std::sync::atomic::AtomicU64> = Arc::default();
    let counted = count.clone();
    let host = sim.host("host", move || {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        thread::sleep(Duration::from_millis(1));
        counted.fetch_add(1_000_000, std::sync::atomic::Ordering::Relaxed);
    });
    let kill = ironorb_sim::Fault::Kill(host.clone());
    sim.start(&host);
    sim.inflict_after(Duration::from_millis(5), &kill);
    sim.run_for(Duration::from_secs(1));
    let count = count.load(std::sync::atomic::Ordering::Relaxed);
    assert!((100_000..250_000).contains(&count), "{count}");
}

/// A thread of a fixed priority computes before the others of its host, and so do threads that it makes.
#[ironorb_sim::test(seeds = 3)]
fn fixed_priorities_go_first(sim: &mut Sim) {
    let host = sim.host("host", || {});
    sim.set_cores(&host, 1);
    let took = sim.on(&host, || {
        let others: Vec<_> =
            (0..3).map(|_| thread::spawn(|| ironorb_sim::compute(Duration::from_millis(50)))).collect();
        thread::sleep(Duration::from_millis(10));
        let begun = Instant::now();
        let urgent = thread::spawn(|| {
            Thread::CALLING.set_class(Class::Fifo(3)).unwrap();
            assert_eq!(Thread::CALLING.class().unwrap(), Class::Fifo(3));
            ironorb_sim::compute(Duration::from_millis(5));
            thread::spawn(|| ironorb_sim::compute(Duration::from_millis(5))).join().unwrap();
        });
        urgent.join().unwrap();
        let took = begun.elapsed();
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(Thread::CALLING.class().unwrap(), Class::Other);
        took
    });
    assert!((Duration::from_millis(10)..Duration::from_micros(10_100)).contains(&took), "{took:?}");
}

/// Links are as they are set, between hosts and within one, and tell what they have carried; connections may be there at once.
#[ironorb_sim::test(seeds = 2)]
fn links_are_set_and_observed(sim: &mut Sim) {
    let server = sim.host("server", || {
        let listener = TcpListener::bind("0.0.0.0:7000").unwrap();
        for stream in listener.incoming() {
            let mut octets = [0; 1_000];
            stream.unwrap().read_exact(&mut octets).unwrap();
        }
    });
    let client = sim.host("client", || {});
    let slow = Link { latency: Duration::from_millis(3), bandwidth: None, ..sim.link(&server, &client) };
    sim.set_default_link(slow);
    sim.set_link(&server, &server, Link { latency: Duration::from_millis(1), ..slow });
    sim.start(&server);
    sim.run_for(Duration::from_secs(1));
    sim.set_connects_at_once(true);
    let arrive = |sim: &mut Sim, from: &ironorb_sim::Host| {
        sim.on(from, || {
            let begun = ironorb_sim::elapsed();
            let mut stream = TcpStream::connect("server:7000").unwrap();
            assert_eq!(ironorb_sim::elapsed(), begun);
            stream.write_all(&[7; 1_000]).unwrap();
            Sender::this().unwrap().last_arrival().unwrap() - begun
        })
    };
    sim.restart_observation();
    assert_eq!(arrive(sim, &client), Duration::from_millis(3));
    assert_eq!(arrive(sim, &server), Duration::from_millis(1));
    let seen = sim.observe_link(&client, &server, "there".to_owned()).unwrap();
    assert_eq!((seen.name.as_str(), seen.octets), ("there", 1_000));
    sim.restart_observation();
    assert_eq!(sim.observe_link(&client, &server, String::new()).unwrap().octets, 0);
    sim.set_cores(&client, 2);
    sim.on(&client, || ironorb_sim::compute(Duration::from_millis(10)));
    let used = sim.observe_processors(&client, String::new()).utilisation;
    assert!((used - 0.5).abs() < 0.01, "one of two: {used}");
    sim.set_connects_at_once(false);
    let took = sim.on(&client, || {
        let begun = ironorb_sim::elapsed();
        let _stream = TcpStream::connect("server:7000").unwrap();
        ironorb_sim::elapsed() - begun
    });
    assert_eq!(took, Duration::from_millis(6), "a round trip");
}
