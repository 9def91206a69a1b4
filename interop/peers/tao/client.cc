// TAO's client of the tests of real time. It does what its arguments say, one after another, and prints a line for each
// question.
//
//   client [-ORB...] COMMAND...
//
// use REFERENCE      the object that the next commands are about
// priority P         gives this thread a priority
// where              `where PRIORITY NATIVE THREAD`, as the servant tells
// threads P+P...     calls 200 times from a thread for each priority at once, `P@TAG` by this protocol alone; `threads WRONG`, how many of these calls were
//                    served at another one
// notice N           sends N one-ways, numbered on from the last one, and prints `notice LAST`
// notices            `notices NUMBER@PRIORITY...`, as the servant tells
// meet N             `meet true`, when N clients are inside the servant
// model              `model propagated|declared PRIORITY`, as the reference tells, or `model none`
// bands LOW-HIGH+... `protocols TAG+...`, `private`, `scope none|transport|server|target`, `batch N`: sets a policy of this
//                    thread; `shared` takes all of them back
// marks LEVEL        marks the packets of requests by the priority, for `orb`, `thread` or `object`
// validate           `validate true|false`, with the types of the policies that do not fit
// maps               `maps N`: how many of all priorities keep the system's priority on the way back and forth
//
// What raises an exception prints `EXCEPTION MINOR`.

#include <algorithm>

#include <pthread.h>

#include "ace/Sched_Params.h"
#include "tao/ORB_Core.h"
#include "tao/params.h"
#include "tao/Messaging/Messaging.h"
#include "tao/Policy_CurrentC.h"
#include "tao/Policy_ManagerC.h"
#include "tao/RTCORBA/Priority_Mapping.h"
#include "tao/RTCORBA/Priority_Mapping_Manager.h"
#include "witnessC.h"
#include "words.hh"

class Client {
public:
  explicit Client(CORBA::ORB_ptr orb)
      : orb_(CORBA::ORB::_duplicate(orb)), rt_(initial<RTCORBA::RTORB>(orb, "RTORB")),
        current_(initial<RTCORBA::Current>(orb, "RTCurrent")),
        policies_(initial<CORBA::PolicyCurrent>(orb, "PolicyCurrent")), noticed_(0) {}

  void run(const Words &words) {
    for (size_t i = 0; i < words.size(); ++i) {
      try {
        if (takes_value(words[i])) {
          if (i + 1 == words.size()) throw std::runtime_error(words[i] + " wants a value");
          with(words[i], words[i + 1]);
          ++i;
        } else {
          alone(words[i]);
        }
      } catch (const CORBA::SystemException &e) {
        std::cout << e._name() << ' ' << (e.minor() & 0xFFF) << std::endl;
        if (takes_value(words[i])) ++i;
      }
    }
  }

private:
  enum { CALLS = 200 };

  static bool takes_value(const std::string &word) {
    static const char *const words[] = {"use", "priority", "meet", "threads", "bands", "protocols",
                                        "scope", "batch", "notice", "marks"};
    const char *const *end = words + sizeof words / sizeof *words;
    return std::find(words, end, word) != end;
  }

  void with(const std::string &word, const std::string &value) {
    if (word == "use") {
      CORBA::Object_var object = orb_->string_to_object(value.c_str());
      witness_ = interop_rt::Witness::_unchecked_narrow(object.in());
    } else if (word == "priority") {
      current_->the_priority(number(value));
    } else if (word == "meet") {
      std::cout << "meet " << text(witness_->meet(number(value))) << std::endl;
    } else if (word == "threads") {
      std::cout << "threads " << from_threads(split(value, '+')) << std::endl;
    } else if (word == "bands") {
      set(rt_->create_priority_banded_connection_policy(bands_of(value)));
    } else if (word == "scope") {
      CORBA::Any scope;
      scope <<= scope_of(value);
      set(orb_->create_policy(Messaging::SYNC_SCOPE_POLICY_TYPE, scope));
    } else if (word == "batch") {
      TAO::BufferingConstraint constraint = {TAO::BUFFER_MESSAGE_COUNT, 0, static_cast<CORBA::ULong>(number(value)), 0};
      CORBA::Any any;
      any <<= constraint;
      set(orb_->create_policy(TAO::BUFFERING_CONSTRAINT_POLICY_TYPE, any));
    } else if (word == "notice") {
      for (int left = number(value); left > 0; --left) witness_->notice(++noticed_);
      std::cout << "notice " << noticed_ << std::endl;
    } else if (word == "marks") {
      mark(value);
    } else {
      set_protocols(split(value, '+'));
    }
  }

  void alone(const std::string &word) {
    if (word == "where") {
      interop_rt::Place place = witness_->served_by();
      std::cout << "where " << place.priority << ' ' << place.native_priority << ' ' << place.thread << std::endl;
    } else if (word == "model") {
      std::cout << "model " << model() << std::endl;
    } else if (word == "notices") {
      interop_rt::Notices_var notices = witness_->served_notices();
      std::cout << "notices";
      for (CORBA::ULong i = 0; i < notices->length(); ++i)
        std::cout << ' ' << notices[i].number << '@' << notices[i].priority;
      std::cout << std::endl;
    } else if (word == "private") {
      set(rt_->create_private_connection_policy());
    } else if (word == "shared") {
      policies_->set_policy_overrides(CORBA::PolicyList(), CORBA::SET_OVERRIDE);
    } else if (word == "validate") {
      validate();
    } else if (word == "maps") {
      std::cout << "maps " << maps() << std::endl;
    } else {
      throw std::runtime_error("what is " + word + "?");
    }
  }

  // What one thread does, and how many of its calls were served at another priority.
  struct Caller {
    Client *client;
    CORBA::Short priority;
    Words protocols;
    int wrong;
    pthread_t thread;

