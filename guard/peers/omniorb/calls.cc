// omniORB's side of the suites of calls: serves and calls latency.idl and cubit.idl, and by cases.hh extents.idl for the suite
// "cases". calls.hh says how it is used; for the suite "latency" its client knows further commands:
//
//   objects N                                          gets the references of the first N objects
//   calls SLOT MODE TYPE UNITS INVOCATION SERVANT ALGORITHM OBJECTS ITERATIONS BATCH

#include <omniORB4/CORBA.h>
#include <cstdlib>
#include <fstream>
#include "cubit.hh"
#include "extents.hh"
#include "latency.hh"
#include "calls.hh"
#include "cases.hh"

static unsigned long long nanos_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

static long long resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.compare(0, 6, "VmRSS:") == 0) return std::atoll(line.c_str() + 6) * 1024;
  return 0;
}

// ---- the data to send: the value of an element follows from its index

static CORBA::Octet byte_at(size_t place) { return ' ' + place % 95; }
static CORBA::Long long_at(size_t place) { return CORBA::Long(CORBA::ULong(place) * 2654435761u); }

template <class T> struct Element;
template <> struct Element<latency::ShortSeq> {
  typedef CORBA::Short Type;
  static Type at(size_t place) { return CORBA::Short(long_at(place)); }
};
template <> struct Element<latency::CharSeq> {
  typedef CORBA::Char Type;
  static Type at(size_t place) { return byte_at(place); }
};
template <> struct Element<latency::LongSeq> {
  typedef CORBA::Long Type;
  static Type at(size_t place) { return long_at(place); }
};
template <> struct Element<latency::OctetSeq> {
  typedef CORBA::Octet Type;
  static Type at(size_t place) { return byte_at(place); }
};
template <> struct Element<latency::DoubleSeq> {
  typedef CORBA::Double Type;
  static Type at(size_t place) { return place * 0.37; }
};
template <> struct Element<latency::StructSeq> {
  typedef latency::BinStruct Type;
  static Type at(size_t place) {
    latency::BinStruct it;
    it.s = CORBA::Short(long_at(place));
    it.c = byte_at(place);
    it.l = long_at(place);
    it.o = byte_at(place + 1);
    it.d = place * 0.37;
    return it;
  }
};

static bool same(const latency::BinStruct& a, const latency::BinStruct& b) {
  return a.s == b.s && a.c == b.c && a.l == b.l && a.o == b.o && a.d == b.d;
}

template <class Seq> static Seq sequence_of(size_t count) {
  Seq seq;
  seq.length(count);
  for (size_t place = 0; place < count; place++) seq[place] = Element<Seq>::at(place);
  return seq;
}

// ---- the server of the latency suite

static std::atomic<uint64_t> calls, elements, wrong;

static void count_call() { calls.fetch_add(1, std::memory_order_relaxed); }

template <class Seq> static void count(const Seq& seq) {
  count_call();
  elements.fetch_add(seq.length(), std::memory_order_relaxed);
  if (seq.length() == 0) return;
  CORBA::ULong last = seq.length() - 1;
  CORBA::ULong places[3] = {0, last / 2, last};
  for (CORBA::ULong place : places)
    if (!same(seq[place], Element<Seq>::at(place))) wrong.fetch_add(1, std::memory_order_relaxed);
}

class Sequence : public POA_latency::ttcp_sequence {
  std::atomic<uint64_t> called{0};

