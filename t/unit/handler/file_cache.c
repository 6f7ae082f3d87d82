/* SPDX-License-Identifier: MIT */
/* The file cache and the roots below it, on a folder of its own; time is what the test says. */
#include "handler/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/map.h"

static const uint64_t MTIME_S = 1700000000;

struct fixture {
    char dir[PATH_MAX];  /* of the test; removed at the end */
    char root[PATH_MAX]; /* dir/root */
    struct file_cache *cache;
    struct file_want want;
    char log[4096];
    int n_fds; /* open at the beginning */
};

static int count_fds(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void on_log(void *arg, enum log_level level, struct str text)
{
    (void)level;
    struct fixture *x = arg;
    size_t n = strlen(x->log);
    snprintf(x->log + n, sizeof(x->log) - n, "%.*s\n", STR_ARG(text));
}

static char *in_dir(const struct fixture *x, const char *name)
{
    static char path[2][PATH_MAX + 256];
    static unsigned turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof(path[0]), "%s/%s", x->dir, name);
    return out;
}

/* Replaces the file by another one (new inode), with an old mtime. */
static void put(const struct fixture *x, const char *name, const char *text, uint64_t mtime)
{
    char *path = in_dir(x, name), *fresh = in_dir(x, "fresh");
    FILE *f = fopen(fresh, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    struct timespec t[2] = { { .tv_sec = (time_t)mtime }, { .tv_sec = (time_t)mtime } };
    assert_int_equal(utimensat(AT_FDCWD, fresh, t, 0), 0);
    assert_int_equal(rename(fresh, path), 0);
}

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    snprintf(x->dir, sizeof(x->dir), "%s/weir-file-cache-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(x->dir))
        return -1;
    snprintf(x->root, sizeof(x->root), "%s", in_dir(x, "root"));
    mkdir(x->root, 0755);
    x->n_fds = count_fds();
    x->cache = file_cache_new(4);
    x->want = (struct file_want){
        .root = str_c(x->root),
        .root_hash = hash_bytes(str_c(x->root)),
        .now_ms = 1000000,
        .wall_ms = (MTIME_S + 4000000000u) * 1000, /* far from every timestamp: nothing is young */
        .entries = 100,
        .small = 1000,
        .valid_ms = 1000,
    };
    log_set_sink(on_log, x);
    *state = x;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    file_cache_free(x->cache);
    assert_int_equal(count_fds(), x->n_fds);
    log_set_sink(NULL, NULL);
    nftw(x->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(x);
    return 0;
}

static struct file *get(struct fixture *x, const char *path)
{
    struct file *f = NULL;
    x->want.path = str_c(path);
    int error = file_cache_get(x->cache, &x->want, &f);
    if (error)
        fail_msg("%s: %s", path, strerror(error));
    return f;
}

static int error_of(struct fixture *x, const char *path)
{
    struct file *f = NULL;
    x->want.path = str_c(path);
    return file_cache_get(x->cache, &x->want, &f);
}

static void assert_body(const struct file *f, const char *text)
{
    assert_int_equal(f->kind, FILE_BODY);
    assert_true(str_eq(str_of(f->body, (size_t)f->id.size), str_c(text)));
}

static void test_a_small_file_is_kept_with_its_head(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a.css", "body{}", MTIME_S);
    struct file *f = get(x, "a.css");
    assert_body(f, "body{}");
    assert_int_equal(f->fd, -1);
    assert_int_equal(f->validators.last_modified, MTIME_S);
    assert_int_equal(f->validators.etag.n, 18);
    char want[256];
    snprintf(want, sizeof(want),
             "Content-Type: text/css; charset=utf-8\r\nLast-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
             "ETag: %.*s\r\nAccept-Ranges: bytes\r\n",
             STR_ARG(f->validators.etag));
    assert_true(str_eq(f->block, str_c(want)));
    assert_true(str_eq(f->type, STR("text/css; charset=utf-8")));
    assert_true(str_starts(str_skip(f->block, f->type_line), STR("Last-Modified: ")));
    assert_ptr_equal(get(x, "a.css"), f);
}

static void test_a_larger_file_is_kept_as_a_descriptor(void **state)
{
    struct fixture *x = *state;
    x->want.small = 3;
    put(x, "root/a.txt", "four", MTIME_S);
    put(x, "root/empty", "", MTIME_S);
    struct file *f = get(x, "a.txt");
    assert_int_equal(f->kind, FILE_OPEN);
    char text[5] = "";
    assert_int_equal(pread(f->fd, text, 4, 0), 4);
    assert_string_equal(text, "four");
    assert_body(get(x, "empty"), "");
}

static void test_a_replaced_file_is_noticed_after_valid(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a.txt", "old", MTIME_S);
    struct file *f = get(x, "a.txt");
    put(x, "root/a.txt", "new", MTIME_S); /* equal length, equal mtime */
    assert_ptr_equal(get(x, "a.txt"), f);
    x->want.now_ms += x->want.valid_ms - 1;
    assert_body(get(x, "a.txt"), "old");
    x->want.now_ms += 1;
    assert_body(get(x, "a.txt"), "new");
    x->want.now_ms += x->want.valid_ms;
    unlink(in_dir(x, "root/a.txt"));
    assert_int_equal(error_of(x, "a.txt"), ENOENT);
}

static void test_an_unchanged_file_stays_after_a_look(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a.txt", "old", MTIME_S);
    struct file *f = get(x, "a.txt");
    x->want.now_ms += 5 * x->want.valid_ms;
    assert_ptr_equal(get(x, "a.txt"), f);
    assert_int_equal(f->checked_ms, x->want.now_ms);
}

static void test_valid_0_looks_each_time(void **state)
{
    struct fixture *x = *state;
    x->want.valid_ms = 0;
    put(x, "root/a.txt", "old", MTIME_S);
    get(x, "a.txt");
    put(x, "root/a.txt", "new", MTIME_S);
    assert_body(get(x, "a.txt"), "new");
}

static void test_entries_0_keeps_nothing_unchecked(void **state)
{
    struct fixture *x = *state;
    x->want.entries = 0;
    put(x, "root/a.txt", "old", MTIME_S);
    put(x, "root/b.txt", "b", MTIME_S);
    get(x, "a.txt");
    put(x, "root/a.txt", "new", MTIME_S);
    assert_body(get(x, "a.txt"), "new");
    get(x, "b.txt");
    assert_int_equal(file_cache_count(x->cache, FILE_BODY), 1);
}

/* A head made of the old state must not go out with bytes of the new one: a descriptor is asked each time. */
static void test_a_file_written_in_place_is_noticed_at_once_if_open(void **state)
{
    struct fixture *x = *state;
    x->want.small = 0;
    put(x, "root/a.txt", "old", MTIME_S);
    struct str before = get(x, "a.txt")->validators.etag;
    char etag[64];
    snprintf(etag, sizeof(etag), "%.*s", STR_ARG(before));
    int fd = open(in_dir(x, "root/a.txt"), O_WRONLY);
    assert_int_equal(write(fd, "longer", 6), 6);
    close(fd);
    x->want.now_ms += 5; /* far from valid_ms */
    struct file *f = get(x, "a.txt");
    assert_int_equal(f->id.size, 6);
    assert_false(str_eq(f->validators.etag, str_c(etag)));
}

static void test_the_oldest_goes_first(void **state)
{
    struct fixture *x = *state;
    x->want.entries = 2;
    put(x, "root/a", "a", MTIME_S);
    put(x, "root/b", "b", MTIME_S);
    put(x, "root/c", "c", MTIME_S);
    get(x, "a");
    get(x, "b");
    x->want.valid_ms = 100000;
    x->want.now_ms += 2000;
    struct file *a = get(x, "a");
    x->want.now_ms += 2000;
    get(x, "c");
    assert_int_equal(file_cache_count(x->cache, FILE_BODY), 2);
    put(x, "root/a", "A", MTIME_S);
    put(x, "root/b", "B", MTIME_S);
    assert_ptr_equal(get(x, "a"), a);
    assert_body(a, "a");
    assert_body(get(x, "b"), "B");
}

static void test_open_files_have_a_limit_of_their_own(void **state)
{
    struct fixture *x = *state;
    x->want.small = 0;
    char name[32];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "root/%d", i);
        put(x, name, "x", MTIME_S);
        get(x, name + 5);
    }
    assert_int_equal(file_cache_count(x->cache, FILE_OPEN), 4);
}

