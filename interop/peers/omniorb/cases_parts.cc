// The cases of what not every ORB can do: each asks the suite for the object of its part.

#include "cases.hh"
#include "samples.hh"
#include "values.hh"

static void right(const char* which, const string& sample, const CORBA::Any& any) {
  string wrong = check_sample(sample, any);
  if (!wrong.empty()) throw Mismatch{string(which) + " " + wrong};
}

void anys() {
  for (auto& sample : samples()) {
    const string& name = sample.first;
    run("any/make/" + name, [&] {
      auto anys = part<Anys>("anys");
      CORBA::Any_var any = anys->make(name.c_str());
      right("the any", name, any);
    });
    run("any/check/" + name, [&] {
      auto anys = part<Anys>("anys");
      CORBA::String_var wrong = anys->check(name.c_str(), make_sample(name));
      check(!*wrong.in(), wrong.in());
    });
    run("any/echo/" + name, [&] {
      auto anys = part<Anys>("anys");
      CORBA::Any x = make_sample(name), y;
      y <<= CORBA::Short(7);
      CORBA::Any_var z;
      CORBA::Any_var r = anys->echo_any(x, y, z.out());
      right("result", name, r);
      right("inout", name, y);
      CORBA::Short before = 0;
      check((z.in() >>= before) && before == 7, "out");
    });
  }
  run("any/unknown_sample", [] {
    auto anys = part<Anys>("anys");
    expect<CORBA::BAD_PARAM>([&] { CORBA::Any_var any = anys->make("no such sample"); });
  });
  run("any/echo_anys", [] {
    auto anys = part<Anys>("anys");
    AnySeq x, y;
    x.length(3);
    x[0] <<= CORBA::Long(1);
    x[2] <<= "three";
    AnySeq_var z;
    AnySeq_var r = anys->echo_anys(x, y, z.out());
    const char* text;
    check(r->length() == 3 && y.length() == 3 && z->length() == 0 && (r[2] >>= text) && !strcmp(text, "three"), "values");
  });
  run("any/echo_property", [] {
    auto anys = part<Anys>("anys");
    Property x, y;
    x.name = "p";
    x.value <<= CORBA::Double(0.5);
    y.name = "q";
    Property_var z;
    Property_var r = anys->echo_property(x, y, z.out());
    CORBA::Double d;
    check((r->value >>= d) && d == 0.5 && !strcmp(y.name, "p") && !strcmp(z->name, "q"), "values");
  });
  run("any/echo_any_or_name", [] {
    auto anys = part<Anys>("anys");
    AnyOrName x, y;
    CORBA::Any any;
    any <<= CORBA::Long(5);
    x.value(any);
    y.name("n");
    AnyOrName_var z;
    AnyOrName_var r = anys->echo_any_or_name(x, y, z.out());
    CORBA::Long l;
    check((r->value() >>= l) && l == 5 && y._d() && !strcmp(z->name(), "n"), "values");
  });
  run("any/raise_unfit", [] {
    auto anys = part<Anys>("anys");
    auto e = expect<Unfit>([&] { anys->raise_unfit(make_sample("variable")); });
    check(!strcmp(e.why, "asked"), "why");
    right("what", "variable", e.what);
  });
  run("any/held", [] {
    auto anys = part<Anys>("anys");
    for (const char* sample : {"long", "anys", "tree"}) {
      anys->held(make_sample(sample));
      CORBA::Any_var got = anys->held();
      right("held", sample, got);
    }
  });
  run("any/live_reference", [] {
    auto anys = part<Anys>("anys");
    Node_var node = suite->create_node(55);
    CORBA::Any x, y;
    x <<= node;
    CORBA::Any_var z;
    CORBA::Any_var r = anys->echo_any(x, y, z.out());
    Node_ptr back;
    check((r.in() >>= back) && back->id() == 55, "the reference");
  });
}