  template <class Seq> void take(const Seq& seq) {
    called.fetch_add(1, std::memory_order_relaxed);
    count(seq);
  }
  void nothing() {
    called.fetch_add(1, std::memory_order_relaxed);
    count_call();
  }

public:
  void sendNoParams_2way() { nothing(); }
  void sendNoParams_1way() { nothing(); }
  void sendStructSeq_2way(const latency::StructSeq& seq) { take(seq); }
  void sendOctetSeq_2way(const latency::OctetSeq& seq) { take(seq); }
  void sendShortSeq_2way(const latency::ShortSeq& seq) { take(seq); }
  void sendLongSeq_2way(const latency::LongSeq& seq) { take(seq); }
  void sendCharSeq_2way(const latency::CharSeq& seq) { take(seq); }
  void sendDoubleSeq_2way(const latency::DoubleSeq& seq) { take(seq); }
  void sendStructSeq_1way(const latency::StructSeq& seq) { take(seq); }
  void sendOctetSeq_1way(const latency::OctetSeq& seq) { take(seq); }
  void sendShortSeq_1way(const latency::ShortSeq& seq) { take(seq); }
  void sendLongSeq_1way(const latency::LongSeq& seq) { take(seq); }
  void sendCharSeq_1way(const latency::CharSeq& seq) { take(seq); }
  void sendDoubleSeq_1way(const latency::DoubleSeq& seq) { take(seq); }
};

class DynamicSequence : public PortableServer::DynamicImplementation {
  CORBA::ORB_ptr orb;

  template <class Seq> void take(CORBA::NVList_ptr arguments, CORBA::ServerRequest_ptr request, CORBA::TypeCode_ptr type) {
    CORBA::Any any;
    any.replace(type, 0);
    arguments->add_value("ttcp_seq", any, CORBA::ARG_IN);
    request->arguments(arguments);
    const Seq* seq;
    if (!(*arguments->item(0)->value() >>= seq)) throw CORBA::MARSHAL();
    count(*seq);
  }

public:
  DynamicSequence(CORBA::ORB_ptr orb) : orb(orb) {}

  char* _primary_interface(const PortableServer::ObjectId&, PortableServer::POA_ptr) {
    return CORBA::string_dup("IDL:latency/ttcp_sequence:1.0");
  }

  void invoke(CORBA::ServerRequest_ptr request) {
    std::string operation = request->operation();
    std::string what = operation.substr(0, operation.find('_'));
    CORBA::NVList_ptr arguments;
    orb->create_list(0, arguments);
    if (what == "sendShortSeq") take<latency::ShortSeq>(arguments, request, latency::_tc_ShortSeq);
    else if (what == "sendCharSeq") take<latency::CharSeq>(arguments, request, latency::_tc_CharSeq);
    else if (what == "sendLongSeq") take<latency::LongSeq>(arguments, request, latency::_tc_LongSeq);
    else if (what == "sendOctetSeq") take<latency::OctetSeq>(arguments, request, latency::_tc_OctetSeq);
    else if (what == "sendDoubleSeq") take<latency::DoubleSeq>(arguments, request, latency::_tc_DoubleSeq);
    else if (what == "sendStructSeq") take<latency::StructSeq>(arguments, request, latency::_tc_StructSeq);
    else {
      request->arguments(arguments);
      if (what == "sendNoParams") return count_call();
      CORBA::Any exception;
      exception <<= new CORBA::BAD_OPERATION(0, CORBA::COMPLETED_NO);
      request->set_exception(exception);
    }
  }
};

class Directory : public POA_latency::directory {
  CORBA::ORB_ptr orb;
  PortableServer::POA_var poa;
  std::mutex mutex;
  // Ids one after another, all of one length, to keep little memory beside what is measured.
  std::vector<CORBA::Octet> ids;
  size_t id_length = 0, count = 0;

  void activate(CORBA::Octet* id) {
    PortableServer::ObjectId_var made = poa->activate_object(new Sequence);
    if (id_length == 0) {
      id_length = made->length();
      ids.resize(id_length);
      id = ids.data();
    }
    if (made->length() != id_length) throw CORBA::INTERNAL();
    for (size_t place = 0; place < id_length; place++) id[place] = made[CORBA::ULong(place)];
    count++;
  }

public:
  Directory(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa) : orb(orb), poa(PortableServer::POA::_duplicate(poa)) {}

