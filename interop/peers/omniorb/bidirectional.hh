// An adapter whose objects may be called, and may call, over connections that their peers have made.

#ifndef IRONORB_INTEROP_BIDIRECTIONAL_HH
#define IRONORB_INTEROP_BIDIRECTIONAL_HH

#include <omniORB4/CORBA.h>

// The options with which omniORB makes and accepts bidirectional connections.
#define BIDIRECTIONAL_OPTIONS                                                                                        \
  {"offerBiDirectionalGIOP", "1"}, {"acceptBiDirectionalGIOP", "1"}, {"clientTransportRule", "* bidir,tcp"},      \
      {"serverTransportRule", "* unix,tcp,bidir"}

inline PortableServer::POA_ptr create_bidirectional(CORBA::ORB_ptr orb, PortableServer::POA_ptr root) {
  CORBA::Any both;
  both <<= BiDirPolicy::BOTH;
  CORBA::PolicyList policies;
  policies.length(1);
  policies[0] = orb->create_policy(BiDirPolicy::BIDIRECTIONAL_POLICY_TYPE, both);
  PortableServer::POAManager_var manager = root->the_POAManager();
  return root->create_POA("bidirectional", manager, policies);
}

#endif
