#include "parts.hh"

#include <cstring>
#include <mutex>
#include <string>

#include "all_idl.hh"
#include "echoes.hh"
#include "samples.hh"

using namespace interop;

namespace {

struct AnysServant : virtual POA_interop::Anys, virtual PortableServer::RefCountServantBase {
  CORBA::Any* echo_any(const CORBA::Any& x, CORBA::Any& y, CORBA::Any_OUT_arg z) override {
    z = new CORBA::Any(y);
    y = x;
    return new CORBA::Any(x);
  }
  ECHO_VARIABLE(echo_anys, AnySeq)
  ECHO_VARIABLE(echo_property, Property)
  ECHO_VARIABLE(echo_properties, PropertySeq)
  ECHO_VARIABLE(echo_any_or_name, AnyOrName)
  void raise_unfit(const CORBA::Any& what) override { throw Unfit("asked", what); }
  CORBA::Any* held() override {
    std::lock_guard<std::mutex> hold(lock);
    return new CORBA::Any(held_);
  }
  void held(const CORBA::Any& to) override {
    std::lock_guard<std::mutex> hold(lock);
    held_ = to;
  }
  CORBA::Any* make(const char* sample) override { return new CORBA::Any(make_sample(sample)); }
  char* check(const char* sample, const CORBA::Any& what) override {
    return CORBA::string_dup(check_sample(sample, what).c_str());
  }
  std::mutex lock;
  CORBA::Any held_;
};

struct TypeCodesServant : virtual POA_interop::TypeCodes, virtual PortableServer::RefCountServantBase {
  CORBA::TypeCode_ptr echo_typecode(CORBA::TypeCode_ptr x, CORBA::TypeCode_ptr& y, CORBA::TypeCode_OUT_arg z) override {
    z = y;
    y = CORBA::TypeCode::_duplicate(x);
    return CORBA::TypeCode::_duplicate(x);
  }
  ECHO_VARIABLE(echo_typecodes, TypeCodeSeq)
  CORBA::TypeCode_ptr type_of(const char* sample) override { return make_sample(sample).type(); }
  CORBA::Boolean are_equal(CORBA::TypeCode_ptr a, CORBA::TypeCode_ptr b) override { return a->equal(b); }
  CORBA::Boolean are_equivalent(CORBA::TypeCode_ptr a, CORBA::TypeCode_ptr b) override { return a->equivalent(b); }
};

// A copy of one of omniORB's fixed numbers forgets its digits, and marshalling it ends the program; a number made of
// another, and one assigned to, keep them.
#define ECHO_NUMBER(op, T) \
  T op(const T& x, T& y, T& z) override { z = y; y = x; return T(static_cast<const CORBA::Fixed&>(x)); }

struct FixedsServant : virtual POA_interop::Fixeds, virtual PortableServer::RefCountServantBase {
  ECHO_NUMBER(echo_price, Price)
  ECHO_NUMBER(echo_whole, Whole)
  ECHO_NUMBER(echo_fraction, Fraction)
  ECHO_NUMBER(echo_huge, Huge)
  ECHO_NUMBER(echo_digit, Digit)
  ECHO_VARIABLE(echo_prices, PriceSeq)
  ECHO_FIXED_ARRAY(echo_huge_pair, HugePair)
  Bill* echo_bill(const Bill& x, Bill& y, Bill_out z) override {
    Bill* result = new Bill;
    z = new Bill;
    *z.ptr() = y;
    y = x;
    *result = x;
    return result;
  }
  ECHO_FIXED(echo_by_price, ByPrice)
  Price total(const PriceSeq& prices) override {
    CORBA::Fixed sum(0);
    for (CORBA::ULong i = 0; i < prices.length(); ++i) sum += prices[i];
    return Price(sum);
  }
};

struct LongDoublesServant : virtual POA_interop::LongDoubles, virtual PortableServer::RefCountServantBase {
  ECHO_SCALAR(echo_long_double, CORBA::LongDouble)
  ECHO_VARIABLE(echo_long_doubles, LongDoubleSeq)
  ECHO_FIXED(echo_precise, Precise)
  CORBA::LongDouble half(CORBA::LongDouble x) override { return x / 2; }
};

}  // namespace

PortableServer::ServantBase* make_part(const char* name) {
  std::string part = name;
  if (part == "anys") return new AnysServant;
  if (part == "typecodes") return new TypeCodesServant;
  if (part == "fixed") return new FixedsServant;
  if (part == "long_double") return new LongDoublesServant;
  if (auto* later = make_later_part(part)) return later;
  return make_value_part(part);
}
