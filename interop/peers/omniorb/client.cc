// The omniORB client of the interoperability tests: calls everything in interop.idl on any server.
//
//   client [-ORB...] [--only NAME]... [--skip NAME=REASON]... [--huge] [--texts] [--bidirectional] [--shutdown] REFERENCE
//
// REFERENCE is an IOR:, corbaloc: or corbaname: of an interop::Suite. One line per case:
// "PASS name", "FAIL name: what" or "SKIP name: reason"; the last line is "N passed, M failed", and
// the exit code is 0 only if all that ran passed and something ran. A NAME of --skip or --only covers
// the case of that name and the group of cases "NAME/...".
//
// -ORBmaxGIOPVersion 1.0 (or 1.1, 1.2) chooses the protocol. --huge and --texts add cases that not every setup can
// pass. --bidirectional has the server call back over the connection that this client has made. --shutdown ends the server after the last
// case.

#include <unistd.h>

#include "bidirectional.hh"
#include "cases.hh"
#include "characters.hh"
#include "harness.hh"
#include "known_values.hh"

int main(int argc, char** argv) {
  try {
    // Defaults that -ORB... arguments may override: UTF-8 strings, messages of up to 128 MiB, and more calls at a time
    // than 5, each of which has a connection to itself.
#define PLAIN_OPTIONS {"nativeCharCodeSet", "UTF-8"}, {"giopMaxMsgSize", "134217728"}, {"maxGIOPConnectionPerServer", "20"}
    const char* plain[][2] = {PLAIN_OPTIONS, {0, 0}};
    const char* both[][2] = {PLAIN_OPTIONS, BIDIRECTIONAL_OPTIONS, {0, 0}};
    bool is_bidirectional = std::any_of(argv, argv + argc, [](const char* option) { return !strcmp(option, "--bidirectional"); });
    note_native_code_set(argc, argv);
    orb = CORBA::ORB_init(argc, argv, "omniORB4", is_bidirectional ? both : plain);
    string reference;
    bool shutdown = false, huge = false, with_texts = false;
    for (int i = 1; i < argc; ++i) {
      string option = argv[i];
      if (option == "--only" && i + 1 < argc) only.push_back(argv[++i]);
      else if (option == "--skip" && i + 1 < argc) {
        string pair = argv[++i];
        size_t eq = pair.find('=');
        if (eq == string::npos) {
          fprintf(stderr, "client: --skip wants NAME=REASON\n");
          return 2;
        }
        skips.emplace_back(pair.substr(0, eq), pair.substr(eq + 1));
      } else if (option == "--shutdown") shutdown = true;
      else if (option == "--huge") huge = true;
      else if (option == "--texts") with_texts = true;
      else if (option == "--bidirectional") continue;
      else if (reference.empty() && !begins(option, "-")) reference = option;
      else {
        fprintf(stderr, "client: what is %s?\n", option.c_str());
        return 2;
      }
    }
    if (reference.empty()) {
      fprintf(stderr, "usage: client [-ORB...] [--only NAME]... [--skip NAME=REASON]... [--huge] [--texts] [--bidirectional] [--shutdown] REFERENCE\n");
      return 2;
    }

    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    root_poa = PortableServer::POA::_narrow(object);
    PortableServer::POAManager_var manager = root_poa->the_POAManager();
    manager->activate();
    listener_poa = is_bidirectional ? create_bidirectional(orb, root_poa) : PortableServer::POA::_duplicate(root_poa);

    register_values(orb);
    object = orb->string_to_object(reference.c_str());
    suite = Suite::_narrow(object);
    if (CORBA::is_nil(suite)) {
      fprintf(stderr, "client: the reference is no interop::Suite\n");
      return 1;
    }

    basics();
    sequences();
    arrays();
    structs();
    unions();
    wide();
    attributes();
    faults();
    references();
    anys();
    typecodes();
    fixed();
    long_double();
    values();
    value_chunks();
    boxes();
    boxed_members();
    abstracts();
    value_anys();
    control();
    later();
    if (with_texts) texts();
    big_messages();
    if (huge) huge_messages();
    if (shutdown) run("shutdown", [] { suite->shutdown(); });
    printf("%d passed, %d failed\n", passed, failed);
    suite = Suite::_nil();
    orb->destroy();
    // omniORB ends with an assertion when it destroys the TypeCode of Expr at exit.
    fflush(stdout);
    _exit(failed == 0 && passed > 0 ? 0 : 1);
  } catch (const CORBA::Exception& e) {
    fprintf(stderr, "client: %s\n", describe(e).c_str());
  } catch (const Mismatch& m) {
    fprintf(stderr, "client: %s\n", m.what.c_str());
  }
  return 1;
}
