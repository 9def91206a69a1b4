// The values that the cases send: edges of every basic type, and makers of the composed ones.

#ifndef IRONORB_INTEROP_VALUES_HH
#define IRONORB_INTEROP_VALUES_HH

#include "harness.hh"

// ---- values --------------------------------------------------------------------------------------

template <class S, class E>
inline S seq(const vector<E>& elements) {
  S s;
  s.length(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) s[i] = elements[i];
  return s;
}
template <class S>
inline S strings(const vector<string>& elements) {
  S s;
  s.length(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) s[i] = elements[i].c_str();
  return s;
}
// A sequence of n elements whose bits vary.
template <class S, class E>
inline S varied(size_t n) {
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
inline vector<S> number_seqs() {
  return {S(), varied<S, E>(1), varied<S, E>(7), varied<S, E>(5000)};
}

template <class T>
inline vector<T> integers() {
  using limits = std::numeric_limits<T>;
  T pattern = T(0x0102030405060708ull);
  return {0, 1, T(-1), limits::min(), limits::max(), T(limits::max() / 3), pattern};
}
template <class T, class Bits>
inline vector<T> floats(const vector<Bits>& patterns) {
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

inline BinStruct bin(CORBA::Short s, CORBA::Char c, CORBA::Long l, CORBA::Octet o, CORBA::Double d) {
  BinStruct b;
  b.s = s;
  b.c = c;
  b.l = l;
  b.o = o;
  b.d = d;
  return b;
}
inline BinStruct bin(int i) { return bin(CORBA::Short(i), CORBA::Char(i & 127), i * 7919, CORBA::Octet(i), i / 3.0); }

inline Named named(const string& name, CORBA::Long value) {
  Named n;
  n.name = name.c_str();
  n.value = value;
  return n;
}

inline interop::Variable variable(int i) {
  interop::Variable v;
  v.text = string(i, 't').c_str();
  v.code = string(i % 17, 'c').c_str();
  v.numbers = varied<LongSeq, CORBA::Long>(i);
  v.raw.length(i % 9);
  for (CORBA::ULong k = 0; k < v.raw.length(); ++k) v.raw[k] = 255 - k;
  v.tint = Color(i % 4);
  return v;
}

inline Nested nested(int i) {
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

inline Tree tree(int depth, int width) {
  Tree t;
  t.label = ("d" + std::to_string(depth)).c_str();
  if (depth > 0) {
    t.children.length(width);
    for (int i = 0; i < width; ++i) t.children[i] = tree(depth - 1, width);
  }
  return t;
}

inline Chain chain(int length) {
  Chain c;
  c.value = length;
  if (length > 1) {
    c.next.length(1);
    c.next[0] = chain(length - 1);
  }
  return c;
}

inline Expr expr(int depth) {
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
inline U with(const std::function<void(U&)>& make) {
  U u;
  make(u);
  return u;
}

#endif
