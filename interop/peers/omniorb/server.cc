// The omniORB server of the interoperability tests: interop::Suite of interop.idl.
//
//   server [-ORB...] [--poa transient|persistent] [--key NAME] [--ior-file PATH] [--name A/B]
//          [--bidirectional yes]
//
// The first line of standard output is the IOR. With --key the same object also answers to the
// plain object key NAME (corbaloc::host:port/NAME). With --poa persistent and a fixed -ORBendPoint
// the reference stays good over restarts. With --bidirectional it calls clients back over the connections
// that they have made. --name binds it in the NameService. It ends on SIGTERM,
// SIGINT or Control::shutdown.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <omniORB4/CORBA.h>
#include <omniORB4/Naming.hh>

#include "all_idl.hh"
#include "bidirectional.hh"
#include "characters.hh"
#include "echoes.hh"
#include "known_values.hh"
#include "parts.hh"

using namespace interop;

static CORBA::ORB_var orb;
static PortableServer::POA_var root_poa;
// Where the objects are that call back.
static PortableServer::POA_var calling_poa;
static PortableServer::POA_var forwarder_poa;

// ---- small servants ------------------------------------------------------------------------------

// Activates a servant in the root POA, which then owns it.
template <class Interface, class Servant>
static typename Interface::_ptr_type activate(Servant* servant) {
  PortableServer::ObjectId_var id = root_poa->activate_object(servant);
  typename Interface::_var_type ref = servant->_this();
  servant->_remove_ref();
  return ref._retn();
}

struct NodeServant : virtual POA_interop::Node, virtual PortableServer::RefCountServantBase {
  explicit NodeServant(CORBA::Long id) : id_(id) {}
  CORBA::Long id() override { return id_; }
  Node_ptr twin() override { return activate<interop::Node>(new NodeServant(id_)); }
  void destroy() override {
    PortableServer::ObjectId_var oid = root_poa->servant_to_id(this);
    root_poa->deactivate_object(oid);
  }
  CORBA::Long id_;
};

struct SpriteServant : virtual POA_interop::Sprite, virtual PortableServer::RefCountServantBase {
  SpriteServant(const char* name, CORBA::Double area) : name_(name), area_(area) {}
  char* name() override { return CORBA::string_dup(name_.c_str()); }
  void name(const char* to) override { name_ = to; }
  CORBA::Double area() override { return area_; }
  void move(CORBA::Double dx, CORBA::Double dy) override { x_ += dx; y_ += dy; }
  CORBA::Double x() override { return x_; }
  CORBA::Double y() override { return y_; }
  void scale(CORBA::Double factor) override { area_ *= factor; }
  char* draw(CORBA::Long frame) override {
    return CORBA::string_dup((name_ + std::to_string(frame)).c_str());
  }
  std::string name_;
  CORBA::Double area_, x_ = 0, y_ = 0;
};

struct GaugeServant : virtual POA_interop::deep::Gauge, virtual PortableServer::RefCountServantBase {
  deep::Level reading() override { return level_; }
  void set_reading(deep::Level to) override { level_ = to; }
  deep::Level level_ = deep::low;
};

struct SkewServant : virtual POA_interop::SkewServer, virtual PortableServer::RefCountServantBase {
  void skew(CORBA::Long code) override { throw Undeclared(code); }
};

// Every object id in its POA is the stringified reference to forward to.
struct Forwarder : virtual PortableServer::ServantLocator {
  PortableServer::Servant preinvoke(const PortableServer::ObjectId& id, PortableServer::POA_ptr,
                                    const char*, PortableServer::ServantLocator::Cookie&) override {
    CORBA::String_var ior = PortableServer::ObjectId_to_string(id);
    CORBA::Object_var target = orb->string_to_object(ior);
    throw PortableServer::ForwardRequest(target);
  }
  void postinvoke(const PortableServer::ObjectId&, PortableServer::POA_ptr, const char*,
                  PortableServer::ServantLocator::Cookie, PortableServer::Servant) override {}
};

