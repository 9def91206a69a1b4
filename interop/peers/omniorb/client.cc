// The omniORB client of the interoperability tests: calls everything in interop.idl on any server.
//
//   client [-ORB...] [--only NAME]... [--skip NAME=REASON]... [--shutdown] REFERENCE
//
// REFERENCE is an IOR:, corbaloc: or corbaname: of an interop::Suite. One line per case:
// "PASS name", "FAIL name: what" or "SKIP name: reason"; the last line is "N passed, M failed", and
// the exit code is 0 only if all that ran passed and something ran. A NAME of --skip or --only covers
// the case of that name and the group of cases "NAME/...".
//
// -ORBmaxGIOPVersion 1.0 (or 1.1, 1.2) chooses the protocol. Cases that it cannot carry are skipped
// with their reason. --shutdown ends the server after the last case.

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

#include "interop.hh"

using namespace interop;
using std::string;
using std::vector;

static CORBA::ORB_var orb;
static PortableServer::POA_var root_poa;
static Suite_var suite;
static int giop_minor = 2;  // what the cases may expect of the wire

// ---- the harness ---------------------------------------------------------------------------------

struct Mismatch { string what; };
struct Skipped { string why; };

static int passed = 0, failed = 0;
static vector<string> only;
static vector<std::pair<string, string>> skips;

