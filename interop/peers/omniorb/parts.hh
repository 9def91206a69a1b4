// The servants of what not every ORB can do.

#ifndef IRONORB_INTEROP_PARTS_HH
#define IRONORB_INTEROP_PARTS_HH

#include <string>

#include <omniORB4/CORBA.h>

// The servant of a part of the contract, for the root POA; null for one that omniORB has not.
PortableServer::ServantBase* make_part(const char* name);
// Those of "later" and "texts".
PortableServer::ServantBase* make_later_part(const std::string& part);
// The same for the parts of valuetypes.
PortableServer::ServantBase* make_value_part(const std::string& part);

#endif
