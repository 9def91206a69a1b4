// omniORB's side of the paper's cases on caching and on many objects: serves and calls extents.idl. It caches nothing, so that
// every read is a call. Its client knows these commands, with the answers that calls.hh tells:
//
//   targets COUNT OF                                   gets the references of COUNT random ones of OF objects, of all in
//                                                      their order where COUNT is OF, and calls each once
//   echo SLOT READ_PERCENT BATCH                       a sample: BATCH calls of random targets
//   writers SLOT CLIENTS CALLS IN_FLIGHT               a sample: each of CLIENTS threads makes CALLS writes of its part of
//                                                      the targets; asynchronous ones if more than one is in flight

#ifndef IRONORB_CASES_HH
#define IRONORB_CASES_HH

#include <deque>
#include <random>

static long long resident_bytes();

// An object with four bytes of its own.
class Echo : public POA_extents::Echo {
  std::atomic<CORBA::Long> held{0};

public:
  CORBA::Long value() { return held.load(std::memory_order_relaxed); }
  void write(CORBA::Long value) { held.store(value, std::memory_order_relaxed); }
};

// An object's id is its number.
static const size_t ID_OCTETS = 8;

static PortableServer::ObjectId* id_of(uint64_t number) {
  PortableServer::ObjectId* id = new PortableServer::ObjectId(ID_OCTETS);
  id->length(ID_OCTETS);
  for (size_t place = 0; place < ID_OCTETS; place++) (*id)[CORBA::ULong(place)] = CORBA::Octet(number >> (8 * place));
  return id;
}

// The servant of all objects of an adapter without a table. The bytes of each are in one row.
class EchoOfAll : public POA_extents::Echo {
  PortableServer::Current_var current;
  std::vector<CORBA::Long> row;

  CORBA::Long& own() {
    PortableServer::ObjectId_var id = current->get_object_id();
    uint64_t number = 0;
    if (id->length() != ID_OCTETS) throw CORBA::OBJECT_NOT_EXIST();
    for (size_t place = 0; place < ID_OCTETS; place++) number |= uint64_t(id[CORBA::ULong(place)]) << (8 * place);
    if (number >= row.size()) throw CORBA::OBJECT_NOT_EXIST();
    return row[number];
  }

public:
  EchoOfAll(CORBA::ORB_ptr orb, size_t count) : row(count) {
    CORBA::Object_var object = orb->resolve_initial_references("POACurrent");
    current = PortableServer::Current::_narrow(object.in());
  }
  CORBA::Long value() { return __atomic_load_n(&own(), __ATOMIC_RELAXED); }
  void write(CORBA::Long value) { __atomic_store_n(&own(), value, __ATOMIC_RELAXED); }
};

class EchoCrowd : public POA_extents::Crowd {
  CORBA::ORB_ptr orb;
  // With and without a table of its objects.
  PortableServer::POA_var active, tableless, finding;
  std::mutex mutex;
  uint64_t activated = 0;
  // Before there were objects.
  long long bytes_before = resident_bytes();

public:
  EchoCrowd(CORBA::ORB_ptr orb, PortableServer::POA_ptr root) : orb(orb) {
    PortableServer::POAManager_var manager = root->the_POAManager();
    CORBA::PolicyList policies;
    policies.length(1);
    policies[0] = root->create_id_assignment_policy(PortableServer::USER_ID);
    active = root->create_POA("active", manager.in(), policies);
    policies.length(4);
    policies[1] = root->create_id_uniqueness_policy(PortableServer::MULTIPLE_ID);
    policies[2] = root->create_servant_retention_policy(PortableServer::NON_RETAIN);
    policies[3] = root->create_request_processing_policy(PortableServer::USE_DEFAULT_SERVANT);
    tableless = root->create_POA("tableless", manager.in(), policies);
    finding = active;
  }

  CORBA::ULongLong activate(CORBA::ULongLong count, CORBA::ULongLong bytes_max) {
    std::lock_guard<std::mutex> lock(mutex);
    finding = active;
    for (; activated < count; activated++) {
      long long taken = activated % 1000 == 0 ? resident_bytes() - bytes_before : 0;
      if (taken > 0 && CORBA::ULongLong(taken) >= bytes_max) break;
      PortableServer::ObjectId_var id = id_of(activated);
      Echo* servant = new Echo;
      active->activate_object_with_id(id.in(), servant);
      servant->_remove_ref();
    }
    return activated;
  }

  CORBA::ULongLong serve_by_default(CORBA::ULongLong count, CORBA::ULongLong bytes_max) {
    std::lock_guard<std::mutex> lock(mutex);
    finding = tableless;
    CORBA::ULongLong most = bytes_max / sizeof(CORBA::Long);
    EchoOfAll* servant = new EchoOfAll(orb, count < most ? count : most);
    tableless->set_servant(servant);
    servant->_remove_ref();
    return count < most ? count : most;
  }