static void test_many_files_are_found_again(void **state)
{
    struct fixture *x = *state;
    x->want.entries = 1000;
    char name[32], text[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 300; i++) {
            snprintf(name, sizeof(name), "root/%d", i);
            snprintf(text, sizeof(text), "text %d", i);
            if (round == 0)
                put(x, name, text, MTIME_S);
            assert_body(get(x, name + 5), text);
        }
    }
    assert_int_equal(file_cache_count(x->cache, FILE_BODY), 300);
}

static void test_a_lease_outlives_the_entry(void **state)
{
    struct fixture *x = *state;
    x->want.small = 0;
    put(x, "root/a", "still here", MTIME_S);
    struct file *f = get(x, "a");
    int fd = f->fd;
    struct lease one = file_lease(f), two = file_lease(f);
    unlink(in_dir(x, "root/a"));
    x->want.now_ms += 2000;
    assert_int_equal(error_of(x, "a"), ENOENT);
    assert_int_equal(file_cache_count(x->cache, FILE_OPEN), 0);
    one.release(one.arg);
    char text[11] = "";
    assert_int_equal(pread(fd, text, 10, 0), 10);
    assert_string_equal(text, "still here");
    two.release(two.arg);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_the_sweep_lets_go_of_what_nobody_asks_for(void **state)
{
    struct fixture *x = *state;
    x->want.small = 0;
    put(x, "root/a", "a", MTIME_S);
    put(x, "root/b", "b", MTIME_S);
    int fd = get(x, "a")->fd;
    x->want.now_ms += 40000;
    get(x, "b");
    x->want.now_ms += 30000;
    file_cache_sweep(x->cache, x->want.now_ms, 60000);
    assert_int_equal(file_cache_count(x->cache, FILE_OPEN), 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    file_cache_sweep(x->cache, x->want.now_ms + 100000, 60000);
    assert_int_equal(file_cache_count(x->cache, FILE_OPEN), 0);
    get(x, "b"); /* the root, swept too, is opened again */
}

static void test_absent_is_remembered_only_on_request(void **state)
{
    struct fixture *x = *state;
    assert_int_equal(error_of(x, "a"), ENOENT);
    assert_int_equal(file_cache_count(x->cache, FILE_ABSENT), 0);
    x->want.may_be_absent = true;
    assert_int_equal(error_of(x, "a"), ENOENT);
    assert_int_equal(file_cache_count(x->cache, FILE_ABSENT), 1);
    put(x, "root/a", "a", MTIME_S);
    assert_int_equal(error_of(x, "a"), ENOENT);
    x->want.may_be_absent = false;
    assert_body(get(x, "a"), "a");
    assert_int_equal(file_cache_count(x->cache, FILE_ABSENT), 0);
    x->want.may_be_absent = true;
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "api/%d", i);
        assert_int_equal(error_of(x, name), ENOENT);
    }
    assert_int_equal(file_cache_count(x->cache, FILE_ABSENT), 100 / 8 + 1);
    assert_body(get(x, "a"), "a");
    x->want.now_ms += x->want.valid_ms;
    mkdir(in_dir(x, "root/api"), 0755);
    put(x, "root/api/199", "there", MTIME_S);
    assert_body(get(x, "api/199"), "there");
}

