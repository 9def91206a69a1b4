// omniORB's side of the suites of real time; paced.hh says how it is used. omniORB knows no priorities: clients have the
// system's, and the system schedules the server's threads as ordinary ones.

#include <omniORB4/CORBA.h>
#include "realtime.hh"
#include "paced.hh"

static std::string version() { return std::string("omniORB ") + omniORB::versionString(); }

static PortableServer::POA_ptr adapter(CORBA::ORB_ptr orb, const Class &, size_t) {
  CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
  return PortableServer::POA::_narrow(root.in());
}

static void enter(CORBA::ORB_ptr, const Class &of, size_t place) { of.enter(priority_of(place)); }