[[noreturn]] static void throw_detailed(CORBA::Short depth) {
  Detailed d;
  d.at.s = depth;
  d.at.c = 'd';
  d.at.l = 2 * depth;
  d.at.o = 255;
  d.at.d = 0.5;
  d.trail.length(depth);
  for (CORBA::Short i = 0; i < depth; ++i) d.trail[i] = std::to_string(i).c_str();
  d.tint = green;
  d.pair.first = "deep";
  d.pair.outer.first = depth;
  d.pair.outer.second = -depth;
  throw d;
}

// ---- the suite -----------------------------------------------------------------------------------

struct SuiteServant : virtual POA_interop::Suite, virtual PortableServer::RefCountServantBase {
  char* orb_name() override { return CORBA::string_dup("omniORB"); }
  CORBA::Object_ptr part(const char* name) override {
    PortableServer::ServantBase* servant = make_part(name);
    if (!servant) return CORBA::Object::_nil();
    PortableServer::ObjectId_var id = calling_poa->activate_object(servant);
    CORBA::Object_var reference = calling_poa->id_to_reference(id);
    servant->_remove_ref();
    return reference._retn();
  }

  // Basics
  void nothing() override {}
  ECHO_SCALAR(echo_short, CORBA::Short)
  ECHO_SCALAR(echo_ushort, CORBA::UShort)
  ECHO_SCALAR(echo_long, CORBA::Long)
  ECHO_SCALAR(echo_ulong, CORBA::ULong)
  ECHO_SCALAR(echo_llong, CORBA::LongLong)
  ECHO_SCALAR(echo_ullong, CORBA::ULongLong)
  ECHO_SCALAR(echo_float, CORBA::Float)
  ECHO_SCALAR(echo_double, CORBA::Double)
  ECHO_SCALAR(echo_char, CORBA::Char)
  ECHO_SCALAR(echo_boolean, CORBA::Boolean)
  ECHO_SCALAR(echo_octet, CORBA::Octet)
  ECHO_SCALAR(echo_color, Color)
  ECHO_SCALAR(echo_single, Single)
  ECHO_SCALAR(echo_height, Height)
  ECHO_STRING(echo_string, CORBA::String_out)
  ECHO_STRING(echo_short_string, ShortString_out)
  ECHO_STRING(echo_label, Label_out)

  interop::Basics::ConstantValues* constants() override {
    interop::Basics::ConstantValues_var v = new interop::Basics::ConstantValues;
    v->s = C_SHORT;
    v->us = C_USHORT;
    v->l = C_LONG;
    v->ul = C_ULONG;
    v->ll = C_LLONG;
    v->ull = C_ULLONG;
    v->f = C_FLOAT;
    v->d = C_DOUBLE;
    v->c = C_CHAR;
    v->b = C_BOOLEAN;
    v->o = C_OCTET;
    v->str = C_STRING;
    v->tint = C_COLOR;
    return v._retn();
  }
  void outs(CORBA::Octet& a, CORBA::Double& b, CORBA::String_out c, CORBA::Short& d,
            LongSeq_out e) override {
    a = 1;
    b = 2.5;
    c = CORBA::string_dup("three");
    d = -4;
    LongSeq_var s = new LongSeq;
    s->length(2);
    s[0] = 5;
    s[1] = -6;
    e = s._retn();
  }
  void inouts(CORBA::Octet& a, CORBA::Double& b, char*& c) override {
    a += 1;
    b *= 2;
    std::string text = std::string(c) + c;
    CORBA::string_free(c);
    c = CORBA::string_dup(text.c_str());
  }
  CORBA::Double mix(CORBA::Octet& small, const char* a, CORBA::LongLong& n, CORBA::Octet b,
                    CORBA::String_out joined, CORBA::Double c) override {
    small = b;
    n = -n;
    joined = CORBA::string_dup((std::string(a) + "/" + std::to_string(int(b))).c_str());
    return c + b;
  }
  CORBA::Long sum(CORBA::Octet a, CORBA::Short b, CORBA::Octet c, CORBA::Long d, CORBA::Octet e,
                  CORBA::LongLong f, CORBA::Octet g, CORBA::Double h) override {
    return CORBA::Long(a + b + c + d + e + f + g + CORBA::LongLong(h));
  }
  CORBA::Long _cxx_default(CORBA::Long in, CORBA::Long match, CORBA::Long& self) override {
    self = in - match;
    return in + match;
  }
  char* type(const char* fn, const char* ref) override {
    return CORBA::string_dup((std::string(fn) + "&" + ref).c_str());
  }