static void test_etags(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a", "same text", MTIME_S);
    put(x, "root/b", "same text", MTIME_S + 5);
    put(x, "root/c", "other txt", MTIME_S);
    char a[64];
    snprintf(a, sizeof(a), "%.*s", STR_ARG(get(x, "a")->validators.etag));
    assert_true(str_eq(get(x, "b")->validators.etag, str_c(a))); /* by content: equal on every replica */
    assert_false(str_eq(get(x, "c")->validators.etag, str_c(a)));
    x->want.small = 0; /* hashed through a piece, not from memory: the same */
    put(x, "root/d", "same text", MTIME_S);
    assert_true(str_eq(get(x, "d")->validators.etag, str_c(a)));

    put(x, "root/big", "x", MTIME_S);
    assert_int_equal(truncate(in_dir(x, "root/big"), 1024 * 1024 + 1), 0);
    struct timespec t[2] = { { .tv_sec = (time_t)MTIME_S, .tv_nsec = 5 },
                             { .tv_sec = (time_t)MTIME_S, .tv_nsec = 5 } };
    assert_int_equal(utimensat(AT_FDCWD, in_dir(x, "root/big"), t, 0), 0);
    snprintf(a, sizeof(a), "\"100001-%llx\"", (unsigned long long)(MTIME_S * 1000000000 + 5));
    assert_true(str_eq(get(x, "big")->validators.etag, str_c(a)));
}

static void test_frozen_and_future_mtimes(void **state)
{
    struct fixture *x = *state;
    put(x, "root/npm", "x", 499162500);
    struct file *f = get(x, "npm");
    assert_int_equal(f->validators.last_modified, -1);
    assert_int_equal(f->validators.etag.n, 18);
    put(x, "root/big", "x", 0);
    assert_int_equal(truncate(in_dir(x, "root/big"), 1024 * 1024 + 1), 0);
    struct timespec t[2] = { { .tv_sec = 0 }, { .tv_sec = 0 } };
    assert_int_equal(utimensat(AT_FDCWD, in_dir(x, "root/big"), t, 0), 0);
    f = get(x, "big");
    assert_int_equal(f->validators.last_modified, -1);
    assert_int_equal(f->validators.etag.n, 0);
    assert_true(str_eq(f->block, STR("Content-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n")));
    put(x, "root/future", "x", MTIME_S);
    x->want.wall_ms = (MTIME_S - 100) * 1000;
    assert_int_equal(get(x, "future")->validators.last_modified, -1);
    t[1].tv_sec = 9300000000; /* 2264: more nanoseconds than there is room for */
    assert_int_equal(utimensat(AT_FDCWD, in_dir(x, "root/big"), t, 0), 0);
    x->want.now_ms += 2000;
    f = get(x, "big");
    assert_int_equal(f->validators.last_modified, -1);
    assert_int_equal(f->validators.etag.n, 0);
}

