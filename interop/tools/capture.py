#!/usr/bin/env python3
"""Sits between a GIOP client and a server and prints each message that passes, as hex.

    capture.py LISTEN_PORT SERVER_HOST:SERVER_PORT

Every connection to 127.0.0.1:LISTEN_PORT is joined to the server. A message is printed whole, in the
format of the golden files: a line "> label", then hex lines. It changes nothing that it passes on.
Point a client at it with a corbaloc: of the listening port, or let the server publish that port
(omniORB: -ORBendPointPublish giop:tcp:127.0.0.1:LISTEN_PORT), so that its references lead here.
"""

import socket
import struct
import sys
import threading

TYPES = ["Request", "Reply", "CancelRequest", "LocateRequest", "LocateReply", "CloseConnection",
         "MessageError", "Fragment"]
REPLY = ["NO_EXCEPTION", "USER_EXCEPTION", "SYSTEM_EXCEPTION", "LOCATION_FORWARD",
         "LOCATION_FORWARD_PERM", "NEEDS_ADDRESSING_MODE"]
LOCATE = ["UNKNOWN_OBJECT", "OBJECT_HERE", "OBJECT_FORWARD", "OBJECT_FORWARD_PERM",
          "LOC_SYSTEM_EXCEPTION", "LOC_NEEDS_ADDRESSING_MODE"]
CONTEXTS = {1: "CodeSets", 5: "BiDirIIOP", 6: "SendingContextRunTime"}


class Reader:
    """Reads CDR from a message; positions count from the start of the GIOP header."""

    def __init__(self, message):
        self.data, self.at = message, 12
        self.order = "<" if message[6] & 1 else ">"

    def number(self, code):
        size = struct.calcsize(code)
        self.at = -(-self.at // size) * size
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.at += size
        return value

    def octets(self):
        size = self.number("I")
        self.at += size
        return self.data[self.at - size:self.at]

    def contexts(self):
        names = []
        for _ in range(self.number("I")):
            tag = self.number("I")
            self.octets()
            names.append(CONTEXTS.get(tag, "0x%x" % tag))
        return names

    def target(self):
        """The object key of a 1.2 target address."""
        kind = self.number("H")
        return self.octets() if kind == 0 else b"addressing %d" % kind


def short(key):
    return key.hex() if len(key) <= 24 else key[:24].hex() + "..."


def describe(message):
    """One line of what a message is, and its operation if it is a Request."""
    major, minor, flags, kind = message[4:8]
    name = TYPES[kind] if kind < len(TYPES) else "type %d" % kind
    words = [name, "%d.%d" % (major, minor), "little" if flags & 1 else "big"]
    operation = None
    try:
        r = Reader(message)
        if name == "Request":
            contexts = r.contexts() if minor < 2 else None
            words.append("id=%d" % r.number("I"))
            words.append("response=%d" % r.number("B"))
            if minor > 0:
                r.at += 3
            key = r.target() if minor >= 2 else r.octets()
            operation = r.octets()[:-1].decode()
            words += ["operation=" + operation, "key=" + short(key)]
            words.append("contexts=" + (",".join(r.contexts() if contexts is None else contexts) or "none"))
        elif name == "Reply":
            contexts = r.contexts() if minor < 2 else None
            words.append("id=%d" % r.number("I"))
            words.append(REPLY[r.number("I")])
            words.append("contexts=" + (",".join(r.contexts() if contexts is None else contexts) or "none"))
        elif name == "LocateRequest":
            words.append("id=%d" % r.number("I"))
            words.append("key=" + short(r.target() if minor >= 2 else r.octets()))
        elif name == "LocateReply":
            words += ["id=%d" % r.number("I"), LOCATE[r.number("I")]]
        elif name == "CancelRequest" or (name == "Fragment" and minor >= 2):
            words.append("id=%d" % r.number("I"))
    except (struct.error, IndexError, UnicodeDecodeError):
        words.append("(cut short)")
    if minor > 0 and flags & 2:
        words.append("more-fragments")
    return " ".join(words), operation


def hex_lines(message):
    return [message[i:i + 32].hex() for i in range(0, len(message), 32)]


def receive(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return data


def pump(source, sink, side, on_message):
    """Passes whole messages on until the source ends."""
    try:
        while True:
            header = receive(source, 12)
            if header is None:
                break
            (size,) = struct.unpack_from("<I" if header[6] & 1 else ">I", header, 8)
            body = receive(source, size)
            if body is None:
                break
            on_message(side, header + body)
            sink.sendall(header + body)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(listen_port, server, on_message):
    """Listens, and joins every connection to the server, from threads of its own."""
    listener = socket.create_server(("127.0.0.1", listen_port))

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                peer = socket.create_connection(server)
            except OSError:
                client.close()
                continue
            for a, b, side in ((client, peer, "client"), (peer, client, "server")):
                threading.Thread(target=pump, args=(a, b, side, on_message), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    host, _, port = sys.argv[2].rpartition(":")
    lock = threading.Lock()

    def show(side, message):
        with lock:
            print("> %s %s" % (side, describe(message)[0]))
            print("\n".join(hex_lines(message)), flush=True)

    serve(int(sys.argv[1]), (host, int(port)), show)
    threading.Event().wait()


if __name__ == "__main__":
    main()