  latency::Populated populate(CORBA::ULong objects) {
    std::lock_guard<std::mutex> lock(mutex);
    latency::Populated populated = {0, 0, 0, 0};
    if (objects <= count) return populated;
    size_t missing = objects - count;
    if (id_length == 0) activate(0);
    else {
      ids.resize((count + 1) * id_length);
      activate(&ids[count * id_length]);
    }
    size_t begin = ids.size();
    ids.resize(begin + (missing - 1) * id_length, 0xAA);
    long long before = resident_bytes();
    Clock::time_point begun = Clock::now();
    for (size_t place = begin; place < ids.size(); place += id_length) activate(&ids[place]);
    populated.nanoseconds = nanos_since(begun);
    populated.resident_bytes = resident_bytes() - before;
    populated.activated = missing - 1;
    populated.servant_bytes = (sizeof(Sequence) + 8 + 15) / 16 * 16;
    return populated;
  }

  latency::Objects* references(CORBA::ULong first, CORBA::ULong wanted) {
    std::lock_guard<std::mutex> lock(mutex);
    size_t end = std::min<size_t>(count, size_t(first) + wanted);
    latency::Objects_var objects = new latency::Objects;
    objects->length(end > first ? end - first : 0);
    for (size_t place = first; place < end; place++) {
      PortableServer::ObjectId id(id_length, id_length, &ids[place * id_length], 0);
      CORBA::Object_var object = poa->id_to_reference(id);
      objects[CORBA::ULong(place - first)] = latency::ttcp_sequence::_unchecked_narrow(object);
    }
    return objects._retn();
  }

  latency::ttcp_sequence_ptr dynamic_object() {
    PortableServer::ObjectId_var id = poa->activate_object(new DynamicSequence(orb));
    CORBA::Object_var object = poa->id_to_reference(id);
    return latency::ttcp_sequence::_unchecked_narrow(object);
  }

  latency::Tally taken() {
    latency::Tally tally;
    tally.calls = calls.exchange(0);
    tally.elements = elements.exchange(0);
    tally.wrong = wrong.exchange(0);
    return tally;
  }
};

// ---- the client of the latency suite

// The object to call next.
struct Order {
  std::string algorithm;
  size_t objects, iterations, place, left = 0;
  uint64_t random = 88172645463325252ull;
  Order(const std::string& algorithm, size_t objects, size_t iterations)
      : algorithm(algorithm), objects(objects), iterations(iterations), place(objects - 1) {
    kind = algorithm == "train" ? 0 : algorithm == "robin" ? 1 : 2;
  }
  int kind;
  size_t next() {
    if (kind == 2) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      return random % objects;
    }
    if (kind == 0 && left > 0) {
      left--;
      return place;
    }
    left = iterations - 1;
    if (++place == objects) place = 0;
    return place;
  }
};

typedef std::vector<latency::ttcp_sequence_var> Objects;

// The objects with static skeletons, and one with a dynamic servant.
static Objects known, dynamic_one;

typedef std::function<void(const latency::ttcp_sequence_var&)> Call;

// A request cannot be sent again, so each call has a new one. Its sequence borrows the elements.
template <class Seq> static Call dynamic(const char* operation, size_t units, bool oneway) {
  std::shared_ptr<std::vector<typename Element<Seq>::Type>> lent(new std::vector<typename Element<Seq>::Type>);
  for (size_t place = 0; place < units; place++) lent->push_back(Element<Seq>::at(place));
  std::string name(operation);
  return [=](const latency::ttcp_sequence_var& object) {
    CORBA::Request_var request = object->_request(name.c_str());
    request->add_in_arg("ttcp_seq") <<= new Seq(lent->size(), lent->size(), lent->data(), 0);
    request->set_return_type(CORBA::_tc_void);
    if (oneway) request->send_oneway();
    else request->invoke();
    if (CORBA::Exception* failed = request->env()->exception()) failed->_raise();
  };
}

