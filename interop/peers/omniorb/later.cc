// The servants of the parts "later" and "texts".

#include <condition_variable>
#include <mutex>
#include <thread>

#include "all_idl.hh"
#include "characters.hh"
#include "parts.hh"

using namespace interop;

namespace {

// omniORB has no answers that come from elsewhere: the threads of the held calls wait.
struct LaterServant : virtual POA_interop::Later, virtual PortableServer::RefCountServantBase {
  CORBA::Long hold(CORBA::Long x, const char* y, CORBA::String_out z) override {
    std::unique_lock<std::mutex> locked(lock);
    ++held_;
    unsigned round = rounds;
    answered.wait(locked, [&] { return rounds != round; });
    if (x < 0) throw Refused("late", x);
    z = CORBA::string_dup(y);
    return x;
  }
  CORBA::ULong held() override {
    std::lock_guard<std::mutex> locked(lock);
    return held_;
  }
  CORBA::ULong answer_all() override {
    std::lock_guard<std::mutex> locked(lock);
    CORBA::ULong count = held_;
    held_ = 0;
    ++rounds;
    answered.notify_all();
    return count;
  }
  void remind(Listener_ptr to, CORBA::Long question) override {
    Listener_var listener = Listener::_duplicate(to);
    std::thread([listener, question] {
      try {
        listener->hint(listener->ask(question));
      } catch (const CORBA::Exception&) {
        // The test that waits for the hint fails.
      }
    }).detach();
  }
  std::mutex lock;
  std::condition_variable answered;
  CORBA::ULong held_ = 0;
  unsigned rounds = 0;
};

struct TextsServant : virtual POA_interop::Texts, virtual PortableServer::RefCountServantBase {
  ULongSeq* characters_of(const char* text) override { return characters(text); }
  char* text_of(const ULongSeq& characters) override { return CORBA::string_dup(native(characters).c_str()); }
  ULongSeq* wide_characters_of(const CORBA::WChar* text) override { return characters(text); }
  CORBA::WChar* wide_text_of(const ULongSeq& characters) override {
    return CORBA::wstring_dup(wide(characters).c_str());
  }
};

}  // namespace

PortableServer::ServantBase* make_later_part(const std::string& part) {
  if (part == "later") return new LaterServant;
  if (part == "texts") return new TextsServant;
  return nullptr;
}