static void test_a_young_file_is_weak_and_read_again_when_settled(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a", "x", MTIME_S);
    x->want.wall_ms = MTIME_S * 1000 + 1500;
    struct file *f = get(x, "a");
    assert_true(f->is_young);
    assert_true(str_starts(f->validators.etag, STR("W/\"")));
    assert_int_equal(f->rebuild_ms, MTIME_S * 1000 + 2000);
    x->want.wall_ms += 400;
    assert_true(get(x, "a")->is_young);
    x->want.wall_ms += 100;
    f = get(x, "a");
    assert_false(f->is_young);
    assert_true(str_starts(f->validators.etag, STR("\"")));
}

static void test_what_is_no_file(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a.txt", "x", MTIME_S);
    mkdir(in_dir(x, "root/sub"), 0755);
    assert_int_equal(mkfifo(in_dir(x, "root/fifo"), 0644), 0);
    assert_int_equal(error_of(x, "sub"), EISDIR);
    assert_int_equal(error_of(x, "fifo"), ENODEV);
    assert_int_equal(error_of(x, "a.txt/b"), ENOTDIR);
    assert_int_equal(error_of(x, "a.txt/"), ENOTDIR);
    assert_int_equal(error_of(x, "none"), ENOENT);
    assert_int_equal(error_of(x, ""), EISDIR);
    static char longer[2 * PATH_MAX];
    memset(longer, 'a', sizeof(longer) - 1);
    assert_int_equal(error_of(x, longer), ENAMETOOLONG);
    longer[300] = '\0';
    assert_int_equal(error_of(x, longer), ENAMETOOLONG);
    x->want.path = STR("sub");
    assert_int_equal(file_cache_folder(x->cache, &x->want), 0);
    x->want.path = STR("a.txt");
    assert_int_equal(file_cache_folder(x->cache, &x->want), ENOTDIR);
}

static void test_a_kernel_file_without_its_bytes_is_no_file(void **state)
{
    struct fixture *x = *state;
    x->want.root = STR("/sys/kernel/mm");
    x->want.root_hash = 7;
    x->want.small = 100000;
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0)
        skip();
    assert_int_equal(error_of(x, "transparent_hugepage/enabled"), ENODEV);
}

static void test_an_alias_may_name_one_file(void **state)
{
    struct fixture *x = *state;
    put(x, "icon.ico", "icon", MTIME_S);
    assert_int_equal(symlink("icon.ico", in_dir(x, "link.ico")), 0);
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", in_dir(x, "link.ico"));
    x->want.root = str_c(path);
    x->want.root_hash = hash_bytes(x->want.root);
    struct file *f = get(x, "");
    assert_body(f, "icon");
    assert_true(str_starts(f->block, STR("Content-Type: image/")));
    assert_int_equal(error_of(x, "a"), ENOTDIR);
    put(x, "icon.ico", "ICON", MTIME_S);
    x->want.now_ms += 1000;
    assert_body(get(x, ""), "ICON");
}

