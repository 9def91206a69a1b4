// omniORB's side of the suites of real time: serves and calls realtime.idl.
//
//   omniorb_paced server N [-ORB...]
//     Its first line has the references of N objects, separated by blanks. It ends with its standard input. omniORB knows no
//     priorities: the system schedules the server's threads as ordinary ones.
//   omniorb_paced client fifo|rr|other [-ORB...]
//     The first line of its standard input is the server's. Each further line is a block: the longest time, and for each task
//     period, phase, burn and calls, in nanoseconds: "TIME_MAX PERIOD,PHASE,BURN,CALLS ...". 0 calls: as long as others call.
//     The answer is one line: for each task "ELAPSED RELEASE CALL RELEASE CALL ...", separated by ';', or "failed" and why.
//
// A failure is a line on standard error and the exit code 1.

#include <omniORB4/CORBA.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <atomic>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "realtime.hh"

typedef unsigned long long Nanos;

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

static CORBA::Octet third_power(CORBA::Octet value) { return value * value * value; }

// ---- the server

class Cubing : public POA_realtime::Cubing {
  std::atomic<Nanos> each{0};

 public:
  CORBA::Octet cube(CORBA::Octet value) override {
    Nanos nanos = each.load(std::memory_order_relaxed);
    if (nanos > 0) {
      Nanos end = nanos_of(CLOCK_THREAD_CPUTIME_ID) + nanos;
      while (nanos_of(CLOCK_THREAD_CPUTIME_ID) < end) {}
    }
    return third_power(value);
  }
  void burn(CORBA::ULongLong nanos) override { each.store(nanos, std::memory_order_relaxed); }
};

static void serve(CORBA::ORB_ptr orb, size_t count) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(root);
  for (size_t number = 0; number < count; number++) {
    PortableServer::ObjectId_var id = poa->activate_object(new Cubing);
    CORBA::Object_var object = poa->id_to_reference(id);
    CORBA::String_var text = orb->object_to_string(object);
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
struct Start {
  pthread_barrier_t ready, set;
  std::atomic<Nanos> begin{0};
  std::atomic<size_t> unfinished{0};
  explicit Start(unsigned threads) {
    pthread_barrier_init(&ready, 0, threads);
    pthread_barrier_init(&set, 0, threads);
  }
  ~Start() {
    pthread_barrier_destroy(&ready);
    pthread_barrier_destroy(&set);
  }
};

static const int PRIORITY_MAX = 80;

static void enter_class(const std::string& name, size_t place) {
  if (name == "other") return;
  sched_param param;
  param.sched_priority = PRIORITY_MAX - int(place);
  int refused = pthread_setschedparam(pthread_self(), name == "rr" ? SCHED_RR : SCHED_FIFO, &param);
  if (refused != 0) throw std::runtime_error("the system refuses a real-time priority");
}

static std::string periods(realtime::Cubing_ptr servant, const Task& task, Nanos begin, Nanos end, Start& start) {
  Nanos first = begin + task.phase, release = first, finished = first;
  std::vector<Nanos> latencies;
  latencies.reserve(2 * (task.calls > 0 ? task.calls : (end - begin) / task.period + 1));
  while (task.calls == 0 || latencies.size() < 2 * task.calls) {
    sleep_until(release);
    Nanos called = now();
    if (called >= end || (task.calls == 0 && start.unfinished == 0)) break;
    CORBA::Octet value = CORBA::Octet(latencies.size() / 2);
    CORBA::Octet cubed = servant->cube(value);
    finished = now();
    if (cubed != third_power(value)) throw std::runtime_error("got what is no cube");
    latencies.push_back(finished - release);
    latencies.push_back(finished - called);
    release += task.period;
  }
  finished = std::max(finished, latencies.size() < 2 * task.calls ? end : release);
  std::ostringstream told;
  told << finished - first;
  for (Nanos latency : latencies) told << ' ' << latency;
  return told.str();
}

static std::string client(
    const std::string& name, size_t place, realtime::Cubing_ptr servant, const Task& task, Nanos time_max, Start& start) {
  std::string told;
  try {
    enter_class(name, place);
    servant->burn(0);
    for (int value = 0; value < 5; value++) servant->cube(CORBA::Octet(value));
    servant->burn(task.burn);
  } catch (const CORBA::Exception& e) {
    told = std::string("failed: ") + e._name();
  } catch (const std::exception& e) {
    told = std::string("failed: ") + e.what();
  }
  // A thread that cannot call must not keep the others from beginning.
  pthread_barrier_wait(&start.ready);
  pthread_barrier_wait(&start.set);
  Nanos begin = start.begin;
  try {
    if (told.empty()) told = periods(servant, task, begin, begin + time_max, start);
  } catch (const CORBA::Exception& e) {
    told = std::string("failed: ") + e._name();
  } catch (const std::exception& e) {
    told = std::string("failed: ") + e.what();
  }
  if (task.calls > 0) start.unfinished--;
  return told;
}

static std::string run(const std::string& name, const std::vector<realtime::Cubing_var>& servants, const std::string& line) {
  std::istringstream words(line);
  Nanos time_max;
  words >> time_max;
  std::vector<Task> tasks;
  char comma;
  for (Task task; words >> task.period >> comma >> task.phase >> comma >> task.burn >> comma >> task.calls;)
    tasks.push_back(task);
  if (tasks.size() > servants.size()) return "failed: there are fewer servants than tasks";
  Start start(unsigned(tasks.size() + 1));
  for (const Task& task : tasks) start.unfinished += task.calls > 0;
  std::vector<std::string> answers(tasks.size());
  std::vector<std::thread> threads;
  for (size_t place = 0; place < tasks.size(); place++)
    threads.emplace_back([&, place] { answers[place] = client(name, place, servants[place], tasks[place], time_max, start); });
  pthread_barrier_wait(&start.ready);
  start.begin = now() + 20000000;
  pthread_barrier_wait(&start.set);
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& answer : answers) {
    if (answer.compare(0, 6, "failed") == 0) return answer;
    all += (all.empty() ? "" : ";") + answer;
  }
  return all;
}

static void call(CORBA::ORB_ptr orb, const std::string& name) {
  std::string line, reference;
  std::getline(std::cin, line);
  std::istringstream references(line);
  std::vector<realtime::Cubing_var> servants;
  while (references >> reference) {
    CORBA::Object_var object = orb->string_to_object(reference.c_str());
    servants.push_back(realtime::Cubing::_unchecked_narrow(object));
  }
  while (std::getline(std::cin, line)) std::cout << run(name, servants, line) << std::endl;
}

int main(int argc, char** argv) {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    std::string role = argc == 3 ? argv[1] : "";
    if (role == "server") serve(orb, std::stoul(argv[2]));
    else if (role == "client") call(orb, argv[2]);
    else throw std::runtime_error("usage: server N | client fifo|rr|other");
    orb->destroy();
    return 0;
  } catch (const CORBA::SystemException& e) {
    std::cerr << "omniorb_paced: " << e._name() << " minor " << e.minor() << std::endl;
  } catch (const CORBA::Exception& e) {
    std::cerr << "omniorb_paced: " << e._name() << std::endl;
  } catch (const std::exception& e) {
    std::cerr << "omniorb_paced: " << e.what() << std::endl;
  }
  return 1;
}
