// The samples of ValueAnys in values.idl: anys with values, under names that all peers know.

#ifndef IRONORB_INTEROP_VALUE_SAMPLES_HH
#define IRONORB_INTEROP_VALUE_SAMPLES_HH

#include <map>
#include <string>

#include "samples.hh"

// In the order of their names.
const std::map<std::string, KnownSample>& value_samples();

// An any of a sample; BAD_PARAM for one that nobody knows.
CORBA::Any make_value_sample(const std::string& name);
std::string check_value_sample(const std::string& name, const CORBA::Any& any);

#endif
