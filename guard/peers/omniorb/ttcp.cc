// omniORB's side of `ironorb bench ttcp`: serves and calls idl/ttcp.idl.
//
//   omniorb_ttcp server CORE [-ORB...]
//     Its first line has four references: oneway to a static skeleton and to a dynamic one, then twoway. It ends with its
//     standard input.
//   omniorb_ttcp client CORE MODE TYPE ELEMENTS INVOCATION REFERENCE [-ORB...]
//     Each line of its standard input is a command, each line of its output the answer:
//       run N    sends N sequences: nanoseconds at the sender, then sequences, elements and wrong elements at the receiver
//       each N   the nanoseconds of each of N calls
//
// CORE is a processor to pin the process to, or "-". TYPE is "nothing" for the operation without parameters. A failure is a line on
// standard error and the exit code 1.

#include <omniORB4/CORBA.h>
#include <sched.h>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include "ttcp.hh"

typedef std::chrono::steady_clock Clock;

static unsigned long long nanos_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

// ---- the data to send: the value of an element follows from its index

template <class T> struct Element;

static CORBA::Octet byte_at(size_t place) { return ' ' + place % 95; }
static CORBA::Long long_at(size_t place) { return CORBA::Long(CORBA::ULong(place) * 2654435761u); }

template <> struct Element<ttcp::ShortSeq> {
  typedef CORBA::Short Type;
  static Type at(size_t place) { return CORBA::Short(long_at(place)); }
};
template <> struct Element<ttcp::CharSeq> {
  typedef CORBA::Char Type;
  static Type at(size_t place) { return byte_at(place); }
};
template <> struct Element<ttcp::LongSeq> {
  typedef CORBA::Long Type;
  static Type at(size_t place) { return long_at(place); }
};
template <> struct Element<ttcp::OctetSeq> {
  typedef CORBA::Octet Type;
  static Type at(size_t place) { return byte_at(place); }
};
template <> struct Element<ttcp::DoubleSeq> {
  typedef CORBA::Double Type;
  static Type at(size_t place) { return place * 0.37; }
};
template <> struct Element<ttcp::StructSeq> {
  typedef ttcp::PerfStruct Type;
  static Type at(size_t place) {
    ttcp::PerfStruct it;
    it.s = CORBA::Short(long_at(place));
    it.c = byte_at(place);
    it.l = long_at(place);
    it.o = byte_at(place + 1);
    it.d = place * 0.37;
    return it;
  }
};

template <class T> static bool same(const T& a, const T& b) { return a == b; }
static bool same(const ttcp::PerfStruct& a, const ttcp::PerfStruct& b) {
  return a.s == b.s && a.c == b.c && a.l == b.l && a.o == b.o && a.d == b.d;
}

// ---- the receiver

struct Counter {
  ttcp::Tally tally;
  Clock::time_point started;

  Counter() { start(); }
  void start() {
    tally.sequences = tally.elements = tally.wrong = tally.nanoseconds = 0;
    started = Clock::now();
  }
  void stop() { tally.nanoseconds = nanos_since(started); }
  template <class Seq> void take(const Seq& seq) {
    tally.sequences++;
    tally.elements += seq.length();
    if (seq.length() == 0) return;
    CORBA::ULong last = seq.length() - 1;
    CORBA::ULong places[3] = {0, last / 2, last};
    for (CORBA::ULong place : places)
      if (!same(seq[place], Element<Seq>::at(place))) tally.wrong++;
  }
};

template <class Skeleton> class Receiver : public Skeleton {
  Counter counter;

public:
  void sendNoParams() {}
  ttcp::Tally taken() { return counter.tally; }
  void sendShortSeq(const ttcp::ShortSeq& seq) { counter.take(seq); }
  void sendCharSeq(const ttcp::CharSeq& seq) { counter.take(seq); }
  void sendLongSeq(const ttcp::LongSeq& seq) { counter.take(seq); }
  void sendOctetSeq(const ttcp::OctetSeq& seq) { counter.take(seq); }
  void sendDoubleSeq(const ttcp::DoubleSeq& seq) { counter.take(seq); }
  void sendStructSeq(const ttcp::StructSeq& seq) { counter.take(seq); }
  void start_timer() { counter.start(); }
  void stop_timer() { counter.stop(); }
};

class DynamicReceiver : public PortableServer::DynamicImplementation {
  CORBA::ORB_ptr orb;
  const char* id;
  Counter counter;

  template <class Seq> void take(CORBA::ServerRequest_ptr request, CORBA::TypeCode_ptr type) {
    CORBA::NVList_ptr arguments;
    orb->create_list(0, arguments);
    CORBA::Any any;
    any.replace(type, 0);
    arguments->add_value("ttcp_seq", any, CORBA::ARG_IN);
    request->arguments(arguments);
    const Seq* seq;
    if (!(*arguments->item(0)->value() >>= seq)) throw CORBA::MARSHAL();
    counter.take(*seq);
  }

