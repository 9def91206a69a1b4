// What every case of the client stands on: running and reporting it, comparing values bit for bit, and
// the echo of each kind of type in every direction. It knows no case by name.

#ifndef IRONORB_INTEROP_HARNESS_HH
#define IRONORB_INTEROP_HARNESS_HH

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <omniORB4/CORBA.h>
#include <omniORB4/codeSets.h>

#include "all_idl.hh"

using namespace interop;
using std::string;
using std::vector;

inline CORBA::ORB_var orb;
inline PortableServer::POA_var root_poa;
// Where the objects are that the server calls back.
inline PortableServer::POA_var listener_poa;
inline Suite_var suite;

// ---- the harness ---------------------------------------------------------------------------------

struct Mismatch { string what; };
struct Skipped { string why; };

inline int passed = 0, failed = 0;
inline vector<string> only;
inline vector<std::pair<string, string>> skips;

inline bool begins(const string& text, const string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// A pattern covers the case of its name, and the group "pattern/...".
inline bool covers(const string& pattern, const string& name) {
  return name == pattern || begins(name, pattern + "/");
}

inline string describe(const CORBA::Exception& e) {
  string text = e._rep_id();
  if (auto* s = CORBA::SystemException::_downcast(&e)) {
    char detail[80];
    snprintf(detail, sizeof detail, " minor 0x%x completed %d", s->minor(), int(s->completed()));
    text += detail;
    if (s->NP_minorString()) text += string(" ") + s->NP_minorString();
  }
  return text;
}

inline void run(const string& name, const std::function<void()>& body) {
  bool wanted = only.empty();
  for (auto& pattern : only) wanted |= covers(pattern, name);
  if (!wanted) return;
  string problem;
  try {
    for (auto& skip : skips)
      if (covers(skip.first, name)) throw Skipped{skip.second};
    body();
  } catch (const Skipped& s) {
    printf("SKIP %s: %s\n", name.c_str(), s.why.c_str());
    fflush(stdout);
    return;
  } catch (const Mismatch& m) {
    problem = m.what;
  } catch (const CORBA::Exception& e) {
    problem = describe(e);
  } catch (const std::exception& e) {
    problem = e.what();
  }
  if (problem.empty()) {
    ++passed;
    printf("PASS %s\n", name.c_str());
  } else {
    ++failed;
    printf("FAIL %s: %s\n", name.c_str(), problem.c_str());
  }
  fflush(stdout);
}

// The object of a part of the contract that not every ORB has.
template <class Interface>
inline typename Interface::_var_type part(const char* name) {
  CORBA::Object_var object = suite->part(name);
  typename Interface::_var_type narrowed = Interface::_narrow(object);
  if (CORBA::is_nil(narrowed)) throw Mismatch{"the server has no such part"};
  return narrowed;
}

inline void check(bool holds, const string& what) {
  if (!holds) throw Mismatch{what};
}

// Expects the call to raise exactly E, and returns it.
template <class E>
inline E expect(const std::function<void()>& call) {
  try {
    call();
  } catch (const E& e) {
    return e;
  } catch (const CORBA::Exception& e) {
    throw Mismatch{"raised " + describe(e) + " instead"};
  }
  throw Mismatch{"raised nothing"};
}

// ---- bit-for-bit comparison ----------------------------------------------------------------------

// Every IDL value has one image in CDR; numbers are taken raw, so that NaN equals itself.
template <class T>
inline typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type
put(cdrStream& s, const T& v) {
  s.put_octet_array(reinterpret_cast<const _CORBA_Octet*>(&v), sizeof v);
}
template <class T>
inline typename std::enable_if<std::is_class<T>::value>::type put(cdrStream& s, const T& v) {
  v >>= s;
}
template <class E, size_t N>
inline void put(cdrStream& s, const E (&v)[N]) {
  for (auto& e : v) put(s, e);
}

// A buffer whose padding is zero and whose code sets do not depend on the connection's.
struct ImageStream : cdrMemoryStream {
  ImageStream() : cdrMemoryStream(0, true) {
    GIOP::Version version = {1, 2};
    TCS_C(omni::omniCodeSet::getTCS_C(omni::omniCodeSet::ID_UTF_8, version));
    TCS_W(omni::omniCodeSet::getTCS_W(omni::omniCodeSet::ID_UTF_16, version));
  }
  string bytes() const { return string(static_cast<char*>(bufPtr()), bufSize()); }
};

template <class T>
inline string image(const T& v) {
  ImageStream s;
  put(s, v);
  return s.bytes();
}
template <class E>
inline string image(const E* v, size_t n) {
  ImageStream s;
  for (size_t i = 0; i < n; ++i) put(s, v[i]);
  return s.bytes();
}

inline void same_image(const char* which, const string& want, const string& got) {
  if (want == got) return;
  size_t at = 0;
  while (at < want.size() && at < got.size() && want[at] == got[at]) ++at;
  throw Mismatch{string(which) + " differs: " + std::to_string(got.size()) + " bytes for " +
                 std::to_string(want.size()) + ", first at " + std::to_string(at)};
}
template <class T>
inline void same(const char* which, const T& want, const T& got) {
  same_image(which, image(want), image(got));
}
inline void same(const char* which, const char* want, const char* got) {
  if (strcmp(want, got)) throw Mismatch{string(which) + " is \"" + got + "\" for \"" + want + "\""};
}
inline void same(const char* which, const string& want, const char* got) {
  if (want != got) throw Mismatch{string(which) + " is \"" + got + "\" for \"" + want + "\""};
}
inline void same(const char* which, const std::wstring& want, const CORBA::WChar* got) {
  if (want != got) throw Mismatch{string(which) + " differs"};
}

// ---- echoes --------------------------------------------------------------------------------------

// Each value is sent as x with its neighbour as y.
template <class V>
inline typename V::const_reference neighbour(const V& values, size_t i) {
  return values[(i + 1) % values.size()];
}

template <class B, class T>
inline void echo(const char* name, T (B::*op)(T, T&, T&), const vector<T>& values) {
  run(name, [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      T x = values[i], before = neighbour(values, i), y = before, z = T();
      T r = (suite.in()->*op)(x, y, z);
      same("result", x, r);
      same("inout", x, y);
      same("out", before, z);
    }
  });
}

