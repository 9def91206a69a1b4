// omniORB's side of the suites of calls: serves and calls latency.idl and cubit.idl.
//
//   omniorb_calls server latency|cubit [-ORB...]
//     Its first line is the reference. It ends with its standard input.
//   omniorb_calls client latency|cubit REFERENCE [-ORB...]
//     Each line of its standard input is a command, each line of its output the answer, "ok" or numbers, or "failed" and
//     why:
//       objects N                                          gets the references of the first N objects
//       calls SLOT MODE TYPE UNITS INVOCATION SERVANT ALGORITHM OBJECTS ITERATIONS BATCH
//       cubit SLOT MODE KIND COUNT ONEWAYS
//       collocated SLOT KIND COUNT BATCH                   on an object of this process
//       threads SLOT CLIENTS CALLS                         a sample: each of CLIENTS threads makes CALLS void calls
//       each SLOT N                                        the nanoseconds of each of N samples
//
// A failure is a line on standard error and the exit code 1.

#include <omniORB4/CORBA.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "cubit.hh"
#include "latency.hh"

typedef std::chrono::steady_clock Clock;

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

template <class T> static bool same(const T& a, const T& b) { return a == b; }
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

// ---- the server of the cubit

template <class T> static T cube(T value) { return T(CORBA::ULong(value) * CORBA::ULong(value) * CORBA::ULong(value)); }
static idl_cubit::Many cube(const idl_cubit::Many& value) {
  idl_cubit::Many result = {cube(value.o), cube(value.l), cube(value.s)};
  return result;
}
static bool same(const idl_cubit::Many& a, const idl_cubit::Many& b) { return a.o == b.o && a.l == b.l && a.s == b.s; }

template <class Seq> static Seq* cubes(const Seq& values) {
  Seq* result = new Seq(values.length());
  result->length(values.length());
  for (CORBA::ULong place = 0; place < values.length(); place++) (*result)[place] = cube(values[place]);
  return result;
}

static std::atomic<uint64_t> for_nobody;

class Cubit : public POA_idl_cubit::Cubit {
public:
  void nothing() {}
  CORBA::Octet cube_octet(CORBA::Octet value) { return cube(value); }
  CORBA::Short cube_short(CORBA::Short value) { return cube(value); }
  CORBA::Long cube_long(CORBA::Long value) { return cube(value); }
  idl_cubit::Many cube_many(const idl_cubit::Many& value) { return cube(value); }
  idl_cubit::LongSeq* cube_long_sequence(const idl_cubit::LongSeq& values) { return cubes(values); }
  idl_cubit::ManySeq* cube_many_sequence(const idl_cubit::ManySeq& values) { return cubes(values); }
  void nothing_oneway() {}
  void cube_octet_oneway(CORBA::Octet value) { for_nobody.store(cube(value), std::memory_order_relaxed); }
  void cube_short_oneway(CORBA::Short value) { for_nobody.store(cube(value), std::memory_order_relaxed); }
  void cube_long_oneway(CORBA::Long value) { for_nobody.store(cube(value), std::memory_order_relaxed); }
  void cube_many_oneway(const idl_cubit::Many& value) { for_nobody.store(cube(value).l, std::memory_order_relaxed); }
  void cube_long_sequence_oneway(const idl_cubit::LongSeq& values) { idl_cubit::LongSeq_var result = cubes(values); }
  void cube_many_sequence_oneway(const idl_cubit::ManySeq& values) { idl_cubit::ManySeq_var result = cubes(values); }
};

static int serve(CORBA::ORB_ptr orb, const std::string& suite) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::Servant servant;
  if (suite == "latency") servant = new Directory(orb, poa);
  else if (suite == "cubit") servant = new Cubit;
  else throw std::runtime_error("no suite is called " + suite);
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  CORBA::Object_var object = poa->id_to_reference(id);
  CORBA::String_var text = orb->object_to_string(object);
  std::cout << text.in() << std::endl;
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  std::string rest;
  while (std::getline(std::cin, rest)) {}
  return 0;
}