static bool begins(const string& text, const string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// A pattern covers the case of its name, and the group "pattern/...".
static bool covers(const string& pattern, const string& name) {
  return name == pattern || begins(name, pattern + "/");
}

static string describe(const CORBA::Exception& e) {
  string text = e._rep_id();
  if (auto* s = CORBA::SystemException::_downcast(&e)) {
    char detail[80];
    snprintf(detail, sizeof detail, " minor 0x%x completed %d", s->minor(), int(s->completed()));
    text += detail;
    if (s->NP_minorString()) text += string(" ") + s->NP_minorString();
  }
  return text;
}

static void run(const string& name, const std::function<void()>& body) {
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

static void check(bool holds, const string& what) {
  if (!holds) throw Mismatch{what};
}

static void needs_code_sets() {
  if (giop_minor == 0) throw Skipped{"GIOP 1.0 negotiates no code sets"};
  if (giop_minor == 1) throw Skipped{"omniORB 4.2 negotiates no code sets when it offers GIOP 1.1"};
}
static void needs_wide() {
  if (giop_minor == 0) throw Skipped{"GIOP 1.0 has no wide characters"};
  if (giop_minor == 1) throw Skipped{"omniORB 4.2 has no wide code set for GIOP 1.1"};
}
static void needs_long_strings() {
  if (giop_minor == 1) throw Skipped{"omniORB 4.2 breaks a string across GIOP 1.1 fragments wrongly"};
}

// Expects the call to raise exactly E, and returns it.
template <class E>
static E expect(const std::function<void()>& call) {
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
static typename std::enable_if<std::is_arithmetic<T>::value || std::is_enum<T>::value>::type
put(cdrStream& s, const T& v) {
  s.put_octet_array(reinterpret_cast<const _CORBA_Octet*>(&v), sizeof v);
}
template <class T>
static typename std::enable_if<std::is_class<T>::value>::type put(cdrStream& s, const T& v) {
  v >>= s;
}
template <class E, size_t N>
static void put(cdrStream& s, const E (&v)[N]) {
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
static string image(const T& v) {
  ImageStream s;
  put(s, v);
  return s.bytes();
}
template <class E>
static string image(const E* v, size_t n) {
  ImageStream s;
  for (size_t i = 0; i < n; ++i) put(s, v[i]);
  return s.bytes();
}

static void same_image(const char* which, const string& want, const string& got) {
  if (want == got) return;
  size_t at = 0;
  while (at < want.size() && at < got.size() && want[at] == got[at]) ++at;
  throw Mismatch{string(which) + " differs: " + std::to_string(got.size()) + " bytes for " +
                 std::to_string(want.size()) + ", first at " + std::to_string(at)};
}
template <class T>
static void same(const char* which, const T& want, const T& got) {
  same_image(which, image(want), image(got));
}
static void same(const char* which, const char* want, const char* got) {
  if (strcmp(want, got)) throw Mismatch{string(which) + " is \"" + got + "\" for \"" + want + "\""};
}
static void same(const char* which, const string& want, const char* got) {
  if (want != got) throw Mismatch{string(which) + " is \"" + got + "\" for \"" + want + "\""};
}
static void same(const char* which, const std::wstring& want, const CORBA::WChar* got) {
  if (want != got) throw Mismatch{string(which) + " differs"};
}

// ---- echoes --------------------------------------------------------------------------------------

// Each value is sent as x with its neighbour as y.
template <class V>
static typename V::const_reference neighbour(const V& values, size_t i) {
  return values[(i + 1) % values.size()];
}

template <class B, class T>
static void echo(const char* name, T (B::*op)(T, T&, T&), const vector<T>& values) {
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
static void echo(const char* name, T (B::*op)(const T&, T&, T&), const vector<T>& values) {
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
static void echo(const char* name, T* (B::*op)(const T&, T&, Out), const vector<T>& values) {
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
static void echo(const char* name, char* (B::*op)(const char*, InOut, Out), const vector<string>& values) {
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
static void echo(const char* name, CORBA::WChar* (B::*op)(const CORBA::WChar*, InOut, Out),
                 const vector<std::wstring>& values) {
  run(name, [&] {
    needs_wide();
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
static void assign(E& to, const E& from) { to = from; }
template <class E, size_t N>
static void assign(E (&to)[N], const E (&from)[N]) {
  for (size_t i = 0; i < N; ++i) assign(to[i], from[i]);
}

template <class B, class E, size_t N>
static void echo_array(const char* name, E* (B::*op)(const E*, E*, E*), const E (&a)[N], const E (&b)[N]) {
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
static void echo_array(const char* name, E* (B::*op)(const E*, E*, Out), const E (&a)[N], const E (&b)[N]) {
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

// ---- values --------------------------------------------------------------------------------------

template <class S, class E>
static S seq(const vector<E>& elements) {
  S s;
  s.length(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) s[i] = elements[i];
  return s;
}
template <class S>
static S strings(const vector<string>& elements) {
  S s;
  s.length(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) s[i] = elements[i].c_str();
  return s;
}
// A sequence of n elements whose bits vary.
template <class S, class E>
static S varied(size_t n) {
  S s;
  s.length(n);
  CORBA::ULongLong state = 0x9E3779B97F4A7C15ull + n;
  for (size_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    CORBA::ULongLong bits = state ^ (state >> 29);
    E e;
    memcpy(&e, &bits, sizeof e);
    s[i] = e;
  }
  return s;
}
// Empty, one, some, and enough to leave one buffer.
template <class S, class E>
static vector<S> number_seqs() {
  return {S(), varied<S, E>(1), varied<S, E>(7), varied<S, E>(5000)};
}

template <class T>
static vector<T> integers() {
  using limits = std::numeric_limits<T>;
  T pattern = T(0x0102030405060708ull);
  return {0, 1, T(-1), limits::min(), limits::max(), T(limits::max() / 3), pattern};
}
template <class T, class Bits>
static vector<T> floats(const vector<Bits>& patterns) {
  using limits = std::numeric_limits<T>;
  vector<T> values{0, T(-0.0), 1, T(-1.5), limits::min(), limits::max(), limits::lowest(),
                   limits::denorm_min(), limits::epsilon(), limits::infinity(), -limits::infinity()};
  for (Bits b : patterns) {
    T v;
    memcpy(&v, &b, sizeof v);
    values.push_back(v);
  }
  return values;
}

static BinStruct bin(CORBA::Short s, CORBA::Char c, CORBA::Long l, CORBA::Octet o, CORBA::Double d) {
  BinStruct b;
  b.s = s;
  b.c = c;
  b.l = l;
  b.o = o;
  b.d = d;
  return b;
}
static BinStruct bin(int i) { return bin(CORBA::Short(i), CORBA::Char(i & 127), i * 7919, CORBA::Octet(i), i / 3.0); }

static Named named(const string& name, CORBA::Long value) {
  Named n;
  n.name = name.c_str();
  n.value = value;
  return n;
}

static interop::Variable variable(int i) {
  interop::Variable v;
  v.text = string(i, 't').c_str();
  v.code = string(i % 17, 'c').c_str();
  v.numbers = varied<LongSeq, CORBA::Long>(i);
  v.raw.length(i % 9);
  for (CORBA::ULong k = 0; k < v.raw.length(); ++k) v.raw[k] = 255 - k;
  v.tint = Color(i % 4);
  return v;
}

static Nested nested(int i) {
  Nested n;
  n.before = i;
  n.bin = bin(i);
  n.within.tag = 'T';
  n.within.who = named("who" + std::to_string(i), -i);
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 3; ++c) n.cells[r][c] = i + r * 0.5 + c * 0.25;
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 2; ++c) n.grid[r][c] = i * 100 + r * 10 + c;
  n.plain = ~i;
  for (int w = 0; w < 3; ++w) n.words[w] = string(w * i, 'w').c_str();
  n.rest = variable(i);
  n.above = 8848;
  n.raised = i % 2;
  return n;
}

static Tree tree(int depth, int width) {
  Tree t;
  t.label = ("d" + std::to_string(depth)).c_str();
  if (depth > 0) {
    t.children.length(width);
    for (int i = 0; i < width; ++i) t.children[i] = tree(depth - 1, width);
  }
  return t;
}

static Chain chain(int length) {
  Chain c;
  c.value = length;
  if (length > 1) {
    c.next.length(1);
    c.next[0] = chain(length - 1);
  }
  return c;
}

static Expr expr(int depth) {
  Expr e;
  if (depth == 0) {
    e.literal(0.1);
  } else if (depth % 3 == 0) {
    Expr::_negated_seq n;
    n.length(1);
    n[0] = expr(depth - 1);
    e.negated(n);
  } else {
    Expr::Operation o;
    o.symbol = '+';
    o.operands.length(2);
    o.operands[0] = expr(depth - 1);
    o.operands[1].name("x");
    e.applied(o);
  }
  return e;
}

// Builds one union value: make(u) sets its member.
template <class U>
static U with(const std::function<void(U&)>& make) {
  U u;
  make(u);
  return u;
}

// ---- cases: types --------------------------------------------------------------------------------

static void basics() {
  run("nothing", [] { suite->nothing(); });
  run("orb_name", [] {
    CORBA::String_var name = suite->orb_name();
    check(*name.in() != 0, "empty");
  });
  using B = interop::_objref_Basics;
  echo("echo_short", &B::echo_short, integers<CORBA::Short>());
  echo("echo_ushort", &B::echo_ushort, integers<CORBA::UShort>());
  echo("echo_long", &B::echo_long, integers<CORBA::Long>());
  echo("echo_ulong", &B::echo_ulong, integers<CORBA::ULong>());
  echo("echo_llong", &B::echo_llong, integers<CORBA::LongLong>());
  echo("echo_ullong", &B::echo_ullong, integers<CORBA::ULongLong>());
  echo("echo_float", &B::echo_float, floats<CORBA::Float, uint32_t>({0x7fc12345, 0xffc00001, 0x00000001, 0x3f8ccccd}));
  echo("echo_double", &B::echo_double,
       floats<CORBA::Double, uint64_t>({0x7ff8123456789abcull, 0xfff8000000000001ull, 1, 0x0102030405060708ull}));
  echo("echo_char", &B::echo_char, vector<CORBA::Char>{0, 'A', 'z', '\n', ' ', 127});
  echo("echo_boolean", &B::echo_boolean, vector<CORBA::Boolean>{true, false});
  echo("echo_octet", &B::echo_octet, vector<CORBA::Octet>{0, 1, 127, 128, 255});
  echo("echo_color", &B::echo_color, vector<Color>{red, green, blue, infra_red});
  echo("echo_single", &B::echo_single, vector<Single>{only_value});
  echo("echo_height", &B::echo_height, integers<Height>());

  string ascii;
  for (char c = 1; c < 127; ++c) ascii += c;
  echo("echo_string", &B::echo_string, vector<string>{"", "a", "hello world", ascii, string(2000, 's')});
  run("echo_string/long", [] {
    needs_long_strings();
    string sent(70000, 's');
    CORBA::String_var y = CORBA::string_dup("y"), z;
    CORBA::String_var r = suite->echo_string(sent.c_str(), y.inout(), z.out());
    same("result", sent, r.in());
    same("inout", sent, y.in());
    same("out", "y", z.in());
  });
  // Latin-1 is all that GIOP 1.0 promises of strings.
  echo("echo_string/latin1", &B::echo_string, vector<string>{"caf\xc3\xa9", "\xc3\xbf\xc2\xa1"});
  run("echo_string/utf8", [] {
    needs_code_sets();
    for (const char* text : {"\xe2\x82\xac", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80", "mixed \xce\xa9mega"}) {
      CORBA::String_var y = CORBA::string_dup("\xce\xb1"), z;
      CORBA::String_var r = suite->echo_string(text, y.inout(), z.out());
      same("result", text, r.in());
      same("inout", text, y.in());
      same("out", "\xce\xb1", z.in());
    }
  });
  echo("echo_short_string", &B::echo_short_string, vector<string>{"", "x", "exactly 16 bytes"});
  echo("echo_label", &B::echo_label, vector<string>{"label", ""});

  run("constants", [] {
    Basics::ConstantValues_var v = suite->constants();
    same("short", CORBA::Short(C_SHORT), v->s);
    same("unsigned short", CORBA::UShort(C_USHORT), v->us);
    same("long", CORBA::Long(C_LONG), v->l);
    same("unsigned long", CORBA::ULong(C_ULONG), v->ul);
    same("long long", CORBA::LongLong(C_LLONG), v->ll);
    same("unsigned long long", CORBA::ULongLong(C_ULLONG), v->ull);
    same("float", CORBA::Float(C_FLOAT), v->f);
    same("double", CORBA::Double(C_DOUBLE), v->d);
    same("char", CORBA::Char(C_CHAR), v->c);
    same("boolean", CORBA::Boolean(C_BOOLEAN), v->b);
    same("octet", CORBA::Octet(C_OCTET), v->o);
    same("string", C_STRING, (const char*)v->str);
    same("enum", Color(C_COLOR), v->tint);
  });
  run("outs", [] {
    CORBA::Octet a;
    CORBA::Double b;
    CORBA::String_var c;
    CORBA::Short d;
    LongSeq_var e;
    suite->outs(a, b, c.out(), d, e.out());
    check(a == 1 && b == 2.5 && !strcmp(c, "three") && d == -4, "values");
    same("sequence", seq<LongSeq, CORBA::Long>({5, -6}), e.in());
  });
  run("inouts", [] {
    CORBA::Octet a = 254;
    CORBA::Double b = -0.75;
    CORBA::String_var c = CORBA::string_dup("ab");
    suite->inouts(a, b, c.inout());
    check(a == 255 && b == -1.5 && !strcmp(c, "abab"), "values");
  });
  run("mix", [] {
    CORBA::Octet small;
    CORBA::LongLong n = 1ll << 40;
    CORBA::String_var joined;
    CORBA::Double r = suite->mix(small, "left", n, 200, joined.out(), 0.5);
    check(small == 200 && n == -(1ll << 40) && !strcmp(joined, "left/200") && r == 200.5, "values");
  });
  run("sum", [] {
    check(suite->sum(1, -2, 3, -400000, 5, 6000000000ll - 5999000000ll, 7, 8.0) == 600022, "sum");
  });
  run("default", [] {
    CORBA::Long self;
    check(suite->_cxx_default(10, 3, self) == 13 && self == 7, "values");
  });
  run("type", [] {
    CORBA::String_var r = suite->type("fn", "ref");
    same("result", "fn&ref", r.in());
  });
}

static void sequences() {
  using S = interop::_objref_Sequences;
  echo("echo_shorts", &S::echo_shorts, number_seqs<ShortSeq, CORBA::Short>());
  echo("echo_ushorts", &S::echo_ushorts, number_seqs<UShortSeq, CORBA::UShort>());
  echo("echo_longs", &S::echo_longs, number_seqs<LongSeq, CORBA::Long>());
  echo("echo_ulongs", &S::echo_ulongs, number_seqs<ULongSeq, CORBA::ULong>());
  echo("echo_llongs", &S::echo_llongs, number_seqs<LongLongSeq, CORBA::LongLong>());
  echo("echo_ullongs", &S::echo_ullongs, number_seqs<ULongLongSeq, CORBA::ULongLong>());
  echo("echo_floats", &S::echo_floats,
       {FloatSeq(), seq<FloatSeq, CORBA::Float>(floats<CORBA::Float, uint32_t>({0x7fc12345, 0x80000000})), varied<FloatSeq, CORBA::Float>(3000)});
  echo("echo_doubles", &S::echo_doubles,
       {DoubleSeq(), seq<DoubleSeq, CORBA::Double>(floats<CORBA::Double, uint64_t>({0x7ff8123456789abcull})), varied<DoubleSeq, CORBA::Double>(3000)});
  echo("echo_chars", &S::echo_chars, {CharSeq(), seq<CharSeq, char>({'a', 'b', 'c', '\0', '~'})});
  echo("echo_booleans", &S::echo_booleans, {BooleanSeq(), seq<BooleanSeq, bool>({true, false, false, true, true})});
  echo("echo_octets", &S::echo_octets, number_seqs<OctetSeq, CORBA::Octet>());
  echo("echo_bounded_longs", &S::echo_bounded_longs,
       {BoundedLongSeq(), varied<BoundedLongSeq, CORBA::Long>(3), varied<BoundedLongSeq, CORBA::Long>(C_BOUND)});
  echo("echo_strings", &S::echo_strings,
       {StringSeq(), strings<StringSeq>({""}), strings<StringSeq>({"one", "", "three", string(9000, 'x'), "five"})});
  echo("echo_short_strings", &S::echo_short_strings,
       {ShortStringSeq(), strings<ShortStringSeq>({"", "exactly 16 bytes", "c", "d"})});
  echo("echo_colors", &S::echo_colors, {ColorSeq(), seq<ColorSeq, Color>({infra_red, red, blue, green, red})});

  vector<BinStruct> bins;
  for (int i = 0; i < 1000; ++i) bins.push_back(bin(i));
  echo("echo_bins", &S::echo_bins, {BinSeq(), seq<BinSeq, BinStruct>({bin(1)}), seq<BinSeq, BinStruct>(bins)});
  echo("echo_nameds", &S::echo_nameds,
       {NamedSeq(), seq<NamedSeq, Named>({named("", 0), named("abc", -1), named("abcd", 7), named("abcde", 1 << 30)})});
  echo("echo_longs_seq", &S::echo_longs_seq,
       {LongSeqSeq(), seq<LongSeqSeq, LongSeq>({LongSeq(), varied<LongSeq, CORBA::Long>(3), LongSeq(), varied<LongSeq, CORBA::Long>(1)})});
  StringTable table;
  table.length(3);
  table[0].length(2);
  table[0][0] = "r0c0";
  table[0][1] = "";
  table[2].length(1);
  table[2][0] = "r2";
  echo("echo_string_table", &S::echo_string_table, {StringTable(), table});
  echo("echo_readings", &S::echo_readings, number_seqs<Readings, CORBA::Long>());
  echo("echo_nesteds", &S::echo_nesteds, {NestedSeq(), seq<NestedSeq, Nested>({nested(0), nested(1), nested(5), nested(20)})});
  echo("echo_by_longs", &S::echo_by_longs,
       {ByLongSeq(), seq<ByLongSeq, ByLong>({with<ByLong>([](ByLong& u) { u.number(3); u._d(-3); }),
                                             with<ByLong>([](ByLong& u) { u.text("t"); u._d(99); }),
                                             with<ByLong>([](ByLong& u) { u.bin(bin(4)); })})});
  LongArraySeq arrays;
  arrays.length(2);
  for (int i = 0; i < 5; ++i) {
    arrays[0][i] = i;
    arrays[1][i] = -i;
  }
  echo("echo_long_arrays", &S::echo_long_arrays, {LongArraySeq(), arrays});
}

static void big_messages() {
  run("big/octets", [] {
    OctetSeq sent = varied<OctetSeq, CORBA::Octet>(5 << 20);
    OctetSeq_var got = suite->reflect_octets(sent);
    same("result", sent, got.in());
  });
  run("big/longs", [] {
    LongSeq sent = varied<LongSeq, CORBA::Long>(1 << 20);
    LongSeq_var got = suite->reflect_longs(sent);
    same("result", sent, got.in());
  });
  run("big/doubles", [] {
    DoubleSeq sent = varied<DoubleSeq, CORBA::Double>(1 << 19);
    DoubleSeq_var got = suite->reflect_doubles(sent);
    same("result", sent, got.in());
  });
  run("big/bins", [] {
    BinSeq sent;
    sent.length(150000);
    for (CORBA::ULong i = 0; i < sent.length(); ++i) sent[i] = bin(i);
    BinSeq_var got = suite->reflect_bins(sent);
    same("result", sent, got.in());
  });
  run("big/strings", [] {
    StringSeq sent;
    sent.length(50000);
    for (CORBA::ULong i = 0; i < sent.length(); ++i) sent[i] = string(i % 100, 'a' + i % 26).c_str();
    StringSeq_var got = suite->reflect_strings(sent);
    same("result", sent, got.in());
  });
  run("big/one_string", [] {
    needs_long_strings();
    string sent(3 << 20, 'q');
    CORBA::String_var y = CORBA::string_dup(""), z;
    CORBA::String_var r = suite->echo_string(sent.c_str(), y.inout(), z.out());
    check(sent == r.in() && sent == y.in() && !*z.in(), "differs");
  });
  run("big/swallow", [] { check(suite->swallow(varied<OctetSeq, CORBA::Octet>(8 << 20)) == 8u << 20, "length"); });
  run("big/produce", [] {
    OctetSeq_var got = suite->produce(6 << 20);
    check(got->length() == 6u << 20, "length");
    for (CORBA::ULong i = 0; i < got->length(); ++i) check(got[i] == i % 251, "octet " + std::to_string(i));
  });
  // Lengths around the sizes at which ORBs split messages and switch to copying in bulk.
  run("big/edges", [] {
    for (CORBA::ULong n : {1023u, 4096u, 8100u, 8191u, 8192u, 8193u, 16384u, 65535u, 65536u, 65537u, 131072u}) {
      for (CORBA::ULong more = 0; more < 8; ++more) {
        OctetSeq sent = varied<OctetSeq, CORBA::Octet>(n + more);
        OctetSeq_var got = suite->reflect_octets(sent);
        same("octets", sent, got.in());
      }
      DoubleSeq doubles = varied<DoubleSeq, CORBA::Double>(n / 8 + 1);
      DoubleSeq_var back = suite->reflect_doubles(doubles);
      same("doubles", doubles, back.in());
    }
  });
}

static void arrays() {
  using A = interop::_objref_Arrays;
  LongArray longs = {1, -2, 3, INT32_MIN, INT32_MAX}, zeros = {0, 0, 0, 0, 0};
  echo_array("echo_long_array", &A::echo_long_array, longs, zeros);
  echo_array("echo_vector", &A::echo_vector, zeros, longs);
  Matrix m = {{1, 2, 3}, {-4, 5.5, INFINITY}}, n = {{0, -0.0, NAN}, {1e-300, 7, 8}};
  echo_array("echo_matrix", &A::echo_matrix, m, n);
  Cube cube, other;
  for (int i = 0; i < 24; ++i) {
    (&cube[0][0][0])[i] = i;
    (&other[0][0][0])[i] = 255 - i;
  }
  echo_array("echo_cube", &A::echo_cube, cube, other);
  StringArray words, blanks;
  words[0] = "zero";
  words[1] = "";
  words[2] = "two";
  for (auto& b : blanks) b = "";
  echo_array("echo_string_array", &A::echo_string_array, words, blanks);
  StringGrid grid, dots;
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 2; ++c) {
      grid[r][c] = string(r * 2 + c, 'g').c_str();
      dots[r][c] = ".";
    }
  echo_array("echo_string_grid", &A::echo_string_grid, grid, dots);
  BinArray b1 = {bin(1), bin(2)}, b2 = {bin(30000), bin(-1)};
  echo_array("echo_bin_array", &A::echo_bin_array, b1, b2);
  NamedArray n1, n2;
  n1[0] = named("a", 1);
  n1[1] = named("bb", 2);
  n2[0] = named("", 0);
  n2[1] = named("long name with several words", -1);
  echo_array("echo_named_array", &A::echo_named_array, n1, n2);
  LongSeqArray s1, s2;
  s1[0] = varied<LongSeq, CORBA::Long>(4);
  s2[1] = varied<LongSeq, CORBA::Long>(1);
  echo_array("echo_long_seq_array", &A::echo_long_seq_array, s1, s2);
}

static void structs() {
  using S = interop::_objref_Structs;
  echo("echo_bin", &S::echo_bin, vector<BinStruct>{bin(0), bin(-32768, '!', INT32_MIN, 255, -1e308), bin(77)});
  echo("echo_sample", &S::echo_sample, vector<Sample>{bin(5), bin(6)});
  OneOctet zero = {0}, full = {255};
  echo("echo_one_octet", &S::echo_one_octet, vector<OneOctet>{zero, full});
  AllBasics all = {SHRT_MIN, 0xFFFF, INT32_MIN, 0xFFFFFFFF, INT64_MIN, UINT64_MAX, 1.25f, -2.5, '\\', true, 254};
  AllBasics none = {0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0};
  echo("echo_all_basics", &S::echo_all_basics, vector<AllBasics>{all, none});
  echo("echo_named", &S::echo_named, vector<Named>{named("", 0), named("n", -1), named("name", 42)});
  echo("echo_variable", &S::echo_variable, vector<interop::Variable>{variable(0), variable(1), variable(8), variable(16), variable(500)});
  echo("echo_nested", &S::echo_nested, vector<Nested>{nested(0), nested(3), nested(11)});
  echo("echo_tree", &S::echo_tree, vector<Tree>{tree(0, 0), tree(1, 3), tree(6, 3), tree(30, 1)});
  echo("echo_chain", &S::echo_chain, vector<Chain>{chain(1), chain(2), chain(40)});
  deep::Pair p, q;
  p.first = "p";
  p.outer.first = 1;
  p.outer.second = 2;
  q.first = "";
  q.outer.first = -1;
  q.outer.second = INT32_MAX;
  echo("echo_deep_pair", &S::echo_deep_pair, vector<deep::Pair>{p, q});
}

static void unions() {
  using U = interop::_objref_Unions;
  echo("echo_by_short", &U::echo_by_short,
       vector<ByShort>{with<ByShort>([](ByShort& u) { u.small(200); }), with<ByShort>([](ByShort& u) { u.text("seven"); }),
                       with<ByShort>([](ByShort& u) { u._default(); })});
  echo("echo_by_ushort", &U::echo_by_ushort,
       vector<ByUShort>{with<ByUShort>([](ByUShort& u) { u.top(0.1); }),
                        with<ByUShort>([](ByUShort& u) { u.other(-5); u._d(0); }),
                        with<ByUShort>([](ByUShort& u) { u.other(6); u._d(65534); })});
  Matrix m = {{1, 2, 3}, {4, 5, 6}};
  CORBA::Char letters[3] = {'x', 'y', 'z'};
  ByLong::_words_seq words;
  words.length(2);
  words[0] = "w";
  words[1] = "";
  echo("echo_by_long", &U::echo_by_long,
       vector<ByLong>{with<ByLong>([](ByLong& u) { u.number(10); u._d(1); }),
                      with<ByLong>([](ByLong& u) { u.number(20); u._d(2); }),
                      with<ByLong>([](ByLong& u) { u.number(30); u._d(-3); }),
                      with<ByLong>([](ByLong& u) { u.text("four"); u._d(4); }),
                      with<ByLong>([](ByLong& u) { u.text("default"); u._d(INT32_MIN); }),
                      with<ByLong>([](ByLong& u) { u.text("default"); u._d(INT32_MAX); }),
                      with<ByLong>([](ByLong& u) { u.bin(bin(9)); }),
                      with<ByLong>([](ByLong& u) { u.numbers(varied<LongSeq, CORBA::Long>(5)); }),
                      with<ByLong>([&](ByLong& u) { u.cells(m); }), with<ByLong>([&](ByLong& u) { u.words(words); }),
                      with<ByLong>([&](ByLong& u) { u.letters(letters); })});
  echo("echo_by_ulong", &U::echo_by_ulong,
       vector<ByULong>{with<ByULong>([](ByULong& u) { u.yes(true); }), with<ByULong>([](ByULong& u) { u.big(INT64_MIN); }),
                       with<ByULong>([](ByULong& u) { u._default(); })});
  echo("echo_by_llong", &U::echo_by_llong,
       vector<ByLongLong>{with<ByLongLong>([](ByLongLong& u) { u.low(-7); }),
                          with<ByLongLong>([](ByLongLong& u) { u.rest(1.5f); u._d(1ll << 40); }),
                          with<ByLongLong>([](ByLongLong& u) { u.rest(-1.5f); u._d(INT64_MIN); })});
  echo("echo_by_ullong", &U::echo_by_ullong,
       vector<ByULongLong>{with<ByULongLong>([](ByULongLong& u) { u.top('t'); }),
                           with<ByULongLong>([](ByULongLong& u) { u.who(named("one", 1)); }),
                           with<ByULongLong>([](ByULongLong& u) { u._default(); })});
  echo("echo_by_char", &U::echo_by_char,
       vector<ByChar>{with<ByChar>([](ByChar& u) { u.edge(1); u._d('a'); }), with<ByChar>([](ByChar& u) { u.edge(26); u._d('z'); }),
                      with<ByChar>([](ByChar& u) { u.line("text"); }), with<ByChar>([](ByChar& u) { u._default(); })});
  echo("echo_by_boolean", &U::echo_by_boolean,
       vector<ByBoolean>{with<ByBoolean>([](ByBoolean& u) { u.yes("y"); }), with<ByBoolean>([](ByBoolean& u) { u.no(-1); })});
  echo("echo_half_boolean", &U::echo_half_boolean,
       vector<HalfBoolean>{with<HalfBoolean>([](HalfBoolean& u) { u.value(2.5); }), with<HalfBoolean>([](HalfBoolean& u) { u._default(); })});
  echo("echo_by_color", &U::echo_by_color,
       vector<ByColor>{with<ByColor>([](ByColor& u) { u.who(named("r", 1)); u._d(red); }),
                       with<ByColor>([](ByColor& u) { u.who(named("b", 2)); u._d(blue); }),
                       with<ByColor>([](ByColor& u) { u.level(9); }), with<ByColor>([](ByColor& u) { u.tint(green); })});
  echo("echo_by_alias", &U::echo_by_alias,
       vector<ByAlias>{with<ByAlias>([](ByAlias& u) { u.r(1); }), with<ByAlias>([](ByAlias& u) { u.g(2); }),
                       with<ByAlias>([](ByAlias& u) { u.b(3); }), with<ByAlias>([](ByAlias& u) { u.i(4); })});
  echo("echo_expr", &U::echo_expr,
       vector<Expr>{expr(0), expr(1), expr(12), with<Expr>([](Expr& e) { e.name("free"); }), with<Expr>([](Expr& e) { e._default(); })});
}

static void wide() {
  using W = interop::_objref_Wide;
  run("echo_wchar", [] {
    needs_wide();
    for (CORBA::WChar x : {L'\0', L'A', L'\u00e9', L'\u20ac', L'\u4e16', L'\ufffd'}) {
      CORBA::WChar y = L'\u03a9', z = 0;
      CORBA::WChar r = suite->echo_wchar(x, y, z);
      check(r == x && y == x && z == L'\u03a9', "code point " + std::to_string(unsigned(x)));
    }
  });
  // omniORB's wide characters are UTF-16 units, so the last text is one character beyond the BMP.
  echo("echo_wstring", &W::echo_wstring,
       vector<std::wstring>{L"", L"a", L"wide \u00e9\u4e16", std::wstring(20000, L'\u20ac'), std::wstring{wchar_t(0xD83D), wchar_t(0xDE00)}});
  echo("echo_short_wstring", &W::echo_short_wstring, vector<std::wstring>{L"", L"8 wide \u20ac"});
  auto wide_only = [](const char* name, const std::function<void()>& body) {
    if (giop_minor < 2) run(name, [] { needs_wide(); });
    else body();
  };
  wide_only("echo_wchars", [] {
    echo("echo_wchars", &W::echo_wchars, {interop::Wide::WCharSeq(), seq<interop::Wide::WCharSeq, CORBA::WChar>({L'a', L'\u20ac', L'\0'})});
  });
  wide_only("echo_wstrings", [] {
    interop::Wide::WStringSeq texts;
    texts.length(3);
    texts[0] = (const CORBA::WChar*)L"";
    texts[1] = (const CORBA::WChar*)L"\u4e16";
    texts[2] = (const CORBA::WChar*)L"plain";
    echo("echo_wstrings", &W::echo_wstrings, {interop::Wide::WStringSeq(), texts});
  });
  wide_only("echo_wchar_array", [] {
    interop::Wide::WCharArray a = {L'a', L'\u20ac', L'\u4e16'}, b = {0, 0, 0};
    echo_array("echo_wchar_array", &W::echo_wchar_array, a, b);
  });
  interop::Wide::WideStruct w, v;
  w.c = L'\u20ac';
  w.text = (const CORBA::WChar*)L"odd";
  w.after = 255;
  v.c = L'x';
  v.text = (const CORBA::WChar*)L"";
  v.after = 0;
  wide_only("echo_wide_struct", [&] { echo("echo_wide_struct", &W::echo_wide_struct, vector<interop::Wide::WideStruct>{w, v}); });
  wide_only("echo_wide_union", [&] {
    using interop::Wide;
    echo("echo_wide_union", &W::echo_wide_union,
         vector<Wide::WideUnion>{with<Wide::WideUnion>([](Wide::WideUnion& u) { u.text((const CORBA::WChar*)L"text \u20ac"); }),
                                 with<Wide::WideUnion>([](Wide::WideUnion& u) { u.letter(L'\u4e16'); }),
                                 with<Wide::WideUnion>([&](Wide::WideUnion& u) { u.whole(w); u._d(77); })});
  });
  run("raise_wide", [] {
    needs_wide();
    auto e = expect<interop::Wide::WideError>([] { suite->raise_wide(L"why \u4e16"); });
    same("why", std::wstring(L"why \u4e16"), e.why.in());
  });
  run("wide_constants", [] {
    needs_wide();
    CORBA::WChar c;
    CORBA::WString_var text;
    suite->wide_constants(c, text.out());
    check(c == interop::Wide::C_WCHAR, "wchar");
    same("wstring", std::wstring(interop::Wide::C_WSTRING), text.in());
  });
}

// ---- cases: attributes, exceptions ---------------------------------------------------------------

static void attributes() {
  run("attribute/count", [] {
    for (CORBA::Long v : {INT32_MIN, 0, INT32_MAX}) {
      suite->count(v);
      check(suite->count() == v, "value");
    }
  });
  run("attribute/low_high", [] {
    suite->low(-1);
    suite->high(1);
    check(suite->low() == -1 && suite->high() == 1, "value");
  });
  run("attribute/title", [] {
    for (const char* v : {"a title", ""}) {
      suite->title(v);
      CORBA::String_var got = suite->title();
      same("title", v, got.in());
    }
  });
  run("attribute/tint", [] {
    suite->tint(infra_red);
    check(suite->tint() == infra_red, "value");
  });
  run("attribute/bin", [] {
    suite->bin(bin(123));
    same("bin", bin(123), suite->bin());
  });
  run("attribute/compound", [] {
    suite->compound(variable(9));
    interop::Variable_var got = suite->compound();
    same("compound", variable(9), got.in());
  });
  run("attribute/numbers", [] {
    LongSeq sent = varied<LongSeq, CORBA::Long>(100);
    suite->numbers(sent);
    LongSeq_var got = suite->numbers();
    same("numbers", sent, got.in());
  });
  run("attribute/cells", [] {
    Matrix m = {{1, 2, 3}, {4, 5, 6}};
    suite->cells(m);
    Matrix_var got = suite->cells();
    same_image("cells", image(m), image(got.in(), 2));
  });
  run("attribute/choice", [] {
    ByLong u;
    u.text("chosen");
    u._d(1000);
    suite->choice(u);
    ByLong_var got = suite->choice();
    same("choice", u, got.in());
  });
  run("attribute/partner", [] {
    suite->partner(Node::_nil());
    Node_var none = suite->partner();
    check(CORBA::is_nil(none), "not nil");
    Node_var node = suite->create_node(77);
    suite->partner(node);
    Node_var got = suite->partner();
    check(!CORBA::is_nil(got) && got->id() == 77, "id");
  });
  run("attribute/answer", [] { check(suite->answer() == 42, "value"); });
  run("attribute/guarded", [] {
    suite->xset_guarded(0);
    expect<Empty>([] { suite->xget_guarded(); });
    suite->xset_guarded(5);
    check(suite->xget_guarded() == 5, "value");
    auto e = expect<Refused>([] { suite->xset_guarded(-9); });
    check(!strcmp(e.why, "negative") && e.code == -9, "members of Refused");
    expect<Empty>([] { suite->xset_guarded(13); });
    check(suite->xget_guarded() == 5, "changed by a refused write");
  });
  run("attribute/locked", [] {
    auto e = expect<Detailed>([] { suite->xget_locked(); });
    check(e.trail.length() == 1, "trail");
  });
}

static void faults() {
  run("raise_empty", [] { expect<Empty>([] { suite->raise_empty(); }); });
  run("raise_one_of", [] {
    check(suite->raise_one_of(0) == 1, "result");
    expect<Empty>([] { suite->raise_one_of(1); });
    auto r = expect<Refused>([] { suite->raise_one_of(2); });
    check(!strcmp(r.why, "asked") && r.code == 2, "members of Refused");
    auto o = expect<Occupied>([] { suite->raise_one_of(3); });
    check(CORBA::is_nil(o.holder), "holder is not nil");
    check(suite->raise_one_of(50) == 101, "result afterwards");
  });
  run("raise_detailed", [] {
    for (CORBA::Short depth : {0, 1, 3, 300}) {
      auto e = expect<Detailed>([&] { suite->raise_detailed(depth); });
      same("at", bin(depth, 'd', 2 * depth, 255, 0.5), e.at);
      check(e.trail.length() == CORBA::ULong(depth), "trail");
      for (CORBA::Short i = 0; i < depth; ++i) same("trail", std::to_string(i), (const char*)e.trail[i]);
      check(e.tint == green && !strcmp(e.pair.first, "deep"), "tint, pair");
      check(e.pair.outer.first == depth && e.pair.outer.second == -depth, "pair.outer");
    }
  });
  run("raise_occupied", [] {
    Node_var node = suite->create_node(31);
    auto e = expect<Occupied>([&] { suite->raise_occupied(node); });
    check(e.holder->id() == 31, "holder");
  });

  struct Kind { Fault fault; const char* id; };
  for (Kind kind : {Kind{bad_param, "BAD_PARAM"}, {no_permission, "NO_PERMISSION"}, {imp_limit, "IMP_LIMIT"}, {internal, "INTERNAL"},
                    {no_resources, "NO_RESOURCES"}, {no_implement, "NO_IMPLEMENT"}, {inv_policy, "INV_POLICY"}, {data_conversion, "DATA_CONVERSION"}})
    run(string("raise_system/") + kind.id, [kind] {
      for (CORBA::ULong minor : {0u, 0x49520001u, 0xFFFFFFFFu})
        for (Completion c : {completed_yes, completed_no, completed_maybe}) {
          try {
            suite->raise_system(kind.fault, minor, c);
            throw Mismatch{"raised nothing"};
          } catch (const CORBA::SystemException& e) {
            check(string("IDL:omg.org/CORBA/") + kind.id + ":1.0" == e._rep_id() && e.minor() == minor && int(e.completed()) == int(c),
                  describe(e));
          }
        }
    });

  run("unknown_user_exception", [] {
    CORBA::Object_var o = suite->skewed();
    SkewClient_var skewed = SkewClient::_unchecked_narrow(o);
    expect<CORBA::UNKNOWN>([&] { skewed->skew(4); });
  });
  run("known_user_exception", [] {
    CORBA::Object_var o = suite->skewed();
    SkewServer_var skewed = SkewServer::_narrow(o);
    check(!CORBA::is_nil(skewed), "narrow");
    check(expect<Undeclared>([&] { skewed->skew(4); }).code == 4, "code");
  });
  run("bad_operation/skeleton", [] {
    CORBA::Object_var o = suite->skewed();
    SkewClient_var skewed = SkewClient::_unchecked_narrow(o);
    auto e = expect<CORBA::BAD_OPERATION>([&] { skewed->missing(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
  });
  run("bad_operation/dii", [] {
    CORBA::Request_var request = suite->_request("no_such_operation");
    request->set_return_type(CORBA::_tc_void);
    request->invoke();
    CORBA::Exception* e = request->env()->exception();
    check(e != nullptr, "raised nothing");
    check(CORBA::BAD_OPERATION::_downcast(e) != nullptr, describe(*e));
  });
  run("dii_call", [] {
    CORBA::Request_var request = suite->_request("echo_long");
    request->set_return_type(CORBA::_tc_long);
    request->add_in_arg() <<= CORBA::Long(11);
    CORBA::Any& y = request->add_inout_arg();
    y <<= CORBA::Long(22);
    CORBA::Any& z = request->add_out_arg();
    z <<= CORBA::Long(0);
    request->invoke();
    if (CORBA::Exception* e = request->env()->exception()) throw Mismatch{describe(*e)};
    CORBA::Long r = 0, after = 0, out = 0;
    check((request->return_value() >>= r) && r == 11, "result");
    check((y >>= after) && after == 11 && (z >>= out) && out == 22, "inout, out");
  });
}

// ---- cases: references ---------------------------------------------------------------------------

// What an IIOP profile of a reference says; enough to write it as a corbaloc.
struct Address {
  int minor = 2;
  string host;
  int port = 0;
  string key;
};

static Address address_of(CORBA::Object_ptr object) {
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
    return a;
  }
  throw Mismatch{"the reference has no IIOP profile"};
}

static string corbaloc(const Address& a) {
  string text = "corbaloc:iiop:1." + std::to_string(a.minor) + "@" + (a.host.find(':') == string::npos ? a.host : "[" + a.host + "]") +
                ":" + std::to_string(a.port) + "/";
  for (unsigned char c : a.key) {
    char escaped[4];
    snprintf(escaped, sizeof escaped, "%%%02x", c);
    text += isalnum(c) ? string(1, char(c)) : string(escaped);
  }
  return text;
}

// Sends a LocateRequest and follows its answer. omniORB does so on its own before the first call
// only; the function that does it is protected.
struct Reach : omniObjRef {
  static void (omniObjRef::*locator())() { return &Reach::_locateRequest; }
};
static void locate(CORBA::Object_ptr object) { (object->_PR_getobj()->*Reach::locator())(); }

struct ListenerServant : virtual POA_interop::Listener, virtual PortableServer::RefCountServantBase {
  CORBA::Long ask(CORBA::Long question) override {
    ++asked;
    if (question < 0) throw Refused("no", question);
    // A call from within a call back.
    suite->nothing();
    return question + 1;
  }
  void hint(CORBA::Long token) override {
    std::lock_guard<std::mutex> hold(lock);
    hints.push_back(token);
    changed.notify_all();
  }
  char* describe(const interop::Variable& v, char*& text, LongSeq_out numbers) override {
    numbers = new LongSeq(v.numbers);
    string before = text;
    CORBA::string_free(text);
    text = CORBA::string_dup(v.text);
    return CORBA::string_dup(before.c_str());
  }
  std::atomic<int> asked{0};
  std::mutex lock;
  std::condition_variable changed;
  vector<CORBA::Long> hints;
};

static void references() {
  run("create_node", [] {
    Node_var a = suite->create_node(1), b = suite->create_node(INT32_MIN);
    check(a->id() == 1 && b->id() == INT32_MIN, "id");
    check(!a->_is_equivalent(b), "two objects are equivalent");
    Node_var t = a->twin();
    check(t->id() == 1, "twin");
  });
  run("echo_node", [] {
    Node_var x = suite->create_node(10), y = suite->create_node(20), z;
    Node_var r = suite->echo_node(x, y.inout(), z.out());
    check(r->id() == 10 && y->id() == 10 && z->id() == 20, "ids");
    check(r->_is_equivalent(x), "not equivalent");
  });
  run("echo_node/nil", [] {
    Node_var y = suite->create_node(20), z;
    Node_var r = suite->echo_node(Node::_nil(), y.inout(), z.out());
    check(CORBA::is_nil(r) && CORBA::is_nil(y) && z->id() == 20, "nil");
    Node_var x = Node::_duplicate(z);
    r = suite->echo_node(x, y.inout(), z.out());
    check(!CORBA::is_nil(r) && r->id() == 20 && y->id() == 20 && CORBA::is_nil(z), "nil again");
  });
  run("echo_object", [] {
    Node_var x = suite->create_node(5);
    CORBA::Object_var y = CORBA::Object::_duplicate(suite), z;
    CORBA::Object_var r = suite->echo_object(x, y.inout(), z.out());
    Node_var n = Node::_narrow(r), n2 = Node::_narrow(y);
    Suite_var s = Suite::_narrow(z);
    check(!CORBA::is_nil(n) && !CORBA::is_nil(n2) && !CORBA::is_nil(s), "narrow");
    check(n->id() == 5 && n2->id() == 5, "id");
    r = suite->echo_object(CORBA::Object::_nil(), y.inout(), z.out());
    check(CORBA::is_nil(r) && CORBA::is_nil(y) && !CORBA::is_nil(z), "nil");
  });
  run("echo_nodes", [] {
    NodeSeq x, y;
    x.length(3);
    x[0] = suite->create_node(1);
    x[1] = Node::_nil();
    x[2] = suite->create_node(3);
    NodeSeq_var z;
    NodeSeq_var r = suite->echo_nodes(x, y, z.out());
    check(r->length() == 3 && y.length() == 3 && z->length() == 0, "lengths");
    check(r[0u]->id() == 1 && CORBA::is_nil(r[1]) && r[2]->id() == 3 && y[2]->id() == 3, "elements");
  });
  run("echo_objects", [] {
    ObjectSeq x, y;
    x.length(2);
    x[0] = suite->create_node(8);
    x[1] = CORBA::Object::_duplicate(suite);
    y.length(1);
    ObjectSeq_var z;
    ObjectSeq_var r = suite->echo_objects(x, y, z.out());
    check(r->length() == 2 && y.length() == 2 && z->length() == 1 && CORBA::is_nil(z[0u]), "lengths");
    check(suite->_is_equivalent(r[1]), "not equivalent");
    Node_var n = Node::_narrow(r[0u]);
    check(n->id() == 8, "id");
  });
  run("echo_link", [] {
    Link x, y;
    x.label = "left";
    x.target = suite->create_node(1);
    y.label = "right";
    Link_var z;
    Link_var r = suite->echo_link(x, y, z.out());
    check(!strcmp(r->label, "left") && r->target->id() == 1 && y.target->id() == 1, "link");
    check(!strcmp(z->label, "right") && CORBA::is_nil(z->target), "nil member");
  });
  run("echo_node_or_name", [] {
    NodeOrName x, y;
    Node_var n = suite->create_node(6);
    x.target(n);
    y.name("named");
    NodeOrName_var z;
    NodeOrName_var r = suite->echo_node_or_name(x, y, z.out());
    check(r->_d() && r->target()->id() == 6 && y.target()->id() == 6 && !z->_d() && !strcmp(z->name(), "named"), "union");
  });
  run("id_of", [] {
    Node_var n = suite->create_node(44);
    check(suite->id_of(n) == 44, "id");
  });
  run("destroy", [] {
    Node_var n = suite->create_node(1);
    check(!n->_non_existent(), "does not exist");
    n->destroy();
    auto e = expect<CORBA::OBJECT_NOT_EXIST>([&] { n->id(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
    check(n->_non_existent(), "still exists");
  });
  run("sprite", [] {
    Sprite_var s = suite->create_sprite("sprite", 2.0);
    s->move(1.5, -2);
    s->move(1, 1);
    s->scale(4);
    check(s->x() == 2.5 && s->y() == -1 && s->area() == 8, "state");
    s->name("renamed");
    CORBA::String_var name = s->name(), drawn = s->draw(7);
    same("name", "renamed", name.in());
    same("draw", "renamed7", drawn.in());
  });
  run("widen", [] {
    Sprite_var s = suite->create_sprite("w", 3.0);
    Shape_var shape = suite->widen(s);
    check(shape->area() == 3.0, "area");
    Movable_var movable = Movable::_narrow(shape);
    Scalable_var scalable = Scalable::_narrow(shape);
    Sprite_var back = Sprite::_narrow(shape);
    check(!CORBA::is_nil(movable) && !CORBA::is_nil(scalable) && !CORBA::is_nil(back), "narrow");
    Node_var wrong = Node::_narrow(shape);
    check(CORBA::is_nil(wrong), "narrowed to the wrong type");
    movable->move(1, 0);
    check(back->x() == 1, "the same object");
  });
  run("gauge", [] {
    deep::Gauge_var g = suite->create_gauge();
    check(g->reading() == deep::low, "initial");
    g->set_reading(deep::high);
    check(g->reading() == deep::high, "set");
  });
  run("is_a", [] {
    Sprite_var s = suite->create_sprite("a", 1.0);
    for (const char* id : {"IDL:ironorb.example/interop/Sprite:1.0", "IDL:ironorb.example/interop/Movable:1.0",
                           "IDL:ironorb.example/interop/Shape:1.0", "IDL:omg.org/CORBA/Object:1.0"})
      check(s->_is_a(id), id);
    check(!s->_is_a("IDL:ironorb.example/interop/Node:1.0"), "is a Node");
    check(!s->_is_a("IDL:no.such/Thing:1.0"), "is a Thing");
  });
  // A corbaloc tells no type, so these questions go to the server.
  run("is_a/remote", [] {
    Sprite_var s = suite->create_sprite("a", 1.0);
    CORBA::Object_var untyped = orb->string_to_object(corbaloc(address_of(s)).c_str());
    for (const char* id : {"IDL:ironorb.example/interop/Sprite:1.0", "IDL:ironorb.example/interop/Movable:1.0",
                           "IDL:ironorb.example/interop/Scalable:1.0", "IDL:ironorb.example/interop/Shape:1.0",
                           "IDL:omg.org/CORBA/Object:1.0"})
      check(untyped->_is_a(id), id);
    check(!untyped->_is_a("IDL:ironorb.example/interop/Node:1.0"), "is a Node");
    Shape_var shape = Shape::_narrow(untyped);
    check(!CORBA::is_nil(shape) && shape->area() == 1.0, "narrow");
    Node_var wrong = Node::_narrow(untyped);
    check(CORBA::is_nil(wrong), "narrowed to the wrong type");
  });
  run("is_equivalent_hash", [] {
    CORBA::String_var ior = orb->object_to_string(suite);
    CORBA::Object_var again = orb->string_to_object(ior);
    check(suite->_is_equivalent(again), "not equivalent to its copy");
    for (CORBA::ULong max : {1u, 7u, 1000000u})
      check(suite->_hash(max) == again->_hash(max) && suite->_hash(max) <= max, "hash");
    Node_var n = suite->create_node(1);
    check(!suite->_is_equivalent(n), "equivalent to another");
  });
  run("non_existent", [] { check(!suite->_non_existent(), "does not exist"); });
  run("unknown_key", [] {
    Address a = address_of(suite);
    a.key = "no such object";
    CORBA::Object_var o = orb->string_to_object(corbaloc(a).c_str());
    check(o->_non_existent(), "exists");
    Node_var n = Node::_unchecked_narrow(o);
    auto e = expect<CORBA::OBJECT_NOT_EXIST>([&] { n->id(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
  });
  run("locate/here", [] {
    Node_var n = suite->create_node(2);
    locate(n);
    locate(suite);
  });
  run("locate/unknown", [] {
    Node_var n = suite->create_node(2);
    n->destroy();
    expect<CORBA::OBJECT_NOT_EXIST>([&] { locate(n); });
    Address a = address_of(suite);
    a.key = "absent";
    CORBA::Object_var o = orb->string_to_object(corbaloc(a).c_str());
    expect<CORBA::OBJECT_NOT_EXIST>([&] { locate(o); });
  });
  run("forwarded", [] {
    Node_var target = suite->create_node(64);
    Node_var f = suite->forwarded(target);
    for (int i = 0; i < 3; ++i) check(f->id() == 64, "id");
    Node_var again = suite->forwarded(target);
    check(!again->_non_existent(), "does not exist");
  });
  run("locate/forward", [] {
    Node_var target = suite->create_node(65);
    Node_var f = suite->forwarded(target);
    locate(f);
    check(f->id() == 65, "id");
  });

  auto* servant = new ListenerServant;
  PortableServer::ObjectId_var oid = root_poa->activate_object(servant);
  Listener_var listener = servant->_this();
  run("call_back", [&] {
    check(suite->call_back(listener, 41, 1) == 42, "one");
    check(suite->call_back(listener, 1, 50) == 100, "many");
    check(suite->call_back(listener, 1, 0) == 0, "none");
    check(servant->asked == 51, "asked " + std::to_string(servant->asked));
  });
  run("call_back/exception", [&] {
    auto e = expect<Refused>([&] { suite->call_back(listener, -5, 3); });
    check(!strcmp(e.why, "no") && e.code == -5, "members of Refused");
  });
  run("hint_back", [&] {
    suite->hint_back(listener, 20);
    std::unique_lock<std::mutex> hold(servant->lock);
    check(servant->changed.wait_for(hold, std::chrono::seconds(30), [&] { return servant->hints.size() >= 20; }), "hints were lost");
    std::sort(servant->hints.begin(), servant->hints.end());
    for (int i = 0; i < 20; ++i) check(servant->hints[i] == i + 1, "not each hint once");
  });
  run("describe_back", [&] {
    CORBA::String_var text = CORBA::string_dup("before");
    LongSeq_var numbers;
    interop::Variable v = variable(40);
    CORBA::String_var r = suite->describe_back(listener, v, text.inout(), numbers.out());
    same("result", "before", r.in());
    same("text", string(40, 't'), text.in());
    same("numbers", v.numbers, numbers.in());
  });
  root_poa->deactivate_object(oid);
  servant->_remove_ref();
}

// ---- cases: control, time, threads ---------------------------------------------------------------

static void wait_until_waiting(const char* gate, CORBA::ULong count) {
  for (int i = 0; i < 3000; ++i) {
    if (suite->waiting(gate) >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Mismatch{"the blocked call never arrived"};
}

static void control() {
  run("oneway", [] {
    LongSeq_var before = suite->take_tokens(0, 0);
    for (int i = 1; i <= 100; ++i) suite->notify(i);
    LongSeq_var got = suite->take_tokens(100, 30000);
    check(got->length() == 100, std::to_string(got->length()) + " of 100 arrived");
    // A server with many threads may run them in any order.
    std::sort(&got[0u], &got[0u] + 100);
    for (int i = 0; i < 100; ++i) check(got[i] == i + 1, "not each token once");
  });
  run("oneway/blob", [] {
    LongSeq_var before = suite->take_tokens(0, 0);
    suite->notify_blob(varied<OctetSeq, CORBA::Octet>(300000), "a large oneway");
    suite->notify_blob(OctetSeq(), "");
    LongSeq_var got = suite->take_tokens(2, 30000);
    check(got->length() == 2 && got[0u] + got[1] == 300000, "tokens");
  });
  run("context", [] {
    CORBA::Context_var base, context;
    orb->get_default_context(base.out());
    base->create_child("test", context.out());
    StringSeq_var got = suite->with_context(1, context);
    check(got->length() == 0, "an empty context carried something");
    CORBA::Any value;
    for (const char* name : {"color", "color_depth", "region", "other"}) {
      value <<= (string("v-") + name).c_str();
      context->set_one_value(name, value);
    }
    got = suite->with_context(1, context);
    same("values", strings<StringSeq>({"color=v-color", "color_depth=v-color_depth", "region=v-region"}), got.in());
  });
  run("block", [] {
    CORBA::Long opened = 0;
    std::atomic<bool> raised{false};
    std::thread blocked([&] {
      try {
        opened = suite->block("plain");
      } catch (const CORBA::Exception&) {
        raised = true;
      }
    });
    string problem;
    try {
      wait_until_waiting("plain", 1);
      // The blocked call must not stop others.
      for (int i = 0; i < 20; ++i) suite->nothing();
      check(suite->release("plain") == 1, "nobody waited");
    } catch (const Mismatch& m) {
      problem = m.what;
      suite->release("plain");
    }
    blocked.join();
    check(problem.empty(), problem);
    check(!raised && opened >= 1, "the blocked call");
  });
  run("timeout", [] {
    Suite_var hurried = Suite::_duplicate(suite);
    CORBA::String_var ior = orb->object_to_string(suite);
    CORBA::Object_var again = orb->string_to_object(ior);
    hurried = Suite::_narrow(again);
    omniORB::setClientCallTimeout(hurried, 400);
    try {
      hurried->block("timeout");
      throw Mismatch{"raised nothing"};
    } catch (const CORBA::TIMEOUT& e) {
    } catch (const CORBA::TRANSIENT& e) {
      check(e.minor() == omni::TRANSIENT_CallTimedout, describe(e));
    }
    omniORB::setClientCallTimeout(hurried, 0);
    // The server lives on, and still holds the call that nobody waits for.
    wait_until_waiting("timeout", 1);
    check(suite->release("timeout") == 1, "nobody waited");
    hurried->nothing();
    CORBA::Long y = 2, z = 0;
    check(hurried->echo_long(1, y, z) == 1, "a call after the timeout");
  });
  run("threads", [] {
    const int count = 8, rounds = 100;
    std::atomic<int> wrong{0}, raised{0};
    vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) try {
          CORBA::Long y = t, z = 0;
          if (suite->echo_long(i * count + t, y, z) != i * count + t || y != i * count + t || z != t) ++wrong;
          OctetSeq sent = varied<OctetSeq, CORBA::Octet>(size_t(i) * 97 * (t + 1));
          OctetSeq_var got = suite->reflect_octets(sent);
          if (image(sent) != image(got.in())) ++wrong;
          CORBA::String_var text = suite->type(std::to_string(t).c_str(), std::to_string(i).c_str());
          if (std::to_string(t) + "&" + std::to_string(i) != text.in()) ++wrong;
          if (i % 10 == 0) try {
            suite->raise_one_of(2);
            ++wrong;
          } catch (const Refused& e) {
            if (e.code != 2) ++wrong;
          }
        } catch (const CORBA::Exception&) {
          ++raised;
        }
      });
    for (auto& t : threads) t.join();
    check(wrong == 0 && raised == 0, std::to_string(wrong) + " wrong, " + std::to_string(raised) + " raised");
  });
}

// ---- start-up ------------------------------------------------------------------------------------

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (string(argv[i]) == "-ORBmaxGIOPVersion") giop_minor = atoi(strchr(argv[i + 1], '.') + 1);
  try {
    // Defaults that -ORB... arguments may override: UTF-8 strings, messages of up to 64 MB.
    const char* defaults[][2] = {{"nativeCharCodeSet", "UTF-8"}, {"giopMaxMsgSize", "67108864"}, {0, 0}};
    orb = CORBA::ORB_init(argc, argv, "omniORB4", defaults);
    string reference;
    bool shutdown = false;
    for (int i = 1; i < argc; ++i) {
      string option = argv[i];
      if (option == "--only" && i + 1 < argc) only.push_back(argv[++i]);
      else if (option == "--skip" && i + 1 < argc) {
        string pair = argv[++i];
        size_t eq = pair.find('=');
        if (eq == string::npos) {
          fprintf(stderr, "client: --skip wants NAME=REASON\n");
          return 2;
        }
        skips.emplace_back(pair.substr(0, eq), pair.substr(eq + 1));
      } else if (option == "--shutdown") shutdown = true;
      else if (reference.empty() && !begins(option, "-")) reference = option;
      else {
        fprintf(stderr, "client: what is %s?\n", option.c_str());
        return 2;
      }
    }
    if (reference.empty()) {
      fprintf(stderr, "usage: client [-ORB...] [--only NAME]... [--skip NAME=REASON]... [--shutdown] REFERENCE\n");
      return 2;
    }

    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    root_poa = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root_poa->the_POAManager();
    manager->activate();

    object = orb->string_to_object(reference.c_str());
    suite = Suite::_narrow(object);
    if (CORBA::is_nil(suite)) {
      fprintf(stderr, "client: the reference is no interop::Suite\n");
      return 1;
    }
    giop_minor = std::min(giop_minor, address_of(suite).minor);

    basics();
    sequences();
    arrays();
    structs();
    unions();
    wide();
    attributes();
    faults();
    references();
    control();
    big_messages();
    if (shutdown) run("shutdown", [] { suite->shutdown(); });
    printf("%d passed, %d failed\n", passed, failed);
    suite = Suite::_nil();
    orb->destroy();
    return failed == 0 && passed > 0 ? 0 : 1;
  } catch (const CORBA::Exception& e) {
    fprintf(stderr, "client: %s\n", describe(e).c_str());
  } catch (const Mismatch& m) {
    fprintf(stderr, "client: %s\n", m.what.c_str());
  }
  return 1;
}