    static void *call(void *argument) {
      Caller &self = *static_cast<Caller *>(argument);
      try {
        self.client->current_->the_priority(self.priority);
        if (!self.protocols.empty()) self.client->set_protocols(self.protocols);
        for (int i = 0; i < CALLS; ++i)
          if (self.client->witness_->served_by().priority == self.priority) --self.wrong;
      } catch (const CORBA::Exception &) {
        // The calls that are left count as wrong.
      }
      return 0;
    }
  };

  static const char *text(bool value) { return value ? "true" : "false"; }

  std::string model() {
    CORBA::Policy_var policy = witness_->_get_policy(RTCORBA::PRIORITY_MODEL_POLICY_TYPE);
    RTCORBA::PriorityModelPolicy_var model = RTCORBA::PriorityModelPolicy::_narrow(policy.in());
    if (CORBA::is_nil(model.in())) return "none";
    std::ostringstream out;
    out << (model->priority_model() == RTCORBA::SERVER_DECLARED ? "declared " : "propagated ")
        << model->server_priority();
    return out.str();
  }

  static CORBA::PolicyList list_of(CORBA::Policy_ptr policy) {
    CORBA::PolicyList list(1);
    list.length(1);
    list[0] = policy;
    return list;
  }

  void set(CORBA::Policy_ptr policy) { policies_->set_policy_overrides(list_of(policy), CORBA::ADD_OVERRIDE); }

  static Messaging::SyncScope scope_of(const std::string &name) {
    if (name == "none") return Messaging::SYNC_NONE;
    if (name == "transport") return Messaging::SYNC_WITH_TRANSPORT;
    if (name == "server") return Messaging::SYNC_WITH_SERVER;
    if (name == "target") return Messaging::SYNC_WITH_TARGET;
    throw std::runtime_error("no scope: " + name);
  }

  void mark(const std::string &level) {
    RTCORBA::ProtocolList protocols;
    protocols.length(1);
    protocols[0].protocol_type = 0;
    protocols[0].transport_protocol_properties =
        rt_->create_tcp_protocol_properties(65536, 32768, true, false, true, true);
    CORBA::PolicyList list = list_of(rt_->create_client_protocol_policy(protocols));
    if (level == "orb") {
      CORBA::PolicyManager_var manager = initial<CORBA::PolicyManager>(orb_.in(), "ORBPolicyManager");
      manager->set_policy_overrides(list, CORBA::ADD_OVERRIDE);
    } else if (level == "thread") {
      policies_->set_policy_overrides(list, CORBA::ADD_OVERRIDE);
    } else if (level == "object") {
      CORBA::Object_var marked = witness_->_set_policy_overrides(list, CORBA::ADD_OVERRIDE);
      witness_ = interop_rt::Witness::_unchecked_narrow(marked.in());
    } else {
      throw std::runtime_error("no level: " + level);
    }
  }

  void set_protocols(const Words &tags) {
    RTCORBA::ProtocolList protocols;
    protocols.length(tags.size());
    for (CORBA::ULong i = 0; i < tags.size(); ++i)
      protocols[i].protocol_type = std::strtoul(tags[i].c_str(), 0, 0);
    set(rt_->create_client_protocol_policy(protocols));
  }

  void validate() {
    CORBA::PolicyList_var wrong;
    bool is_good = witness_->_validate_connection(wrong.out());
    std::cout << "validate " << text(is_good);
    for (CORBA::ULong i = 0; wrong.ptr() && i < wrong->length(); ++i)
      std::cout << ' ' << wrong[i]->policy_type();
    std::cout << std::endl;
  }

  int from_threads(const Words &priorities) {
    std::vector<Caller> callers(priorities.size());
    int wrong = 0;
    for (size_t i = 0; i < callers.size(); ++i) {
      callers[i].client = this;
      Words words = split(priorities[i], '@');
      callers[i].priority = number(words.at(0));
      callers[i].protocols.assign(words.begin() + 1, words.end());
      callers[i].wrong = CALLS;
      if (pthread_create(&callers[i].thread, 0, Caller::call, &callers[i]) != 0) throw CORBA::NO_RESOURCES();
    }
    for (size_t i = 0; i < callers.size(); ++i) {
      pthread_join(callers[i].thread, 0);
      wrong += callers[i].wrong;
    }
    return wrong;
  }

  int maps() {
    RTCORBA::PriorityMappingManager_var manager =
        initial<RTCORBA::PriorityMappingManager>(orb_.in(), "PriorityMappingManager");
    RTCORBA::PriorityMapping *mapping = manager->mapping();
    int kept = 0;
    for (int priority = RTCORBA::minPriority; priority <= RTCORBA::maxPriority; ++priority) {
      CORBA::Short native = 0, back = 0, again = 0;
      kept += mapping->to_native(priority, native) && mapping->to_CORBA(native, back) &&
              mapping->to_native(back, again) && native == again;
    }
    return kept;
  }

  CORBA::ORB_var orb_;
  RTCORBA::RTORB_var rt_;
  RTCORBA::Current_var current_;
  CORBA::PolicyCurrent_var policies_;
  interop_rt::Witness_var witness_;
  CORBA::Long noticed_;
};

// The class of `-ORBSchedPolicy`.
int class_of(long policy) {
  return policy == ACE_SCHED_FIFO ? SCHED_FIFO : policy == ACE_SCHED_RR ? SCHED_RR : SCHED_OTHER;
}

int call(int argc, char **argv) {
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  enter_class(class_of(orb->orb_core()->orb_params()->ace_sched_policy()));
  Client(orb.in()).run(Words(argv + 1, argv + argc));
  orb->destroy();
  return 0;
}

int main(int argc, char **argv) { return run(argc, argv, call); }