static void test_links_stay_beneath_the_root(void **state)
{
    struct fixture *x = *state;
    put(x, "root/a.txt", "a", MTIME_S);
    put(x, "secret.txt", "secret", MTIME_S);
    mkdir(in_dir(x, "shared"), 0755);
    mkdir(in_dir(x, "shared/sub"), 0755);
    mkdir(in_dir(x, "shared-not"), 0755);
    put(x, "shared-not/s.txt", "sibling", MTIME_S);
    put(x, "shared/s.txt", "shared", MTIME_S);
    put(x, "shared/sub/t.txt", "deeper", MTIME_S);
    assert_int_equal(symlink("../secret.txt", in_dir(x, "shared/evil")), 0);
    assert_int_equal(symlink("a.txt", in_dir(x, "root/inside")), 0);
    assert_int_equal(symlink("../secret.txt", in_dir(x, "root/up")), 0);
    assert_int_equal(symlink("/etc/hostname", in_dir(x, "root/absolute")), 0);
    assert_int_equal(symlink("/proc/self/environ", in_dir(x, "root/proc")), 0);
    assert_int_equal(symlink("../shared", in_dir(x, "root/shared")), 0);
    assert_int_equal(symlink("../shared-not", in_dir(x, "root/sibling")), 0);
    assert_int_equal(symlink("loop", in_dir(x, "root/loop")), 0);
    assert_body(get(x, "inside"), "a");
    assert_int_equal(error_of(x, "up"), EXDEV);
    assert_int_equal(error_of(x, "absolute"), EXDEV);
    assert_int_equal(error_of(x, "proc"), EXDEV);
    assert_int_equal(error_of(x, "loop"), ELOOP);
    assert_int_equal(error_of(x, "shared/s.txt"), EXDEV);
    assert_int_equal(error_of(x, "../secret.txt"), EXDEV);
    const char *first = strstr(x->log, "root/up: a link leads out of the root");
    assert_non_null(first);
    assert_non_null(strstr(first, "`follow`"));
    assert_int_equal(error_of(x, "up"), EXDEV);
    assert_null(strstr(first + 1, "root/up:"));

    static char shared[PATH_MAX];
    snprintf(shared, sizeof(shared), "%s", in_dir(x, "shared"));
    struct str folder = str_c(shared);
    x->want.follow = (struct root_follow){ &folder, 1 };
    assert_body(get(x, "shared/s.txt"), "shared");
    assert_body(get(x, "shared/sub/t.txt"), "deeper");
    assert_int_equal(error_of(x, "shared/evil"), EXDEV);
    assert_int_equal(error_of(x, "sibling/s.txt"), EXDEV);
    assert_int_equal(error_of(x, "shared/none"), ENOENT);
    assert_int_equal(error_of(x, "up"), EXDEV);
    assert_int_equal(error_of(x, "shared"), EISDIR);
    x->want.now_ms += 5000;
    assert_body(get(x, "shared/s.txt"), "shared");
    x->want.follow.n = 0; /* another location, without follow: what the first one has opened is not for it */
    assert_int_equal(error_of(x, "shared/s.txt"), EXDEV);
}

static void test_a_swapped_root_is_seen_and_a_deleted_one_never_served(void **state)
{
    struct fixture *x = *state;
    mkdir(in_dir(x, "v1"), 0755);
    mkdir(in_dir(x, "v2"), 0755);
    put(x, "v1/a", "one", MTIME_S);
    put(x, "v2/a", "two", MTIME_S);
    assert_int_equal(symlink("v1", in_dir(x, "current")), 0);
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", in_dir(x, "current"));
    x->want.root = str_c(path);
    x->want.root_hash = hash_bytes(x->want.root);
    x->want.valid_ms = 100000;
    assert_body(get(x, "a"), "one");
    assert_int_equal(symlink("v2", in_dir(x, "next")), 0);
    assert_int_equal(rename(in_dir(x, "next"), path), 0);
    x->want.now_ms += ROOT_RECHECK_MS;
    assert_body(get(x, "a"), "two");
    unlink(path);
    x->want.now_ms += ROOT_RECHECK_MS;
    assert_int_equal(error_of(x, "a"), ENOENT);
    assert_int_equal(symlink("v1", path), 0);
    assert_body(get(x, "a"), "one"); /* a missing root is looked for each time */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_a_small_file_is_kept_with_its_head),
        TEST(test_a_larger_file_is_kept_as_a_descriptor),
        TEST(test_a_replaced_file_is_noticed_after_valid),
        TEST(test_an_unchanged_file_stays_after_a_look),
        TEST(test_valid_0_looks_each_time),
        TEST(test_entries_0_keeps_nothing_unchecked),
        TEST(test_a_file_written_in_place_is_noticed_at_once_if_open),
        TEST(test_the_oldest_goes_first),
        TEST(test_open_files_have_a_limit_of_their_own),
        TEST(test_many_files_are_found_again),
        TEST(test_a_lease_outlives_the_entry),
        TEST(test_the_sweep_lets_go_of_what_nobody_asks_for),
        TEST(test_absent_is_remembered_only_on_request),
        TEST(test_etags),
        TEST(test_frozen_and_future_mtimes),
        TEST(test_a_young_file_is_weak_and_read_again_when_settled),
        TEST(test_what_is_no_file),
        TEST(test_a_kernel_file_without_its_bytes_is_no_file),
        TEST(test_an_alias_may_name_one_file),
        TEST(test_links_stay_beneath_the_root),
        TEST(test_a_swapped_root_is_seen_and_a_deleted_one_never_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