static Call dynamic_nothing(const char* operation, bool oneway) {
  std::string name(operation);
  return [=](const latency::ttcp_sequence_var& object) {
    CORBA::Request_var request = object->_request(name.c_str());
    request->set_return_type(CORBA::_tc_void);
    if (oneway) request->send_oneway();
    else request->invoke();
    if (CORBA::Exception* failed = request->env()->exception()) failed->_raise();
  };
}

#define SEQUENCE(TYPE, SEQ)                                                                            \
  if (type == TYPE) {                                                                                  \
    if (is_dynamic) return dynamic<latency::SEQ>(oneway ? "send" #SEQ "_1way" : "send" #SEQ "_2way", units, oneway); \
    std::shared_ptr<latency::SEQ> seq(new latency::SEQ(sequence_of<latency::SEQ>(units)));             \
    if (oneway) return [seq](const latency::ttcp_sequence_var& object) { object->send##SEQ##_1way(*seq); }; \
    return [seq](const latency::ttcp_sequence_var& object) { object->send##SEQ##_2way(*seq); };        \
  }

static Call call_of(bool oneway, const std::string& type, size_t units, bool is_dynamic) {
  SEQUENCE("short", ShortSeq)
  SEQUENCE("char", CharSeq)
  SEQUENCE("long", LongSeq)
  SEQUENCE("octet", OctetSeq)
  SEQUENCE("double", DoubleSeq)
  SEQUENCE("struct", StructSeq)
  if (is_dynamic) return dynamic_nothing(oneway ? "sendNoParams_1way" : "sendNoParams_2way", oneway);
  if (oneway) return [](const latency::ttcp_sequence_var& object) { object->sendNoParams_1way(); };
  return [](const latency::ttcp_sequence_var& object) { object->sendNoParams_2way(); };
}

static Sample calls_of(std::istream& words) {
  std::string mode, type, invocation, servant, algorithm;
  size_t units, objects, iterations, batch;
  words >> mode >> type >> units >> invocation >> servant >> algorithm >> objects >> iterations >> batch;
  const Objects& among = servant == "dsi" ? dynamic_one : known;
  if (!words || objects == 0 || objects > among.size()) throw std::runtime_error("these calls are not understood");
  bool oneway = mode == "oneway";
  Call call = call_of(oneway, type, units, invocation != "sii");
  std::shared_ptr<Order> order(new Order(algorithm, objects, iterations));
  return [=, &among] {
    for (size_t number = 0; number < batch; number++) call(among[order->next()]);
    if (oneway) among[order->next()]->sendNoParams_2way();
  };
}

class LatencyClient : public Client {
  latency::directory_var directory;

 public:
  explicit LatencyClient(CORBA::Object_ptr object) : directory(latency::directory::_unchecked_narrow(object)) {}

  bool prepare(const std::string& command, size_t slot, std::istream& words, Slots& slots) {
    if (command == "objects") find(slot);
    else if (command == "calls") slots[slot] = calls_of(words);
    else return false;
    return true;
  }

 private:
  void find(size_t objects) {
    while (known.size() < objects) {
      latency::Objects_var some = directory->references(known.size(), std::min<size_t>(1000, objects - known.size()));
      if (some->length() == 0) throw std::runtime_error("there are not so many objects");
      for (CORBA::ULong place = 0; place < some->length(); place++)
        known.push_back(latency::ttcp_sequence::_duplicate(some[place]));
    }
    if (dynamic_one.empty()) dynamic_one.push_back(directory->dynamic_object());
  }
};

// ---- the program

static PortableServer::Servant servant_of(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, const std::string& suite) {
  if (suite == "latency") return new Directory(orb, poa);
  if (suite == "cubit") return new Cubit;
  if (suite == "cases") return new EchoCrowd(orb, poa);
  throw std::runtime_error("no suite is called " + suite);
}

static Client* client_of(CORBA::ORB_ptr orb, CORBA::Object_ptr object, const std::string& suite) {
  if (suite == "latency") return new LatencyClient(object);
  if (suite == "cases") return new CasesClient(object);
  return new CubitClient(orb, object);
}