  extents::Echoes* find(const extents::Numbers& numbers) {
    std::lock_guard<std::mutex> lock(mutex);
    extents::Echoes_var found = new extents::Echoes;
    found->length(numbers.length());
    for (CORBA::ULong place = 0; place < numbers.length(); place++) {
      PortableServer::ObjectId_var id = id_of(numbers[place]);
      CORBA::Object_var object = finding->create_reference_with_id(id.in(), extents::Echo::_PD_repoId);
      found[place] = extents::Echo::_unchecked_narrow(object.in());
    }
    return found._retn();
  }
};

typedef std::vector<extents::Echo_var> Targets;

// Writes of random objects, each by a thread that waits for it.
static Sample writes(std::shared_ptr<Targets> targets, size_t calls, unsigned seed) {
  std::shared_ptr<std::minstd_rand> random(new std::minstd_rand(seed));
  return [=] {
    for (size_t number = 0; number < calls; number++) (*targets)[(*random)() % targets->size()]->write(CORBA::Long(number));
  };
}

// As many writes in flight as it may have. omniORB makes each on a thread of its own pool.
static Sample writes_in_flight(std::shared_ptr<Targets> targets, size_t calls, size_t in_flight, unsigned seed) {
  std::shared_ptr<std::minstd_rand> random(new std::minstd_rand(seed));
  return [=] {
    std::deque<extents::AMI_EchoPoller*> pending;
    auto wait = [&] {
      extents::AMI_EchoPoller_var first(pending.front());
      pending.pop_front();
      first->write(0xFFFFFFFF);
    };
    for (size_t number = 0; number < calls; number++) {
      if (pending.size() == in_flight) wait();
      pending.push_back((*targets)[(*random)() % targets->size()]->sendp_write(CORBA::Long(number)));
    }
    while (!pending.empty()) wait();
  };
}

class CasesClient : public Client {
  extents::Crowd_var crowd;
  std::shared_ptr<Targets> targets{new Targets};

 public:
  explicit CasesClient(CORBA::Object_ptr object) : crowd(extents::Crowd::_unchecked_narrow(object)) {}

  bool prepare(const std::string& command, size_t slot, std::istream& words, Slots& slots) {
    if (command == "targets") find(slot, words);
    else if (command == "echo") slots[slot] = echoes(words);
    else if (command == "writers") {
      // Ends the threads of the previous sample before new ones start.
      slots.erase(slot);
      slots[slot] = writers(words);
    } else return false;
    return true;
  }

 private:
  void find(size_t count, std::istream& words) {
    uint64_t of;
    words >> of;
    std::mt19937_64 random(7);
    targets.reset(new Targets);
    while (targets->size() < count) {
      extents::Numbers numbers;
      numbers.length(std::min<size_t>(1000, count - targets->size()));
      for (CORBA::ULong place = 0; place < numbers.length(); place++)
        numbers[place] = count == of ? targets->size() + place : random() % of;
      extents::Echoes_var some = crowd->find(numbers);
      for (CORBA::ULong place = 0; place < some->length(); place++)
        targets->push_back(extents::Echo::_duplicate(some[place]));
    }
    // The first call by a reference asks first whether there is the object.
    for (const extents::Echo_var& target : *targets) target->value();
  }

  Sample echoes(std::istream& words) {
    unsigned read_percent;
    size_t batch;
    words >> read_percent >> batch;
    std::shared_ptr<Targets> among = targets;
    std::shared_ptr<std::minstd_rand> random(new std::minstd_rand(3));
    return [=] {
      for (size_t number = 0; number < batch; number++) {
        extents::Echo_ptr to = (*among)[(*random)() % among->size()].in();
        if ((*random)() % 100 < read_percent) for_nobody.store(to->value(), std::memory_order_relaxed);
        else to->write(CORBA::Long(number));
      }
    };
  }

  Sample writers(std::istream& words) {
    size_t clients, calls, in_flight;
    words >> clients >> calls >> in_flight;
    std::vector<Sample> each;
    for (size_t client = 0; client < clients; client++) {
      size_t begin = client * targets->size() / clients, end = (client + 1) * targets->size() / clients;
      std::shared_ptr<Targets> part(new Targets(targets->begin() + begin, targets->begin() + end));
      each.push_back(in_flight > 1 ? writes_in_flight(part, calls, in_flight, client + 1) : writes(part, calls, client + 1));
    }
    std::shared_ptr<Crowd> crowd(new Crowd(each));
    return [crowd] { crowd->run(); };
  }
};

#endif
