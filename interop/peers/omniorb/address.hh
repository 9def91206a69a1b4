// Reads the address out of a reference and writes it as a corbaloc:, by hand, so that a case can ask for
// an object by its key alone.

#ifndef IRONORB_INTEROP_ADDRESS_HH
#define IRONORB_INTEROP_ADDRESS_HH

#include "harness.hh"

// What an IIOP profile of a reference says; enough to write it as a corbaloc.
struct Address {
  int minor = 2;
  string host;
  int port = 0;
  string key;
};

inline Address address_of(CORBA::Object_ptr object) {
  CORBA::String_var ior = orb->object_to_string(object);
  string bytes;
  for (const char* p = ior.in() + 4; p[0] && p[1]; p += 2) bytes += char(std::stoi(string(p, 2), nullptr, 16));
  size_t at = 0;
  size_t base = 0;  // alignment counts from the start of the encapsulation
  bool little = bytes.at(0);
  auto ulong = [&] {
    at = base + (at - base + 3) / 4 * 4;
    CORBA::ULong v = 0;
    for (int i = 0; i < 4; ++i) v |= CORBA::ULong((unsigned char)bytes.at(at + i)) << (little ? 8 * i : 24 - 8 * i);
    at += 4;
    return v;
  };
  at = 1;
  CORBA::ULong length = ulong();
  at += length;
  for (CORBA::ULong profiles = ulong(); profiles > 0; --profiles) {
    CORBA::ULong tag = ulong(), size = ulong();
    if (tag != 0) {
      at += size;
      continue;
    }
    Address a;
    base = at;
    little = bytes.at(at);
    a.minor = bytes.at(at + 2);
    at += 3;
    length = ulong();
    a.host = bytes.substr(at, length - 1);
    at += length;
    at = base + (at - base + 1) / 2 * 2;
    int first = (unsigned char)bytes.at(at), second = (unsigned char)bytes.at(at + 1);
    a.port = little ? first + 256 * second : 256 * first + second;
    at += 2;
    length = ulong();
    a.key = bytes.substr(at, length);
    at += length;
    return a;
  }
  throw Mismatch{"the reference has no IIOP profile"};
}

inline string corbaloc(const Address& a) {
  string text = "corbaloc:iiop:1." + std::to_string(a.minor) + "@" + (a.host.find(':') == string::npos ? a.host : "[" + a.host + "]") +
                ":" + std::to_string(a.port) + "/";
  for (unsigned char c : a.key) {
    char escaped[4];
    snprintf(escaped, sizeof escaped, "%%%02x", c);
    text += isalnum(c) ? string(1, char(c)) : string(escaped);
  }
  return text;
}

#endif
