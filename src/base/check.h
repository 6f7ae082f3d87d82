/* SPDX-License-Identifier: MIT */
/*
 * Checks of our own invariants.
 *
 * CHECK: at start-up and for broken shared structures only; prints where and aborts.
 * BUG_IF(cond): true when an invariant of one request or connection is broken. It logs and counts; the caller then
 * closes that connection and goes on. Sanitizer builds abort on it too.
 * MAGIC: a word in every long-lived struct, checked where a void pointer becomes a type.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WEIR_SANITIZER 1
#endif
#endif
#ifndef WEIR_SANITIZER
#define WEIR_SANITIZER 0
#endif

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Prints the failed condition to stderr and aborts. */
_Noreturn void check_failed(const char *what, const char *file, int line);
/* Counts and logs a broken invariant; always returns true. Aborts in sanitizer builds. Thread-safe. */
bool check_bug(const char *what, const char *file, int line);
/* How often BUG_IF was true since the start. */
uint64_t check_bug_count(void);

#define CHECK(cond) (LIKELY(cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))
#define BUG_IF(cond) (UNLIKELY(cond) ? check_bug(#cond, __FILE__, __LINE__) : false)

#define MAGIC_SET(obj, word) ((obj)->magic = (word))
#define MAGIC_CHECK(obj, word) CHECK((obj) != NULL && (obj)->magic == (word))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