  void nothing(CORBA::ServerRequest_ptr request) {
    CORBA::NVList_ptr arguments;
    orb->create_list(0, arguments);
    request->arguments(arguments);
  }

public:
  DynamicReceiver(CORBA::ORB_ptr orb, const char* id) : orb(orb), id(id) {}

  char* _primary_interface(const PortableServer::ObjectId&, PortableServer::POA_ptr) {
    return CORBA::string_dup(id);
  }

  void invoke(CORBA::ServerRequest_ptr request) {
    std::string operation = request->operation();
    if (operation == "sendShortSeq") take<ttcp::ShortSeq>(request, ttcp::_tc_ShortSeq);
    else if (operation == "sendCharSeq") take<ttcp::CharSeq>(request, ttcp::_tc_CharSeq);
    else if (operation == "sendLongSeq") take<ttcp::LongSeq>(request, ttcp::_tc_LongSeq);
    else if (operation == "sendOctetSeq") take<ttcp::OctetSeq>(request, ttcp::_tc_OctetSeq);
    else if (operation == "sendDoubleSeq") take<ttcp::DoubleSeq>(request, ttcp::_tc_DoubleSeq);
    else if (operation == "sendStructSeq") take<ttcp::StructSeq>(request, ttcp::_tc_StructSeq);
    else {
      nothing(request);
      if (operation == "start_timer") counter.start();
      else if (operation == "stop_timer") counter.stop();
      else if (operation == "taken") {
        CORBA::Any result;
        result <<= counter.tally;
        request->set_result(result);
      } else if (operation != "sendNoParams") {
        CORBA::Any exception;
        exception <<= new CORBA::BAD_OPERATION(0, CORBA::COMPLETED_NO);
        request->set_exception(exception);
      }
    }
  }
};

static std::string activate(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, PortableServer::Servant servant) {
  PortableServer::ObjectId_var id = poa->activate_object(servant);
  CORBA::Object_var object = poa->id_to_reference(id);
  CORBA::String_var text = orb->object_to_string(object);
  return text.in();
}

static int serve(CORBA::ORB_ptr orb) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  std::cout << activate(orb, poa, new Receiver<POA_ttcp::ttcp_sequence>) << ' '
            << activate(orb, poa, new DynamicReceiver(orb, "IDL:ttcp/ttcp_sequence:1.0")) << ' '
            << activate(orb, poa, new Receiver<POA_ttcp::ttcp_sequence_2way>) << ' '
            << activate(orb, poa, new DynamicReceiver(orb, "IDL:ttcp/ttcp_sequence_2way:1.0")) << std::endl;
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  std::string rest;
  while (std::getline(std::cin, rest)) {}
  return 0;
}

// ---- the sender

struct Sender {
  virtual ~Sender() {}
  virtual void send() = 0;
};

static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::ShortSeq& seq) { to->sendShortSeq(seq); }
static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::CharSeq& seq) { to->sendCharSeq(seq); }
static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::LongSeq& seq) { to->sendLongSeq(seq); }
static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::OctetSeq& seq) { to->sendOctetSeq(seq); }
static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::DoubleSeq& seq) { to->sendDoubleSeq(seq); }
static void send_static(ttcp::ttcp_sequence_ptr to, const ttcp::StructSeq& seq) { to->sendStructSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::ShortSeq& seq) { to->sendShortSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::CharSeq& seq) { to->sendCharSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::LongSeq& seq) { to->sendLongSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::OctetSeq& seq) { to->sendOctetSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::DoubleSeq& seq) { to->sendDoubleSeq(seq); }
static void send_static(ttcp::ttcp_sequence_2way_ptr to, const ttcp::StructSeq& seq) { to->sendStructSeq(seq); }

template <class Var, class Seq> struct Static : Sender {
  Var to;
  Seq seq;
  Static(typename Var::ptr_t object, const Seq& seq) : to(object), seq(seq) {}
  void send() { send_static(to.in(), seq); }
};

static void complete(CORBA::Request_ptr request, bool oneway) {
  request->set_return_type(CORBA::_tc_void);
  if (oneway) request->send_oneway();
  else request->invoke();
  if (CORBA::Exception* failed = request->env()->exception()) failed->_raise();
}

// A request cannot be sent again, so each call has a new one. Its sequence borrows the elements.
template <class Seq> struct Dynamic : Sender {
  CORBA::Object_var to;
  std::string operation;
  std::vector<typename Element<Seq>::Type> elements;
  bool oneway;
  Dynamic(CORBA::Object_ptr object, const char* operation, const Seq& seq, bool oneway)
      : to(CORBA::Object::_duplicate(object)), operation(operation), oneway(oneway) {
    for (CORBA::ULong place = 0; place < seq.length(); place++) elements.push_back(seq[place]);
  }
  void send() {
    CORBA::Request_var request = to->_request(operation.c_str());
    request->add_in_arg("ttcp_seq") <<= new Seq(elements.size(), elements.size(), elements.data(), 0);
    complete(request, oneway);
  }
};