  // Sequences
  ECHO_VARIABLE(echo_shorts, ShortSeq)
  ECHO_VARIABLE(echo_ushorts, UShortSeq)
  ECHO_VARIABLE(echo_longs, LongSeq)
  ECHO_VARIABLE(echo_ulongs, ULongSeq)
  ECHO_VARIABLE(echo_llongs, LongLongSeq)
  ECHO_VARIABLE(echo_ullongs, ULongLongSeq)
  ECHO_VARIABLE(echo_floats, FloatSeq)
  ECHO_VARIABLE(echo_doubles, DoubleSeq)
  ECHO_VARIABLE(echo_chars, CharSeq)
  ECHO_VARIABLE(echo_booleans, BooleanSeq)
  ECHO_VARIABLE(echo_octets, OctetSeq)
  ECHO_VARIABLE(echo_bounded_longs, BoundedLongSeq)
  ECHO_VARIABLE(echo_strings, StringSeq)
  ECHO_VARIABLE(echo_short_strings, ShortStringSeq)
  ECHO_VARIABLE(echo_colors, ColorSeq)
  ECHO_VARIABLE(echo_bins, BinSeq)
  ECHO_VARIABLE(echo_nameds, NamedSeq)
  ECHO_VARIABLE(echo_longs_seq, LongSeqSeq)
  ECHO_VARIABLE(echo_string_table, StringTable)
  ECHO_VARIABLE(echo_readings, Readings)
  ECHO_VARIABLE(echo_nesteds, NestedSeq)
  ECHO_VARIABLE(echo_by_longs, ByLongSeq)
  ECHO_VARIABLE(echo_long_arrays, LongArraySeq)

  OctetSeq* reflect_octets(const OctetSeq& data) override { return new OctetSeq(data); }
  LongSeq* reflect_longs(const LongSeq& data) override { return new LongSeq(data); }
  DoubleSeq* reflect_doubles(const DoubleSeq& data) override { return new DoubleSeq(data); }
  BinSeq* reflect_bins(const BinSeq& data) override { return new BinSeq(data); }
  StringSeq* reflect_strings(const StringSeq& data) override { return new StringSeq(data); }
  CORBA::ULong swallow(const OctetSeq& data) override { return data.length(); }
  OctetSeq* produce(CORBA::ULong length) override {
    OctetSeq_var data = new OctetSeq;
    data->length(length);
    for (CORBA::ULong i = 0; i < length; ++i) data[i] = i % 251;
    return data._retn();
  }

  // Arrays
  ECHO_FIXED_ARRAY(echo_long_array, LongArray)
  ECHO_FIXED_ARRAY(echo_matrix, Matrix)
  ECHO_FIXED_ARRAY(echo_cube, Cube)
  ECHO_VARIABLE_ARRAY(echo_string_array, StringArray)
  ECHO_VARIABLE_ARRAY(echo_string_grid, StringGrid)
  ECHO_FIXED_ARRAY(echo_bin_array, BinArray)
  ECHO_VARIABLE_ARRAY(echo_named_array, NamedArray)
  ECHO_VARIABLE_ARRAY(echo_long_seq_array, LongSeqArray)
  ECHO_FIXED_ARRAY(echo_vector, Vector)

  // Structs
  ECHO_FIXED(echo_bin, BinStruct)
  ECHO_FIXED(echo_one_octet, OneOctet)
  ECHO_FIXED(echo_all_basics, AllBasics)
  ECHO_VARIABLE(echo_named, Named)
  ECHO_VARIABLE(echo_variable, interop::Variable)
  ECHO_VARIABLE(echo_nested, Nested)
  ECHO_FIXED(echo_sample, Sample)
  ECHO_VARIABLE(echo_tree, Tree)
  ECHO_VARIABLE(echo_chain, Chain)
  ECHO_VARIABLE(echo_deep_pair, deep::Pair)

