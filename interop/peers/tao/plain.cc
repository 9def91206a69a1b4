// TAO's client without real time: calls the servant of a reference and prints `where PRIORITY NATIVE THREAD`.
//
//   plain [-ORB...] REFERENCE

#include <iostream>

#include "witnessC.h"

int main(int argc, char **argv) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
    if (argc != 2) throw CORBA::BAD_PARAM();
    CORBA::Object_var object = orb->string_to_object(argv[1]);
    interop_rt::Witness_var witness = interop_rt::Witness::_unchecked_narrow(object.in());
    interop_rt::Place place = witness->served_by();
    std::cout << "where " << place.priority << ' ' << place.native_priority << ' ' << place.thread << std::endl;
    orb->destroy();
    return 0;
  } catch (const CORBA::Exception &e) {
    std::cerr << argv[0] << ": " << e._info().c_str() << std::endl;
    return 1;
  }
}
