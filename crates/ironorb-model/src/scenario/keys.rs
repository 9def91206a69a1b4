//! The keys of scenario files, with what they mean: the reader, its messages and the documentation take them from here.

/// A key of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The table, as `[[servers.operations]]`; empty for the keys at the beginning of the file.
    pub table: &'static str,
    /// The key.
    pub key: &'static str,
    /// What stands there, and its range.
    pub value: &'static str,
    /// What counts without it; `needed` if the file must have it.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! keys {
    ($($table:literal { $($key:literal $value:literal $default:literal $meaning:literal;)* })*) => {
        /// All keys, by table.
        pub const KEYS: &[Key] = &[$($(Key {
            table: $table, key: $key, value: $value, default: $default, meaning: $meaning,
        },)*)*];
    };
}

keys! {
    "" {
        "name" "text" "the file's name" "what reports call the scenario";
        "seed" "0 to 2^63 - 1" "1" "the seed of the first replication; the next one has the next number";
        "span" "time, 1 us to 30 days" "needed" "how long a run is observed, after its warm-up";
        "warm_up" "time up to 30 days, or `found`" "0s" "what is left out at the beginning; `found` by the rule MSER-5";
        "replications" "table" "5 to 50" "how often a run is repeated";
        "hosts" "tables" "needed" "groups of equal hosts";
        "link" "table" "a link without bound, delay and loss" "the link between hosts for which no other rule stands";
        "links" "tables" "none" "links between the hosts of two groups";
        "servers" "tables" "needed" "processes that serve";
        "classes" "tables" "needed" "clients that do the same";
        "dwell" "table" "no time" "how long each step of a call takes";
        "sweep" "table" "none" "values of other keys, by path, each a list: one scenario for each combination";
        "plan" "table" "none" "what `ironorb sim plan` may change; read there";
    }
    "[replications]" {
        "min" "1 to 1,000" "5" "at least so many runs";
        "max" "1 to 1,000" "50" "at most so many runs";
        "half_width" "share above 0 % up to 100 %" "2.5 %" "stop when each class's mean response time is known to this part of it";
        "confidence" "share, 50 % to 99.9 %" "95 %" "how sure that is to be";
    }
    "[[hosts]]" {
        "name" "text" "needed" "the group's name";
        "count" "1 to 100,000" "1" "how many hosts there are; those of all groups have at most 1,000,000 processors";
        "cores" "1 to 1,024" "1" "processors of each";
        "switch_time" "time up to 1 s" "0s" "what it takes a processor to go from one thread to another";
        "speed" "0.001 to 1,000" "1.0" "how many times as fast its processors are as those of `[dwell]` and of demands";
    }
    "[[links]]" {
        "between" "two names of host groups" "needed" "whose hosts it joins; the same name twice: the hosts of one group";
        "latency" "time up to 10 s" "0s" "how long an octet is under way";
        "jitter" "time up to 10 s" "0s" "added to the latency of each packet: from zero to this";
        "bandwidth" "bits a second, 1 bit/s to 10,000 Gbit/s" "without bound" "how fast packets leave";
        "mtu" "1 to 1,000,000 octets" "1448" "octets of payload of a packet";
        "packet_overhead" "0 to 10,000 octets" "90" "octets of headers that each packet has beside it: Ethernet, IP and TCP";
        "loss" "share up to 50 %" "0 %" "the part of packets that are lost";
        "reorder" "share up to 100 %" "0 %" "the part of packets that are overtaken by the next ones";
        "duplicate" "share up to 100 %" "0 %" "the part of packets that come twice";
        "retransmit_after" "time, 1 us to 60 s" "200ms" "when a lost packet is sent again";
        "outages" "tables" "none" "when nothing passes, in the order of time; not under `[link]`";
    }
    "[[links.outages]]" {
        "from" "time up to 30 days" "needed" "when it begins, from the beginning of a run on, its warm-up included; what is under way then arrives";
        "until" "time up to 30 days" "needed" "when it is over";
        "kind" "`cut` or `hold`" "`cut`" "what is sent meanwhile: lost, so that it leaves `retransmit_after` later than the end; or held up to the end";
    }
    "[[servers]]" {
        "name" "text" "needed" "the server's name";
        "hosts" "name of a host group" "needed" "where it runs: one process on each host of the group";
        "threads" "1 to 100,000" "one for each connection" "threads that carry out requests";
        "lanes" "tables" "none" "threads by priority, the lowest first";
        "objects" "1 to 10^15" "1" "objects of each process";
        "object_octets" "0 to 2^31" "0" "octets of state of an object";
        "lock" "`none`, `object` or `process`" "`none`" "what a request locks while it executes";
        "operations" "tables" "needed" "its operations";
    }
    "[[servers.lanes]]" {
        "priority" "0 to 32,767" "needed" "the lowest CORBA priority that it serves";
        "threads" "1 to 100,000" "needed" "its threads";
    }
    "[[servers.operations]]" {
        "name" "text" "needed" "the operation's name; on the wire it ends before a `#`";
        "kind" "`read`, `write` or `plain`" "`plain`" "whether it returns a cached attribute, changes one, or neither";
        "request_octets" "0 to 2^30" "0" "octets of its arguments";
        "reply_octets" "0 to 2^30" "0" "octets of its results";
        "oneway" "true or false" "false" "whether nothing is answered";
        "demand" "distribution of times" "0s" "what the servant computes, or sleeps";
        "sleeps" "true or false" "false" "whether the servant sleeps (a station) instead of taking a processor";
        "calls" "tables" "none" "calls that the servant makes before it answers, one after the other; at most 256 operations may each call the next";
    }
    "a call" {
        "call" "`server.operation`" "needed" "what is called";
        "times" "1 to 1,000,000" "1" "how often, one after the other";
        "target" "`random`, `robin` or `{ object = 7 }`" "`random`" "which object: a random one of a random process, all in turn, or this one of the first process";
    }
    "[[classes]]" {
        "name" "text" "needed" "the class's name";
        "hosts" "name of a host group" "needed" "where its clients run, spread evenly: one process on each host";
        "clients" "1 to 10,000,000" "" "a closed class: so many clients, each of which thinks between its cycles";
        "think" "distribution of times" "0s" "how long they think";
        "between" "distribution of times" "" "an open class: cycles begin at these distances; `{ exponential = \"1 ms\" }` is a Poisson process";
        "burst" "1 to 1,000,000" "1" "how many cycles of an open class begin together";
        "trace" "list of times, in order" "" "cycles begin at these times";
        "priority" "0 to 32,767" "none" "the CORBA priority of its calls and threads";
        "mix" "tables" "needed" "what a cycle does: one of these";
        "choice" "`random` or `in-turn`" "`random`" "which of them: by weight, or one after the other";
        "cache" "table" "none" "what its proxies cache";
    }
    "[[classes.mix]]" {
        "weight" "10^-9 to 10^9" "1.0" "how often this one comes";
        "calls" "tables" "" "calls, one after the other";
        "job" "`sequential`, `handle-driven`, `forwarding` or `synchronous`" "" "a job of several calls at once, and how it runs";
        "parts" "tables" "" "the calls of the job";
        "daemon" "name of a server" "" "the daemon and agent of the job; its threads run jobs";
    }
    "[classes.cache]" {
        "lag" "time up to 1 hour" "needed" "how stale a read may be";
        "capacity" "share up to 100 %" "100 %" "the part of the objects that fits";
        "update_octets" "1 to 1,000,000" "needed" "octets of an update in a message; with mode `asked` 28 of them stand before its values";
        "mode" "`bounded`, `push`, `linearizable` or `asked`" "`bounded`" "how updates leave: together, at once, at once with writes that wait for the holders, or when holders ask, as the ORB's own caching proxies do";
        "carried_probes" "0 to 255" "16" "of mode `asked`: how many calls ask with their requests after a read that had to ask their server";
        "warm" "true or false" "true" "of mode `asked`: whether all that fits is held from the beginning; else the first read of an object asks for its state";
    }
    "[dwell]" {
        "profile" "name of a file" "none" "a profile that `ironorb sim calibrate` has written, with the times of a machine; the times beside it take precedence";
        "placement" "`one-core`, `core-each`, `networks` or `relayed`" "`core-each`" "of the profile: where client and server run";
        "idle" "time up to 1 hour" "as long as they have not run" "of the profile: how long threads have not run before a call, if all calls are to take what they take then";
        "objects" "1 to 10^12" "1" "of the profile: among how many objects calls choose";
        "kept" "`servants` or `elements`" "`servants`" "of the profile: whether objects are servants that were activated, or elements of an extent";
        "in_flight" "1 to 10,000" "1" "of the profile: how many calls of a client are in flight";
        "body" "`octets`, `longs` or `structs`" "`octets`" "of the profile: what bodies consist of";
        "find_proxy" "distribution of times" "0s" "client: from the stub to the request";
        "write_request" "distribution of times" "0s" "client: writing a request, and sending it";
        "read_request" "distribution of times" "0s" "server: receiving and reading a request";
        "channel" "distribution of times" "0s" "either side, for each message: what the system's protocols take beside the send and the receive";
        "find_object" "distribution of times" "0s" "server: from the object key to the servant";
        "execute" "distribution of times" "0s" "server: the upcall, beside the operation's own demand";
        "write_reply" "distribution of times" "0s" "server: writing a reply, and sending it";
        "read_reply" "distribution of times" "0s" "client: receiving and reading a reply";
        "thread_switch" "distribution of times" "0s" "either side: from the wake-up of a thread that waits to its first instruction";
        "cached_read" "distribution of times" "0s" "client: a read that its cache answers";
        "apply_update" "distribution of times" "0s" "client: taking one update into its cache";
        "tell_update" "distribution of times" "0s" "server, with caches of mode `asked`: noting a write for a holder, and having it in an answer";
        "carry_probe" "distribution of times" "0s" "either side: a question of a cache that a call carries, and its answer, beside the updates in it";
        "per_kilo_octet" "time up to 1 s" "0s" "either side, for each 1,000 octets of a body: marshalling or reading them";
        "thread_pause" "list of pairs of times up to 1 hour and 1 s" "none" "points `[pause, more]`: what work takes longer when its thread has not run for so long; logarithmic between two points";
        "processor_pause" "list of pairs of times up to 1 hour and 1 s" "none" "the same by how long the processor has run no thread";
    }
}

