// The servants of valuetypes, boxes and abstract interfaces.

#include "all_idl.hh"
#include "echoes.hh"
#include "known_values.hh"
#include "parts.hh"
#include "value_samples.hh"

using namespace interop;

namespace {

#define PASS_VALUE(op, T) \
  T* op(T* x) override { return shared(x); }

CORBA::Long sum(Point* p) {
  if (!p) throw CORBA::BAD_PARAM();
  return p->x() + p->y();
}

struct ValuesServant : virtual POA_interop::Values, virtual PortableServer::RefCountServantBase {
  ECHO_VALUE(echo_point, interop::Point)
  ECHO_VALUE(echo_spot, interop::Spot)
  ECHO_VALUE(echo_account, interop::Account)
  ECHO_VALUE(echo_mixed, interop::Mixed)
  ECHO_VALUE(echo_cell, interop::Cell)
  ECHO_VALUE(echo_twig, interop::Twig)
  ECHO_VALUE(echo_tag, interop::Tag)
  ECHO_VALUE(echo_parcel, interop::Parcel)
  ECHO_VALUE(echo_ticket, interop::Ticket)
  ECHO_VALUE(echo_crate, interop::Crate)
  ECHO_VALUE(echo_anything, interop::Anything)
  PASS_VALUE(pass_base, CORBA::ValueBase)
  ECHO_VARIABLE(echo_cells, interop::CellSeq)
  ECHO_VARIABLE(echo_point_pair, interop::PointPair)
  ECHO_VARIABLE(echo_point_or_number, interop::PointOrNumber)
  CORBA::Long sum_of(interop::Point* p) override { return sum(p); }
  char* kind_of(interop::Point* p) override { return CORBA::string_dup(p ? p->_NP_repositoryId() : ""); }
  interop::Spot* secret(CORBA::Long x, CORBA::Long y) override {
    auto* secret = colored(at(new OBV_interop::Secret, x, y), "red");
    secret->code(99);
    return secret;
  }
  char* kinds_of(const interop::PointSeq& points) override {
    std::string kinds;
    for (CORBA::ULong i = 0; i < points.length(); ++i) {
      interop::Point* point = points[i];
      kinds += (i ? " " : "") + std::string(point ? point->_NP_repositoryId() : "");
    }
    return CORBA::string_dup(kinds.c_str());
  }
  CORBA::Long sum_of_second(interop::Parcel*, interop::Point* second) override { return sum(second); }
  CORBA::Boolean same_point(interop::Point* a, interop::Point* b) override { return a == b; }
  interop::Cell* ring(CORBA::Long count) override { return ::ring(count); }
  CORBA::Long length_of(interop::Cell* c) override { return length(c); }
  void raise_spoilt(interop::Point* where) override { throw Spoilt(shared(where)); }
  char* label_of(interop::Tag* t) override {
    if (!t) throw CORBA::BAD_PARAM();
    return t->label();
  }
  CORBA::Double measure_of(interop::Measured* m) override {
    if (!m) throw CORBA::BAD_PARAM();
    return m->measure();
  }
  char* face_of(interop::Ticket* t) override {
    if (!t) throw CORBA::BAD_PARAM();
    return t->face();
  }
  interop::Labelled_ptr object_of(interop::Tag* t) override {
    auto* tag = dynamic_cast<ATag*>(t);
    if (!tag) throw CORBA::BAD_PARAM();
    return tag->_this();
  }
};

struct BoxesServant : virtual POA_interop::Boxes, virtual PortableServer::RefCountServantBase {
  ECHO_VALUE(echo_boxed_string, interop::BoxedString)
  ECHO_VALUE(echo_boxed_long, interop::BoxedLong)
  ECHO_VALUE(echo_boxed_longs, interop::BoxedLongs)
  ECHO_VALUE(echo_boxed_bin, interop::BoxedBin)
  PASS_VALUE(pass_boxed_string, interop::BoxedString)
  PASS_VALUE(pass_boxed_long, interop::BoxedLong)
  PASS_VALUE(pass_boxed_longs, interop::BoxedLongs)
  PASS_VALUE(pass_boxed_bin, interop::BoxedBin)
};

struct PersonServant : virtual POA_interop::Person, virtual PortableServer::RefCountServantBase {
  explicit PersonServant(const char* name) : name_(name) {}
  char* name() override { return CORBA::string_dup(name_.c_str()); }
  char* describe_it() override { return CORBA::string_dup(("person " + name_).c_str()); }
  std::string name_;
};

struct AbstractsServant : virtual POA_interop::Abstracts, virtual PortableServer::RefCountServantBase {
  ECHO_REFERENCE(echo_describable, interop::Describable)
  char* description_of(interop::Describable_ptr what) override {
    return CORBA::is_nil(what) ? CORBA::string_dup("") : what->describe_it();
  }
  interop::Person_ptr create_person(const char* name) override {
    auto* person = new PersonServant(name);
    interop::Person_ptr reference = person->_this();
    person->_remove_ref();
    return reference;
  }
  interop::Describable_ptr a_card(const char* line) override { return new ACard(line); }
  interop::Describable_ptr a_person(const char* name) override { return create_person(name); }
};

struct ValueAnysServant : virtual POA_interop::ValueAnys, virtual PortableServer::RefCountServantBase {
  CORBA::Any* echo_value_any(const CORBA::Any& x, CORBA::Any& y, CORBA::Any_OUT_arg z) override {
    z = new CORBA::Any(y);
    y = x;
    return new CORBA::Any(x);
  }
  CORBA::Any* make(const char* sample) override { return new CORBA::Any(make_value_sample(sample)); }
  char* check(const char* sample, const CORBA::Any& what) override {
    return CORBA::string_dup(check_value_sample(sample, what).c_str());
  }
};

}  // namespace

PortableServer::ServantBase* make_value_part(const std::string& part) {
  if (part == "values") return new ValuesServant;
  if (part == "boxes") return new BoxesServant;
  if (part == "abstracts") return new AbstractsServant;
  if (part == "value_anys") return new ValueAnysServant;
  return nullptr;
}
