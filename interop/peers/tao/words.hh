// Words of the command line: lists such as `100+200`, and ranges such as `0-99+100-199`.

#ifndef IRONORB_TAO_WORDS_HH
#define IRONORB_TAO_WORDS_HH

#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <sched.h>

#include "tao/RTCORBA/RTCORBA.h"

typedef std::vector<std::string> Words;

inline Words split(const std::string &text, char at) {
  Words words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, at);) words.push_back(word);
  return words;
}

inline CORBA::Short number(const std::string &text) {
  char *end = 0;
  long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end) throw std::runtime_error("no number: " + text);
  return static_cast<CORBA::Short>(value);
}

inline RTCORBA::PriorityBands bands_of(const std::string &text) {
  Words words = split(text, '+');
  RTCORBA::PriorityBands bands;
  bands.length(words.size());
  for (CORBA::ULong i = 0; i < words.size(); ++i) {
    Words ends = split(words[i], '-');
    if (ends.size() != 2) throw std::runtime_error("no band: " + words[i]);
    bands[i].low = number(ends[0]);
    bands[i].high = number(ends[1]);
  }
  return bands;
}

// Threads of TAO change their priority only within the class that they are in, and threads that they make inherit it.
inline void enter_class(int policy) {
  sched_param lowest;
  lowest.sched_priority = sched_get_priority_min(policy);
  if (sched_setscheduler(0, policy, &lowest) != 0)
    throw std::runtime_error("the system grants no real-time priorities: run as root, or with CAP_SYS_NICE");
}

template <typename Interface>
typename Interface::_ptr_type initial(CORBA::ORB_ptr orb, const char *name) {
  CORBA::Object_var object = orb->resolve_initial_references(name);
  return Interface::_narrow(object.in());
}

// Runs a program's work and says what it raised.
template <typename Work>
int run(int argc, char **argv, Work work) {
  try {
    return work(argc, argv);
  } catch (const CORBA::Exception &e) {
    std::cerr << argv[0] << ": " << e._info().c_str() << std::endl;
  } catch (const std::exception &e) {
    std::cerr << argv[0] << ": " << e.what() << std::endl;
  }
  return 1;
}

#endif
