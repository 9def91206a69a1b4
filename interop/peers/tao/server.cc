// TAO's server of the tests of real time: adapters with the policies that the command line names.
//
//   server [-ORB...] [--threads N] [--dynamic N] [--lanes P+P...] [--pool P] --serve SETTING,SETTING... ...
//
// Settings: name=NAME; model=propagated|declared|none; priority=P, the server's; pool=default|flat|lanes;
// bands=LOW-HIGH+...; protocols=TAG+..., for the client to choose from; at=TAG+..., at which its
// objects are reached; object=P, the object's own; persistent=yes;
// marks=yes, for the packets of replies. `--lanes` makes the pool 1 and `--pool` the next one; both have as many threads as
// stands before them.
// `NAME REFERENCE` is printed for each adapter, or `NAME EXCEPTION` where TAO refuses it, and then `ready`.

#include <unistd.h>
#include <sys/syscall.h>

#include "ace/Condition_T.h"
#include "ace/Guard_T.h"
#include "ace/OS_NS_sys_time.h"
#include "ace/Thread_Mutex.h"
#include "tao/ORB_Constants.h"
#include "tao/RTCORBA/RT_Policy_i.h"
#include "tao/RTPortableServer/RTPortableServer.h"
#include "witnessS.h"
#include "words.hh"

class Witness : public POA_interop_rt::Witness {
public:
  explicit Witness(RTCORBA::Current_ptr current)
      : current_(RTCORBA::Current::_duplicate(current)), changed_(mutex_), inside_(0), met_(false) {}

  virtual interop_rt::Place served_by() {
    interop_rt::Place place;
    place.priority = priority();
    place.native_priority = native();
    place.thread = static_cast<CORBA::Long>(syscall(SYS_gettid));
    return place;
  }

  virtual CORBA::Boolean meet(CORBA::ULong callers) {
    ACE_Guard<ACE_Thread_Mutex> guard(mutex_);
    if (++inside_ >= callers) {
      met_ = true;
      changed_.broadcast();
    }
    ACE_Time_Value until = ACE_OS::gettimeofday() + ACE_Time_Value(30);
    while (!met_ && changed_.wait(&until) == 0) {}
    return met_;
  }

  virtual void notice(CORBA::Long number) {
    ACE_Guard<ACE_Thread_Mutex> guard(mutex_);
    CORBA::ULong at = notices_.length();
    notices_.length(at + 1);
    notices_[at].number = number;
    notices_[at].priority = priority();
  }

  virtual interop_rt::Notices *served_notices() {
    ACE_Guard<ACE_Thread_Mutex> guard(mutex_);
    interop_rt::Notices *all = new interop_rt::Notices(notices_);
    notices_.length(0);
    return all;
  }

private:
  CORBA::Short priority() {
    try {
      return current_->the_priority();
    } catch (const CORBA::INITIALIZE &) {
      return interop_rt::NO_PRIORITY;
    }
  }

  static CORBA::Short native() {
    sched_param found;
    bool is_real_time = sched_getscheduler(0) == SCHED_FIFO && sched_getparam(0, &found) == 0;
    return is_real_time ? static_cast<CORBA::Short>(found.sched_priority) : 0;
  }

  RTCORBA::Current_var current_;
  ACE_Thread_Mutex mutex_;
  ACE_Condition<ACE_Thread_Mutex> changed_;
  CORBA::ULong inside_;
  bool met_;
  interop_rt::Notices notices_;
};

typedef std::map<std::string, std::string> Settings;

Settings settings_of(const std::string &text) {
  Settings settings;
  Words words = split(text, ',');
  for (size_t i = 0; i < words.size(); ++i) {
    size_t at = words[i].find('=');
    if (at == std::string::npos) throw std::runtime_error("no setting: " + words[i]);
    settings[words[i].substr(0, at)] = words[i].substr(at + 1);
  }
  return settings;
}

class Server {
public:
  explicit Server(CORBA::ORB_ptr orb)
      : rt_(initial<RTCORBA::RTORB>(orb, "RTORB")), root_(initial<PortableServer::POA>(orb, "RootPOA")),
        orb_(CORBA::ORB::_duplicate(orb)), threads_(1), dynamic_(0), lanes_(0), flat_(0) {
    RTCORBA::Current_var current = initial<RTCORBA::Current>(orb, "RTCurrent");
    witness_ = new Witness(current.in());
  }

  void make(const std::string &option, const std::string &value) {
    if (option == "--threads") threads_ = number(value);
    else if (option == "--dynamic") dynamic_ = number(value);
    else if (option == "--lanes") make_lanes(split(value, '+'));
    else if (option == "--pool") flat_ = rt_->create_threadpool(0, threads_, dynamic_, number(value), false, 0, 0);
    else if (option == "--serve") serve(settings_of(value));
    else throw std::runtime_error("what is " + option + "?");
  }

