#include "value_samples.hh"

#include <cstring>

#include "known_values.hh"

using namespace interop;
using std::string;

namespace {

string problem(const char* what) { return what; }

// A value of a type that says itself what it is; `make` gives null for a null.
template <class V>
KnownSample value(CORBA::TypeCode_ptr type, const std::function<V*()>& make, const std::function<bool(V*)>& holds) {
  return {[=](CORBA::Any& any) {
            V* made = make();
            any <<= made;
            CORBA::remove_ref(made);
          },
          [=](const CORBA::Any& any) {
            CORBA::TypeCode_var found_type = any.type();
            if (!found_type->equivalent(type)) return problem("has another type");
            V* found = nullptr;
            if (!(any >>= found)) return problem("cannot be extracted");
            return problem(holds(found) ? "" : "has another value");
          }};
}

// A struct or sequence.
template <class T>
KnownSample composed(const std::function<void(T&)>& fill, const std::function<bool(const T&)>& holds) {
  return {[=](CORBA::Any& any) {
            T made;
            fill(made);
            any <<= made;
          },
          [=](const CORBA::Any& any) {
            const T* found = nullptr;
            if (!(any >>= found)) return problem("cannot be extracted");
            return problem(holds(*found) ? "" : "has another value");
          }};
}

bool same(const char* a, const char* b) { return strcmp(a, b) == 0; }

interop::Point* point() { return at(new OBV_interop::Point, 1, -2); }
interop::Spot* spot() { return colored(at(new OBV_interop::Spot, 1, -2), "blue"); }
bool is_point(interop::Point* p) { return p && p->x() == 1 && p->y() == -2; }
bool is_spot(interop::Point* p) {
  Spot* s = Spot::_downcast(p);
  return is_point(p) && s && same(s->color(), "blue");
}

BoxedLongs* longs() {
  auto* box = new BoxedLongs;
  box->length(3);
  for (CORBA::ULong i = 0; i < 3; ++i) (*box)[i] = i + 1;
  return box;
}

BoxedBin* bin() {
  BinStruct b;
  b.s = 1;
  b.c = 'b';
  b.l = 2;
  b.o = 3;
  b.d = 4.5;
  return new BoxedBin(b);
}

Parcel* parcel_of_spots() {
  Parcel* made = at(new OBV_interop::Parcel, 1, -2);
  made->label("parcel");
  made->inner(nullptr);
  made->weights().length(1);
  made->weights()[0] = 0.5;
  interop::Point* twice = spot();
  made->contents().length(2);
  made->contents()[0] = twice;
  made->contents()[1] = shared(twice);
  return made;
}

bool is_parcel_of_spots(Parcel* p) {
  if (!is_point(p) || !same(p->label(), "parcel") || p->inner() || p->weights().length() != 1) return false;
  if (p->weights()[0] != 0.5 || p->contents().length() != 2) return false;
  interop::Point *first = p->contents()[0], *second = p->contents()[1];
  return first == second && is_spot(first);
}

std::map<string, KnownSample> all() {
  std::map<string, KnownSample> m;
  using interop::Point;
  m["point"] = value<Point>(_tc_Point, point, is_point);
  m["null_point"] = value<Point>(_tc_Point, [] { return nullptr; }, [](Point* p) { return !p; });
  m["spot"] = value<Spot>(_tc_Spot, spot, is_spot);
  m["point3"] = value<Point3>(
      _tc_Point3,
      [] {
        Point3* made = at(new OBV_interop::Point3, 1, -2);
        made->depth(3);
        return made;
      },
      [](Point3* p) { return is_point(p) && p->depth() == 3; });
  m["spot_as_point"] = value<Point>(_tc_Point, [] { return spot(); }, is_spot);
  m["boxed_string"] = value<BoxedString>(_tc_BoxedString, [] { return new BoxedString("boxed"); },
                                         [](BoxedString* b) { return b && same(b->_value(), "boxed"); });
  m["null_box"] = value<BoxedString>(_tc_BoxedString, [] { return nullptr; }, [](BoxedString* b) { return !b; });
  m["boxed_longs"] = value<BoxedLongs>(_tc_BoxedLongs, longs, [](BoxedLongs* b) { return b && b->length() == 3 && (*b)[2] == 3; });
  m["boxed_bin"] = value<BoxedBin>(_tc_BoxedBin, bin, [](BoxedBin* b) { return b && b->l() == 2 && b->d() == 4.5; });
  m["pair"] = composed<PointPair>(
      [](PointPair& p) {
        p.first = point();
        p.second = p.first;
      },
      [](const PointPair& p) { return is_point(p.first) && p.first.in() == p.second.in(); });
  m["points"] = composed<PointSeq>(
      [](PointSeq& s) {
        s.length(3);
        s[0] = point();
        s[2] = s[0];
      },
      [](const PointSeq& s) {
        if (s.length() != 3) return false;
        Point *first = s[0], *second = s[1], *third = s[2];
        return is_point(first) && !second && first == third;
      });
  m["ring"] = value<Cell>(_tc_Cell, [] { return ring(2); }, [](Cell* c) { return length(c) == 2; });
  m["account"] = value<Account>(_tc_Account, [] { return new AnAccount("me", -5, 200); }, [](Account* a) {
    auto* found = dynamic_cast<AnAccount*>(a);
    return found && found->state() == "me -5 200";
  });
  m["parcel"] = value<Parcel>(_tc_Parcel, parcel_of_spots, is_parcel_of_spots);
  m["card"] = {[](CORBA::Any& any) {
                 Card_var card = new ACard("line");
                 any <<= static_cast<Describable_ptr>(card.in());
               },
               [](const CORBA::Any& any) {
                 Describable_ptr found = Describable::_nil();
                 if (!(any >>= found)) return problem("cannot be extracted");
                 Card* card = Card::_downcast(found);
                 return problem(card && same(card->line(), "line") ? "" : "has another value");
               }};
  m["nobody"] = {[](CORBA::Any& any) { any <<= Describable::_nil(); },
                 [](const CORBA::Any& any) {
                   Describable_ptr found = Describable::_nil();
                   if (!(any >>= found)) return problem("cannot be extracted");
                   return problem(CORBA::is_nil(found) ? "" : "is not nil");
                 }};
  return m;
}

}  // namespace

const std::map<string, KnownSample>& value_samples() {
  static const std::map<string, KnownSample> made = all();
  return made;
}

CORBA::Any make_value_sample(const string& name) {
  auto found = value_samples().find(name);
  if (found == value_samples().end()) throw CORBA::BAD_PARAM();
  CORBA::Any any;
  found->second.make(any);
  return any;
}

string check_value_sample(const string& name, const CORBA::Any& any) {
  auto found = value_samples().find(name);
  if (found == value_samples().end()) return "the sample is unknown";
  return found->second.check(any);
}
