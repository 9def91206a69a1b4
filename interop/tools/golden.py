#!/usr/bin/env python3
"""Captures the golden messages of omniORB that the tests of the protocol core read.

    golden.py [--build DIR] [--out DIR]

Runs the omniORB peers (make -C interop/peers/omniorb first), omniMapper and omniNames with the proxy of
capture.py between them, and writes one .hex file per subject and iors.txt. Ports 28100 to 28103 of
127.0.0.1 must be free. Object keys of the server are persistent ones, so they do not vary; those of
objects that it creates do.
"""

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import capture

PROXY, SERVER, MAPPER, NAMES = 28100, 28101, 28102, 28103
HERE = os.path.dirname(os.path.abspath(__file__))

# What the client's cases send and the server answers, in order, by operation.
ARGUMENTS = {
    "nothing": ["()"],
    "sum": ["(octet 1, short -2, octet 3, long -400000, octet 5, long long 1000000, octet 7, double 8.0) -> long 600022"],
    "mix": ['(in string "left", inout long long 1099511627776, in octet 200, in double 0.5)'
            ' -> double 200.5, octet small 200, n -1099511627776, string joined "left/200"'],
    "type": ['("fn", "ref") -> "fn&ref"'],
    "default": ["(10, 3) -> long 13, long self 7"],
    "outs": ['() -> octet 1, double 2.5, string "three", short -4, LongSeq [5, -6]'],
    "echo_bin": ["(x BinStruct{0, char 0, 0, 0, 0.0}, y BinStruct{-32768, '!', -2147483648, 255, -1e308}) -> result x, y x, z the old y",
                 "(x BinStruct{-32768, '!', -2147483648, 255, -1e308}, y BinStruct{77, char 77, 609763, 77, 77/3.0}) -> result x, y x, z the old y",
                 "(x BinStruct{77, char 77, 609763, 77, 77/3.0}, y BinStruct{0, char 0, 0, 0, 0.0}) -> result x, y x, z the old y"],
    "echo_string": ['(x U+20AC as UTF-8, y U+03B1) -> result x, y x, z the old y',
                    '(x U+65E5 U+672C U+8A9E space U+1F600 as UTF-8, y U+03B1) -> result x, y x, z the old y',
                    '(x "mixed " U+03A9 "mega" as UTF-8, y U+03B1) -> result x, y x, z the old y'],
    "echo_wchar": ["(x wchar U+%04X, y wchar U+03A9) -> result x, y x, z the old y" % c
                   for c in (0, 0x41, 0xE9, 0x20AC, 0x4E16, 0xFFFD)],
    "raise_wide": ['(wstring "why " U+4E16) raises WideError{that}'],
    "echo_by_short": ['(x ByShort(-1: octet 200), y ByShort(7: "seven")) -> result x, y x, z the old y',
                      '(x ByShort(7: "seven"), y ByShort(no member)) -> result x, y x, z the old y',
                      '(x ByShort(no member), y ByShort(-1: octet 200)) -> result x, y x, z the old y'],
    "raise_empty": ["() raises Empty{}"],
    "raise_one_of": ["(0) -> long 1", "(1) raises Empty{}", '(2) raises Refused{"asked", 2}', "(3) raises Occupied{nil}", "(50) -> long 101"],
    "raise_system": ["(bad_param, minor %s, %s) raises BAD_PARAM with them" % (m, c)
                     for m in ("0", "0x49520001", "0xFFFFFFFF") for c in ("COMPLETED_YES", "COMPLETED_NO", "COMPLETED_MAYBE")],
    "_get_answer": ["() -> unsigned long long 42"],
    "_set_low": ["(short -1)"],
    "_set_high": ["(short 1)"],
    "_get_low": ["() -> short -1"],
    "_get_high": ["() -> short 1"],
    "no_such_operation": ["() raises BAD_OPERATION"],
    "echo_node": ["(x Node, y Node) -> result x, y x, z the old y"],
    "echo_strings": ['(x [], y [""]) -> result x, y x, z the old y',
                     '(x [""], y ["one", "", "three", 9000 times "x", "five"]) -> result x, y x, z the old y',
                     '(x ["one", "", "three", 9000 times "x", "five"], y []) -> result x, y x, z the old y'],
    "notify": ["(long %d), oneway" % (i + 1) for i in range(100)],
    "create_node": ["(a number of the client's choice) -> Node"] * 9,
    "bind_new_context": ['([{"bank", ""}]) -> NamingContext'],
    "bind": ['([{"bank", ""}, {"main", ""}], corbaloc:iiop:1.2@127.0.0.1:2810/suite)'],
    "resolve": ['([{"bank", ""}, {"main", ""}]) -> what was bound', '([{"bank", ""}, {"none", ""}]) raises NotFound',
                '([{"bank", ""}]) -> NamingContext', '([{"bank", ""}]) -> NamingContext'],
    "unbind": ['([{"main", ""}])'],
    "with_context": ["(long 1), context []",
                     '(long 1), context ["color", "v-color", "color_depth", "v-color_depth", "region", "v-region"], in the order seen'],
}