// ---- the client of the latency suite

typedef std::function<void()> Sample;

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

// ---- the client of the cubit

static void check(bool is_right) {
  if (!is_right) throw std::runtime_error("got what is no cube");
}

template <class Seq> static void check_all(const Seq& cubed, const Seq& values) {
  check(cubed.length() == values.length());
  for (CORBA::ULong place = 0; place < values.length(); place++) check(same(cubed[place], cube(values[place])));
}

static Sample cube_of(idl_cubit::Cubit_ptr object, bool oneway, const std::string& kind, size_t count) {
  idl_cubit::Cubit_var to = idl_cubit::Cubit::_duplicate(object);
  idl_cubit::Many many = {5, 17, 11};
  if (kind == "octet") {
    if (oneway) return [to] { to->cube_octet_oneway(17); };
    return [to] { check(to->cube_octet(17) == cube(CORBA::Octet(17))); };
  }
  if (kind == "short") {
    if (oneway) return [to] { to->cube_short_oneway(17); };
    return [to] { check(to->cube_short(17) == cube(CORBA::Short(17))); };
  }
  if (kind == "long") {
    if (oneway) return [to] { to->cube_long_oneway(17); };
    return [to] { check(to->cube_long(17) == cube(CORBA::Long(17))); };
  }
  if (kind == "many") {
    if (oneway) return [to, many] { to->cube_many_oneway(many); };
    return [to, many] { check(same(to->cube_many(many), cube(many))); };
  }
  if (kind == "longs") {
    std::shared_ptr<idl_cubit::LongSeq> values(new idl_cubit::LongSeq);
    values->length(count);
    for (size_t place = 0; place < count; place++) (*values)[place] = place;
    if (oneway) return [to, values] { to->cube_long_sequence_oneway(*values); };
    return [to, values] {
      idl_cubit::LongSeq_var cubed = to->cube_long_sequence(*values);
      check_all(cubed.in(), *values);
    };
  }
  if (kind == "manies") {
    std::shared_ptr<idl_cubit::ManySeq> values(new idl_cubit::ManySeq);
    values->length(count);
    for (size_t place = 0; place < count; place++) {
      idl_cubit::Many it = {CORBA::Octet(place), CORBA::Long(place), CORBA::Short(place)};
      (*values)[place] = it;
    }
    if (oneway) return [to, values] { to->cube_many_sequence_oneway(*values); };
    return [to, values] {
      idl_cubit::ManySeq_var cubed = to->cube_many_sequence(*values);
      check_all(cubed.in(), *values);
    };
  }
  if (kind != "void") throw std::runtime_error("no kind is called " + kind);
  if (oneway) return [to] { to->nothing_oneway(); };
  return [to] { to->nothing(); };
}

// Threads that make their calls on a common signal.
struct Crowd {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads;
  size_t round = 0, left = 0;
  bool is_over = false, has_failed = false;

  Crowd(idl_cubit::Cubit_ptr object, size_t clients, size_t calls) {
    for (size_t number = 0; number < clients; number++) {
      idl_cubit::Cubit_var to = idl_cubit::Cubit::_duplicate(object);
      threads.emplace_back([this, to, calls] {
        size_t done = 0;
        for (;;) {
          {
            std::unique_lock<std::mutex> lock(mutex);
            changed.wait(lock, [&] { return is_over || round > done; });
            if (is_over) return;
            done = round;
          }
          bool failed = false;
          try {
            for (size_t number = 0; number < calls; number++) to->nothing();
          } catch (const CORBA::Exception&) {
            failed = true;
          }
          std::lock_guard<std::mutex> lock(mutex);
          has_failed |= failed;
          if (--left == 0) changed.notify_all();
        }
      });
    }
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    left = threads.size();
    round++;
    changed.notify_all();
    changed.wait(lock, [&] { return left == 0; });
    if (has_failed) throw std::runtime_error("a call of a thread failed");
  }
  ~Crowd() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      is_over = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

static idl_cubit::Cubit_ptr local_cubit(CORBA::ORB_ptr orb) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  PortableServer::ObjectId_var id = poa->activate_object(new Cubit);
  CORBA::Object_var object = poa->id_to_reference(id);
  return idl_cubit::Cubit::_narrow(object);
}

