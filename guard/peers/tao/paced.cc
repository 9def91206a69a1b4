// TAO's side of the suites of real time (RTCORBA 1.2); paced.hh says how it is used. A pool has a lane with one thread for
// each servant, at the priority of its client, and the adapter takes priorities from clients. The mapping is direct: the
// priorities are the system's. The command line names it, and the class for threads that ask for priorities.

#include "tao/RTCORBA/RTCORBA.h"
#include "tao/RTPortableServer/RTPortableServer.h"
#include "tao/Version.h"
#include "realtimeS.h"
#include "paced.hh"

template <typename Interface>
static typename Interface::_ptr_type initial(CORBA::ORB_ptr orb, const char *name) {
  CORBA::Object_var object = orb->resolve_initial_references(name);
  return Interface::_narrow(object.in());
}

static std::string version() { return "TAO " TAO_VERSION; }

static PortableServer::POA_ptr adapter(CORBA::ORB_ptr orb, const Class &of, size_t servants) {
  // Threads of TAO change their priority only within their class, and those of lanes inherit it.
  of.enter(1);
  RTCORBA::RTORB_var rt = initial<RTCORBA::RTORB>(orb, "RTORB");
  PortableServer::POA_var root = initial<PortableServer::POA>(orb, "RootPOA");
  RTCORBA::ThreadpoolLanes lanes;
  lanes.length(static_cast<CORBA::ULong>(servants));
  for (CORBA::ULong place = 0; place < lanes.length(); place++) {
    lanes[place].lane_priority = static_cast<RTCORBA::Priority>(priority_of(place));
    lanes[place].static_threads = 1;
    lanes[place].dynamic_threads = 0;
  }
  RTCORBA::ThreadpoolId pool = rt->create_threadpool_with_lanes(0, lanes, false, false, 0, 0);
  CORBA::PolicyList policies(2);
  policies.length(2);
  policies[0] = rt->create_priority_model_policy(RTCORBA::CLIENT_PROPAGATED, 0);
  policies[1] = rt->create_threadpool_policy(pool);
  PortableServer::POAManager_var manager = root->the_POAManager();
  return root->create_POA("servants", manager.in(), policies);
}

static void enter(CORBA::ORB_ptr orb, const Class &of, size_t place) {
  of.enter(1);
  RTCORBA::Current_var current = initial<RTCORBA::Current>(orb, "RTCurrent");
  current->the_priority(static_cast<RTCORBA::Priority>(priority_of(place)));
}
