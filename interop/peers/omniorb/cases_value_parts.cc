// The cases of abstract interfaces and of values inside anys.

#include "cases.hh"
#include "known_values.hh"
#include "value_samples.hh"
#include "values.hh"

// What a thing says of itself, and whether it is a value.
static void described(const string& which, bool is_value, const string& expected, Describable_ptr thing) {
  check(!CORBA::is_nil(thing), which + " is nil");
  check((thing->_NP_to_value() != nullptr) == is_value, which + (is_value ? " is no value" : " is a value"));
  CORBA::String_var description = thing->describe_it();
  same(which.c_str(), expected, description.in());
}

void abstracts() {
  run("abstract/echo_value", [] {
    auto abstracts = part<Abstracts>("abstracts");
    Describable_var x = new ACard("one"), y = new ACard("two"), z;
    Describable_var r = abstracts->echo_describable(x, y.inout(), z.out());
    described("the result", true, "card one", r);
    described("the inout", true, "card one", y);
    described("the out", true, "card two", z);
  });
  run("abstract/echo_reference", [] {
    auto abstracts = part<Abstracts>("abstracts");
    Person_var person = abstracts->create_person("somebody");
    Describable_var y, z;
    Describable_var r = abstracts->echo_describable(person, y.inout(), z.out());
    described("the result", false, "person somebody", r);
    described("the inout", false, "person somebody", y);
    check(CORBA::is_nil(z), "nil came back as something");
    r = abstracts->echo_describable(Describable::_nil(), y.inout(), z.out());
    check(CORBA::is_nil(r) && CORBA::is_nil(y), "nil came back as something");
    described("the out", false, "person somebody", z);
  });
  run("abstract/mixed", [] {
    auto abstracts = part<Abstracts>("abstracts");
    Describable_var x = new ACard("y"), z;
    Describable_var y = abstracts->a_person("x");
    Describable_var r = abstracts->echo_describable(x, y.inout(), z.out());
    described("the result", true, "card y", r);
    described("the out", false, "person x", z);
  });
  run("abstract/description_of", [] {
    auto abstracts = part<Abstracts>("abstracts");
    Describable_var card = new ACard("line");
    CORBA::String_var description = abstracts->description_of(card);
    same("the card", "card line", description.in());
    description = abstracts->description_of(Describable::_nil());
    same("nobody", "", description.in());
    Person_var person = abstracts->create_person("somebody");
    CORBA::String_var name = person->name();
    same("the name", "somebody", name.in());
    description = abstracts->description_of(person);
    same("the person", "person somebody", description.in());
  });
  run("abstract/made_there", [] {
    auto abstracts = part<Abstracts>("abstracts");
    Describable_var card = abstracts->a_card("made");
    described("the card", true, "card made", card);
    Describable_var person = abstracts->a_person("born");
    described("the person", false, "person born", person);
  });
}

static void right(const char* which, const string& sample, const CORBA::Any& any) {
  string wrong = check_value_sample(sample, any);
  if (!wrong.empty()) throw Mismatch{string(which) + " " + wrong};
}

void value_anys() {
  for (auto& sample : value_samples()) {
    const string& name = sample.first;
    run("value_any/make/" + name, [&] {
      auto anys = part<ValueAnys>("value_anys");
      CORBA::Any_var any = anys->make(name.c_str());
      right("the any", name, any);
    });
    run("value_any/check/" + name, [&] {
      auto anys = part<ValueAnys>("value_anys");
      CORBA::String_var wrong = anys->check(name.c_str(), make_value_sample(name));
      check(!*wrong.in(), wrong.in());
    });
    run("value_any/echo/" + name, [&] {
      auto anys = part<ValueAnys>("value_anys");
      CORBA::Any x = make_value_sample(name), y = make_value_sample("point");
      CORBA::Any_var z;
      CORBA::Any_var r = anys->echo_value_any(x, y, z.out());
      right("the result", name, r);
      right("the inout", name, y);
      right("the out", "point", z);
    });
  }
  run("value_any/unknown_sample", [] {
    auto anys = part<ValueAnys>("value_anys");
    expect<CORBA::BAD_PARAM>([&] { CORBA::Any_var any = anys->make("no such sample"); });
  });
  // Only we know this type; the any brings all that is needed to pass it on.
  run("value_any/not_known_there", [] {
    auto anys = part<ValueAnys>("value_anys");
    Secret_var secret = colored(at(new OBV_interop::Secret, 1, 2), "red");
    secret->code(99);
    CORBA::Any x, y;
    x <<= secret.in();
    CORBA::Any_var z;
    CORBA::Any_var r = anys->echo_value_any(x, y, z.out());
    // What came is of a type without a factory here as well, so it is looked at by its type's name.
    CORBA::TypeCode_var type = r->type();
    check(type->equivalent(_tc_Secret), "the type");
    CORBA::TypeCode_var none = z->type();
    check(none->kind() == CORBA::tk_null, "the out is something");
  });
  // Two anys of one message that hold one value.
  run("value_any/two_of_one", [] {
    auto anys = part<ValueAnys>("value_anys");
    interop::Point_var point = at(new OBV_interop::Point, 1, -2);
    PointPair pair;
    pair.first = point;
    CORBA::Any x, y;
    x <<= pair;
    y <<= point.in();
    CORBA::Any_var z;
    CORBA::Any_var r = anys->echo_value_any(x, y, z.out());
    const PointPair* found = nullptr;
    check((r.in() >>= found) && found->first.in() && found->first->y() == -2 && !found->second.in(), "the result");
    right("the out", "point", z);
  });
}