static int call(CORBA::ORB_ptr orb, const std::string& suite, const char* reference) {
  CORBA::Object_var object = orb->string_to_object(reference);
  latency::directory_var directory;
  idl_cubit::Cubit_var remote, local;
  if (suite == "latency") directory = latency::directory::_unchecked_narrow(object);
  else remote = idl_cubit::Cubit::_unchecked_narrow(object);
  std::map<size_t, Sample> slots;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    size_t slot = 0, count = 0;
    words >> command >> slot;
    if (command == "objects") {
      while (known.size() < slot) {
        latency::Objects_var some = directory->references(known.size(), std::min<size_t>(1000, slot - known.size()));
        if (some->length() == 0) throw std::runtime_error("there are not so many objects");
        for (CORBA::ULong place = 0; place < some->length(); place++)
          known.push_back(latency::ttcp_sequence::_duplicate(some[place]));
      }
      if (dynamic_one.empty()) dynamic_one.push_back(directory->dynamic_object());
    } else if (command == "calls") {
      slots[slot] = calls_of(words);
    } else if (command == "cubit") {
      std::string mode, kind;
      size_t oneways;
      words >> mode >> kind >> count >> oneways;
      Sample once = cube_of(remote, mode == "oneway", kind, count);
      idl_cubit::Cubit_var to = remote;
      if (mode == "oneway")
        slots[slot] = [=] {
          for (size_t number = 0; number < oneways; number++) once();
          to->nothing();
        };
      else slots[slot] = once;
    } else if (command == "collocated") {
      std::string kind;
      size_t batch;
      words >> kind >> count >> batch;
      if (CORBA::is_nil(local)) local = local_cubit(orb);
      Sample once = cube_of(local, false, kind, count);
      slots[slot] = [=] {
        for (size_t number = 0; number < batch; number++) once();
      };
    } else if (command == "threads") {
      size_t calls;
      words >> count >> calls;
      // Ends the threads of the previous sample before new ones start.
      slots.erase(slot);
      std::shared_ptr<Crowd> crowd(new Crowd(remote, count, calls));
      slots[slot] = [crowd] { crowd->run(); };
    } else if (command == "each") {
      words >> count;
      Sample& once = slots.at(slot);
      std::vector<unsigned long long> nanos(count);
      try {
        Clock::time_point before = Clock::now();
        for (unsigned long long& each : nanos) {
          once();
          Clock::time_point after = Clock::now();
          each = std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count();
          before = after;
        }
      } catch (const CORBA::SystemException& e) {
        std::cout << "failed: " << e._name() << " minor " << e.minor() << std::endl;
        continue;
      }
      for (unsigned long long each : nanos) std::cout << each << ' ';
      std::cout << std::endl;
      continue;
    } else {
      throw std::runtime_error("no command is called " + command);
    }
    std::cout << "ok" << std::endl;
  }
  return 0;
}

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    std::string role = argc > 2 ? argv[1] : "";
    if (!(role == "server" && argc == 3) && !(role == "client" && argc == 4))
      throw std::runtime_error("usage: server SUITE | client SUITE REFERENCE");
    int code = role == "server" ? serve(orb, argv[2]) : call(orb, argv[2], argv[3]);
    orb->destroy();
    return code;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "omniorb_calls: " << e._name() << " minor " << e.minor() << std::endl;
  } catch (const CORBA::Exception& e) {
    std::cerr << "omniorb_calls: " << e._name() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "omniorb_calls: " << e.what() << std::endl;
  }
  return 1;
}