/// The keys of a table.
pub(super) fn keys_of(table: &str) -> impl Iterator<Item = &'static Key> {
    let table = if table == "[link]" { "[[links]]" } else { table };
    KEYS.iter().filter(move |key| key.table == table)
}

/// What to write in the place of a key that people may expect, and that no known one resembles.
pub(super) fn in_place_of(table: &str, key: &str) -> Option<&'static str> {
    match (table, key) {
        ("[dwell]", "per_octet") => Some(
            "write `per_kilo_octet`, the time for 1,000 octets: a single one often takes less than a nanosecond",
        ),
        _ => None,
    }
}

/// All keys as a table of Markdown, as `docs/simulation.md` has it.
pub fn markdown() -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    let mut table = None;
    for key in KEYS {
        if table.replace(key.table) != Some(key.table) {
            let title = match key.table {
                "" => "At the beginning of the file".to_owned(),
                "a call" => "A call, in `calls` and `parts`".to_owned(),
                "[[links]]" => "`[[links]]`, and `[link]` without `between`".to_owned(),
                table => format!("`{table}`"),
            };
            let _ = write!(text, "\n{title}:\n\n| key | value | without it | meaning |\n|---|---|---|---|\n");
        }
        let default = if key.default.is_empty() { "-" } else { key.default };
        let _ = writeln!(text, "| `{}` | {} | {default} | {} |", key.key, key.value, key.meaning);
    }
    text
}
