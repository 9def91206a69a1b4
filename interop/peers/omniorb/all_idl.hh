// What omniidl makes of all the IDL files.

#ifndef IRONORB_INTEROP_ALL_IDL_HH
#define IRONORB_INTEROP_ALL_IDL_HH

#include "anys_idl.hh"
#include "fixed_idl.hh"
#include "interop_idl.hh"
#include "later_idl.hh"
#include "long_double_idl.hh"
#include "texts_idl.hh"
#include "values_idl.hh"

#endif
