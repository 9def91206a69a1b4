// TAO's side of the suites of calls with cubit.idl; calls.hh says how it is used.

#include "cubitS.h"
#include "calls.hh"

static PortableServer::Servant servant_of(CORBA::ORB_ptr, PortableServer::POA_ptr, const std::string& suite) {
  if (suite == "cubit") return new Cubit;
  throw std::runtime_error("no suite is called " + suite);
}

static Client* client_of(CORBA::ORB_ptr orb, CORBA::Object_ptr object, const std::string&) {
  return new CubitClient(orb, object);
}