  // Unions
  ECHO_VARIABLE(echo_by_short, ByShort)
  ECHO_FIXED(echo_by_ushort, ByUShort)
  ECHO_VARIABLE(echo_by_long, ByLong)
  ECHO_FIXED(echo_by_ulong, ByULong)
  ECHO_FIXED(echo_by_llong, ByLongLong)
  ECHO_VARIABLE(echo_by_ullong, ByULongLong)
  ECHO_VARIABLE(echo_by_char, ByChar)
  ECHO_VARIABLE(echo_by_boolean, ByBoolean)
  ECHO_FIXED(echo_half_boolean, HalfBoolean)
  ECHO_VARIABLE(echo_by_color, ByColor)
  ECHO_FIXED(echo_by_alias, ByAlias)
  ECHO_VARIABLE(echo_expr, Expr)

  // Wide
  ECHO_SCALAR(echo_wchar, CORBA::WChar)
  ECHO_WSTRING(echo_wstring, CORBA::WString_out)
  ECHO_WSTRING(echo_short_wstring, interop::Wide::ShortWString_out)
  ECHO_VARIABLE(echo_wchars, interop::Wide::WCharSeq)
  ECHO_VARIABLE(echo_wstrings, interop::Wide::WStringSeq)
  ECHO_FIXED_ARRAY(echo_wchar_array, interop::Wide::WCharArray)
  ECHO_VARIABLE(echo_wide_struct, interop::Wide::WideStruct)
  ECHO_VARIABLE(echo_wide_union, interop::Wide::WideUnion)
  void raise_wide(const CORBA::WChar* why) override { throw interop::Wide::WideError(why); }
  void wide_constants(CORBA::WChar& c, CORBA::WString_out text) override {
    c = interop::Wide::C_WCHAR;
    text = CORBA::wstring_dup(interop::Wide::C_WSTRING);
  }

