// Another ORB's side of the suites of calls, but for what latency.idl needs: serves and calls cubit.idl, for `ironorb bench
// cubit`, `collocated`, `concurrency` and `connections`. Written in the standard's mapping to C++. A program includes the ORB's
// headers and those of cubit.idl, then this file, and defines what is declared under "what programs have for themselves".
//
//   PROGRAM server SUITE [-ORB...]
//     Its first line is the reference. It ends with its standard input.
//   PROGRAM client SUITE REFERENCE [-ORB...]
//     Each line of its standard input is a command, each line of its output the answer, "ok" or numbers, or "failed" and
//     why:
//       cubit SLOT MODE KIND COUNT ONEWAYS
//       collocated SLOT KIND COUNT BATCH                   on an object of this process
//       threads SLOT CLIENTS CALLS                         a sample: each of CLIENTS threads makes CALLS void calls
//       each SLOT N                                        the nanoseconds of each of N samples
//
// A failure is a line on standard error and the exit code 1.

#ifndef IRONORB_CALLS_HH
#define IRONORB_CALLS_HH

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
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

typedef std::chrono::steady_clock Clock;

typedef std::function<void()> Sample;

// The samples that a client has prepared.
typedef std::map<size_t, Sample> Slots;

// A suite's client.
class Client {
 public:
  virtual ~Client() {}
  // Prepares what a command asks for. Its slot has been read already. `false`: there is no such command.
  virtual bool prepare(const std::string& command, size_t slot, std::istream& words, Slots& slots) = 0;
};

// ---- what programs have for themselves

// The object that a suite's clients find first.
static PortableServer::Servant servant_of(CORBA::ORB_ptr orb, PortableServer::POA_ptr poa, const std::string& suite);

static Client* client_of(CORBA::ORB_ptr orb, CORBA::Object_ptr object, const std::string& suite);

// ---- the cubit

template <class T> static bool same(const T& a, const T& b) { return a == b; }
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

  // A thread for each sample.
  explicit Crowd(const std::vector<Sample>& each) {
    for (const Sample& once : each) {
      threads.emplace_back([this, once] {
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
            once();
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

static PortableServer::POA_ptr root_poa(CORBA::ORB_ptr orb) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  return PortableServer::POA::_narrow(root.in());
}

static idl_cubit::Cubit_ptr local_cubit(CORBA::ORB_ptr orb) {
  PortableServer::POA_var poa = root_poa(orb);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  PortableServer::ObjectId_var id = poa->activate_object(new Cubit);
  CORBA::Object_var object = poa->id_to_reference(id.in());
  return idl_cubit::Cubit::_narrow(object.in());
}

// Prepares the samples of commands about a cubit.
class CubitClient : public Client {
  CORBA::ORB_ptr orb;
  idl_cubit::Cubit_var remote, local;

 public:
  CubitClient(CORBA::ORB_ptr orb, CORBA::Object_ptr object)
      : orb(orb), remote(idl_cubit::Cubit::_unchecked_narrow(object)) {}

  bool prepare(const std::string& command, size_t slot, std::istream& words, Slots& slots) {
    if (command == "cubit") slots[slot] = cubes_of(words);
    else if (command == "collocated") slots[slot] = collocated(words);
    else if (command == "threads") {
      // Ends the threads of the previous sample before new ones start.
      slots.erase(slot);
      slots[slot] = threads(words);
    } else return false;
    return true;
  }

 private:
  Sample cubes_of(std::istream& words) {
    std::string mode, kind;
    size_t count, oneways;
    words >> mode >> kind >> count >> oneways;
    Sample once = cube_of(remote.in(), mode == "oneway", kind, count);
    if (mode != "oneway") return once;
    idl_cubit::Cubit_var to = remote;
    return [=] {
      for (size_t number = 0; number < oneways; number++) once();
      to->nothing();
    };
  }

  Sample collocated(std::istream& words) {
    std::string kind;
    size_t count, batch;
    words >> kind >> count >> batch;
    if (CORBA::is_nil(local.in())) local = local_cubit(orb);
    Sample once = cube_of(local.in(), false, kind, count);
    return [=] {
      for (size_t number = 0; number < batch; number++) once();
    };
  }

  Sample threads(std::istream& words) {
    size_t clients, calls;
    words >> clients >> calls;
    idl_cubit::Cubit_var to = remote;
    Sample once = [to, calls] {
      for (size_t number = 0; number < calls; number++) to->nothing();
    };
    std::shared_ptr<Crowd> crowd(new Crowd(std::vector<Sample>(clients, once)));
    return [crowd] { crowd->run(); };
  }
};

// ---- the program

// Serves until the end of standard input.
static void serve(CORBA::ORB_ptr orb, const std::string& suite) {
  PortableServer::POA_var poa = root_poa(orb);
  PortableServer::ObjectId_var id = poa->activate_object(servant_of(orb, poa.in(), suite));
  CORBA::Object_var object = poa->id_to_reference(id.in());
  CORBA::String_var text = orb->object_to_string(object.in());
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  // Some ORBs accept connections in this thread.
  std::thread serving([orb] { orb->run(); });
  std::cout << text.in() << std::endl;
  std::string rest;
  while (std::getline(std::cin, rest)) {}
  orb->shutdown(false);
  serving.join();
}

// Answers "each SLOT N" with the nanoseconds of each of N samples, or "failed" and why.
static void answer_each(Sample& once, size_t count) {
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
    return;
  }
  for (unsigned long long each : nanos) std::cout << each << ' ';
  std::cout << std::endl;
}

static void call(Client& client) {
  Slots slots;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    size_t slot = 0, count = 0;
    words >> command >> slot;
    if (command == "each") {
      words >> count;
      answer_each(slots.at(slot), count);
    } else if (client.prepare(command, slot, words, slots)) {
      std::cout << "ok" << std::endl;
    } else {
      throw std::runtime_error("no command is called " + command);
    }
  }
}

static void run_role(int& argc, char** argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  std::string role = argc > 2 ? argv[1] : "";
  if (role == "server" && argc == 3) {
    serve(orb.in(), argv[2]);
  } else if (role == "client" && argc == 4) {
    CORBA::Object_var object = orb->string_to_object(argv[3]);
    std::unique_ptr<Client> client(client_of(orb.in(), object.in(), argv[2]));
    call(*client);
  } else {
    throw std::runtime_error("usage: server SUITE | client SUITE REFERENCE");
  }
  orb->destroy();
}

int main(int argc, char** argv) {
  try {
    run_role(argc, argv);
    return 0;
  } catch (const CORBA::SystemException& e) {
    std::cerr << argv[0] << ": " << e._name() << " minor " << e.minor() << std::endl;
  } catch (const CORBA::Exception& e) {
    std::cerr << argv[0] << ": " << e._name() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << argv[0] << ": " << e.what() << std::endl;
  }
  return 1;
}

#endif
