// The cases of values: every type of the contract, as parameters in all directions and messages
// of several MB.

#include "cases.hh"
#include "values.hh"

// ---- cases: types --------------------------------------------------------------------------------

void basics() {
  run("nothing", [] { suite->nothing(); });
  run("orb_name", [] {
    CORBA::String_var name = suite->orb_name();
    check(*name.in() != 0, "empty");
  });
  using B = interop::_objref_Basics;
  echo("echo_short", &B::echo_short, integers<CORBA::Short>());
  echo("echo_ushort", &B::echo_ushort, integers<CORBA::UShort>());
  echo("echo_long", &B::echo_long, integers<CORBA::Long>());
  echo("echo_ulong", &B::echo_ulong, integers<CORBA::ULong>());
  echo("echo_llong", &B::echo_llong, integers<CORBA::LongLong>());
  echo("echo_ullong", &B::echo_ullong, integers<CORBA::ULongLong>());
  echo("echo_float", &B::echo_float, floats<CORBA::Float, uint32_t>({0x7fc12345, 0xffc00001, 0x00000001, 0x3f8ccccd}));
  echo("echo_double", &B::echo_double,
       floats<CORBA::Double, uint64_t>({0x7ff8123456789abcull, 0xfff8000000000001ull, 1, 0x0102030405060708ull}));
  echo("echo_char", &B::echo_char, vector<CORBA::Char>{0, 'A', 'z', '\n', ' ', 127});
  echo("echo_boolean", &B::echo_boolean, vector<CORBA::Boolean>{true, false});
  echo("echo_octet", &B::echo_octet, vector<CORBA::Octet>{0, 1, 127, 128, 255});
  echo("echo_color", &B::echo_color, vector<Color>{red, green, blue, infra_red});
  echo("echo_single", &B::echo_single, vector<Single>{only_value});
  echo("echo_height", &B::echo_height, integers<Height>());

  string ascii;
  for (char c = 1; c < 127; ++c) ascii += c;
  echo("echo_string", &B::echo_string, vector<string>{"", "a", "hello world", ascii, string(2000, 's')});
  run("echo_string/long", [] {
    string sent(70000, 's');
    CORBA::String_var y = CORBA::string_dup("y"), z;
    CORBA::String_var r = suite->echo_string(sent.c_str(), y.inout(), z.out());
    same("result", sent, r.in());
    same("inout", sent, y.in());
    same("out", "y", z.in());
  });
  // Latin-1 is all that GIOP 1.0 promises of strings.
  echo("echo_string/latin1", &B::echo_string, vector<string>{"caf\xc3\xa9", "\xc3\xbf\xc2\xa1"});
  run("echo_string/utf8", [] {
    for (const char* text : {"\xe2\x82\xac", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e \xf0\x9f\x98\x80", "mixed \xce\xa9mega"}) {
      CORBA::String_var y = CORBA::string_dup("\xce\xb1"), z;
      CORBA::String_var r = suite->echo_string(text, y.inout(), z.out());
      same("result", text, r.in());
      same("inout", text, y.in());
      same("out", "\xce\xb1", z.in());
    }
  });
  echo("echo_short_string", &B::echo_short_string, vector<string>{"", "x", "exactly 16 bytes"});
  echo("echo_label", &B::echo_label, vector<string>{"label", ""});

  run("constants", [] {
    Basics::ConstantValues_var v = suite->constants();
    same("short", CORBA::Short(C_SHORT), v->s);
    same("unsigned short", CORBA::UShort(C_USHORT), v->us);
    same("long", CORBA::Long(C_LONG), v->l);
    same("unsigned long", CORBA::ULong(C_ULONG), v->ul);
    same("long long", CORBA::LongLong(C_LLONG), v->ll);
    same("unsigned long long", CORBA::ULongLong(C_ULLONG), v->ull);
    same("float", CORBA::Float(C_FLOAT), v->f);
    same("double", CORBA::Double(C_DOUBLE), v->d);
    same("char", CORBA::Char(C_CHAR), v->c);
    same("boolean", CORBA::Boolean(C_BOOLEAN), v->b);
    same("octet", CORBA::Octet(C_OCTET), v->o);
    same("string", C_STRING, (const char*)v->str);
    same("enum", Color(C_COLOR), v->tint);
  });
  run("outs", [] {
    CORBA::Octet a;
    CORBA::Double b;
    CORBA::String_var c;
    CORBA::Short d;
    LongSeq_var e;
    suite->outs(a, b, c.out(), d, e.out());
    check(a == 1 && b == 2.5 && !strcmp(c, "three") && d == -4, "values");
    same("sequence", seq<LongSeq, CORBA::Long>({5, -6}), e.in());
  });
  run("inouts", [] {
    CORBA::Octet a = 254;
    CORBA::Double b = -0.75;
    CORBA::String_var c = CORBA::string_dup("ab");
    suite->inouts(a, b, c.inout());
    check(a == 255 && b == -1.5 && !strcmp(c, "abab"), "values");
  });
  run("mix", [] {
    CORBA::Octet small;
    CORBA::LongLong n = 1ll << 40;
    CORBA::String_var joined;
    CORBA::Double r = suite->mix(small, "left", n, 200, joined.out(), 0.5);
    check(small == 200 && n == -(1ll << 40) && !strcmp(joined, "left/200") && r == 200.5, "values");
  });
  run("sum", [] {
    check(suite->sum(1, -2, 3, -400000, 5, 6000000000ll - 5999000000ll, 7, 8.0) == 600022, "sum");
  });
  run("default", [] {
    CORBA::Long self;
    check(suite->_cxx_default(10, 3, self) == 13 && self == 7, "values");
  });
  run("type", [] {
    CORBA::String_var r = suite->type("fn", "ref");
    same("result", "fn&ref", r.in());
  });
}

void sequences() {
  using S = interop::_objref_Sequences;
  echo("echo_shorts", &S::echo_shorts, number_seqs<ShortSeq, CORBA::Short>());
  echo("echo_ushorts", &S::echo_ushorts, number_seqs<UShortSeq, CORBA::UShort>());
  echo("echo_longs", &S::echo_longs, number_seqs<LongSeq, CORBA::Long>());
  echo("echo_ulongs", &S::echo_ulongs, number_seqs<ULongSeq, CORBA::ULong>());
  echo("echo_llongs", &S::echo_llongs, number_seqs<LongLongSeq, CORBA::LongLong>());
  echo("echo_ullongs", &S::echo_ullongs, number_seqs<ULongLongSeq, CORBA::ULongLong>());
  echo("echo_floats", &S::echo_floats,
       {FloatSeq(), seq<FloatSeq, CORBA::Float>(floats<CORBA::Float, uint32_t>({0x7fc12345, 0x80000000})), varied<FloatSeq, CORBA::Float>(3000)});
  echo("echo_doubles", &S::echo_doubles,
       {DoubleSeq(), seq<DoubleSeq, CORBA::Double>(floats<CORBA::Double, uint64_t>({0x7ff8123456789abcull})), varied<DoubleSeq, CORBA::Double>(3000)});
  echo("echo_chars", &S::echo_chars, {CharSeq(), seq<CharSeq, char>({'a', 'b', 'c', '\0', '~'})});
  echo("echo_booleans", &S::echo_booleans, {BooleanSeq(), seq<BooleanSeq, bool>({true, false, false, true, true})});
  echo("echo_octets", &S::echo_octets, number_seqs<OctetSeq, CORBA::Octet>());
  echo("echo_bounded_longs", &S::echo_bounded_longs,
       {BoundedLongSeq(), varied<BoundedLongSeq, CORBA::Long>(3), varied<BoundedLongSeq, CORBA::Long>(C_BOUND)});
  echo("echo_strings", &S::echo_strings,
       {StringSeq(), strings<StringSeq>({""}), strings<StringSeq>({"one", "", "three", string(9000, 'x'), "five"})});
  echo("echo_short_strings", &S::echo_short_strings,
       {ShortStringSeq(), strings<ShortStringSeq>({"", "exactly 16 bytes", "c", "d"})});
  echo("echo_colors", &S::echo_colors, {ColorSeq(), seq<ColorSeq, Color>({infra_red, red, blue, green, red})});

  vector<BinStruct> bins;
  for (int i = 0; i < 1000; ++i) bins.push_back(bin(i));
  echo("echo_bins", &S::echo_bins, {BinSeq(), seq<BinSeq, BinStruct>({bin(1)}), seq<BinSeq, BinStruct>(bins)});
  echo("echo_nameds", &S::echo_nameds,
       {NamedSeq(), seq<NamedSeq, Named>({named("", 0), named("abc", -1), named("abcd", 7), named("abcde", 1 << 30)})});
  echo("echo_longs_seq", &S::echo_longs_seq,
       {LongSeqSeq(), seq<LongSeqSeq, LongSeq>({LongSeq(), varied<LongSeq, CORBA::Long>(3), LongSeq(), varied<LongSeq, CORBA::Long>(1)})});
  StringTable table;
  table.length(3);
  table[0].length(2);
  table[0][0] = "r0c0";
  table[0][1] = "";
  table[2].length(1);
  table[2][0] = "r2";
  echo("echo_string_table", &S::echo_string_table, {StringTable(), table});
  echo("echo_readings", &S::echo_readings, number_seqs<Readings, CORBA::Long>());
  echo("echo_nesteds", &S::echo_nesteds, {NestedSeq(), seq<NestedSeq, Nested>({nested(0), nested(1), nested(5), nested(20)})});
  echo("echo_by_longs", &S::echo_by_longs,
       {ByLongSeq(), seq<ByLongSeq, ByLong>({with<ByLong>([](ByLong& u) { u.number(3); u._d(-3); }),
                                             with<ByLong>([](ByLong& u) { u.text("t"); u._d(99); }),
                                             with<ByLong>([](ByLong& u) { u.bin(bin(4)); })})});
  LongArraySeq arrays;
  arrays.length(2);
  for (int i = 0; i < 5; ++i) {
    arrays[0][i] = i;
    arrays[1][i] = -i;
  }
  echo("echo_long_arrays", &S::echo_long_arrays, {LongArraySeq(), arrays});
}

void big_messages() {
  run("big/octets", [] {
    OctetSeq sent = varied<OctetSeq, CORBA::Octet>(5 << 20);
    OctetSeq_var got = suite->reflect_octets(sent);
    same("result", sent, got.in());
  });
  run("big/longs", [] {
    LongSeq sent = varied<LongSeq, CORBA::Long>(1 << 20);
    LongSeq_var got = suite->reflect_longs(sent);
    same("result", sent, got.in());
  });
  run("big/doubles", [] {
    DoubleSeq sent = varied<DoubleSeq, CORBA::Double>(1 << 19);
    DoubleSeq_var got = suite->reflect_doubles(sent);
    same("result", sent, got.in());
  });
  run("big/bins", [] {
    BinSeq sent;
    sent.length(150000);
    for (CORBA::ULong i = 0; i < sent.length(); ++i) sent[i] = bin(i);
    BinSeq_var got = suite->reflect_bins(sent);
    same("result", sent, got.in());
  });
  run("big/strings", [] {
    StringSeq sent;
    sent.length(50000);
    for (CORBA::ULong i = 0; i < sent.length(); ++i) sent[i] = string(i % 100, 'a' + i % 26).c_str();
    StringSeq_var got = suite->reflect_strings(sent);
    same("result", sent, got.in());
  });
  run("big/one_string", [] {
    string sent(3 << 20, 'q');
    CORBA::String_var y = CORBA::string_dup(""), z;
    CORBA::String_var r = suite->echo_string(sent.c_str(), y.inout(), z.out());
    check(sent == r.in() && sent == y.in() && !*z.in(), "differs");
  });
  run("big/swallow", [] { check(suite->swallow(varied<OctetSeq, CORBA::Octet>(8 << 20)) == 8u << 20, "length"); });
  run("big/produce", [] {
    OctetSeq_var got = suite->produce(6 << 20);
    check(got->length() == 6u << 20, "length");
    for (CORBA::ULong i = 0; i < got->length(); ++i) check(got[i] == i % 251, "octet " + std::to_string(i));
  });
  // Lengths around the sizes at which ORBs split messages and switch to copying in bulk.
  run("big/edges", [] {
    for (CORBA::ULong n : {1023u, 4096u, 8100u, 8191u, 8192u, 8193u, 16384u, 65535u, 65536u, 65537u, 131072u}) {
      for (CORBA::ULong more = 0; more < 8; ++more) {
        OctetSeq sent = varied<OctetSeq, CORBA::Octet>(n + more);
        OctetSeq_var got = suite->reflect_octets(sent);
        same("octets", sent, got.in());
      }
      DoubleSeq doubles = varied<DoubleSeq, CORBA::Double>(n / 8 + 1);
      DoubleSeq_var back = suite->reflect_doubles(doubles);
      same("doubles", doubles, back.in());
    }
  });
}

// Just under omniORB's largest message.
void huge_messages() {
  run("huge", [] {
    CORBA::ULong length = 64 << 20;
    check(suite->swallow(varied<OctetSeq, CORBA::Octet>(length)) == length, "length");
    OctetSeq_var got = suite->produce(length);
    check(got->length() == length, "length of the result");
    for (CORBA::ULong i = 0; i < length; ++i)
      if (got[i] != i % 251) throw Mismatch{"octet " + std::to_string(i)};
  });
}

void arrays() {
  using A = interop::_objref_Arrays;
  LongArray longs = {1, -2, 3, INT32_MIN, INT32_MAX}, zeros = {0, 0, 0, 0, 0};
  echo_array("echo_long_array", &A::echo_long_array, longs, zeros);
  echo_array("echo_vector", &A::echo_vector, zeros, longs);
  Matrix m = {{1, 2, 3}, {-4, 5.5, INFINITY}}, n = {{0, -0.0, NAN}, {1e-300, 7, 8}};
  echo_array("echo_matrix", &A::echo_matrix, m, n);
  Cube cube, other;
  for (int i = 0; i < 24; ++i) {
    (&cube[0][0][0])[i] = i;
    (&other[0][0][0])[i] = 255 - i;
  }
  echo_array("echo_cube", &A::echo_cube, cube, other);
  StringArray words, blanks;
  words[0] = "zero";
  words[1] = "";
  words[2] = "two";
  for (auto& b : blanks) b = "";
  echo_array("echo_string_array", &A::echo_string_array, words, blanks);
  StringGrid grid, dots;
  for (int r = 0; r < 2; ++r)
    for (int c = 0; c < 2; ++c) {
      grid[r][c] = string(r * 2 + c, 'g').c_str();
      dots[r][c] = ".";
    }
  echo_array("echo_string_grid", &A::echo_string_grid, grid, dots);
  BinArray b1 = {bin(1), bin(2)}, b2 = {bin(30000), bin(-1)};
  echo_array("echo_bin_array", &A::echo_bin_array, b1, b2);
  NamedArray n1, n2;
  n1[0] = named("a", 1);
  n1[1] = named("bb", 2);
  n2[0] = named("", 0);
  n2[1] = named("long name with several words", -1);
  echo_array("echo_named_array", &A::echo_named_array, n1, n2);
  LongSeqArray s1, s2;
  s1[0] = varied<LongSeq, CORBA::Long>(4);
  s2[1] = varied<LongSeq, CORBA::Long>(1);
  echo_array("echo_long_seq_array", &A::echo_long_seq_array, s1, s2);
}

void structs() {
  using S = interop::_objref_Structs;
  echo("echo_bin", &S::echo_bin, vector<BinStruct>{bin(0), bin(-32768, '!', INT32_MIN, 255, -1e308), bin(77)});
  echo("echo_sample", &S::echo_sample, vector<Sample>{bin(5), bin(6)});
  OneOctet zero = {0}, full = {255};
  echo("echo_one_octet", &S::echo_one_octet, vector<OneOctet>{zero, full});
  AllBasics all = {SHRT_MIN, 0xFFFF, INT32_MIN, 0xFFFFFFFF, INT64_MIN, UINT64_MAX, 1.25f, -2.5, '\\', true, 254};
  AllBasics none = {0, 0, 0, 0, 0, 0, 0, 0, 0, false, 0};
  echo("echo_all_basics", &S::echo_all_basics, vector<AllBasics>{all, none});
  echo("echo_named", &S::echo_named, vector<Named>{named("", 0), named("n", -1), named("name", 42)});
  echo("echo_variable", &S::echo_variable, vector<interop::Variable>{variable(0), variable(1), variable(8), variable(16), variable(500)});
  echo("echo_nested", &S::echo_nested, vector<Nested>{nested(0), nested(3), nested(11)});
  echo("echo_tree", &S::echo_tree, vector<Tree>{tree(0, 0), tree(1, 3), tree(6, 3), tree(30, 1)});
  echo("echo_chain", &S::echo_chain, vector<Chain>{chain(1), chain(2), chain(40)});
  deep::Pair p, q;
  p.first = "p";
  p.outer.first = 1;
  p.outer.second = 2;
  q.first = "";
  q.outer.first = -1;
  q.outer.second = INT32_MAX;
  echo("echo_deep_pair", &S::echo_deep_pair, vector<deep::Pair>{p, q});
}

void unions() {
  using U = interop::_objref_Unions;
  echo("echo_by_short", &U::echo_by_short,
       vector<ByShort>{with<ByShort>([](ByShort& u) { u.small(200); }), with<ByShort>([](ByShort& u) { u.text("seven"); }),
                       with<ByShort>([](ByShort& u) { u._default(); })});
  echo("echo_by_ushort", &U::echo_by_ushort,
       vector<ByUShort>{with<ByUShort>([](ByUShort& u) { u.top(0.1); }),
                        with<ByUShort>([](ByUShort& u) { u.other(-5); u._d(0); }),
                        with<ByUShort>([](ByUShort& u) { u.other(6); u._d(65534); })});
  Matrix m = {{1, 2, 3}, {4, 5, 6}};
  CORBA::Char letters[3] = {'x', 'y', 'z'};
  ByLong::_words_seq words;
  words.length(2);
  words[0] = "w";
  words[1] = "";
  echo("echo_by_long", &U::echo_by_long,
       vector<ByLong>{with<ByLong>([](ByLong& u) { u.number(10); u._d(1); }),
                      with<ByLong>([](ByLong& u) { u.number(20); u._d(2); }),
                      with<ByLong>([](ByLong& u) { u.number(30); u._d(-3); }),
                      with<ByLong>([](ByLong& u) { u.text("four"); u._d(4); }),
                      with<ByLong>([](ByLong& u) { u.text("default"); u._d(INT32_MIN); }),
                      with<ByLong>([](ByLong& u) { u.text("default"); u._d(INT32_MAX); }),
                      with<ByLong>([](ByLong& u) { u.bin(bin(9)); }),
                      with<ByLong>([](ByLong& u) { u.numbers(varied<LongSeq, CORBA::Long>(5)); }),
                      with<ByLong>([&](ByLong& u) { u.cells(m); }), with<ByLong>([&](ByLong& u) { u.words(words); }),
                      with<ByLong>([&](ByLong& u) { u.letters(letters); })});
  echo("echo_by_ulong", &U::echo_by_ulong,
       vector<ByULong>{with<ByULong>([](ByULong& u) { u.yes(true); }), with<ByULong>([](ByULong& u) { u.big(INT64_MIN); }),
                       with<ByULong>([](ByULong& u) { u._default(); })});
  echo("echo_by_llong", &U::echo_by_llong,
       vector<ByLongLong>{with<ByLongLong>([](ByLongLong& u) { u.low(-7); }),
                          with<ByLongLong>([](ByLongLong& u) { u.rest(1.5f); u._d(1ll << 40); }),
                          with<ByLongLong>([](ByLongLong& u) { u.rest(-1.5f); u._d(INT64_MIN); })});
  echo("echo_by_ullong", &U::echo_by_ullong,
       vector<ByULongLong>{with<ByULongLong>([](ByULongLong& u) { u.top('t'); }),
                           with<ByULongLong>([](ByULongLong& u) { u.who(named("one", 1)); }),
                           with<ByULongLong>([](ByULongLong& u) { u._default(); })});
  echo("echo_by_char", &U::echo_by_char,
       vector<ByChar>{with<ByChar>([](ByChar& u) { u.edge(1); u._d('a'); }), with<ByChar>([](ByChar& u) { u.edge(26); u._d('z'); }),
                      with<ByChar>([](ByChar& u) { u.line("text"); }), with<ByChar>([](ByChar& u) { u._default(); })});
  echo("echo_by_boolean", &U::echo_by_boolean,
       vector<ByBoolean>{with<ByBoolean>([](ByBoolean& u) { u.yes("y"); }), with<ByBoolean>([](ByBoolean& u) { u.no(-1); })});
  echo("echo_half_boolean", &U::echo_half_boolean,
       vector<HalfBoolean>{with<HalfBoolean>([](HalfBoolean& u) { u.value(2.5); }), with<HalfBoolean>([](HalfBoolean& u) { u._default(); })});
  echo("echo_by_color", &U::echo_by_color,
       vector<ByColor>{with<ByColor>([](ByColor& u) { u.who(named("r", 1)); u._d(red); }),
                       with<ByColor>([](ByColor& u) { u.who(named("b", 2)); u._d(blue); }),
                       with<ByColor>([](ByColor& u) { u.level(9); }), with<ByColor>([](ByColor& u) { u.tint(green); })});
  echo("echo_by_alias", &U::echo_by_alias,
       vector<ByAlias>{with<ByAlias>([](ByAlias& u) { u.r(1); }), with<ByAlias>([](ByAlias& u) { u.g(2); }),
                       with<ByAlias>([](ByAlias& u) { u.b(3); }), with<ByAlias>([](ByAlias& u) { u.i(4); })});
  echo("echo_expr", &U::echo_expr,
       vector<Expr>{expr(0), expr(1), expr(12), with<Expr>([](Expr& e) { e.name("free"); }), with<Expr>([](Expr& e) { e._default(); })});
}

void wide() {
  using W = interop::_objref_Wide;
  run("wide/echo_wchar", [] {
    for (CORBA::WChar x : {L'\0', L'A', L'\u00e9', L'\u20ac', L'\u4e16', L'\ufffd'}) {
      CORBA::WChar y = L'\u03a9', z = 0;
      CORBA::WChar r = suite->echo_wchar(x, y, z);
      check(r == x && y == x && z == L'\u03a9', "code point " + std::to_string(unsigned(x)));
    }
  });
  // omniORB's wide characters are UTF-16 units, so the last text is one character beyond the BMP.
  echo("wide/echo_wstring", &W::echo_wstring,
       vector<std::wstring>{L"", L"a", L"wide \u00e9\u4e16", std::wstring(20000, L'\u20ac'), std::wstring{wchar_t(0xD83D), wchar_t(0xDE00)}});
  echo("wide/echo_short_wstring", &W::echo_short_wstring, vector<std::wstring>{L"", L"8 wide \u20ac"});
  echo("wide/echo_wchars", &W::echo_wchars, {interop::Wide::WCharSeq(), seq<interop::Wide::WCharSeq, CORBA::WChar>({L'a', L'\u20ac', L'\0'})});
  interop::Wide::WStringSeq texts;
  texts.length(3);
  texts[0] = (const CORBA::WChar*)L"";
  texts[1] = (const CORBA::WChar*)L"\u4e16";
  texts[2] = (const CORBA::WChar*)L"plain";
  echo("wide/echo_wstrings", &W::echo_wstrings, {interop::Wide::WStringSeq(), texts});
  interop::Wide::WCharArray a = {L'a', L'\u20ac', L'\u4e16'}, b = {0, 0, 0};
  echo_array("wide/echo_wchar_array", &W::echo_wchar_array, a, b);
  interop::Wide::WideStruct w, v;
  w.c = L'\u20ac';
  w.text = (const CORBA::WChar*)L"odd";
  w.after = 255;
  v.c = L'x';
  v.text = (const CORBA::WChar*)L"";
  v.after = 0;
  echo("wide/echo_wide_struct", &W::echo_wide_struct, vector<interop::Wide::WideStruct>{w, v});
  using interop::Wide;
  echo("wide/echo_wide_union", &W::echo_wide_union,
       vector<Wide::WideUnion>{with<Wide::WideUnion>([](Wide::WideUnion& u) { u.text((const CORBA::WChar*)L"text \u20ac"); }),
                               with<Wide::WideUnion>([](Wide::WideUnion& u) { u.letter(L'\u4e16'); }),
                               with<Wide::WideUnion>([&](Wide::WideUnion& u) { u.whole(w); u._d(77); })});
  run("wide/raise_wide", [] {
    auto e = expect<interop::Wide::WideError>([] { suite->raise_wide(L"why \u4e16"); });
    same("why", std::wstring(L"why \u4e16"), e.why.in());
  });
  run("wide/wide_constants", [] {
    CORBA::WChar c;
    CORBA::WString_var text;
    suite->wide_constants(c, text.out());
    check(c == interop::Wide::C_WCHAR, "wchar");
    same("wstring", std::wstring(interop::Wide::C_WSTRING), text.in());
  });
}

