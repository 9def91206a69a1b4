// The cases of answers that come later than others, and of characters under different code sets.

#include "cases.hh"
#include "characters.hh"
#include "harness.hh"

static void until_held(Later_ptr later, CORBA::ULong count) {
  for (int i = 0; i < 3000; ++i) {
    if (later->held() >= count) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw Mismatch{"not all calls arrived"};
}

void later() {
  run("later/answers", [] {
    const CORBA::Long count = 12;
    Later_var later = part<Later>("later");
    std::atomic<int> right{0};
    vector<std::thread> callers;
    for (CORBA::Long i = 0; i < count; ++i)
      callers.emplace_back([&, i] {
        try {
          CORBA::String_var z;
          string y = "caller " + std::to_string(i);
          if (later->hold(i, y.c_str(), z.out()) == i && y == z.in()) ++right;
        } catch (const CORBA::Exception&) {
          // Not right.
        }
      });
    string problem;
    try {
      until_held(later, count);
      for (int i = 0; i < 20; ++i) suite->nothing();
      check(right == 0, "some were answered at once");
    } catch (const Mismatch& m) {
      problem = m.what;
    }
    CORBA::ULong answered = later->answer_all();
    for (auto& caller : callers) caller.join();
    check(problem.empty(), problem);
    check(answered == CORBA::ULong(count) && right == count, std::to_string(right) + " of " + std::to_string(answered) + " are right");
  });
  run("later/exception", [] {
    Later_var later = part<Later>("later");
    string problem = "raised nothing";
    std::thread caller([&] {
      try {
        CORBA::String_var z;
        later->hold(-5, "", z.out());
      } catch (const Refused& e) {
        problem = !strcmp(e.why, "late") && e.code == -5 ? "" : "members of Refused";
      } catch (const CORBA::Exception& e) {
        problem = describe(e);
      }
    });
    until_held(later, 1);
    later->answer_all();
    caller.join();
    check(problem.empty(), problem);
  });
  // The callers here are one thread that does not wait, by dynamic invocation.
  run("later/deferred_dii", [] {
    Later_var later = part<Later>("later");
    vector<CORBA::Request_var> requests;
    for (CORBA::Long i = 0; i < 5; ++i) {
      CORBA::Request_var request = later->_request("hold");
      request->set_return_type(CORBA::_tc_long);
      request->add_in_arg() <<= i;
      request->add_in_arg() <<= "text";
      request->add_out_arg() <<= "";
      request->send_deferred();
      requests.push_back(request);
    }
    until_held(later, 5);
    for (auto& request : requests) check(!request->poll_response(), "answered at once");
    check(later->answer_all() == 5, "count");
    for (CORBA::Long i = 0; i < 5; ++i) {
      requests[i]->get_response();
      if (CORBA::Exception* e = requests[i]->env()->exception()) throw Mismatch{describe(*e)};
      CORBA::Long result = 0;
      check((requests[i]->return_value() >>= result) && result == i, "result");
    }
  });
}

static ULongSeq ulongs(const std::u32string& text) {
  ULongSeq_var made = sequence_of(text);
  return made.in();
}

static OctetSeq octets(const string& bytes) {
  OctetSeq made;
  made.length(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) made[i] = CORBA::Octet(bytes[i]);
  return made;
}

static string utf16(const std::u32string& text, bool big) {
  string bytes;
  std::wstring units = wide(ulongs(text));
  for (wchar_t unit : units) {
    char high = char(unit >> 8), low = char(unit);
    bytes += big ? string{high, low} : string{low, high};
  }
  return bytes;
}

void texts() {
  // Characters that both code sets have, and that are two octets in one of them.
  const std::u32string latin = U"caf\u00E9 \u00FF na\u00EFve \u00A3";
  const std::u32string beyond = U"z\u00FC \u20AC \u4E16 \U0001F600";
  run("texts/narrow", [&] {
    Texts_var texts = part<Texts>("texts");
    ULongSeq sent = ulongs(latin);
    ULongSeq_var got = texts->characters_of(native(sent).c_str());
    same("characters", sent, got.in());
    CORBA::String_var text = texts->text_of(sent);
    same("text", native(sent), text.in());
  });
  run("texts/wide", [&] {
    Texts_var texts = part<Texts>("texts");
    ULongSeq sent = ulongs(beyond);
    ULongSeq_var got = texts->wide_characters_of(wide(sent).c_str());
    same("characters", sent, got.in());
    CORBA::WString_var text = texts->wide_text_of(sent);
    same("text", wide(sent), text.in());
  });
  const std::pair<const char*, string> forms[] = {
      {"texts/marks/none", utf16(beyond, true)},
      {"texts/marks/big_endian", "\xFE\xFF" + utf16(beyond, true)},
      {"texts/marks/little_endian", "\xFF\xFE" + utf16(beyond, false)},
  };
  for (auto& form : forms)
    run(form.first, [&] {
      Texts_var texts = part<Texts>("texts");
      TextOctets_var raw = TextOctets::_unchecked_narrow(texts);
      ULongSeq_var got = raw->wide_characters_of(octets(form.second));
      same("characters", ulongs(beyond), got.in());
    });
}