template <class B, class T>
inline void echo(const char* name, T (B::*op)(const T&, T&, T&), const vector<T>& values) {
  run(name, [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      const T &x = values[i], &before = neighbour(values, i);
      T y = before, z;
      T r = (suite.in()->*op)(x, y, z);
      same("result", x, r);
      same("inout", x, y);
      same("out", before, z);
    }
  });
}

template <class B, class T, class Out>
inline void echo(const char* name, T* (B::*op)(const T&, T&, Out), const vector<T>& values) {
  run(name, [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      const T &x = values[i], &before = neighbour(values, i);
      T y = before;
      T* out = nullptr;
      std::unique_ptr<T> r((suite.in()->*op)(x, y, Out(out)));
      std::unique_ptr<T> z(out);
      same("result", x, *r);
      same("inout", x, y);
      same("out", before, *z);
    }
  });
}

template <class B, class InOut, class Out>
inline void echo(const char* name, char* (B::*op)(const char*, InOut, Out), const vector<string>& values) {
  run(name, [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      const string &x = values[i], &before = neighbour(values, i);
      CORBA::String_var y = CORBA::string_dup(before.c_str()), z;
      CORBA::String_var r = (suite.in()->*op)(x.c_str(), InOut(y.inout()), Out(z.out()));
      same("result", x, r.in());
      same("inout", x, y.in());
      same("out", before, z.in());
    }
  });
}

template <class B, class InOut, class Out>
inline void echo(const char* name, CORBA::WChar* (B::*op)(const CORBA::WChar*, InOut, Out),
                 const vector<std::wstring>& values) {
  run(name, [&] {
    for (size_t i = 0; i < values.size(); ++i) {
      const std::wstring &x = values[i], &before = neighbour(values, i);
      CORBA::WString_var y = CORBA::wstring_dup(before.c_str()), z;
      CORBA::WString_var r = (suite.in()->*op)(x.c_str(), InOut(y.inout()), Out(z.out()));
      same("result", x, r.in());
      same("inout", x, y.in());
      same("out", before, z.in());
    }
  });
}

template <class E>
inline void assign(E& to, const E& from) { to = from; }
template <class E, size_t N>
inline void assign(E (&to)[N], const E (&from)[N]) {
  for (size_t i = 0; i < N; ++i) assign(to[i], from[i]);
}

template <class B, class E, size_t N>
inline void echo_array(const char* name, E* (B::*op)(const E*, E*, E*), const E (&a)[N], const E (&b)[N]) {
  run(name, [&] {
    E y[N], z[N];
    assign(y, b);
    std::unique_ptr<E[]> r((suite.in()->*op)(a, y, z));
    same_image("result", image(a), image(r.get(), N));
    same_image("inout", image(a), image(y));
    same_image("out", image(b), image(z));
  });
}
template <class B, class E, class Out, size_t N>
inline void echo_array(const char* name, E* (B::*op)(const E*, E*, Out), const E (&a)[N], const E (&b)[N]) {
  run(name, [&] {
    E y[N];
    E* out = nullptr;
    assign(y, b);
    std::unique_ptr<E[]> r((suite.in()->*op)(a, y, Out(out)));
    std::unique_ptr<E[]> z(out);
    same_image("result", image(a), image(r.get(), N));
    same_image("inout", image(a), image(y));
    same_image("out", image(b), image(z.get(), N));
  });
}

#endif
