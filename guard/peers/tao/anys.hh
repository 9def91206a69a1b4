// The insertion of basic types into anys, declared before TAO's templates: those of old trees find it nowhere else, where the
// compiler looks names up in two phases.

#include "tao/Basic_Types.h"

namespace CORBA {
class Any;
class Object;
}

void operator<<=(CORBA::Any &, CORBA::Short);
void operator<<=(CORBA::Any &, CORBA::UShort);
void operator<<=(CORBA::Any &, CORBA::Long);
void operator<<=(CORBA::Any &, CORBA::ULong);
void operator<<=(CORBA::Any &, CORBA::LongLong);
void operator<<=(CORBA::Any &, CORBA::ULongLong);
void operator<<=(CORBA::Any &, CORBA::Float);
void operator<<=(CORBA::Any &, CORBA::Double);
void operator<<=(CORBA::Any &, CORBA::LongDouble);
void operator<<=(CORBA::Any &, CORBA::Object *);
