// The cases of valuetypes: plain, inherited, truncated, null, shared, cyclic, chunked, boxed.

#include "cases.hh"
#include "known_values.hh"
#include "values.hh"

// Echoes a value, null and back; `holds` says whether a value is as the one sent.
template <class Part, class V, class Call, class Holds>
static void echo_value(const char* name, const char* part_name, const std::function<V*()>& make, Call call, Holds holds) {
  run(name, [&] {
    auto target = part<Part>(part_name);
    typename V::_var_type x = make(), y, z;
    typename V::_var_type r = call(target.in(), x.in(), y.inout(), z.out());
    check(r && holds(r.in()), "result");
    check(y && holds(y.in()), "inout");
    check(!z, "null came back as a value");
    y = make();
    r = call(target.in(), nullptr, y.inout(), z.out());
    check(!r && !y, "null came back as a value");
    check(z && holds(z.in()), "out");
  });
}

#define ECHO_CASE(name, Part, part_name, V, op, make, holds)                                                       \
  echo_value<Part, V>(name, part_name, [] { return make; },                                                        \
                      [](interop::_objref_##Part* p, V* x, V*& y, V##_out z) { return p->op(x, y, z); }, \
                      [](V* v) { return holds; })

static interop::Mixed* mixed() {
  auto* m = new OBV_interop::Mixed;
  m->tag(9);
  m->amount(0.25);
  m->text("mixed");
  m->numbers(seq<LongSeq, CORBA::Long>({1, 2, 3}));
  m->bin(bin(4));
  ByLong choice;
  choice.number(7);
  choice._d(2);
  m->choice(choice);
  m->tint(green);
  CORBA::Any extra;
  extra <<= CORBA::Long(5);
  m->extra(extra);
  return m;
}

static bool is_mixed(interop::Mixed* m) {
  CORBA::Long extra = 0;
  return m->tag() == 9 && m->amount() == 0.25 && !strcmp(m->text(), "mixed") && m->numbers().length() == 3 &&
         m->numbers()[2] == 3 && m->bin().l == 4 * 7919 && m->choice()._d() == 2 && m->choice().number() == 7 &&
         CORBA::is_nil(m->holder()) && m->tint() == green && (m->extra() >>= extra) && extra == 5;
}

void values() {
  using interop::Point;
  using interop::Tag;
  ECHO_CASE("value/echo_point", Values, "values", Point, echo_point, new OBV_interop::Point(1, -2), v->x() == 1 && v->y() == -2);
  ECHO_CASE("value/echo_spot", Values, "values", Spot, echo_spot, colored(at(new OBV_interop::Spot, 1, -2), "blue"),
            v->x() == 1 && v->y() == -2 && !strcmp(v->color(), "blue"));
  ECHO_CASE("value/echo_account", Values, "values", Account, echo_account, new AnAccount("me", -5, 200),
            dynamic_cast<AnAccount*>(v)->state() == "me -5 200");
  ECHO_CASE("value/echo_mixed", Values, "values", Mixed, echo_mixed, mixed(), is_mixed(v));
  ECHO_CASE("value/echo_tag", Values, "values", Tag, echo_tag, new ATag("label", 2.5), !strcmp(v->text(), "label") && v->size() == 2.5);
  run("value/derived", [] {
    auto values = part<Values>("values");
    auto* made = colored(at(new OBV_interop::HotSpot, 1, 2), "red");
    made->heat(36.6);
    interop::Point_var x = made, y, z;
    interop::Point_var r = values->echo_point(x, y.inout(), z.out());
    HotSpot* hot = HotSpot::_downcast(r);
    check(hot && hot->heat() == 36.6 && hot->x() == 1, "the result");
    hot = HotSpot::_downcast(y);
    check(hot && !strcmp(hot->color(), "red"), "the inout");
  });
  run("value/kind_of", [] {
    auto values = part<Values>("values");
    CORBA::String_var kind = values->kind_of(nullptr);
    same("null", "", kind.in());
    interop::Point_var spot = colored(at(new OBV_interop::Spot, 3, 4), "");
    kind = values->kind_of(spot);
    same("the kind", Spot::_PD_repoId, kind.in());
    check(values->sum_of(spot) == 7, "the sum");
  });
  run("value/truncated_by_them", [] {
    auto values = part<Values>("values");
    interop::Point_var secret = colored(at(new OBV_interop::Secret, 3, 4), "red");
    CORBA::String_var kind = values->kind_of(secret);
    same("the kind", Spot::_PD_repoId, kind.in());
    check(values->sum_of(secret) == 7, "the sum");
  });
  run("value/truncated_by_us", [] {
    auto values = part<Values>("values");
    Spot_var got = values->secret(3, 4);
    check(got && got->x() == 3 && got->y() == 4 && !strcmp(got->color(), "red"), "the value");
    check(!Secret::_downcast(got), "nothing was truncated");
  });
  run("value/shared", [] {
    auto values = part<Values>("values");
    interop::Point_var a = new OBV_interop::Point(1, 2), b = new OBV_interop::Point(1, 2);
    check(values->same_point(a, a), "one value is two");
    check(!values->same_point(a, b), "two values are one");
    PointPair x, y;
    x.first = a;
    x.second = a;
    PointPair_var z;
    PointPair_var r = values->echo_point_pair(x, y, z.out());
    check(r->first.in() && r->first.in() == r->second.in(), "no longer shared in the result");
    check(y.first.in() && y.first.in() == y.second.in(), "no longer shared in the inout");
    check(!z->first.in() && !z->second.in(), "null came back as a value");
  });
  run("value/tree", [] {
    auto values = part<Values>("values");
    Twig_var left = twig("left", nullptr, nullptr), right = twig("right", nullptr, nullptr);
    Twig_var root = twig("root", left, right), y, z;
    Twig_var r = values->echo_twig(root, y.inout(), z.out());
    check(!strcmp(r->left()->label(), "left") && !strcmp(r->right()->label(), "right") && !r->left()->left(), "the tree");
  });
  run("value/sequence", [] {
    auto values = part<Values>("values");
    Cell_var cell = new OBV_interop::Cell;
    cell->number(5);
    CellSeq x, y;
    x.length(3);
    x[0] = cell;
    x[2] = cell;
    CellSeq_var z;
    CellSeq_var r = values->echo_cells(x, y, z.out());
    check(r->length() == 3 && y.length() == 3 && z->length() == 0, "lengths");
    Cell *first = r[0], *second = r[1], *third = r[2];
    check(first && first == third && !second && first->number() == 5, "elements");
  });
  run("value/union", [] {
    auto values = part<Values>("values");
    interop::Point_var point = new OBV_interop::Point(1, 2);
    PointOrNumber x, y;
    x.place(point);
    y.number(1);
    PointOrNumber_var z;
    PointOrNumber_var r = values->echo_point_or_number(x, y, z.out());
    check(r->_d() && r->place()->y() == 2 && y._d() && y.place()->x() == 1 && !z->_d() && z->number() == 1, "values");
  });
  run("value/cycle", [] {
    auto values = part<Values>("values");
    for (int count : {1, 2, 5, 300}) {
      Cell* mine = ring(count);
      check(values->length_of(mine) == count, "mine of " + std::to_string(count));
      check(length(values->ring(count)) == count, "theirs of " + std::to_string(count));
      Cell *y = nullptr, *z = nullptr;
      Cell* r = values->echo_cell(mine, y, z);
      check(length(r) == count && length(y) == count && !z, "echo of " + std::to_string(count));
    }
    Cell_var chain = new OBV_interop::Cell;
    check(values->length_of(chain) == -1 && values->length_of(nullptr) == 0, "no ring");
  });
  run("value/raise_spoilt", [] {
    auto values = part<Values>("values");
    interop::Point_var point = new OBV_interop::Point(1, 2);
    auto e = expect<Spoilt>([&] { values->raise_spoilt(point); });
    check(e.where.in() && e.where->y() == 2, "where");
  });
  run("value/operations", [] {
    auto values = part<Values>("values");
    interop::Tag_var tag = new ATag("label", 2.5);
    CORBA::String_var label = values->label_of(tag);
    same("the label", "label", label.in());
    check(values->measure_of(tag) == 2.5, "the measure");
  });
  run("value/as_object", [] {
    auto values = part<Values>("values");
    interop::Tag_var tag = new ATag("label", 2.5);
    Labelled_var object = values->object_of(tag);
    CORBA::String_var label = object->label();
    same("the label", "label", label.in());
  });
  run("value/initialiser", [] {
    auto values = part<Values>("values");
    CORBA::ValueFactory factory = orb->lookup_value_factory(Ticket::_PD_repoId);
    Ticket_init* office = Ticket_init::_downcast(factory);
    check(office, "the factory of tickets");
    Ticket_var ticket = office->issue(7, "you"), y, z;
    factory->_remove_ref();
    CORBA::String_var face = values->face_of(ticket);
    same("the face", "7 for you", face.in());
    Ticket_var r = values->echo_ticket(ticket, y.inout(), z.out());
    face = r->face();
    same("the face of the result", "7 for you", face.in());
  });
  run("value/base/pass", [] {
    auto values = part<Values>("values");
    CORBA::ValueBase_var spot = colored(at(new OBV_interop::Spot, 1, 2), "blue");
    CORBA::ValueBase_var r = values->pass_base(spot);
    Spot* found = Spot::_downcast(r);
    check(found && found->y() == 2 && !strcmp(found->color(), "blue"), "the Spot");
    r = values->pass_base(nullptr);
    check(!r.in(), "null came back as a value");
  });
  run("value/base/pass_box", [] {
    auto values = part<Values>("values");
    CORBA::ValueBase_var boxed = new BoxedString("boxed");
    CORBA::ValueBase_var r = values->pass_base(boxed);
    BoxedString* found = BoxedString::_downcast(r);
    check(found && !strcmp(found->_value(), "boxed"), "the box");
  });
  run("value/base/member", [] {
    auto values = part<Values>("values");
    Anything_var x = new OBV_interop::Anything, y, z;
    Anything_var r = values->echo_anything(x, y.inout(), z.out());
    check(r && !r->held(), "null came back as a value");
    CORBA::ValueBase_var spot = colored(at(new OBV_interop::Spot, 1, 2), "blue");
    x->held(spot);
    r = values->echo_anything(x, y.inout(), z.out());
    Spot* found = r ? Spot::_downcast(r->held()) : nullptr;
    check(found && !strcmp(found->color(), "blue"), "the Spot");
  });
}

void value_chunks() {
  // As a Point, which omniORB writes in chunks, where it writes a Parcel in one piece.
  run("value/chunks/long", [] {
    auto values = part<Values>("values");
    Parcel_var x = parcel(string(9000, 'l').c_str(), 4000);
    interop::Point_var y, z;
    interop::Point_var r = values->echo_point(x, y.inout(), z.out());
    for (Parcel* found : {Parcel::_downcast(r), Parcel::_downcast(y)}) {
      check(found && string(found->label()) == x->label() && found->weights().length() == 4000 && found->y() == 2, "the parcel");
      for (CORBA::ULong i = 0; i < 4000; ++i) check(found->weights()[i] == x->weights()[i], "weight " + std::to_string(i));
    }
    check(!z.in(), "null came back as a value");
  });
  run("value/chunks/nested", [] {
    auto values = part<Values>("values");
    Parcel_var x = parcel("outermost", 1), y, z;
    for (int depth = 0; depth < 20; ++depth) {
      Parcel_var outer = parcel(("level " + std::to_string(depth)).c_str(), depth);
      outer->contents().length(3);
      outer->contents()[0] = colored(at(new OBV_interop::Spot, 3, 4), "blue");
      outer->contents()[1] = shared<interop::Point>(x.in());
      outer->inner(x);
      x = outer;
    }
    Parcel_var r = values->echo_parcel(x, y.inout(), z.out());
    Parcel* at = r;
    for (int depth = 19; depth >= 0; --depth) {
      string level = "level " + std::to_string(depth);
      check(at && at->label() == level && at->weights().length() == CORBA::ULong(depth) && at->contents().length() == 3, level);
      interop::Point *first = at->contents()[0], *second = at->contents()[1], *third = at->contents()[2];
      Spot* spot = Spot::_downcast(first);
      check(spot && spot->y() == 4 && !strcmp(spot->color(), "blue") && !third, "the contents of " + level);
      check(at->inner() && second == at->inner(), "no longer shared at " + level);
      at = at->inner();
    }
    same("the last", "outermost", at->label());
  });
  run("value/chunks/cycle", [] {
    auto values = part<Values>("values");
    Parcel *x = parcel("itself", 3), *y = nullptr, *z = nullptr;
    x->inner(x);
    Parcel* r = values->echo_parcel(x, y, z);
    check(r && r->inner() == r && y && y->inner() == y && !z, "no longer a cycle");
  });
  run("value/chunks/kinds", [] {
    auto values = part<Values>("values");
    interop::Point_var treasure = colored(at(new OBV_interop::Spot, 5, 6), "gold");
    Secret_var secret = colored(at(new OBV_interop::Secret, 3, 4), "red");
    Sealed_var sealed = at(new OBV_interop::Sealed, 3, 4);
    sealed->label("sealed");
    sealed->inner(nullptr);
    sealed->treasure(treasure);
    PointSeq points;
    points.length(6);
    points[0] = shared<interop::Point>(secret.in());
    points[1] = shared<interop::Point>(sealed.in());
    points[3] = colored(at(new OBV_interop::HotSpot, 1, 2), "");
    points[4] = shared<interop::Point>(secret.in());
    points[5] = at(new OBV_interop::Point, 1, 2);
    string expected;
    for (const char* id : {Spot::_PD_repoId, Parcel::_PD_repoId, "", HotSpot::_PD_repoId, Spot::_PD_repoId, interop::Point::_PD_repoId})
      expected += string(expected.empty() ? "" : " ") + id;
    CORBA::String_var kinds = values->kinds_of(points);
    same("the kinds", expected, kinds.in());
  });
  run("value/chunks/cut_off", [] {
    auto values = part<Values>("values");
    interop::Point_var treasure = at(new OBV_interop::Point, 20, 22);
    Sealed_var sealed = at(new OBV_interop::Sealed, 3, 4);
    sealed->label("sealed");
    sealed->inner(nullptr);
    sealed->treasure(treasure);
    check(values->sum_of_second(sealed, treasure) == 42, "the sum");
  });
}

// Sends one value of each box and gets it back.
template <class B, class Call, class Holds>
static void pass(const char* which, B* made, Call call, Holds holds) {
  typename B::_var_type x = made;
  typename B::_var_type r = call(x.in());
  check(r && holds(r.in()), which);
}

void boxes() {
  static const auto longs = seq<LongSeq, CORBA::Long>({1, 2, 3});
  auto make_longs = [] {
    auto* box = new BoxedLongs;
    box->length(3);
    for (CORBA::ULong i = 0; i < 3; ++i) (*box)[i] = longs[i];
    return box;
  };
  run("box/pass", [&] {
    auto boxes = part<Boxes>("boxes");
    pass("string", new BoxedString("boxed"), [&](BoxedString* b) { return boxes->pass_boxed_string(b); },
         [](BoxedString* b) { return !strcmp(b->_value(), "boxed"); });
    pass("long", new BoxedLong(-7), [&](BoxedLong* b) { return boxes->pass_boxed_long(b); },
         [](BoxedLong* b) { return b->_value() == -7; });
    pass("longs", make_longs(), [&](BoxedLongs* b) { return boxes->pass_boxed_longs(b); },
         [](BoxedLongs* b) { return b->length() == 3 && (*b)[2] == 3; });
    pass("bin", new BoxedBin(bin(5)), [&](BoxedBin* b) { return boxes->pass_boxed_bin(b); },
         [](BoxedBin* b) { return b->l() == 5 * 7919; });
    BoxedString_var null = boxes->pass_boxed_string(nullptr);
    check(!null, "null");
  });
  ECHO_CASE("box/echo_string", Boxes, "boxes", BoxedString, echo_boxed_string, new BoxedString("boxed"), !strcmp(v->_value(), "boxed"));
  ECHO_CASE("box/echo_long", Boxes, "boxes", BoxedLong, echo_boxed_long, new BoxedLong(-7), v->_value() == -7);
  ECHO_CASE("box/echo_bin", Boxes, "boxes", BoxedBin, echo_boxed_bin, new BoxedBin(bin(5)), v->l() == 5 * 7919);
  echo_value<Boxes, BoxedLongs>("box/echo_longs", "boxes", make_longs,
                                [](interop::_objref_Boxes* b, BoxedLongs* x, BoxedLongs*& y, BoxedLongs_out z) {
                                  return b->echo_boxed_longs(x, y, z);
                                },
                                [](BoxedLongs* b) { return b->length() == 3 && (*b)[2] == 3; });
}

void boxed_members() {
  run("box/members", [] {
    auto values = part<Values>("values");
    Crate_var x = new OBV_interop::Crate, y, z;
    BoxedString_var name = new BoxedString("name");
    auto* sizes = new BoxedLongs;
    sizes->length(2);
    (*sizes)[0] = 4;
    (*sizes)[1] = 5;
    BoxedLongs_var owned = sizes;
    x->name(name);
    x->sizes(sizes);
    Crate_var r = values->echo_crate(x, y.inout(), z.out());
    for (Crate* found : {r.in(), y.in()}) {
      check(found && found->name() && !strcmp(found->name()->_value(), "name") && !found->again(), "the names");
      check(found->sizes() && found->sizes()->length() == 2 && (*found->sizes())[1] == 5, "the sizes");
    }
    check(!z.in(), "null came back as a value");
  });
  run("box/shared", [] {
    auto values = part<Values>("values");
    Crate_var x = new OBV_interop::Crate, y, z;
    BoxedString_var name = new BoxedString("name");
    x->name(name);
    x->again(name);
    Crate_var r = values->echo_crate(x, y.inout(), z.out());
    check(r->name() && r->name() == r->again() && !strcmp(r->name()->_value(), "name"), "no longer shared");
  });
}
