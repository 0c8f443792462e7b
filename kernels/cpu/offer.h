// Lists of candidates as tables: what there is, whose it is, and when it comes before the others.
#pragma once

#include <initializer_list>

#include "dispatch/kernel.h"

namespace plumb::cpu {

/// Where a candidate stands in the order that the heuristic tries: the list's own, the first before all, the last
/// behind.
enum class Place : uint8_t { kFirst, kListed, kLast };

/// A row of a list of candidates. Nothing is offered where `make` is null.
struct Offer {
  std::string_view algorithm;
  Provider provider;
  Candidates::Make make;
  Place place = Place::kListed;
};

/// Adds the candidates of a list, by their places and then as they are listed.
inline void offer_in_order(Candidates& candidates, std::initializer_list<Offer> list) {
  for (const Place place : {Place::kFirst, Place::kListed, Place::kLast}) {
    for (const Offer& o : list) {
      if (o.make && o.place == place) candidates.add(o.provider, std::string(o.algorithm), o.make);
    }
  }
}

}  // namespace plumb::cpu
