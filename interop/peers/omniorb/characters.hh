// Strings of this program as Unicode characters and back, whatever native code set the ORB is configured for.

#ifndef IRONORB_INTEROP_CHARACTERS_HH
#define IRONORB_INTEROP_CHARACTERS_HH

#include <cstring>
#include <string>

#include "all_idl.hh"

// Whether strings are ISO-8859-1 in memory; UTF-8 otherwise.
inline bool is_latin1 = false;

inline void note_native_code_set(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (!strcmp(argv[i], "-ORBnativeCharCodeSet")) is_latin1 = !strcmp(argv[i + 1], "ISO-8859-1");
}

inline interop::ULongSeq* sequence_of(const std::u32string& text) {
  auto* result = new interop::ULongSeq;
  result->length(text.size());
  for (size_t i = 0; i < text.size(); ++i) (*result)[i] = text[i];
  return result;
}

inline interop::ULongSeq* characters(const char* text) {
  std::u32string found;
  for (const unsigned char* at = reinterpret_cast<const unsigned char*>(text); *at;) {
    char32_t c = *at++;
    if (!is_latin1 && c >= 0xC0) {
      int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
      c &= 0x3F >> more;
      for (; more > 0 && *at; --more) c = c << 6 | (*at++ & 0x3F);
    }
    found += c;
  }
  return sequence_of(found);
}

inline std::string native(const interop::ULongSeq& characters) {
  std::string text;
  for (CORBA::ULong i = 0; i < characters.length(); ++i) {
    CORBA::ULong c = characters[i];
    if (is_latin1 || c < 0x80) text += char(c);
    else if (c < 0x800) text += {char(0xC0 | c >> 6), char(0x80 | (c & 0x3F))};
    else if (c < 0x10000) text += {char(0xE0 | c >> 12), char(0x80 | (c >> 6 & 0x3F)), char(0x80 | (c & 0x3F))};
    else text += {char(0xF0 | c >> 18), char(0x80 | (c >> 12 & 0x3F)), char(0x80 | (c >> 6 & 0x3F)), char(0x80 | (c & 0x3F))};
  }
  return text;
}

// omniORB's wide characters are UTF-16 units, however wide wchar_t is.
inline interop::ULongSeq* characters(const CORBA::WChar* text) {
  std::u32string found;
  for (; *text; ++text) {
    char32_t c = *text;
    if (c >= 0xD800 && c < 0xDC00 && text[1] >= 0xDC00 && text[1] < 0xE000) c = 0x10000 + ((c & 0x3FF) << 10) + (*++text & 0x3FF);
    found += c;
  }
  return sequence_of(found);
}

inline std::wstring wide(const interop::ULongSeq& characters) {
  std::wstring text;
  for (CORBA::ULong i = 0; i < characters.length(); ++i) {
    CORBA::ULong c = characters[i];
    if (c < 0x10000) text += wchar_t(c);
    else text += {wchar_t(0xD800 + (c - 0x10000 >> 10)), wchar_t(0xDC00 + (c & 0x3FF))};
  }
  return text;
}

#endif