  void run() {
    PortableServer::POAManager_var manager = root_->the_POAManager();
    manager->activate();
    std::cout << "ready" << std::endl;
    orb_->run();
  }

private:
  void make_lanes(const Words &priorities) {
    RTCORBA::ThreadpoolLanes lanes;
    lanes.length(priorities.size());
    for (CORBA::ULong i = 0; i < priorities.size(); ++i) {
      lanes[i].lane_priority = number(priorities[i]);
      lanes[i].static_threads = threads_;
      lanes[i].dynamic_threads = dynamic_;
    }
    lanes_ = rt_->create_threadpool_with_lanes(0, lanes, false, false, 0, 0);
  }

  void serve(Settings settings) {
    std::cout << settings["name"] << ' ';
    try {
      std::cout << served(settings) << std::endl;
    } catch (const CORBA::Exception &e) {
      std::cout << e._rep_id() << std::endl;
    }
  }

  std::string served(Settings &settings) {
    PortableServer::POAManager_var manager = root_->the_POAManager();
    PortableServer::POA_var plain = root_->create_POA(settings["name"].c_str(), manager.in(), policies(settings));
    RTPortableServer::POA_var poa = RTPortableServer::POA::_narrow(plain.in());
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("witness");
    bool is_named = settings.count("persistent");
    if (settings.count("object")) {
      if (is_named) poa->activate_object_with_id_and_priority(id.in(), witness_, number(settings["object"]));
      else id = poa->activate_object_with_priority(witness_, number(settings["object"]));
    } else if (is_named) {
      poa->activate_object_with_id(id.in(), witness_);
    } else {
      id = poa->activate_object(witness_);
    }
    CORBA::Object_var object = poa->id_to_reference(id.in());
    CORBA::String_var text = orb_->object_to_string(object.in());
    return text.in();
  }

  CORBA::PolicyList policies(Settings &settings) {
    CORBA::PolicyList list;
    if (settings["model"] != "none") {
      RTCORBA::PriorityModel model =
          settings["model"] == "declared" ? RTCORBA::SERVER_DECLARED : RTCORBA::CLIENT_PROPAGATED;
      CORBA::Short priority = settings.count("priority") ? number(settings["priority"]) : 0;
      add(list, rt_->create_priority_model_policy(model, priority));
    }
    if (settings["pool"] == "lanes") add(list, rt_->create_threadpool_policy(lanes_));
    if (settings["pool"] == "flat") add(list, rt_->create_threadpool_policy(flat_));
    if (settings.count("bands"))
      add(list, rt_->create_priority_banded_connection_policy(bands_of(settings["bands"])));
    if (settings.count("protocols"))
      add(list, rt_->create_client_protocol_policy(protocols(split(settings["protocols"], '+'), false)));
    if (settings.count("at"))
      add(list, rt_->create_server_protocol_policy(protocols(split(settings["at"], '+'), false)));
    if (settings.count("marks")) add(list, rt_->create_server_protocol_policy(protocols(Words(1, "0"), true)));
    if (settings.count("persistent")) {
      add(list, root_->create_lifespan_policy(PortableServer::PERSISTENT));
      add(list, root_->create_id_assignment_policy(PortableServer::USER_ID));
    }
    return list;
  }

  // With properties of both layers, because TAO cannot write a protocol without them into a reference.
  RTCORBA::ProtocolList protocols(const Words &tags, bool marks) {
    RTCORBA::ProtocolList list;
    list.length(tags.size());
    for (CORBA::ULong i = 0; i < tags.size(); ++i) {
      list[i].protocol_type = std::strtoul(tags[i].c_str(), 0, 0);
      list[i].orb_protocol_properties =
          TAO_Protocol_Properties_Factory::create_orb_protocol_property(list[i].protocol_type);
      if (list[i].protocol_type == TAO_TAG_UIOP_PROFILE)
        list[i].transport_protocol_properties = rt_->create_unix_domain_protocol_properties(65536, 32768);
      else
        list[i].transport_protocol_properties =
            rt_->create_tcp_protocol_properties(65536, 32768, true, false, true, marks);
    }
    return list;
  }

  static void add(CORBA::PolicyList &list, CORBA::Policy_ptr policy) {
    list.length(list.length() + 1);
    list[list.length() - 1] = policy;
  }

  RTCORBA::RTORB_var rt_;
  PortableServer::POA_var root_;
  CORBA::ORB_var orb_;
  Witness *witness_;
  CORBA::ULong threads_;
  CORBA::ULong dynamic_;
  RTCORBA::ThreadpoolId lanes_;
  RTCORBA::ThreadpoolId flat_;
};

int serve(int argc, char **argv) {
  enter_class(SCHED_FIFO);
  CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
  Server server(orb.in());
  for (int i = 1; i + 1 < argc; i += 2) server.make(argv[i], argv[i + 1]);
  server.run();
  return 0;
}

int main(int argc, char **argv) { return run(argc, argv, serve); }
