// Another ORB's side of the suites of real time: serves and calls realtime.idl. Written in the standard's mapping to C++ of
// 1998, so that one text fits old ORBs and new ones. A program includes the ORB's headers and those of realtime.idl, then
// this file, and defines what is declared under "what ORBs have for themselves".
//
//   PROGRAM version
//     Prints the ORB's name and version.
//   PROGRAM server fifo|rr|other N [-ORB...]
//     Its first line has the references of N objects, separated by blanks. It ends with its standard input.
//   PROGRAM client fifo|rr|other [-ORB...]
//     The first line of its standard input is the server's. Each further line is a block: the longest time, and for each task
//     period, phase, burn and calls, in nanoseconds: "TIME_MAX PERIOD,PHASE,BURN,CALLS ...". 0 calls: as long as others call.
//     The answer is one line: for each task "ELAPSED RELEASE CALL RELEASE CALL ...", separated by ';', or "failed" and why.
//
// A failure is a line on standard error and the exit code 1.

#ifndef IRONORB_PACED_HH
#define IRONORB_PACED_HH

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

typedef unsigned long long Nanos;

// A class of the system's scheduler.
struct Class {
  int policy;
  explicit Class(const std::string &name)
      : policy(name == "fifo" ? SCHED_FIFO : name == "rr" ? SCHED_RR : SCHED_OTHER) {
    if (policy == SCHED_OTHER && name != "other") throw std::runtime_error("no class is called " + name);
  }
  bool is_real_time() const { return policy != SCHED_OTHER; }
  // Puts the calling thread into the class.
  void enter(int priority) const {
    if (!is_real_time()) return;
    sched_param param;
    param.sched_priority = priority;
    if (pthread_setschedparam(pthread_self(), policy, &param) != 0)
      throw std::runtime_error("the system refuses a real-time priority");
  }
};

// The system's priority of the client and the servant of a place. The first one is the most urgent.
static inline int priority_of(size_t place) { return 80 - static_cast<int>(place); }

// ---- what ORBs have for themselves

// The ORB's name and version.
static std::string version();

// The adapter for so many servants, in a manager that is not active yet.
static PortableServer::POA_ptr adapter(CORBA::ORB_ptr orb, const Class &of, size_t servants);

// Gives the calling thread, a client, the class and the priority of its place.
static void enter(CORBA::ORB_ptr orb, const Class &of, size_t place);

// ---- time

static Nanos nanos_of(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return Nanos(time.tv_sec) * 1000000000 + time.tv_nsec;
}

static Nanos now() { return nanos_of(CLOCK_MONOTONIC); }

static void sleep_until(Nanos then) {
  timespec time = {time_t(then / 1000000000), long(then % 1000000000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0) != 0) {}
}

static CORBA::Octet third_power(CORBA::Octet value) { return static_cast<CORBA::Octet>(value * value * value); }

// ---- the server

class Cubing : public POA_realtime::Cubing {
  Nanos each_;

 public:
  Cubing() : each_(0) {}
  virtual CORBA::Octet cube(CORBA::Octet value) {
    Nanos nanos = __atomic_load_n(&each_, __ATOMIC_RELAXED);
    if (nanos > 0) {
      Nanos end = nanos_of(CLOCK_THREAD_CPUTIME_ID) + nanos;
      while (nanos_of(CLOCK_THREAD_CPUTIME_ID) < end) {}
    }
    return third_power(value);
  }
  virtual void burn(CORBA::ULongLong nanos) { __atomic_store_n(&each_, Nanos(nanos), __ATOMIC_RELAXED); }
};

static void serve(CORBA::ORB_ptr orb, const Class &of, size_t count) {
  PortableServer::POA_var poa = adapter(orb, of, count);
  for (size_t number = 0; number < count; number++) {
    PortableServer::ObjectId_var id = poa->activate_object(new Cubing);
    CORBA::Object_var object = poa->id_to_reference(id.in());
    CORBA::String_var text = orb->object_to_string(object.in());
    std::cout << (number == 0 ? "" : " ") << text.in();
  }
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  std::cout << std::endl;
  std::string rest;
  while (std::getline(std::cin, rest)) {}
}

// ---- the client

struct Task {
  Nanos period, phase, burn, calls;
};

// What the threads of a block share.
struct Block {
  CORBA::ORB_ptr orb;
  const Class &of;
  Nanos time_max;
  pthread_barrier_t ready, set;
  // Written by one thread between the two barriers.
  Nanos begin;
  // Tasks with a number of calls that have not made all of them.
  size_t unfinished;
  Block(CORBA::ORB_ptr orb, const Class &of, Nanos time_max, const std::vector<Task> &tasks)
      : orb(orb), of(of), time_max(time_max), begin(0), unfinished(0) {
    for (size_t place = 0; place < tasks.size(); place++) unfinished += tasks[place].calls > 0;
    pthread_barrier_init(&ready, 0, static_cast<unsigned>(tasks.size() + 1));
    pthread_barrier_init(&set, 0, static_cast<unsigned>(tasks.size() + 1));
  }
  ~Block() {
    pthread_barrier_destroy(&ready);
    pthread_barrier_destroy(&set);
  }
};

// A thread of a block.
struct Client {
  Block *block;
  size_t place;
  Task task;
  realtime::Cubing_ptr servant;
  std::string told;
  pthread_t thread;

