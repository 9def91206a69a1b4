// The samples of anys.idl: values of every type under names that all peers know.

#ifndef IRONORB_INTEROP_SAMPLES_HH
#define IRONORB_INTEROP_SAMPLES_HH

#include <functional>
#include <map>
#include <string>

#include <omniORB4/CORBA.h>

#include "all_idl.hh"

struct KnownSample {
  std::function<void(CORBA::Any&)> make;
  // What is wrong with an any that should be the sample.
  std::function<std::string(const CORBA::Any&)> check;
};

// In the order of their names.
const std::map<std::string, KnownSample>& samples();

// An any of a sample; BAD_PARAM for an unknown name.
CORBA::Any make_sample(const std::string& name);
std::string check_sample(const std::string& name, const CORBA::Any& any);

#endif