void typecodes() {
  for (auto& sample : samples()) {
    const string& name = sample.first;
    run("typecode/echo/" + name, [&] {
      auto typecodes = part<TypeCodes>("typecodes");
      CORBA::TypeCode_var x = make_sample(name).type(), y = CORBA::TypeCode::_duplicate(_tc_Pair), z;
      CORBA::TypeCode_var r = typecodes->echo_typecode(x, y.inout(), z.out());
      check(r->equivalent(x) && y->equivalent(x) && z->equivalent(_tc_Pair), "types");
    });
    run("typecode/type_of/" + name, [&] {
      auto typecodes = part<TypeCodes>("typecodes");
      CORBA::TypeCode_var mine = make_sample(name).type(), theirs = typecodes->type_of(name.c_str());
      check(theirs->equivalent(mine), "not equivalent");
    });
    run("typecode/are_equivalent/" + name, [&] {
      auto typecodes = part<TypeCodes>("typecodes");
      CORBA::TypeCode_var mine = make_sample(name).type();
      CORBA::TypeCode_var theirs = typecodes->type_of(name.c_str());
      check(typecodes->are_equivalent(mine, theirs), "not equivalent");
      CORBA::TypeCode_ptr other = name == "color" ? _tc_BinStruct : _tc_Color;
      check(!typecodes->are_equivalent(mine, other), "equivalent to another");
    });
  }
  run("typecode/echo_typecodes", [] {
    auto typecodes = part<TypeCodes>("typecodes");
    TypeCodeSeq x, y;
    x.length(samples().size());
    CORBA::ULong at = 0;
      // The TypeCode of expr is more than omniORB bears.
    for (auto& sample : samples()) x[at++] = sample.first == "expr" ? CORBA::TypeCode::_duplicate(_tc_Pair) : make_sample(sample.first).type();
    TypeCodeSeq_var z;
    TypeCodeSeq_var r = typecodes->echo_typecodes(x, y, z.out());
    check(r->length() == x.length() && y.length() == x.length() && z->length() == 0, "lengths");
    for (CORBA::ULong i = 0; i < x.length(); ++i) check(r[i]->equivalent(x[i]) && y[i]->equivalent(x[i]), "type " + std::to_string(i));
  });
  run("typecode/made_at_run_time", [] {
    auto typecodes = part<TypeCodes>("typecodes");
    const char* id = "IDL:ironorb.example/interop/Unheard:1.0";
    CORBA::TypeCode_var itself = orb->create_recursive_tc(id);
    CORBA::StructMemberSeq members;
    members.length(2);
    members[0].name = "number";
    members[0].type = CORBA::TypeCode::_duplicate(CORBA::_tc_longlong);
    members[1].name = "more";
    members[1].type = orb->create_sequence_tc(0, itself);
    CORBA::TypeCode_var x = orb->create_struct_tc(id, "Unheard", members), y = CORBA::TypeCode::_duplicate(CORBA::_tc_null), z;
    CORBA::TypeCode_var r = typecodes->echo_typecode(x, y.inout(), z.out());
    check(r->equivalent(x), "not equivalent");
  });
}

// A copy of one of omniORB's fixed numbers forgets its digits, and marshalling it ends the program, so they are made
// where they are used.
static CORBA::Fixed number(const char* text) {
  CORBA::Fixed f;
  f.NP_fromString(text);
  return f;
}

template <class F, class Call>
static void echo_numbers(const char* name, const vector<const char*>& texts, Call call) {
  run(name, [&] {
    auto target = part<Fixeds>("fixed");
    for (size_t i = 0; i < texts.size(); ++i) {
      F x(number(texts[i])), y(number(neighbour(texts, i))), before(number(neighbour(texts, i))), z;
      F r(static_cast<const CORBA::Fixed&>(call(target.in(), x, y, z)));
      check(r == x && y == x && z == before, string("value ") + texts[i]);
    }
  });
}

// Echoes what equals itself; the part is found by each case.
template <class Part, class T, class Call>
static void echo_equal(const char* name, const char* part_name, const vector<T>& values, Call call) {
  run(name, [&] {
    auto target = part<Part>(part_name);
    for (size_t i = 0; i < values.size(); ++i) {
      T x = values[i], before = neighbour(values, i), y = before, z;
      T r = call(target.in(), x, y, z);
      check(r == x && y == x && z == before, "value " + std::to_string(i));
    }
  });
}

