// How servants echo: the result is x, z is y as it arrived, y leaves as x.

#ifndef IRONORB_INTEROP_ECHOES_HH
#define IRONORB_INTEROP_ECHOES_HH

#define ECHO_SCALAR(op, T) \
  T op(T x, T& y, T& z) override { z = y; y = x; return x; }
#define ECHO_FIXED(op, T) \
  T op(const T& x, T& y, T& z) override { z = y; y = x; return x; }
#define ECHO_VARIABLE(op, T) \
  T* op(const T& x, T& y, T##_out z) override { z = new T(y); y = x; return new T(x); }
#define ECHO_STRING(op, OUT)                                       \
  char* op(const char* x, char*& y, OUT z) override {              \
    z = y;                                                         \
    y = CORBA::string_dup(x);                                      \
    return CORBA::string_dup(x);                                   \
  }
#define ECHO_WSTRING(op, OUT)                                                    \
  CORBA::WChar* op(const CORBA::WChar* x, CORBA::WChar*& y, OUT z) override {    \
    z = y;                                                                       \
    y = CORBA::wstring_dup(x);                                                   \
    return CORBA::wstring_dup(x);                                                \
  }
#define ECHO_FIXED_ARRAY(op, T)                                \
  T##_slice* op(const T x, T y, T z) override {                \
    T##_copy(z, y);                                            \
    T##_copy(y, x);                                            \
    return T##_dup(x);                                         \
  }
#define ECHO_VARIABLE_ARRAY(op, T)                             \
  T##_slice* op(const T x, T y, T##_out z) override {          \
    z = T##_dup(y);                                            \
    T##_copy(y, x);                                            \
    return T##_dup(x);                                         \
  }
#define ECHO_REFERENCE(op, T)                                  \
  T##_ptr op(T##_ptr x, T##_ptr& y, T##_out z) override {      \
    z = y;                                                     \
    y = T::_duplicate(x);                                      \
    return T::_duplicate(x);                                   \
  }
#define ECHO_VALUE(op, T)                                      \
  T* op(T* x, T*& y, T##_out z) override {                     \
    z = y;                                                     \
    y = shared(x);                                             \
    return shared(x);                                          \
  }

#endif
