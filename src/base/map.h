/* SPDX-License-Identifier: MIT */
/* Hash map from byte strings to pointers (open addressing, XXH3). Keys are borrowed: they must outlive the map. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/check.h"
#include "base/str.h"

struct map_slot;
struct map {
    struct map_slot *slots;
    size_t n, cap; /* cap is 0 or a power of two */
};

uint64_t hash_bytes(struct str s);
/* Value for key, NULL if absent. */
void *map_get(const struct map *m, struct str key);
/* Adds or replaces. False: out of memory. value must not be NULL. */
bool map_put(struct map *m, struct str key, void *value) MUST_USE;
/* Removes; returns the old value or NULL. */
void *map_remove(struct map *m, struct str key);
void map_free(struct map *m);

#endif