  void connect() {
    enter(block->orb, block->of, place);
    servant->burn(0);
    for (int value = 0; value < 5; value++) servant->cube(static_cast<CORBA::Octet>(value));
    servant->burn(task.burn);
  }

  void periods() {
    Nanos end = block->begin + block->time_max;
    Nanos first = block->begin + task.phase, release = first, finished = first;
    std::vector<Nanos> latencies;
    latencies.reserve(2 * (task.calls > 0 ? task.calls : (end - block->begin) / task.period + 1));
    while (task.calls == 0 || latencies.size() < 2 * task.calls) {
      sleep_until(release);
      Nanos called = now();
      if (called >= end || (task.calls == 0 && __atomic_load_n(&block->unfinished, __ATOMIC_RELAXED) == 0)) break;
      CORBA::Octet value = static_cast<CORBA::Octet>(latencies.size() / 2);
      CORBA::Octet cubed = servant->cube(value);
      finished = now();
      if (cubed != third_power(value)) throw std::runtime_error("got what is no cube");
      latencies.push_back(finished - release);
      latencies.push_back(finished - called);
      release += task.period;
    }
    finished = std::max(finished, latencies.size() < 2 * task.calls ? end : release);
    std::ostringstream out;
    out << finished - first;
    for (size_t number = 0; number < latencies.size(); number++) out << ' ' << latencies[number];
    told = out.str();
  }

  void attempt(void (Client::*work)()) {
    try {
      (this->*work)();
    } catch (const CORBA::Exception &e) {
      told = std::string("failed: ") + e._name();
    } catch (const std::exception &e) {
      told = std::string("failed: ") + e.what();
    }
  }

  void run() {
    attempt(&Client::connect);
    // A thread that cannot call must not keep the others from beginning.
    pthread_barrier_wait(&block->ready);
    pthread_barrier_wait(&block->set);
    if (told.empty()) attempt(&Client::periods);
    if (task.calls > 0) __atomic_sub_fetch(&block->unfinished, 1, __ATOMIC_RELAXED);
  }

  static void *begin(void *client) {
    static_cast<Client *>(client)->run();
    return 0;
  }
};

static std::string answer(const std::vector<Client> &clients) {
  std::string all;
  for (size_t place = 0; place < clients.size(); place++) {
    if (clients[place].told.compare(0, 6, "failed") == 0) return clients[place].told;
    all += (all.empty() ? "" : ";") + clients[place].told;
  }
  return all;
}

typedef std::vector<realtime::Cubing_var> Servants;

static std::string run_block(CORBA::ORB_ptr orb, const Class &of, const Servants &servants, const std::string &line) {
  std::istringstream words(line);
  Nanos time_max;
  words >> time_max;
  std::vector<Task> tasks;
  char comma;
  for (Task task; words >> task.period >> comma >> task.phase >> comma >> task.burn >> comma >> task.calls;)
    tasks.push_back(task);
  if (tasks.size() > servants.size()) return "failed: there are fewer servants than tasks";
  Block block(orb, of, time_max, tasks);
  std::vector<Client> clients(tasks.size());
  for (size_t place = 0; place < tasks.size(); place++) {
    Client &client = clients[place];
    client.block = &block;
    client.place = place;
    client.task = tasks[place];
    client.servant = servants[place].in();
    // The threads that are there wait for this one, so there is no way on.
    if (pthread_create(&client.thread, 0, Client::begin, &client) != 0) throw std::runtime_error("there is no thread");
  }
  pthread_barrier_wait(&block.ready);
  block.begin = now() + 20000000;
  pthread_barrier_wait(&block.set);
  for (size_t place = 0; place < clients.size(); place++) pthread_join(clients[place].thread, 0);
  return answer(clients);
}

static void call(CORBA::ORB_ptr orb, const Class &of) {
  std::string line, reference;
  std::getline(std::cin, line);
  std::istringstream references(line);
  Servants servants;
  while (references >> reference) {
    CORBA::Object_var object = orb->string_to_object(reference.c_str());
    servants.push_back(realtime::Cubing_var(realtime::Cubing::_unchecked_narrow(object.in())));
  }
  while (std::getline(std::cin, line)) std::cout << run_block(orb, of, servants, line) << std::endl;
}

// ---- the program

static void run_role(int argc, char **argv) {
  std::string role = argc > 1 ? argv[1] : "";
  if (role == "version" && argc == 2) {
    std::cout << version() << std::endl;
    return;
  }
  if (!(role == "server" || role == "client") || argc < 3)
    throw std::runtime_error("usage: version | server CLASS N | client CLASS");
  Class of(argv[2]);
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  if (role == "client" && argc == 3) call(orb.in(), of);
  else if (role == "server" && argc == 4) serve(orb.in(), of, std::strtoul(argv[3], 0, 10));
  else throw std::runtime_error("too many arguments, or too few");
  orb->destroy();
}

int main(int argc, char **argv) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  try {
    run_role(argc, argv);
    return 0;
  } catch (const CORBA::SystemException &e) {
    std::cerr << argv[0] << ": " << e._name() << " minor " << e.minor() << std::endl;
  } catch (const CORBA::Exception &e) {
    std::cerr << argv[0] << ": " << e._name() << std::endl;
  } catch (const std::exception &e) {
    std::cerr << argv[0] << ": " << e.what() << std::endl;
  }
  return 1;
}

#endif
