// Candidates as tables: which exist, who provides them, and when one precedes the others.
#pragma once

#include <initializer_list>

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// A place in the order that the heuristic tries: before all others, as listed, or after all others.
enum class Place : uint8_t { kFirst, kListed, kLast };

/// A row of a list of candidates. A null `make` offers nothing.
struct Offer {
  std::string_view algorithm;
  Provider provider;
  Candidates::Make make;
  Place place = Place::kListed;
};

/// Adds the candidates of a list, sorted by place and then in the list's order.
inline void offer_in_order(Candidates& candidates, std::initializer_list<Offer> list) {
  for (const Place place : {Place::kFirst, Place::kListed, Place::kLast}) {
    for (const Offer& o : list) {
      if (o.make && o.place == place) candidates.add(o.provider, std::string(o.algorithm), o.make);
    }
  }
}

}  // namespace plumb::cpu