class Recorder:
    """Collects what passes the proxy, and labels each Reply with the call that it answers."""

    def __init__(self):
        self.lock, self.messages, self.seen, self.calls = threading.Lock(), [], {}, {}

    def __call__(self, side, message):
        with self.lock:
            label, operation = capture.describe(message)
            ident = re.search(r" id=(\d+)", label)
            call = None
            if operation:
                count = self.seen.get(operation, 0)
                self.seen[operation] = count + 1
                notes = ARGUMENTS.get(operation, [])
                call = operation + (" " + notes[count] if count < len(notes) else "")
                self.calls[ident.group(1)] = call
            elif ident and label.startswith("Reply"):
                call = self.calls.get(ident.group(1))
            text = "> %s %s%s" % (side, label, "; " + call if call else "")
            self.messages.append((side, operation, text, message))


class Capture:
    """One run of peers with the proxy on PROXY."""

    def __init__(self, build):
        self.build, self.running, self.commands = build, [], []
        self.listener = None
        self.recorder = Recorder()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.terminate()
            process.wait()
        if self.listener:
            # accept() holds the port until it returns.
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()

    def proxy(self, port):
        self.listener = capture.serve(PROXY, ("127.0.0.1", port), self.recorder)

    def start(self, port, *command, note=True):
        if note:
            self.commands.append(" ".join(os.path.basename(c) if i == 0 else c for i, c in enumerate(command)))
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.running.append(process)
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return process
            except OSError:
                if process.poll() is not None:
                    sys.exit("%s ended" % command[0])
                time.sleep(0.05)

    def server(self, *options, published=PROXY):
        process = self.start(SERVER, os.path.join(self.build, "server"), "--poa", "persistent", "--key", "suite",
                             "-ORBendPointNoPublish", "giop:tcp:127.0.0.1:%d" % SERVER,
                             "-ORBendPointPublish", "giop:tcp:127.0.0.1:%d" % published, *options)
        return process.stdout.readline().strip()

    def run(self, *command, check=True):
        shown = [os.path.basename(command[0])] + ["REFERENCE" if a.startswith("IOR:") else a for a in command[1:]]
        self.commands.append(" ".join(shown))
        subprocess.run(command, check=check, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def client(self, reference, cases, *options):
        wanted = [word for case in cases for word in ("--only", case)]
        self.run(os.path.join(self.build, "client"), *options, *wanted, reference)

    def exchange(self, data, wait_s):
        """Sends raw bytes through the proxy and waits for the peer to close."""
        with socket.create_connection(("127.0.0.1", PROXY)) as s:
            s.settimeout(wait_s)
            s.sendall(data)
            try:
                while s.recv(65536):
                    pass
            except OSError:
                pass


def write(out, name, about, run, keep=None, limit=None):
    """Writes what a run recorded; `limit` messages per operation and side at most."""
    counts, lines, kept = {}, [], set()
    for side, operation, text, message in run.recorder.messages:
        if keep and not keep(text):
            continue
        if limit and ";" in text:
            key = (side, text.split("; ")[1].split(" ")[0])
            counts[key] = counts.get(key, 0) + 1
            if counts[key] > (2 if key[1] == "notify" else limit):
                continue
        lines += [text] + capture.hex_lines(message)
    version = subprocess.run(["pkg-config", "--modversion", "omniORB4"], capture_output=True, text=True).stdout.strip()
    with open(os.path.join(out, name), "w") as f:
        for line in about:
            f.write("# %s\n" % line)
        f.write("# Captured by interop/tools/golden.py from omniORB %s (libomniorb4-2) on x86-64.\n" % version)
        for command in run.commands:
            f.write("# %s\n" % command)
        f.write("\n".join(lines) + "\n")


CALLS = ["nothing", "sum", "mix", "type", "default", "outs", "echo_bin", "echo_by_short", "attribute/low_high", "attribute/answer",
         "raise_empty", "raise_one_of", "raise_system/BAD_PARAM", "bad_operation/dii", "oneway"]


def calls(build, out):
    for version in ("1.0", "1.1", "1.2"):
        with Capture(build) as run:
            ior = run.server()
            run.proxy(SERVER)
            run.client(ior, CALLS + (["echo_string/utf8", "echo_wchar", "raise_wide", "context"] if version == "1.2" else []),
                       "-ORBmaxGIOPVersion", version)
            write(out, "calls-%s.hex" % version,
                  ["Calls with known arguments over GIOP %s, by a reference that offers code sets." % version],
                  run, lambda text: "take_tokens" not in text and "notify_blob" not in text and " Fragment " not in text, 6)
        with Capture(build) as run:
            run.server()
            run.proxy(SERVER)
            run.client("corbaloc:iiop:%s@127.0.0.1:%d/suite" % (version, PROXY), ["nothing", "sum", "raise_one_of"])
            write(out, "corbaloc-%s.hex" % version,
                  ["The same server by a corbaloc: of version %s, which knows no code sets: no service contexts." % version,
                   "The client first asks _is_a, because a corbaloc tells no type."], run)


def locate_and_forward(build, out):
    with Capture(build) as run:
        ior = run.server()
        run.proxy(SERVER)
        run.client(ior, ["locate/here", "locate/unknown", "forwarded", "echo_node"])
        write(out, "locate.hex", ["LocateRequests answered by OBJECT_HERE and UNKNOWN_OBJECT, Replies of LOCATION_FORWARD",
                                  "(the POA's servant locator raises ForwardRequest), and references as arguments."],
              run)
    with Capture(build) as run, tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        # The forwarded calls go past the proxy, which stands before omniMapper here.
        ior = run.server(published=SERVER)
        config.write("suite %s\n" % ior)
        config.flush()
        run.start(MAPPER, "omniMapper", "-port", str(MAPPER), "-config", config.name, note=False)
        run.commands.append("omniMapper -port %d -config FILE (one line: suite REFERENCE)" % MAPPER)
        run.proxy(MAPPER)
        for version in ("1.0", "1.2"):
            run.run(os.path.join(build, "client"), "--only", "locate/here", "corbaloc:iiop:%s@127.0.0.1:%d/suite" % (version, PROXY),
                    check=False)
        write(out, "forward.hex", ["omniMapper forwards the plain key \"suite\" to the server's reference."], run)


def closing(build, out):
    with Capture(build) as run:
        run.server("-ORBinConScanPeriod", "1", "-ORBscanGranularity", "1")
        run.proxy(SERVER)
        # A LocateRequest for the key "suite" from the script, then silence, so that the server closes the idle connection.
        run.exchange(bytes.fromhex("47494f50010201031100000007000000000000000500000073756974" + "65"), 20)
        write(out, "close.hex", ["The server closes an idle connection: CloseConnection, which omniORB always sends as GIOP 1.0.",
                                 "The LocateRequest was sent by the script and not by omniORB."], run)
    with Capture(build) as run:
        ior = run.server()
        run.proxy(SERVER)
        run.client(ior, ["nothing"])
        write(out, "close-client.hex", ["The client ends, and says CloseConnection as GIOP 1.2 allows."], run)
    with Capture(build) as run:
        run.server()
        run.proxy(SERVER)
        # A Request whose body ends too early, sent by the script and not by omniORB.
        run.exchange(bytes.fromhex("47494f50010201000400000061626364"), 5)
        write(out, "message-error.hex", ["The script sends a Request cut short; omniORB answers MessageError."], run)


def fragments(build, out):
    for version in ("1.1", "1.2"):
        with Capture(build) as run:
            ior = run.server()
            run.proxy(SERVER)
            run.client(ior, ["echo_strings"], "-ORBmaxGIOPVersion", version)
            write(out, "fragments-%s.hex" % version,
                  ["Messages longer than omniORB's 8192-byte buffer, in fragments. A Fragment continues the message of",
                   "its side (GIOP 1.2: of its id)."], run)


def naming(build, out):
    with Capture(build) as run, tempfile.TemporaryDirectory() as logs:
        run.start(NAMES, "omniNames", "-start", str(NAMES), "-logdir", logs, "-errlog", "/dev/null",
                  "-ORBendPointPublish", "giop:tcp:127.0.0.1:%d" % PROXY, "-ORBendPoint", "giop:tcp:127.0.0.1:%d" % NAMES, note=False)
        run.commands.append("omniNames -start %d -logdir DIR" % NAMES)
        run.proxy(NAMES)
        service = ["-ORBInitRef", "NameService=corbaloc:iiop:1.2@127.0.0.1:%d/NameService" % PROXY]
        target = "corbaloc:iiop:1.2@127.0.0.1:2810/suite"
        for command in (["bind_new_context", "bank"], ["bind", "bank/main", target], ["resolve", "bank/main"],
                        ["resolve", "bank/none"], ["list"], ["list", "bank"], ["unbind", "bank/main"]):
            run.run("nameclt", *service, *command, check=False)
        write(out, "naming.hex", ["nameclt against omniNames: bind_new_context, bind, resolve, NotFound, list, unbind."], run)


def iors(build, out):
    variants = [
        ("a published name and port", ["-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:gateway.example:2810"]),
        ("two endpoints: the second is in TAG_ALTERNATE_IIOP_ADDRESS",
         ["-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:10.0.0.1:2810,giop:tcp:host.example:2811"]),
        ("an IPv6 address", ["-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:[::1]:2810"]),
        ("GIOP 1.1: a profile of version 1.1", ["-ORBmaxGIOPVersion", "1.1", "-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:127.0.0.1:2810"]),
        ("GIOP 1.0: no components", ["-ORBmaxGIOPVersion", "1.0", "-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:127.0.0.1:2810"]),
        ("native code set ISO-8859-1", ["-ORBnativeCharCodeSet", "ISO-8859-1", "-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPointPublish", "giop:tcp:127.0.0.1:2810"]),
        ("a Unix socket beside TCP: TAG_OMNIORB_UNIX_TRANS", ["-ORBendPointNoPublish", "giop:tcp:127.0.0.1:28101", "-ORBendPoint", "giop:unix:/tmp/ironorb-golden.sock", "-ORBendPointPublish", "giop:tcp:127.0.0.1:2810,giop:unix:/tmp/ironorb-golden.sock"]),
    ]
    lines = ["# References of omniORB's server for interop::Suite, one per line, each after what catior says of it.",
             "# Captured by interop/tools/golden.py: server --poa persistent --key suite and the options shown."]
    for about, options in variants:
        command = [os.path.join(build, "server"), "--poa", "persistent", "--key", "suite", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            ior = process.stdout.readline().strip()
            process.terminate()
        if not ior.startswith("IOR:"):
            print("no reference for: " + about)
            continue
        lines.append("#")
        lines.append("# %s" % about)
        lines.append("# options: %s" % " ".join(options))
        said = subprocess.run(["catior", ior], capture_output=True, text=True).stdout
        lines += ["# | " + line.rstrip() for line in said.splitlines() if line.strip()]
        lines.append(ior)
    with open(os.path.join(out, "iors.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=os.path.join(HERE, "../build/omniorb"))
    parser.add_argument("--out", default=os.path.join(HERE, "../../crates/ironorb-giop/testdata/omniorb"))
    options = parser.parse_args()
    for subject in (calls, locate_and_forward, closing, fragments, naming, iors):
        subject(options.build, options.out)


if __name__ == "__main__":
    main()
