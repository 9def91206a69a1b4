// The cases of objects: attributes, exceptions, references, callbacks, and calls over time and from
// many threads.

#include "address.hh"
#include "cases.hh"
#include "values.hh"

// ---- cases: attributes, exceptions ---------------------------------------------------------------

void attributes() {
  run("attribute/count", [] {
    for (CORBA::Long v : {INT32_MIN, 0, INT32_MAX}) {
      suite->count(v);
      check(suite->count() == v, "value");
    }
  });
  run("attribute/low_high", [] {
    suite->low(-1);
    suite->high(1);
    check(suite->low() == -1 && suite->high() == 1, "value");
  });
  run("attribute/title", [] {
    for (const char* v : {"a title", ""}) {
      suite->title(v);
      CORBA::String_var got = suite->title();
      same("title", v, got.in());
    }
  });
  run("attribute/tint", [] {
    suite->tint(infra_red);
    check(suite->tint() == infra_red, "value");
  });
  run("attribute/bin", [] {
    suite->bin(bin(123));
    same("bin", bin(123), suite->bin());
  });
  run("attribute/compound", [] {
    suite->compound(variable(9));
    interop::Variable_var got = suite->compound();
    same("compound", variable(9), got.in());
  });
  run("attribute/numbers", [] {
    LongSeq sent = varied<LongSeq, CORBA::Long>(100);
    suite->numbers(sent);
    LongSeq_var got = suite->numbers();
    same("numbers", sent, got.in());
  });
  run("attribute/cells", [] {
    Matrix m = {{1, 2, 3}, {4, 5, 6}};
    suite->cells(m);
    Matrix_var got = suite->cells();
    same_image("cells", image(m), image(got.in(), 2));
  });
  run("attribute/choice", [] {
    ByLong u;
    u.text("chosen");
    u._d(1000);
    suite->choice(u);
    ByLong_var got = suite->choice();
    same("choice", u, got.in());
  });
  run("attribute/partner", [] {
    suite->partner(Node::_nil());
    Node_var none = suite->partner();
    check(CORBA::is_nil(none), "not nil");
    Node_var node = suite->create_node(77);
    suite->partner(node);
    Node_var got = suite->partner();
    check(!CORBA::is_nil(got) && got->id() == 77, "id");
  });
  run("attribute/answer", [] { check(suite->answer() == 42, "value"); });
  run("attribute/guarded", [] {
    suite->xset_guarded(0);
    expect<Empty>([] { suite->xget_guarded(); });
    suite->xset_guarded(5);
    check(suite->xget_guarded() == 5, "value");
    auto e = expect<Refused>([] { suite->xset_guarded(-9); });
    check(!strcmp(e.why, "negative") && e.code == -9, "members of Refused");
    expect<Empty>([] { suite->xset_guarded(13); });
    check(suite->xget_guarded() == 5, "changed by a refused write");
  });
  run("attribute/locked", [] {
    auto e = expect<Detailed>([] { suite->xget_locked(); });
    check(e.trail.length() == 1, "trail");
  });
}