  // Attributes. One lock for all: this server is not measured.
#define ATTRIBUTE_SCALAR(name, T, initial)                                              \
  T name##_ = initial;                                                                  \
  T name() override { std::lock_guard<std::mutex> hold(lock_); return name##_; }        \
  void name(T to) override { std::lock_guard<std::mutex> hold(lock_); name##_ = to; }
#define ATTRIBUTE_VARIABLE(name, T)                                                     \
  T name##_;                                                                            \
  T* name() override { std::lock_guard<std::mutex> hold(lock_); return new T(name##_); }\
  void name(const T& to) override { std::lock_guard<std::mutex> hold(lock_); name##_ = to; }
  ATTRIBUTE_SCALAR(count, CORBA::Long, 0)
  ATTRIBUTE_SCALAR(low, CORBA::Short, 0)
  ATTRIBUTE_SCALAR(high, CORBA::Short, 0)
  ATTRIBUTE_SCALAR(tint, Color, red)
  ATTRIBUTE_VARIABLE(compound, interop::Variable)
  ATTRIBUTE_VARIABLE(numbers, LongSeq)
  ATTRIBUTE_VARIABLE(choice, ByLong)
  CORBA::String_var title_ = CORBA::string_dup("");
  char* title() override { std::lock_guard<std::mutex> hold(lock_); return CORBA::string_dup(title_); }
  void title(const char* to) override { std::lock_guard<std::mutex> hold(lock_); title_ = CORBA::string_dup(to); }
  BinStruct bin_ = {0, 0, 0, 0, 0};
  BinStruct bin() override { std::lock_guard<std::mutex> hold(lock_); return bin_; }
  void bin(const BinStruct& to) override { std::lock_guard<std::mutex> hold(lock_); bin_ = to; }
  Matrix cells_ = {{0, 0, 0}, {0, 0, 0}};
  Matrix_slice* cells() override { std::lock_guard<std::mutex> hold(lock_); return Matrix_dup(cells_); }
  void cells(const Matrix to) override { std::lock_guard<std::mutex> hold(lock_); Matrix_copy(cells_, to); }
  Node_var partner_;
  Node_ptr partner() override { std::lock_guard<std::mutex> hold(lock_); return Node::_duplicate(partner_); }
  void partner(Node_ptr to) override { std::lock_guard<std::mutex> hold(lock_); partner_ = Node::_duplicate(to); }
  CORBA::ULongLong answer() override { return 42; }
  CORBA::Long guarded_ = 0;
  CORBA::Long xget_guarded() override {
    std::lock_guard<std::mutex> hold(lock_);
    if (guarded_ == 0) throw Empty();
    return guarded_;
  }
  void xset_guarded(CORBA::Long value) override {
    if (value < 0) throw Refused("negative", value);
    if (value == 13) throw Empty();
    std::lock_guard<std::mutex> hold(lock_);
    guarded_ = value;
  }
  CORBA::Long xget_locked() override { throw_detailed(1); }

  // Faults
  void raise_empty() override { throw Empty(); }
  CORBA::Long raise_one_of(CORBA::Long which) override {
    switch (which) {
      case 1: throw Empty();
      case 2: throw Refused("asked", which);
      case 3: throw Occupied(Node::_nil());
      default: return 2 * which + 1;
    }
  }
  void raise_detailed(CORBA::Short depth) override { throw_detailed(depth); }
  void raise_occupied(Node_ptr holder) override { throw Occupied(holder); }
  void raise_system(Fault what, CORBA::ULong minor, Completion completed) override {
    CORBA::CompletionStatus status = completed == completed_yes  ? CORBA::COMPLETED_YES
                                     : completed == completed_no ? CORBA::COMPLETED_NO
                                                                 : CORBA::COMPLETED_MAYBE;
    switch (what) {
      case bad_param: throw CORBA::BAD_PARAM(minor, status);
      case no_permission: throw CORBA::NO_PERMISSION(minor, status);
      case imp_limit: throw CORBA::IMP_LIMIT(minor, status);
      case internal: throw CORBA::INTERNAL(minor, status);
      case no_resources: throw CORBA::NO_RESOURCES(minor, status);
      case no_implement: throw CORBA::NO_IMPLEMENT(minor, status);
      case inv_policy: throw CORBA::INV_POLICY(minor, status);
      case data_conversion: throw CORBA::DATA_CONVERSION(minor, status);
    }
  }
  CORBA::Object_ptr skewed() override { return activate<SkewServer>(new SkewServant); }

  // References
  ECHO_REFERENCE(echo_node, Node)
  ECHO_REFERENCE(echo_object, CORBA::Object)
  ECHO_VARIABLE(echo_nodes, NodeSeq)
  ECHO_VARIABLE(echo_objects, ObjectSeq)
  ECHO_VARIABLE(echo_link, Link)
  ECHO_VARIABLE(echo_node_or_name, NodeOrName)
  Node_ptr create_node(CORBA::Long id) override { return activate<interop::Node>(new NodeServant(id)); }
  Sprite_ptr create_sprite(const char* name, CORBA::Double area) override {
    return activate<Sprite>(new SpriteServant(name, area));
  }
  deep::Gauge_ptr create_gauge() override { return activate<deep::Gauge>(new GaugeServant); }
  Shape_ptr widen(Sprite_ptr s) override { return Shape::_duplicate(s); }
  CORBA::Long id_of(Node_ptr n) override { return n->id(); }
  Node_ptr forwarded(Node_ptr target) override {
    CORBA::String_var ior = orb->object_to_string(target);
    PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(ior);
    CORBA::Object_var ref =
        forwarder_poa->create_reference_with_id(id, "IDL:ironorb.example/interop/Node:1.0");
    return Node::_unchecked_narrow(ref);
  }
  CORBA::Long call_back(Listener_ptr to, CORBA::Long question, CORBA::ULong times) override {
    CORBA::Long total = 0;
    for (CORBA::ULong i = 0; i < times; ++i) total += to->ask(question);
    return total;
  }
  void hint_back(Listener_ptr to, CORBA::ULong count) override {
    for (CORBA::ULong i = 1; i <= count; ++i) to->hint(i);
  }
  char* describe_back(Listener_ptr to, const interop::Variable& v, char*& text, LongSeq_out numbers) override {
    return to->describe(v, text, numbers);
  }

  // Control
  void notify(CORBA::Long token) override {
    std::lock_guard<std::mutex> hold(lock_);
    tokens_.push_back(token);
    changed_.notify_all();
  }
  void notify_blob(const OctetSeq& blob, const char*) override { notify(blob.length()); }
  LongSeq* take_tokens(CORBA::ULong count, CORBA::ULong wait_ms) override {
    std::unique_lock<std::mutex> hold(lock_);
    changed_.wait_for(hold, std::chrono::milliseconds(wait_ms),
                      [&] { return tokens_.size() >= count; });
    LongSeq_var taken = new LongSeq;
    taken->length(tokens_.size());
    for (size_t i = 0; i < tokens_.size(); ++i) taken[i] = tokens_[i];
    tokens_.clear();
    return taken._retn();
  }
  struct Gate {
    CORBA::ULong waiting = 0;
    CORBA::Long openings = 0;
  };
  CORBA::Long block(const char* gate) override {
    std::unique_lock<std::mutex> hold(lock_);
    Gate& g = gates_[gate];
    CORBA::Long before = g.openings;
    ++g.waiting;
    changed_.wait(hold, [&] { return g.openings > before || closing_; });
    return g.openings;
  }
  CORBA::ULong release(const char* gate) override {
    std::lock_guard<std::mutex> hold(lock_);
    Gate& g = gates_[gate];
    CORBA::ULong freed = g.waiting;
    g.waiting = 0;
    ++g.openings;
    changed_.notify_all();
    return freed;
  }
  CORBA::ULong waiting(const char* gate) override {
    std::lock_guard<std::mutex> hold(lock_);
    return gates_[gate].waiting;
  }
  StringSeq* with_context(CORBA::Long, CORBA::Context_ptr context) override {
    std::vector<std::string> found;
    CORBA::NVList_var values;
    try {
      context->get_values("", 0, "*", values);
      for (CORBA::ULong i = 0; i < values->count(); ++i) {
        CORBA::NamedValue_ptr item = values->item(i);
        const char* text = "";
        *item->value() >>= text;
        found.push_back(std::string(item->name()) + "=" + text);
      }
    } catch (const CORBA::SystemException&) {
      // An empty context is reported as BAD_CONTEXT.
    }
    std::sort(found.begin(), found.end());
    StringSeq_var result = new StringSeq;
    result->length(found.size());
    for (size_t i = 0; i < found.size(); ++i) result[i] = found[i].c_str();
    return result._retn();
  }
  void shutdown() override {
    {
      std::lock_guard<std::mutex> hold(lock_);
      closing_ = true;
      changed_.notify_all();
    }
    orb->shutdown(false);
  }

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<CORBA::Long> tokens_;
  std::map<std::string, Gate> gates_;  // nodes of a map stay where they are, so waiters may hold them
  bool closing_ = false;
};

// ---- start-up ------------------------------------------------------------------------------------

static void bind_name(const std::string& path, CORBA::Object_ptr ref) {
  CORBA::Object_var service = orb->resolve_initial_references("NameService");
  CosNaming::NamingContextExt_var root = CosNaming::NamingContextExt::_narrow(service);
  CosNaming::Name_var name = root->to_name(path.c_str());
  for (CORBA::ULong depth = 1; depth < name->length(); ++depth) {
    CosNaming::Name prefix(name);
    prefix.length(depth);
    try {
      CosNaming::NamingContext_var made = root->bind_new_context(prefix);
    } catch (const CosNaming::NamingContext::AlreadyBound&) {
    }
  }
  root->rebind(name, ref);
}

int main(int argc, char** argv) {
  // Signals are taken by one thread that waits for them, so that shutting down may lock.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    // Defaults that -ORB... arguments may override: UTF-8 strings, messages of up to 128 MiB.
#define PLAIN_OPTIONS {"nativeCharCodeSet", "UTF-8"}, {"giopMaxMsgSize", "134217728"}
    const char* plain[][2] = {PLAIN_OPTIONS, {0, 0}};
    const char* both[][2] = {PLAIN_OPTIONS, BIDIRECTIONAL_OPTIONS, {0, 0}};
    bool is_bidirectional = std::any_of(argv, argv + argc, [](const char* option) { return !strcmp(option, "--bidirectional"); });
    note_native_code_set(argc, argv);
    orb = CORBA::ORB_init(argc, argv, "omniORB4", is_bidirectional ? both : plain);
    std::string key, ior_file, name;
    bool persistent = false;
    for (int i = 1; i < argc; ++i) {
      std::string option = argv[i];
      std::string value = i + 1 < argc ? argv[++i] : "";
      if (option == "--poa" && (value == "persistent" || value == "transient"))
        persistent = value == "persistent";
      else if (option == "--key") key = value;
      else if (option == "--ior-file") ior_file = value;
      else if (option == "--name") name = value;
      else if (option == "--bidirectional" && value == "yes") continue;
      else {
        fprintf(stderr, "server: what is %s %s?\n", option.c_str(), value.c_str());
        return 2;
      }
    }

    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    root_poa = PortableServer::POA::_narrow(object);
    register_values(orb);
    PortableServer::POAManager_var manager = root_poa->the_POAManager();

    CORBA::PolicyList policies;
    policies.length(3);
    policies[0] = root_poa->create_id_assignment_policy(PortableServer::USER_ID);
    policies[1] = root_poa->create_servant_retention_policy(PortableServer::NON_RETAIN);
    policies[2] = root_poa->create_request_processing_policy(PortableServer::USE_SERVANT_MANAGER);
    forwarder_poa = root_poa->create_POA("forwarder", manager, policies);
    PortableServer::ServantManager_var forwarder = new Forwarder;
    forwarder_poa->set_servant_manager(forwarder);

    calling_poa = is_bidirectional ? create_bidirectional(orb, root_poa) : PortableServer::POA::_duplicate(root_poa);
    auto* suite = new SuiteServant;
    CORBA::Object_var reference;
    if (persistent) {
      policies.length(2);
      policies[0] = root_poa->create_id_assignment_policy(PortableServer::USER_ID);
      policies[1] = root_poa->create_lifespan_policy(PortableServer::PERSISTENT);
      PortableServer::POA_var poa = root_poa->create_POA("interop", manager, policies);
      PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId("suite");
      poa->activate_object_with_id(id, suite);
      reference = poa->id_to_reference(id);
    } else {
      PortableServer::ObjectId_var id = calling_poa->activate_object(suite);
      reference = calling_poa->id_to_reference(id);
    }
    if (!key.empty()) {
      CORBA::Object_var insobject = orb->resolve_initial_references("omniINSPOA");
      PortableServer::POA_var inspoa = PortableServer::POA::_narrow(insobject);
      PortableServer::ObjectId_var id = PortableServer::string_to_ObjectId(key.c_str());
      inspoa->activate_object_with_id(id, suite);
      PortableServer::POAManager_var insmanager = inspoa->the_POAManager();
      insmanager->activate();
    }
    manager->activate();
    if (!name.empty()) bind_name(name, reference);

    CORBA::String_var ior = orb->object_to_string(reference);
    if (!ior_file.empty()) {
      // Written beside and renamed, so that a reader never sees half a reference.
      std::string partial = ior_file + ".partial";
      FILE* f = fopen(partial.c_str(), "w");
      if (!f || fprintf(f, "%s\n", (const char*)ior) < 0 || fclose(f) != 0 ||
          rename(partial.c_str(), ior_file.c_str()) != 0) {
        perror(ior_file.c_str());
        return 1;
      }
    }
    printf("%s\n", (const char*)ior);
    fflush(stdout);

    std::thread([&] {
      int signal;
      sigwait(&signals, &signal);
      suite->shutdown();
    }).detach();

    try {
      orb->run();
      orb->destroy();
    } catch (const CORBA::BAD_INV_ORDER&) {
      // A caller has shut the ORB down before it was run.
    }
    // omniORB ends with an assertion when it destroys the TypeCode of Expr at exit.
    fflush(stdout);
    _exit(0);
  } catch (const CORBA::SystemException& e) {
    fprintf(stderr, "server: %s %s\n", e._name(), e.NP_minorString() ? e.NP_minorString() : "");
  } catch (const CORBA::Exception& e) {
    fprintf(stderr, "server: %s\n", e._name());
  }
  return 1;
}
