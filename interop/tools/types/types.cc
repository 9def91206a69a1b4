// Prints TypeCodes and anys as omniORB writes them, in the format of the golden files. Each is written at
// offset 0 of a stream of its own, once in each byte order.
//
//   omniidl -bcxx -Wba -I/usr/share/idl/omniORB types.idl
//   g++ -o types types.cc typesSK.cc typesDynSK.cc -lomniDynamic4 -lomniCodeSets4 -lomniORB4 -lomnithread
//   ./types -ORBnativeCharCodeSet UTF-8 > types.hex
#include "types.hh"
#include <omniORB4/codeSets.h>
#include <omniORB4/cdrStream.h>
#include <cstdio>
#include <functional>
#include <string>

using Write = std::function<void(cdrStream&)>;

static void print(const std::string& label, const Write& write) {
  for (int swap = 1; swap >= 0; swap--) {
    try {
      cdrMemoryStream stream(CORBA::ULong(0), true);
      stream.setByteSwapFlag(swap);
      stream.TCS_C(omni::omniCodeSet::getTCS_C("UTF-8", {1, 2}));
      stream.TCS_W(omni::omniCodeSet::getTCS_W("UTF-16", {1, 2}));
      write(stream);
      printf("> %s %s\n", swap ? "little" : "big", label.c_str());
      const unsigned char* bytes = (const unsigned char*)stream.bufPtr();
      for (unsigned i = 0; i < stream.bufSize(); i++)
        printf("%02x%s", bytes[i], i % 32 == 31 || i + 1 == stream.bufSize() ? "\n" : "");
    } catch (CORBA::SystemException& e) {
      fprintf(stderr, "%s: %s minor %x\n", label.c_str(), e._name(), (unsigned)e.minor());
    }
  }
}

static void type(const char* label, CORBA::TypeCode_ptr tc) {
  print(std::string("TypeCode ") + label, [=](cdrStream& s) { CORBA::TypeCode::marshalTypeCode(tc, s); });
}

static void any(const char* label, const CORBA::Any& a) {
  print(std::string("any ") + label, [&](cdrStream& s) { a >>= s; });
}

class BaseI : public virtual OBV_golden::Base, public virtual CORBA::DefaultValueRefCountBase {
public:
  BaseI(CORBA::Long n, const char* s) { number(n); secret(s); }
};
class DerivedI : public virtual OBV_golden::Derived, public virtual CORBA::DefaultValueRefCountBase {
public:
  DerivedI(CORBA::Long n, const char* s, golden::Base* b) { number(n); secret(s); other(b); }
};
class ListI : public virtual OBV_golden::List, public virtual CORBA::DefaultValueRefCountBase {
public:
  ListI(CORBA::Long n, golden::List* t) { head(n); tail(t); }
};

