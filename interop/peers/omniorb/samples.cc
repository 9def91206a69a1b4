#include "samples.hh"

#include <cstring>

using namespace interop;
using std::string;

namespace {

string problem(const char* what) { return what; }

// A type whose values are put in and taken out as themselves.
template <class T>
KnownSample plain(T value) {
  return {[=](CORBA::Any& any) { any <<= value; },
          [=](const CORBA::Any& any) {
            T found;
            if (!(any >>= found)) return problem("cannot be extracted");
            return problem(found == value ? "" : "has another value");
          }};
}

// A struct, union, sequence or exception.
template <class T>
KnownSample composed(const std::function<void(T&)>& fill, const std::function<bool(const T&)>& holds) {
  return {[=](CORBA::Any& any) {
            T value;
            fill(value);
            any <<= value;
          },
          [=](const CORBA::Any& any) {
            const T* found = nullptr;
            if (!(any >>= found)) return problem("cannot be extracted");
            return problem(holds(*found) ? "" : "has another value");
          }};
}

bool same(const char* a, const char* b) { return strcmp(a, b) == 0; }

std::map<string, KnownSample> all() {
  std::map<string, KnownSample> m;
  m["null"] = {[](CORBA::Any&) {},
               [](const CORBA::Any& any) {
                 CORBA::TypeCode_var type = any.type();
                 return problem(type->kind() == CORBA::tk_null ? "" : "is not null");
               }};
  m["short"] = plain<CORBA::Short>(-7);
  m["ushort"] = plain<CORBA::UShort>(65535);
  m["long"] = plain<CORBA::Long>(-70000);
  m["ulong"] = plain<CORBA::ULong>(4000000000u);
  m["llong"] = plain<CORBA::LongLong>(-5000000000ll);
  m["ullong"] = plain<CORBA::ULongLong>(18000000000000000000ull);
  m["float"] = plain<CORBA::Float>(1.5f);
  m["double"] = plain<CORBA::Double>(-2.25);
  m["char"] = {[](CORBA::Any& any) { any <<= CORBA::Any::from_char('c'); },
               [](const CORBA::Any& any) {
                 CORBA::Char c;
                 if (!(any >>= CORBA::Any::to_char(c))) return problem("cannot be extracted");
                 return problem(c == 'c' ? "" : "has another value");
               }};
  m["boolean"] = {[](CORBA::Any& any) { any <<= CORBA::Any::from_boolean(true); },
                  [](const CORBA::Any& any) {
                    CORBA::Boolean b;
                    if (!(any >>= CORBA::Any::to_boolean(b))) return problem("cannot be extracted");
                    return problem(b ? "" : "has another value");
                  }};
  m["octet"] = {[](CORBA::Any& any) { any <<= CORBA::Any::from_octet(255); },
                [](const CORBA::Any& any) {
                  CORBA::Octet o;
                  if (!(any >>= CORBA::Any::to_octet(o))) return problem("cannot be extracted");
                  return problem(o == 255 ? "" : "has another value");
                }};
  m["wchar"] = {[](CORBA::Any& any) { any <<= CORBA::Any::from_wchar(0x20AC); },
                [](const CORBA::Any& any) {
                  CORBA::WChar c;
                  if (!(any >>= CORBA::Any::to_wchar(c))) return problem("cannot be extracted");
                  return problem(c == 0x20AC ? "" : "has another value");
                }};
  m["string"] = {[](CORBA::Any& any) { any <<= "text"; },
                 [](const CORBA::Any& any) {
                   const char* s;
                   if (!(any >>= s)) return problem("cannot be extracted");
                   return problem(same(s, "text") ? "" : "has another value");
                 }};
  m["wstring"] = {[](CORBA::Any& any) { any <<= CORBA::Any::from_wstring((CORBA::WChar*)L"wide\u20ac", 0); },
                  [](const CORBA::Any& any) {
                    const CORBA::WChar* s;
                    if (!(any >>= CORBA::Any::to_wstring(s, 0))) return problem("cannot be extracted");
                    return problem(wcscmp(s, L"wide\u20ac") == 0 ? "" : "has another value");
                  }};
  m["short_string"] = {[](CORBA::Any& any) {
                         any <<= CORBA::Any::from_string((char*)"bounded", 16);
                         any.type(_tc_ShortString);
                       },
                       [](const CORBA::Any& any) {
                         const char* s;
                         if (!(any >>= CORBA::Any::to_string(s, 16))) return problem("cannot be extracted");
                         return problem(same(s, "bounded") ? "" : "has another value");
                       }};
  m["color"] = plain<Color>(blue);
  m["single"] = plain<Single>(only_value);
  m["height"] = {[](CORBA::Any& any) {
                   any <<= CORBA::Long(8848);
                   any.type(_tc_Height);
                 },
                 [](const CORBA::Any& any) {
                   CORBA::Long l;
                   if (!(any >>= l)) return problem("cannot be extracted");
                   return problem(l == 8848 ? "" : "has another value");
                 }};
  m["struct"] = composed<BinStruct>(
      [](BinStruct& b) {
        b.s = 1;
        b.c = 'b';
        b.l = 2;
        b.o = 3;
        b.d = 4.5;
      },
      [](const BinStruct& b) { return b.s == 1 && b.c == 'b' && b.l == 2 && b.o == 3 && b.d == 4.5; });
  m["variable"] = composed<interop::Variable>(
      [](interop::Variable& v) {
        v.text = "text";
        v.code = "code";
        v.numbers.length(2);
        v.numbers[0] = 1;
        v.numbers[1] = -2;
        v.raw.length(1);
        v.raw[0] = 3;
        v.tint = blue;
      },
      [](const interop::Variable& v) {
        return same(v.text, "text") && same(v.code, "code") && v.numbers.length() == 2 && v.numbers[1] == -2 &&
               v.raw.length() == 1 && v.raw[0] == 3 && v.tint == blue;
      });
  m["union"] = composed<ByLong>(
      [](ByLong& u) {
        u.number(20);
        u._d(2);
      },
      [](const ByLong& u) { return u._d() == 2 && u.number() == 20; });
  m["longs"] = composed<LongSeq>(
      [](LongSeq& s) {
        s.length(3);
        s[0] = 1;
        s[1] = -2;
        s[2] = 3;
      },
      [](const LongSeq& s) { return s.length() == 3 && s[0] == 1 && s[1] == -2 && s[2] == 3; });
  m["nameds"] = composed<NamedSeq>(
      [](NamedSeq& s) {
        s.length(2);
        s[0].name = "a";
        s[0].value = 1;
        s[1].name = "b";
        s[1].value = 2;
      },
      [](const NamedSeq& s) { return s.length() == 2 && same(s[0].name, "a") && same(s[1].name, "b") && s[1].value == 2; });
  m["matrix"] = {[](CORBA::Any& any) {
                   Matrix matrix = {{1, 2, 3}, {4, 5, 6}};
                   any <<= Matrix_forany(Matrix_dup(matrix));
                 },
                 [](const CORBA::Any& any) {
                   Matrix_forany found;
                   if (!(any >>= found)) return problem("cannot be extracted");
                   return problem(found[0][0] == 1 && found[1][2] == 6 ? "" : "has another value");
                 }};
  m["tree"] = composed<Tree>(
      [](Tree& t) {
        t.label = "root";
        t.children.length(1);
        t.children[0].label = "leaf";
      },
      [](const Tree& t) {
        return same(t.label, "root") && t.children.length() == 1 && same(t.children[0].label, "leaf") &&
               t.children[0].children.length() == 0;
      });
  m["chain"] = composed<Chain>(
      [](Chain& c) {
        c.value = 1;
        c.next.length(1);
        c.next[0].value = 2;
      },
      [](const Chain& c) { return c.value == 1 && c.next.length() == 1 && c.next[0].value == 2 && c.next[0].next.length() == 0; });
  m["expr"] = composed<Expr>(
      [](Expr& e) {
        Expr::_negated_seq negated;
        negated.length(1);
        negated[0].literal(0.5);
        e.negated(negated);
      },
      [](const Expr& e) { return e._d() == 4 && e.negated().length() == 1 && e.negated()[0].literal() == 0.5; });
  m["refused"] = composed<Refused>(
      [](Refused& e) {
        e.why = "why";
        e.code = 5;
      },
      [](const Refused& e) { return same(e.why, "why") && e.code == 5; });
  m["empty"] = composed<Empty>([](Empty&) {}, [](const Empty&) { return true; });
  m["object"] = {[](CORBA::Any& any) { any <<= CORBA::Object::_nil(); },
                 [](const CORBA::Any& any) {
                   CORBA::Object_var o;
                   if (!(any >>= CORBA::Any::to_object(o.out()))) return problem("cannot be extracted");
                   return problem(CORBA::is_nil(o) ? "" : "is not nil");
                 }};
  m["node"] = {[](CORBA::Any& any) { any <<= Node::_nil(); },
               [](const CORBA::Any& any) {
                 Node_ptr n;
                 if (!(any >>= n)) return problem("cannot be extracted");
                 return problem(CORBA::is_nil(n) ? "" : "is not nil");
               }};
  m["typecode"] = {[](CORBA::Any& any) { any <<= _tc_BinStruct; },
                   [](const CORBA::Any& any) {
                     CORBA::TypeCode_ptr t;
                     if (!(any >>= t)) return problem("cannot be extracted");
                     return problem(t->equivalent(_tc_BinStruct) ? "" : "is another TypeCode");
                   }};
  m["any"] = {[](CORBA::Any& any) {
                CORBA::Any inner;
                inner <<= CORBA::Long(-70000);
                any <<= inner;
              },
              [](const CORBA::Any& any) {
                const CORBA::Any* inner;
                CORBA::Long l;
                if (!(any >>= inner) || !(*inner >>= l)) return problem("cannot be extracted");
                return problem(l == -70000 ? "" : "has another value");
              }};
  m["anys"] = composed<AnySeq>(
      [](AnySeq& s) {
        s.length(2);
        s[0] <<= CORBA::Short(-7);
        s[1] <<= "text";
      },
      [](const AnySeq& s) {
        CORBA::Short n;
        const char* text;
        return s.length() == 2 && (s[0] >>= n) && n == -7 && (s[1] >>= text) && same(text, "text");
      });
  m["property"] = composed<Property>(
      [](Property& p) {
        p.name = "name";
        p.value <<= CORBA::Double(-2.25);
      },
      [](const Property& p) {
        CORBA::Double d;
        return same(p.name, "name") && (p.value >>= d) && d == -2.25;
      });
  return m;
}

}  // namespace

const std::map<string, KnownSample>& samples() {
  static const std::map<string, KnownSample> made = all();
  return made;
}

CORBA::Any make_sample(const string& name) {
  auto found = samples().find(name);
  if (found == samples().end()) throw CORBA::BAD_PARAM();
  CORBA::Any any;
  found->second.make(any);
  return any;
}

string check_sample(const string& name, const CORBA::Any& any) {
  auto found = samples().find(name);
  if (found == samples().end()) return "the sample is unknown";
  return found->second.check(any);
}
