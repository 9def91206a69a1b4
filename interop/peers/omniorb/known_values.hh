// Valuetypes with the states and operations that the IDL gives them, and factories for all but Secret and
// Sealed.

#ifndef IRONORB_INTEROP_KNOWN_VALUES_HH
#define IRONORB_INTEROP_KNOWN_VALUES_HH

#include <string>

#include <omniORB4/CORBA.h>

#include "all_idl.hh"

struct AnAccount : virtual OBV_interop::Account {
  AnAccount() {}
  AnAccount(const char* its_owner, CORBA::Long its_balance, CORBA::Octet its_level) {
    owner(its_owner);
    balance(its_balance);
    level(its_level);
  }
  std::string state() const {
    return std::string(owner()) + " " + std::to_string(balance()) + " " + std::to_string(level());
  }
};

// A value that can be activated as the object that it supports.
struct ATag : virtual POA_interop::Tag, virtual OBV_interop::Tag, virtual PortableServer::ValueRefCountBase {
  ATag() {}
  ATag(const char* its_text, CORBA::Double its_size) {
    text(its_text);
    size(its_size);
  }
  char* label() override { return CORBA::string_dup(text()); }
  CORBA::Double measure() override { return size(); }
};

struct ATicket : virtual OBV_interop::Ticket, virtual CORBA::DefaultValueRefCountBase {
  ATicket() {}
  ATicket(CORBA::Long its_number, const char* its_holder) {
    number(its_number);
    holder(its_holder);
  }
  char* face() override { return CORBA::string_dup((std::to_string(number()) + " for " + holder()).c_str()); }
};

struct TicketOffice : virtual interop::Ticket_init {
  CORBA::ValueBase* create_for_unmarshal() override { return new ATicket; }
  interop::Ticket* issue(CORBA::Long number, const char* holder) override { return new ATicket(number, holder); }
};

struct ACard : virtual OBV_interop::Card, virtual CORBA::DefaultValueRefCountBase {
  ACard() {}
  explicit ACard(const char* its_line) { line(its_line); }
  char* describe_it() override { return CORBA::string_dup((std::string("card ") + line()).c_str()); }
};

void register_values(CORBA::ORB_ptr orb);

// One more owner of a value, or of null.
template <class Value>
Value* shared(Value* value) {
  CORBA::add_ref(value);
  return value;
}

// The constructors that omniidl writes forget the state of a base's base, so these set members.
template <class P>
P* at(P* point, CORBA::Long x, CORBA::Long y) {
  point->x(x);
  point->y(y);
  return point;
}
template <class S>
S* colored(S* spot, const char* color) {
  spot->color(color);
  return spot;
}
// Without contents and inner.
interop::Parcel* parcel(const char* label, CORBA::ULong weights);
interop::Twig* twig(const char* label, interop::Twig* left, interop::Twig* right);

// A ring of cells, numbered from 1; null for none. It owns itself, so that nothing frees it.
interop::Cell* ring(CORBA::Long count);
// The number of cells of a ring; 0 for null, -1 for a chain that ends.
CORBA::Long length(interop::Cell* first);

#endif