void fixed() {
  using F = interop::_objref_Fixeds;
  echo_numbers<Price>("fixed/echo_price", {"0", "0.01", "-0.01", "999.99", "-999.99", "7", "12.3", "100"},
                      [](F* f, Price& x, Price& y, Price& z) { return f->echo_price(x, y, z); });
  echo_numbers<Whole>("fixed/echo_whole", {"0", "1", "-1", "9999", "-10"},
                      [](F* f, Whole& x, Whole& y, Whole& z) { return f->echo_whole(x, y, z); });
  echo_numbers<Fraction>("fixed/echo_fraction", {"0", "0.000001", "-0.999999", "0.5", "0.05"},
                         [](F* f, Fraction& x, Fraction& y, Fraction& z) { return f->echo_fraction(x, y, z); });
  echo_numbers<Huge>("fixed/echo_huge",
                     {"0", "123456789012345678901.0123456789", "-999999999999999999999.9999999999", "0.0000000001", "42"},
                     [](F* f, Huge& x, Huge& y, Huge& z) { return f->echo_huge(x, y, z); });
  echo_numbers<Digit>("fixed/echo_digit", {"0", "9", "-9"}, [](F* f, Digit& x, Digit& y, Digit& z) { return f->echo_digit(x, y, z); });
  run("fixed/echo_prices", [&] {
    auto fixed = part<Fixeds>("fixed");
    PriceSeq x, y;
    x.length(3);
    x[0] = number("0.01");
    x[1] = number("-999.99");
    x[2] = number("0");
    PriceSeq_var z;
    PriceSeq_var r = fixed->echo_prices(x, y, z.out());
    check(r->length() == 3 && y.length() == 3 && z->length() == 0, "lengths");
    for (CORBA::ULong i = 0; i < 3; ++i) check(r[i] == x[i] && y[i] == x[i], "element " + std::to_string(i));
  });
  run("fixed/echo_huge_pair", [&] {
    auto fixed = part<Fixeds>("fixed");
    HugePair x, y, z;
    x[0] = number("0.0000000001");
    x[1] = number("-42");
    y[0] = number("123456789012345678901.0123456789");
    y[1] = number("0");
    HugePair_var r = fixed->echo_huge_pair(x, y, z);
    check(r[0] == x[0] && r[1] == x[1] && y[1] == x[1] && z[0] == number("123456789012345678901.0123456789"), "values");
  });
  run("fixed/echo_bill", [&] {
    auto fixed = part<Fixeds>("fixed");
    Bill x, y;
    x.what = "odd";
    x.total = number("999.99");
    x.paid = 1;
    y.what = "";
    y.total = number("0");
    y.paid = 255;
    Bill_var z;
    Bill_var r = fixed->echo_bill(x, y, z.out());
    check(r->total == x.total && r->paid == 1 && y.paid == 1 && z->paid == 255, "values");
  });
  run("fixed/echo_by_price", [&] {
    auto fixed = part<Fixeds>("fixed");
    ByPrice x, y, z;
    x.small(Price(number("-999.99")));
    x.small().PR_setLimits(5, 2);
    y.large(Huge(number("42")));
    y.large().PR_setLimits(31, 10);
    ByPrice r = fixed->echo_by_price(x, y, z);
    check(r.small() == number("-999.99") && y.small() == number("-999.99") && z.large() == number("42"), "values");
  });
  run("fixed/total", [&] {
    auto fixed = part<Fixeds>("fixed");
    PriceSeq prices;
    prices.length(2);
    prices[0] = number("1.05");
    prices[1] = number("2.95");
    check(fixed->total(prices) == number("4"), "total");
    prices[0] = number("900");
    prices[1] = number("900");
    expect<CORBA::DATA_CONVERSION>([&] { fixed->total(prices); });
  });
}

void long_double() {
  using L = interop::_objref_LongDoubles;
  vector<CORBA::LongDouble> values{0.0L, 1.0L, -1.5L, 0.1, 1e300L};
  echo_equal<LongDoubles>("long_double/echo_long_double", "long_double", values, [](L* l, CORBA::LongDouble& x, CORBA::LongDouble& y, CORBA::LongDouble& z) {
    return l->echo_long_double(x, y, z);
  });
  run("long_double/echo_long_doubles", [&] {
    auto part_of = part<LongDoubles>("long_double");
    LongDoubleSeq x, y;
    x.length(values.size());
    for (size_t i = 0; i < values.size(); ++i) x[i] = values[i];
    LongDoubleSeq_var z;
    LongDoubleSeq_var r = part_of->echo_long_doubles(x, y, z.out());
    check(r->length() == values.size() && y.length() == values.size() && z->length() == 0, "lengths");
    for (size_t i = 0; i < values.size(); ++i) check(r[i] == values[i], "element");
  });
  run("long_double/echo_precise", [&] {
    auto part_of = part<LongDoubles>("long_double");
    Precise x = {1, -1.5L, 2}, y = {255, 0.0L, 0}, z;
    Precise r = part_of->echo_precise(x, y, z);
    check(r.value == -1.5L && r.after == 2 && y.before == 1 && z.before == 255, "values");
  });
  run("long_double/half", [&] {
    auto part_of = part<LongDoubles>("long_double");
    check(part_of->half(-3.0L) == -1.5L && part_of->half(1.0L) == 0.5L, "values");
  });
}
