// The groups of cases, each of which runs its cases on `suite`.

#ifndef IRONORB_INTEROP_CASES_HH
#define IRONORB_INTEROP_CASES_HH

void basics();
void sequences();
void arrays();
void structs();
void unions();
void wide();
void attributes();
void faults();
void references();
void anys();
void typecodes();
void fixed();
void long_double();
void values();
void value_chunks();
void boxes();
void boxed_members();
void abstracts();
void value_anys();
void control();
void later();
void texts();
void big_messages();
void huge_messages();

#endif