void faults() {
  run("raise_empty", [] { expect<Empty>([] { suite->raise_empty(); }); });
  run("raise_one_of", [] {
    check(suite->raise_one_of(0) == 1, "result");
    expect<Empty>([] { suite->raise_one_of(1); });
    auto r = expect<Refused>([] { suite->raise_one_of(2); });
    check(!strcmp(r.why, "asked") && r.code == 2, "members of Refused");
    auto o = expect<Occupied>([] { suite->raise_one_of(3); });
    check(CORBA::is_nil(o.holder), "holder is not nil");
    check(suite->raise_one_of(50) == 101, "result afterwards");
  });
  run("raise_detailed", [] {
    for (CORBA::Short depth : {0, 1, 3, 300}) {
      auto e = expect<Detailed>([&] { suite->raise_detailed(depth); });
      same("at", bin(depth, 'd', 2 * depth, 255, 0.5), e.at);
      check(e.trail.length() == CORBA::ULong(depth), "trail");
      for (CORBA::Short i = 0; i < depth; ++i) same("trail", std::to_string(i), (const char*)e.trail[i]);
      check(e.tint == green && !strcmp(e.pair.first, "deep"), "tint, pair");
      check(e.pair.outer.first == depth && e.pair.outer.second == -depth, "pair.outer");
    }
  });
  run("raise_occupied", [] {
    Node_var node = suite->create_node(31);
    auto e = expect<Occupied>([&] { suite->raise_occupied(node); });
    check(e.holder->id() == 31, "holder");
  });

  struct Kind { Fault fault; const char* id; };
  for (Kind kind : {Kind{bad_param, "BAD_PARAM"}, {no_permission, "NO_PERMISSION"}, {imp_limit, "IMP_LIMIT"}, {internal, "INTERNAL"},
                    {no_resources, "NO_RESOURCES"}, {no_implement, "NO_IMPLEMENT"}, {inv_policy, "INV_POLICY"}, {data_conversion, "DATA_CONVERSION"}})
    run(string("raise_system/") + kind.id, [kind] {
      for (CORBA::ULong minor : {0u, 0x49520001u, 0xFFFFFFFFu})
        for (Completion c : {completed_yes, completed_no, completed_maybe}) {
          try {
            suite->raise_system(kind.fault, minor, c);
            throw Mismatch{"raised nothing"};
          } catch (const CORBA::SystemException& e) {
            check(string("IDL:omg.org/CORBA/") + kind.id + ":1.0" == e._rep_id() && e.minor() == minor && int(e.completed()) == int(c),
                  describe(e));
          }
        }
    });

  run("unknown_user_exception", [] {
    CORBA::Object_var o = suite->skewed();
    SkewClient_var skewed = SkewClient::_unchecked_narrow(o);
    expect<CORBA::UNKNOWN>([&] { skewed->skew(4); });
  });
  run("known_user_exception", [] {
    CORBA::Object_var o = suite->skewed();
    SkewServer_var skewed = SkewServer::_narrow(o);
    check(!CORBA::is_nil(skewed), "narrow");
    check(expect<Undeclared>([&] { skewed->skew(4); }).code == 4, "code");
  });
  run("bad_operation/skeleton", [] {
    CORBA::Object_var o = suite->skewed();
    SkewClient_var skewed = SkewClient::_unchecked_narrow(o);
    auto e = expect<CORBA::BAD_OPERATION>([&] { skewed->missing(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
  });
  run("bad_operation/dii", [] {
    CORBA::Request_var request = suite->_request("no_such_operation");
    request->set_return_type(CORBA::_tc_void);
    request->invoke();
    CORBA::Exception* e = request->env()->exception();
    check(e != nullptr, "raised nothing");
    check(CORBA::BAD_OPERATION::_downcast(e) != nullptr, describe(*e));
  });
  run("dii_call", [] {
    CORBA::Request_var request = suite->_request("echo_long");
    request->set_return_type(CORBA::_tc_long);
    request->add_in_arg() <<= CORBA::Long(11);
    CORBA::Any& y = request->add_inout_arg();
    y <<= CORBA::Long(22);
    CORBA::Any& z = request->add_out_arg();
    z <<= CORBA::Long(0);
    request->invoke();
    if (CORBA::Exception* e = request->env()->exception()) throw Mismatch{describe(*e)};
    CORBA::Long r = 0, after = 0, out = 0;
    check((request->return_value() >>= r) && r == 11, "result");
    check((y >>= after) && after == 11 && (z >>= out) && out == 22, "inout, out");
  });
}

// ---- cases: references ---------------------------------------------------------------------------

// Sends a LocateRequest and follows its answer. omniORB does so on its own before the first call
// only; the function that does it is protected.
struct Reach : omniObjRef {
  static void (omniObjRef::*locator())() { return &Reach::_locateRequest; }
};
static void locate(CORBA::Object_ptr object) { (object->_PR_getobj()->*Reach::locator())(); }

struct ListenerServant : virtual POA_interop::Listener, virtual PortableServer::RefCountServantBase {
  CORBA::Long ask(CORBA::Long question) override {
    ++asked;
    if (question < 0) throw Refused("no", question);
    // A call from within a call back.
    suite->nothing();
    return question + 1;
  }
  void hint(CORBA::Long token) override {
    std::lock_guard<std::mutex> hold(lock);
    hints.push_back(token);
    changed.notify_all();
  }
  char* describe(const interop::Variable& v, char*& text, LongSeq_out numbers) override {
    numbers = new LongSeq(v.numbers);
    string before = text;
    CORBA::string_free(text);
    text = CORBA::string_dup(v.text);
    return CORBA::string_dup(before.c_str());
  }
  std::atomic<int> asked{0};
  std::mutex lock;
  std::condition_variable changed;
  vector<CORBA::Long> hints;
};

void references() {
  run("create_node", [] {
    Node_var a = suite->create_node(1), b = suite->create_node(INT32_MIN);
    check(a->id() == 1 && b->id() == INT32_MIN, "id");
    check(!a->_is_equivalent(b), "two objects are equivalent");
    Node_var t = a->twin();
    check(t->id() == 1, "twin");
  });
  run("echo_node", [] {
    Node_var x = suite->create_node(10), y = suite->create_node(20), z;
    Node_var r = suite->echo_node(x, y.inout(), z.out());
    check(r->id() == 10 && y->id() == 10 && z->id() == 20, "ids");
    check(r->_is_equivalent(x), "not equivalent");
  });
  run("echo_node/nil", [] {
    Node_var y = suite->create_node(20), z;
    Node_var r = suite->echo_node(Node::_nil(), y.inout(), z.out());
    check(CORBA::is_nil(r) && CORBA::is_nil(y) && z->id() == 20, "nil");
    Node_var x = Node::_duplicate(z);
    r = suite->echo_node(x, y.inout(), z.out());
    check(!CORBA::is_nil(r) && r->id() == 20 && y->id() == 20 && CORBA::is_nil(z), "nil again");
  });
  run("echo_object", [] {
    Node_var x = suite->create_node(5);
    CORBA::Object_var y = CORBA::Object::_duplicate(suite), z;
    CORBA::Object_var r = suite->echo_object(x, y.inout(), z.out());
    Node_var n = Node::_narrow(r), n2 = Node::_narrow(y);
    Suite_var s = Suite::_narrow(z);
    check(!CORBA::is_nil(n) && !CORBA::is_nil(n2) && !CORBA::is_nil(s), "narrow");
    check(n->id() == 5 && n2->id() == 5, "id");
    r = suite->echo_object(CORBA::Object::_nil(), y.inout(), z.out());
    check(CORBA::is_nil(r) && CORBA::is_nil(y) && !CORBA::is_nil(z), "nil");
  });
  run("echo_nodes", [] {
    NodeSeq x, y;
    x.length(3);
    x[0] = suite->create_node(1);
    x[1] = Node::_nil();
    x[2] = suite->create_node(3);
    NodeSeq_var z;
    NodeSeq_var r = suite->echo_nodes(x, y, z.out());
    check(r->length() == 3 && y.length() == 3 && z->length() == 0, "lengths");
    check(r[0u]->id() == 1 && CORBA::is_nil(r[1]) && r[2]->id() == 3 && y[2]->id() == 3, "elements");
  });
  run("echo_objects", [] {
    ObjectSeq x, y;
    x.length(2);
    x[0] = suite->create_node(8);
    x[1] = CORBA::Object::_duplicate(suite);
    y.length(1);
    ObjectSeq_var z;
    ObjectSeq_var r = suite->echo_objects(x, y, z.out());
    check(r->length() == 2 && y.length() == 2 && z->length() == 1 && CORBA::is_nil(z[0u]), "lengths");
    check(suite->_is_equivalent(r[1]), "not equivalent");
    Node_var n = Node::_narrow(r[0u]);
    check(n->id() == 8, "id");
  });
  run("echo_link", [] {
    Link x, y;
    x.label = "left";
    x.target = suite->create_node(1);
    y.label = "right";
    Link_var z;
    Link_var r = suite->echo_link(x, y, z.out());
    check(!strcmp(r->label, "left") && r->target->id() == 1 && y.target->id() == 1, "link");
    check(!strcmp(z->label, "right") && CORBA::is_nil(z->target), "nil member");
  });
  run("echo_node_or_name", [] {
    NodeOrName x, y;
    Node_var n = suite->create_node(6);
    x.target(n);
    y.name("named");
    NodeOrName_var z;
    NodeOrName_var r = suite->echo_node_or_name(x, y, z.out());
    check(r->_d() && r->target()->id() == 6 && y.target()->id() == 6 && !z->_d() && !strcmp(z->name(), "named"), "union");
  });
  run("id_of", [] {
    Node_var n = suite->create_node(44);
    check(suite->id_of(n) == 44, "id");
  });
  run("destroy", [] {
    Node_var n = suite->create_node(1);
    check(!n->_non_existent(), "does not exist");
    n->destroy();
    auto e = expect<CORBA::OBJECT_NOT_EXIST>([&] { n->id(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
    check(n->_non_existent(), "still exists");
  });
  run("sprite", [] {
    Sprite_var s = suite->create_sprite("sprite", 2.0);
    s->move(1.5, -2);
    s->move(1, 1);
    s->scale(4);
    check(s->x() == 2.5 && s->y() == -1 && s->area() == 8, "state");
    s->name("renamed");
    CORBA::String_var name = s->name(), drawn = s->draw(7);
    same("name", "renamed", name.in());
    same("draw", "renamed7", drawn.in());
  });
  run("widen", [] {
    Sprite_var s = suite->create_sprite("w", 3.0);
    Shape_var shape = suite->widen(s);
    check(shape->area() == 3.0, "area");
    Movable_var movable = Movable::_narrow(shape);
    Scalable_var scalable = Scalable::_narrow(shape);
    Sprite_var back = Sprite::_narrow(shape);
    check(!CORBA::is_nil(movable) && !CORBA::is_nil(scalable) && !CORBA::is_nil(back), "narrow");
    Node_var wrong = Node::_narrow(shape);
    check(CORBA::is_nil(wrong), "narrowed to the wrong type");
    movable->move(1, 0);
    check(back->x() == 1, "the same object");
  });
  run("gauge", [] {
    deep::Gauge_var g = suite->create_gauge();
    check(g->reading() == deep::low, "initial");
    g->set_reading(deep::high);
    check(g->reading() == deep::high, "set");
  });
  run("is_a", [] {
    Sprite_var s = suite->create_sprite("a", 1.0);
    for (const char* id : {"IDL:ironorb.example/interop/Sprite:1.0", "IDL:ironorb.example/interop/Movable:1.0",
                           "IDL:ironorb.example/interop/Shape:1.0", "IDL:omg.org/CORBA/Object:1.0"})
      check(s->_is_a(id), id);
    check(!s->_is_a("IDL:ironorb.example/interop/Node:1.0"), "is a Node");
    check(!s->_is_a("IDL:no.such/Thing:1.0"), "is a Thing");
  });
  // A corbaloc tells no type, so these questions go to the server.
  run("is_a/remote", [] {
    Sprite_var s = suite->create_sprite("a", 1.0);
    CORBA::Object_var untyped = orb->string_to_object(corbaloc(address_of(s)).c_str());
    for (const char* id : {"IDL:ironorb.example/interop/Sprite:1.0", "IDL:ironorb.example/interop/Movable:1.0",
                           "IDL:ironorb.example/interop/Scalable:1.0", "IDL:ironorb.example/interop/Shape:1.0",
                           "IDL:omg.org/CORBA/Object:1.0"})
      check(untyped->_is_a(id), id);
    check(!untyped->_is_a("IDL:ironorb.example/interop/Node:1.0"), "is a Node");
    Shape_var shape = Shape::_narrow(untyped);
    check(!CORBA::is_nil(shape) && shape->area() == 1.0, "narrow");
    Node_var wrong = Node::_narrow(untyped);
    check(CORBA::is_nil(wrong), "narrowed to the wrong type");
  });
  run("is_equivalent_hash", [] {
    CORBA::String_var ior = orb->object_to_string(suite);
    CORBA::Object_var again = orb->string_to_object(ior);
    check(suite->_is_equivalent(again), "not equivalent to its copy");
    for (CORBA::ULong max : {1u, 7u, 1000000u})
      check(suite->_hash(max) == again->_hash(max) && suite->_hash(max) <= max, "hash");
    Node_var n = suite->create_node(1);
    check(!suite->_is_equivalent(n), "equivalent to another");
  });
  run("non_existent", [] { check(!suite->_non_existent(), "does not exist"); });
  run("unknown_key", [] {
    Address a = address_of(suite);
    a.key = "no such object";
    CORBA::Object_var o = orb->string_to_object(corbaloc(a).c_str());
    check(o->_non_existent(), "exists");
    Node_var n = Node::_unchecked_narrow(o);
    auto e = expect<CORBA::OBJECT_NOT_EXIST>([&] { n->id(); });
    check(e.completed() == CORBA::COMPLETED_NO, "completion");
  });
  run("locate/here", [] {
    Node_var n = suite->create_node(2);
    locate(n);
    locate(suite);
  });
  run("locate/unknown", [] {
    Node_var n = suite->create_node(2);
    n->destroy();
    expect<CORBA::OBJECT_NOT_EXIST>([&] { locate(n); });
    Address a = address_of(suite);
    a.key = "absent";
    CORBA::Object_var o = orb->string_to_object(corbaloc(a).c_str());
    expect<CORBA::OBJECT_NOT_EXIST>([&] { locate(o); });
  });
  run("forwarded", [] {
    Node_var target = suite->create_node(64);
    Node_var f = suite->forwarded(target);
    for (int i = 0; i < 3; ++i) check(f->id() == 64, "id");
    Node_var again = suite->forwarded(target);
    check(!again->_non_existent(), "does not exist");
  });
  run("locate/forward", [] {
    Node_var target = suite->create_node(65);
    Node_var f = suite->forwarded(target);
    locate(f);
    check(f->id() == 65, "id");
  });

  auto* servant = new ListenerServant;
  PortableServer::ObjectId_var oid = listener_poa->activate_object(servant);
  CORBA::Object_var object = listener_poa->id_to_reference(oid);
  Listener_var listener = Listener::_narrow(object);
  run("call_back", [&] {
    check(suite->call_back(listener, 41, 1) == 42, "one");
    check(suite->call_back(listener, 1, 50) == 100, "many");
    check(suite->call_back(listener, 1, 0) == 0, "none");
    check(servant->asked == 51, "asked " + std::to_string(servant->asked));
  });
  run("call_back/exception", [&] {
    auto e = expect<Refused>([&] { suite->call_back(listener, -5, 3); });
    check(!strcmp(e.why, "no") && e.code == -5, "members of Refused");
  });
  run("hint_back", [&] {
    suite->hint_back(listener, 20);
    std::unique_lock<std::mutex> hold(servant->lock);
    check(servant->changed.wait_for(hold, std::chrono::seconds(30), [&] { return servant->hints.size() >= 20; }), "hints were lost");
    std::sort(servant->hints.begin(), servant->hints.end());
    for (int i = 0; i < 20; ++i) check(servant->hints[i] == i + 1, "not each hint once");
  });
  run("describe_back", [&] {
    CORBA::String_var text = CORBA::string_dup("before");
    LongSeq_var numbers;
    interop::Variable v = variable(40);
    CORBA::String_var r = suite->describe_back(listener, v, text.inout(), numbers.out());
    same("result", "before", r.in());
    same("text", string(40, 't'), text.in());
    same("numbers", v.numbers, numbers.in());
  });
  // Called when this client waits for nothing any more.
  run("remind_back", [&] {
    CORBA::Object_var object = suite->part("later");
    Later_var later = Later::_narrow(object);
    check(!CORBA::is_nil(later), "the server has no such part");
    {
      std::lock_guard<std::mutex> hold(servant->lock);
      servant->hints.clear();
    }
    later->remind(listener, 41);
    std::unique_lock<std::mutex> hold(servant->lock);
    check(servant->changed.wait_for(hold, std::chrono::seconds(30), [&] { return !servant->hints.empty(); }), "never reminded");
    check(servant->hints[0] == 42, "the answer that came back");
  });
  listener_poa->deactivate_object(oid);
  servant->_remove_ref();
}

// ---- cases: control, time, threads ---------------------------------------------------------------

static void wait_until_waiting(const char* gate, CORBA::ULong count) {
  for (int i = 0; i < 3000; ++i) {
    if (suite->waiting(gate) >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Mismatch{"the blocked call never arrived"};
}

void control() {
  run("oneway", [] {
    LongSeq_var before = suite->take_tokens(0, 0);
    for (int i = 1; i <= 100; ++i) suite->notify(i);
    LongSeq_var got = suite->take_tokens(100, 30000);
    check(got->length() == 100, std::to_string(got->length()) + " of 100 arrived");
    // A server with many threads may run them in any order.
    std::sort(&got[0u], &got[0u] + 100);
    for (int i = 0; i < 100; ++i) check(got[i] == i + 1, "not each token once");
  });
  run("oneway/blob", [] {
    LongSeq_var before = suite->take_tokens(0, 0);
    suite->notify_blob(varied<OctetSeq, CORBA::Octet>(300000), "a large oneway");
    suite->notify_blob(OctetSeq(), "");
    LongSeq_var got = suite->take_tokens(2, 30000);
    check(got->length() == 2 && got[0u] + got[1] == 300000, "tokens");
  });
  run("context/none", [] {
    CORBA::Context_var base, context;
    orb->get_default_context(base.out());
    base->create_child("test", context.out());
    StringSeq_var got = suite->with_context(1, context);
    check(got->length() == 0, "an empty context carried something");
    CORBA::Any value;
    value <<= "v-other";
    context->set_one_value("other", value);
    got = suite->with_context(1, context);
    check(got->length() == 0, "a name that the clause has not was carried");
  });
  run("context/values", [] {
    CORBA::Context_var base, context;
    orb->get_default_context(base.out());
    base->create_child("test", context.out());
    CORBA::Any value;
    for (const char* name : {"color", "color_depth", "region", "other"}) {
      value <<= (string("v-") + name).c_str();
      context->set_one_value(name, value);
    }
    StringSeq_var got = suite->with_context(1, context);
    same("values", strings<StringSeq>({"color=v-color", "color_depth=v-color_depth", "region=v-region"}), got.in());
    // What a context has hides what those around it have; the rest is theirs.
    CORBA::Context_var inner;
    context->create_child("inner", inner.out());
    value <<= "";
    inner->set_one_value("region", value);
    got = suite->with_context(1, inner);
    same("values", strings<StringSeq>({"color=v-color", "color_depth=v-color_depth", "region="}), got.in());
  });
  run("block", [] {
    CORBA::Long opened = 0;
    std::atomic<bool> raised{false};
    std::thread blocked([&] {
      try {
        opened = suite->block("plain");
      } catch (const CORBA::Exception&) {
        raised = true;
      }
    });
    string problem;
    try {
      wait_until_waiting("plain", 1);
      // The blocked call must not stop others.
      for (int i = 0; i < 20; ++i) suite->nothing();
      check(suite->release("plain") == 1, "no call waited");
    } catch (const Mismatch& m) {
      problem = m.what;
      suite->release("plain");
    }
    blocked.join();
    check(problem.empty(), problem);
    check(!raised && opened >= 1, "the blocked call");
  });
  run("timeout", [] {
    Suite_var hurried = Suite::_duplicate(suite);
    CORBA::String_var ior = orb->object_to_string(suite);
    CORBA::Object_var again = orb->string_to_object(ior);
    hurried = Suite::_narrow(again);
    omniORB::setClientCallTimeout(hurried, 400);
    try {
      hurried->block("timeout");
      throw Mismatch{"raised nothing"};
    } catch (const CORBA::TIMEOUT& e) {
    } catch (const CORBA::TRANSIENT& e) {
      check(e.minor() == omni::TRANSIENT_CallTimedout, describe(e));
    }
    omniORB::setClientCallTimeout(hurried, 0);
    // The server lives on, and still holds the call that timed out.
    wait_until_waiting("timeout", 1);
    check(suite->release("timeout") == 1, "no call waited");
    hurried->nothing();
    CORBA::Long y = 2, z = 0;
    check(hurried->echo_long(1, y, z) == 1, "a call after the timeout");
  });
  run("threads", [] {
    const int count = 8, rounds = 100;
    std::atomic<int> wrong{0}, raised{0};
    vector<std::thread> threads;
    for (int t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < rounds; ++i) try {
          CORBA::Long y = t, z = 0;
          if (suite->echo_long(i * count + t, y, z) != i * count + t || y != i * count + t || z != t) ++wrong;
          OctetSeq sent = varied<OctetSeq, CORBA::Octet>(size_t(i) * 97 * (t + 1));
          OctetSeq_var got = suite->reflect_octets(sent);
          if (image(sent) != image(got.in())) ++wrong;
          CORBA::String_var text = suite->type(std::to_string(t).c_str(), std::to_string(i).c_str());
          if (std::to_string(t) + "&" + std::to_string(i) != text.in()) ++wrong;
          if (i % 10 == 0) try {
            suite->raise_one_of(2);
            ++wrong;
          } catch (const Refused& e) {
            if (e.code != 2) ++wrong;
          }
        } catch (const CORBA::Exception&) {
          ++raised;
        }
      });
    for (auto& t : threads) t.join();
    check(wrong == 0 && raised == 0, std::to_string(wrong) + " wrong, " + std::to_string(raised) + " raised");
  });
}

