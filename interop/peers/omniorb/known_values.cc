#include "known_values.hh"

#include <vector>

using namespace interop;

namespace {

template <class Value>
struct Factory : virtual CORBA::ValueFactoryBase {
  CORBA::ValueBase* create_for_unmarshal() override { return new Value; }
};

template <class Value>
void add(CORBA::ORB_ptr orb, const char* id) {
  CORBA::ValueFactory factory = new Factory<Value>;
  orb->register_value_factory(id, factory);
  factory->_remove_ref();
}

}  // namespace

void register_values(CORBA::ORB_ptr orb) {
  add<OBV_interop::Point>(orb, interop::Point::_PD_repoId);
  add<OBV_interop::Point3>(orb, interop::Point3::_PD_repoId);
  add<OBV_interop::Spot>(orb, interop::Spot::_PD_repoId);
  add<OBV_interop::HotSpot>(orb, interop::HotSpot::_PD_repoId);
  add<AnAccount>(orb, interop::Account::_PD_repoId);
  add<OBV_interop::Cell>(orb, interop::Cell::_PD_repoId);
  add<OBV_interop::Twig>(orb, interop::Twig::_PD_repoId);
  add<OBV_interop::Mixed>(orb, interop::Mixed::_PD_repoId);
  add<OBV_interop::Parcel>(orb, interop::Parcel::_PD_repoId);
  add<OBV_interop::Crate>(orb, interop::Crate::_PD_repoId);
  add<OBV_interop::Anything>(orb, interop::Anything::_PD_repoId);
  CORBA::ValueFactory office = new TicketOffice;
  orb->register_value_factory(interop::Ticket::_PD_repoId, office);
  office->_remove_ref();
  add<ATag>(orb, interop::Tag::_PD_repoId);
  add<ACard>(orb, interop::Card::_PD_repoId);
}

Parcel* parcel(const char* label, CORBA::ULong weights) {
  Parcel* made = at(new OBV_interop::Parcel, 1, 2);
  made->label(label);
  made->inner(nullptr);
  made->weights().length(weights);
  for (CORBA::ULong i = 0; i < weights; ++i) made->weights()[i] = i / 3.0;
  return made;
}

Twig* twig(const char* label, Twig* left, Twig* right) {
  Twig* made = new OBV_interop::Twig;
  made->label(label);
  made->left(left);
  made->right(right);
  return made;
}

Cell* ring(CORBA::Long count) {
  std::vector<Cell*> cells;
  for (CORBA::Long i = 0; i < count; ++i) cells.push_back(new OBV_interop::Cell);
  for (CORBA::Long i = 0; i < count; ++i) {
    cells[i]->number(i + 1);
    cells[i]->next(cells[(i + 1) % count]);
  }
  return count == 0 ? nullptr : cells[0];
}

CORBA::Long length(Cell* first) {
  if (!first) return 0;
  CORBA::Long count = 1;
  for (Cell* at = first->next(); at != first; at = at->next()) {
    if (!at) return -1;
    ++count;
  }
  return count;
}
