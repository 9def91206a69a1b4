// A client without a cache: calls an object whose attributes clients of IronORB cache. Prints a line for each command.
//
//     cached IOR [balance | owner | deposit:AMOUNT | owner:NAME]...

#include <cstdlib>
#include <iostream>
#include <string>

#include "cached_idl.hh"

namespace {

void run(interop::CachedAccount_ptr account, const std::string& command) {
    const std::string::size_type colon = command.find(':');
    const std::string name = command.substr(0, colon);
    const bool writes = colon != std::string::npos;
    const std::string value = writes ? command.substr(colon + 1) : std::string();
    if (name == "deposit") {
        account->deposit(std::strtoll(value.c_str(), nullptr, 10));
        std::cout << "done" << std::endl;
    } else if (name == "owner" && writes) {
        account->owner(value.c_str());
        std::cout << "done" << std::endl;
    } else if (name == "owner") {
        CORBA::String_var owner = account->owner();
        std::cout << owner.in() << std::endl;
    } else {
        std::cout << account->balance() << std::endl;
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc < 2) return 2;
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        interop::CachedAccount_var account = interop::CachedAccount::_narrow(object);
        for (int i = 2; i < argc; ++i) run(account, argv[i]);
        orb->destroy();
        return 0;
    } catch (const CORBA::Exception& e) {
        std::cerr << e._name() << std::endl;
        return 1;
    }
}
