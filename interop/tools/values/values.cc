// Prints values as omniORB writes them, in the format of the golden files: each at offset 0 of a stream of its own,
// little-endian, since chunks in the order that is not the machine's end omniORB with a failed assertion. With an argument, reads what others have written, a line `order hex` each from standard
// input, and prints what omniORB makes of it.
//
//   omniidl -bcxx values.idl
//   g++ -o values values.cc valuesSK.cc -lomniDynamic4 -lomniCodeSets4 -lomniORB4 -lomnithread
//   ./values > values.hex
#include "values.hh"
#include <omniORB4/codeSets.h>
#include <omniORB4/cdrStream.h>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

class ItemI : public virtual OBV_Item, public virtual CORBA::DefaultValueRefCountBase {
public:
  ItemI(CORBA::Long n = 0) { number(n); left(0); right(0); }
};
class NamedI : public virtual OBV_Named, public virtual CORBA::DefaultValueRefCountBase {
public:
  NamedI(CORBA::Long n = 0, const char* s = "") { number(n); left(0); right(0); name(s); last(0); }
};
class DeepI : public virtual OBV_Deep, public virtual CORBA::DefaultValueRefCountBase {
public:
  DeepI(CORBA::Long n = 0, const char* s = "") { number(n); left(0); right(0); name(s); last(0); }
};

template <class Init, class Value> class Factory : public virtual Init {
  CORBA::ValueBase* create_for_unmarshal() { return new Value; }
};

static void set_up(cdrMemoryStream& stream, bool little) {
  stream.setByteSwapFlag(little);
  stream.TCS_C(omni::omniCodeSet::getTCS_C("UTF-8", {1, 2}));
  stream.TCS_W(omni::omniCodeSet::getTCS_W("UTF-16", {1, 2}));
}

static void print(const char* label, const std::function<void(cdrStream&)>& write) {
  cdrMemoryStream stream(CORBA::ULong(0), true);
  set_up(stream, true);
  write(stream);
  printf("> little %s\n", label);
  const unsigned char* bytes = (const unsigned char*)stream.bufPtr();
  for (unsigned i = 0; i < stream.bufSize(); i++)
    printf("%02x%s", bytes[i], i % 32 == 31 || i + 1 == stream.bufSize() ? "\n" : "");
}

static void item(const char* label, Item* value) {
  print(label, [=](cdrStream& s) { Item_Helper::marshal(value, s); });
}

// Numbers values as a walk meets them.
static std::string describe(Item* root) {
  std::map<Item*, int> numbers;
  std::vector<Item*> met;
  auto number = [&](Item* value) {
    if (!value) return std::string("null");
    if (!numbers.count(value)) { numbers[value] = met.size(); met.push_back(value); }
    return "#" + std::to_string(numbers[value]);
  };
  std::ostringstream out;
  number(root);
  for (size_t i = 0; i < met.size(); i++) {
    Item* value = met[i];
    out << (i ? "; " : "") << value->number() << " " << number(value->left());
    out << " " << number(value->right());
    if (Named* named = Named::_downcast(value)) out << " " << named->name() << " " << number(named->last());
    if (Deep* deep = Deep::_downcast(value)) {
      out << " " << deep->numbers().length();
      for (CORBA::ULong n = 0; n < deep->items().length(); n++) out << " " << number(deep->items()[n]);
    }
  }
  return out.str();
}

static void read() {
  std::string order, hex;
  while (std::cin >> order >> hex) {
    cdrMemoryStream stream(CORBA::ULong(0), true);
    for (size_t i = 0; i + 1 < hex.size(); i += 2)
      stream.marshalOctet(CORBA::Octet(std::stoi(hex.substr(i, 2), nullptr, 16)));
    set_up(stream, order == "little");
    try {
      Item_var value = Item_Helper::unmarshal(stream);
      std::cout << (value ? describe(value) : "null") << std::endl;
    } catch (CORBA::SystemException& e) {
      std::cout << e._name() << " " << (e.NP_minorString() ? e.NP_minorString() : "") << std::endl;
    }
  }
}

int main(int argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  orb->register_value_factory("IDL:Item:1.0", new Factory<Item_init, ItemI>);
  if (argc < 2 || std::string(argv[1]) != "few") {
    orb->register_value_factory("IDL:Named:1.0", new Factory<Named_init, NamedI>);
    orb->register_value_factory("IDL:Deep:1.0", new Factory<Deep_init, DeepI>);
  }
  if (argc > 1) { read(); return 0; }

  item("null", 0);
  Item* one = new ItemI(1);
  item("single", one);
  Item* shared = new ItemI(2);
  shared->left(one);
  shared->right(one);
  one->_add_ref();
  one->_add_ref();
  item("shared", shared);
  Item* self = new ItemI(3);
  self->left(self);
  self->right(self);
  item("cycle", self);
  print("parameters", [=](cdrStream& s) {
    Item_Helper::marshal(one, s);
    Item_Helper::marshal(shared, s);
    Item_Helper::marshal(one, s);
  });
  Item* holder = new ItemI(4);
  holder->left(new NamedI(5, "five"));
  holder->right(new NamedI(6, "six"));
  item("truncatable", holder);
  Named* inner = new NamedI(8, "inner");
  Named* outer = new NamedI(7, "outer");
  Named* outermost = new NamedI(9, "outermost");
  outer->last(inner);
  outermost->last(outer);
  print("ends", [=](cdrStream& s) { Item_Helper::marshal(outermost, s); });
  Deep* deep = new DeepI(10, "deep");
  deep->left(one);
  deep->last(outer);
  one->_add_ref();
  outer->_add_ref();
  deep->numbers().length(3);
  for (int i = 0; i < 3; i++) deep->numbers()[i] = i / 2.0;
  deep->items().length(4);
  Item* items[] = {one, inner, 0, deep};
  for (int i = 0; i < 4; i++) {
    if (items[i]) items[i]->_add_ref();
    deep->items()[i] = items[i];
  }
  item("deep", deep);
  print("formal type", [=](cdrStream& s) { Deep_Helper::marshal(deep, s); });
  Deep* large = new DeepI(11, std::string(3000, 'x').c_str());
  large->numbers().length(1500);
  for (int i = 0; i < 1500; i++) large->numbers()[i] = i;
  large->items().length(1);
  large->items()[0] = new NamedI(12, "after");
  item("large", large);
  Text* text = new Text("boxed");
  print("boxes", [=](cdrStream& s) {
    Text_Helper::marshal(text, s);
    Text_Helper::marshal(text, s);
    CORBA::ValueBase::_NP_marshal(text, s);
  });
  print("any value", [=](cdrStream& s) { CORBA::ValueBase::_NP_marshal(one, s); });
  return 0;
}