struct StaticNothing : Sender {
  ttcp::receiver_var to;
  StaticNothing(ttcp::receiver_ptr to) : to(to) {}
  void send() { to->sendNoParams(); }
};

struct DynamicNothing : Sender {
  CORBA::Object_var to;
  DynamicNothing(CORBA::Object_ptr object) : to(CORBA::Object::_duplicate(object)) {}
  void send() {
    CORBA::Request_var request = to->_request("sendNoParams");
    complete(request, false);
  }
};

template <class Seq>
static Sender* sender(CORBA::Object_ptr object, bool oneway, bool dynamic, const char* operation, size_t count) {
  Seq seq;
  seq.length(count);
  for (size_t place = 0; place < count; place++) seq[place] = Element<Seq>::at(place);
  if (dynamic) return new Dynamic<Seq>(object, operation, seq, oneway);
  if (oneway) return new Static<ttcp::ttcp_sequence_var, Seq>(ttcp::ttcp_sequence::_unchecked_narrow(object), seq);
  return new Static<ttcp::ttcp_sequence_2way_var, Seq>(ttcp::ttcp_sequence_2way::_unchecked_narrow(object), seq);
}

static Sender* sender(CORBA::Object_ptr object, bool oneway, const std::string& type, size_t count, bool dynamic) {
  if (type == "short") return sender<ttcp::ShortSeq>(object, oneway, dynamic, "sendShortSeq", count);
  if (type == "char") return sender<ttcp::CharSeq>(object, oneway, dynamic, "sendCharSeq", count);
  if (type == "long") return sender<ttcp::LongSeq>(object, oneway, dynamic, "sendLongSeq", count);
  if (type == "octet") return sender<ttcp::OctetSeq>(object, oneway, dynamic, "sendOctetSeq", count);
  if (type == "double") return sender<ttcp::DoubleSeq>(object, oneway, dynamic, "sendDoubleSeq", count);
  if (type == "struct") return sender<ttcp::StructSeq>(object, oneway, dynamic, "sendStructSeq", count);
  if (dynamic) return new DynamicNothing(object);
  return new StaticNothing(ttcp::receiver::_unchecked_narrow(object));
}

static int call(CORBA::ORB_ptr orb, char** argument) {
  bool oneway = std::string(argument[0]) == "oneway";
  bool dynamic = std::string(argument[3]) == "dii-new";
  CORBA::Object_var object = orb->string_to_object(argument[4]);
  Sender* to = sender(object, oneway, argument[1], std::strtoull(argument[2], 0, 10), dynamic);
  ttcp::receiver_var receiver = ttcp::receiver::_unchecked_narrow(object);
  ttcp::ttcp_sequence_var oneway_timer = ttcp::ttcp_sequence::_unchecked_narrow(object);
  ttcp::ttcp_sequence_2way_var twoway_timer = ttcp::ttcp_sequence_2way::_unchecked_narrow(object);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    unsigned long long count = 0;
    words >> command >> count;
    if (command == "run") {
      if (oneway) oneway_timer->start_timer();
      else twoway_timer->start_timer();
      receiver->sendNoParams();
      Clock::time_point begin = Clock::now();
      for (unsigned long long number = 0; number < count; number++) to->send();
      if (oneway) receiver->sendNoParams();
      unsigned long long nanos = nanos_since(begin);
      if (oneway) oneway_timer->stop_timer();
      else twoway_timer->stop_timer();
      ttcp::Tally tally = receiver->taken();
      std::cout << nanos << ' ' << tally.sequences << ' ' << tally.elements << ' ' << tally.wrong << std::endl;
    } else if (command == "each") {
      std::vector<unsigned long long> nanos(count);
      Clock::time_point before = Clock::now();
      for (unsigned long long& each : nanos) {
        to->send();
        Clock::time_point after = Clock::now();
        each = std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count();
        before = after;
      }
      for (unsigned long long each : nanos) std::cout << each << ' ';
      std::cout << std::endl;
    } else {
      throw std::runtime_error("no command is called " + command);
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    std::string role = argc > 2 ? argv[1] : "";
    if (!(role == "server" && argc == 3) && !(role == "client" && argc == 8))
      throw std::runtime_error("usage: server CORE | client CORE MODE TYPE ELEMENTS INVOCATION REFERENCE");
    if (std::string(argv[2]) != "-") {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(std::atoi(argv[2]), &set);
      if (sched_setaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("cannot stay on a processor");
    }
    int code = role == "server" ? serve(orb) : call(orb, argv + 3);
    orb->destroy();
    return code;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "omniorb_ttcp: " << e._name() << " minor " << e.minor() << std::endl;
  } catch (const CORBA::Exception& e) {
    std::cerr << "omniorb_ttcp: " << e._name() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "omniorb_ttcp: " << e.what() << std::endl;
  }
  return 1;
}