static golden::BinStruct bin(short n) {
  golden::BinStruct b; b.s = n; b.c = 'b'; b.l = -n; b.o = 255; b.d = n / 4.0; return b;
}

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  type("octet", CORBA::_tc_octet);
  type("string", CORBA::_tc_string);
  type("Object", CORBA::_tc_Object);
  type("Colour", golden::_tc_Colour);
  type("Height", golden::_tc_Height);
  type("Code", golden::_tc_Code);
  type("Money", golden::_tc_Money);
  type("Matrix", golden::_tc_Matrix);
  type("Raw", golden::_tc_Raw);
  type("BinSeq", golden::_tc_BinSeq);
  type("Tree", golden::_tc_Tree);
  type("TreeSeq", golden::_tc_TreeSeq);
  type("Husband", golden::_tc_Husband);
  type("Wives", golden::_tc_Wives);
  type("Repeats", golden::_tc_Repeats);
  type("ByColour", golden::_tc_ByColour);
  type("ByChar", golden::_tc_ByChar);
  type("ByBoolean", golden::_tc_ByBoolean);
  type("Expr", golden::_tc_Expr);
  type("Nothing", golden::_tc_Nothing);
  type("Refused", golden::_tc_Refused);
  type("Thing", golden::_tc_Thing);
  type("Describable", golden::_tc_Describable);
  type("Base", golden::_tc_Base);
  type("Derived", golden::_tc_Derived);
  type("List", golden::_tc_List);
  type("Text", golden::_tc_Text);
  type("Numbers", golden::_tc_Numbers);
  type("Everything", golden::_tc_Everything);
  CORBA::TypeCode_var compact = golden::_tc_Repeats->get_compact_typecode();
  type("Repeats-compact", compact);

  CORBA::Any a;
  any("null", a);
  a <<= (CORBA::Long)-7; any("long", a);
  a <<= CORBA::Any::from_char('c'); any("char", a);
  a <<= CORBA::Any::from_wchar(0x20AC); any("wchar", a);
  a <<= CORBA::Any::from_boolean(1); any("boolean", a);
  a <<= (CORBA::Double)0.1; any("double", a);
  a <<= "\xC5\xBC\xC3\xB3\xC5\x82w"; any("string", a);
  a <<= (const CORBA::WChar*)L"\u017C\u00F3\u0142w"; any("wstring", a);
  a <<= golden::blue; any("Colour", a);
  a <<= CORBA::Any::from_string("abcd", 16); any("Code", a);
  a <<= CORBA::Any::from_fixed(CORBA::Fixed("-12345.678"), 9, 3); any("Money", a);
  golden::Matrix m = {{1, 2, 3}, {4, 5, 0.5}};
  a <<= golden::Matrix_forany(m); any("Matrix", a);
  golden::BinSeq bins; bins.length(5);
  for (int i = 0; i < 5; i++) bins[i] = bin(i + 1);
  a <<= bins; any("BinSeq", a);
  golden::Tree tree; tree.label = "root"; tree.kids.length(2);
  tree.kids[0].label = "left"; tree.kids[1].label = "right"; tree.kids[1].kids.length(1);
  tree.kids[1].kids[0].label = "leaf";
  a <<= tree; any("Tree", a);
  golden::ByColour by; by.bin(bin(3)); by._d(golden::blue); a <<= by; any("ByColour", a);
  golden::ByChar bc; bc.rest("other"); bc._d('z'); a <<= bc; any("ByChar", a);
  golden::ByBoolean bb; bb._d(0); a <<= bb; any("ByBoolean", a);
  golden::Expr expr, half; half.number(0.5);
  golden::OneExpr one; one.length(1); one[0] = half; expr.minus(one); a <<= expr; any("Expr", a);
  golden::Nothing nothing; a <<= nothing; any("Nothing", a);
  golden::Refused refused("because", 3); a <<= refused; any("Refused", a);
  a <<= golden::_tc_Tree; any("TypeCode", a);
  CORBA::Any inner, middle; inner <<= (CORBA::Short)5; middle <<= inner; a <<= middle; any("nested", a);
  a <<= golden::Thing::_nil(); any("nil", a);
  golden::Everything every;
  every.a = -1; every.b = 2; every.c = -3; every.d = 4; every.e = -5; every.f = 6; every.g = 7.5;
  every.h = -8.25; every.i = 1; every.j = 'j'; every.k = 11; every.l = L'l'; every.m = "m";
  every.n = (const CORBA::WChar*)L"n"; every.o <<= "o"; every.p = CORBA::TypeCode::_duplicate(golden::_tc_Colour);
  every.r = golden::Thing::_nil();
  for (int i = 0; i < 6; i++) every.s[i / 3][i % 3] = i;
  every.t.length(3); every.t[0] = 1; every.t[1] = 2; every.t[2] = 3;
  a <<= every; any("Everything", a);

  golden::Base* base = new BaseI(4, "hidden");
  a <<= base; any("Base", a);
  base->_add_ref();
  golden::Derived* derived = new DerivedI(5, "both", base);
  a <<= derived; any("Derived", a);
  golden::List* list = new ListI(1, 0);
  list = new ListI(2, list);
  a <<= list; any("List", a);
  golden::List* last = new ListI(9, 0);
  golden::List* ring = new ListI(8, last);
  ring->_add_ref(); last->tail(ring);
  a <<= ring; any("Ring", a);
  a <<= (golden::List*)0; any("List-null", a);
  golden::Text* text = new golden::Text("boxed"); a <<= text; any("Text", a);
  return 0;
}
