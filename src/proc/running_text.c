/* SPDX-License-Identifier: MIT */
/*
 * memfd_create(2) and its seals. The text (conf->text) has includes and environment in place and keeps the names of its
 * files and its lines, so that it loads anywhere and findings still name the original places. Owns nothing: the
 * descriptor is the caller's, the mapping lasts as long as the load.
 */
#include "proc/running_text.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, struct str text)
{
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text = str_skip(text, (size_t)n);
    }
    return true;
}

int running_text_seal(struct str text)
{
    int fd = memfd_create("weir-running-text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (write_all(fd, text) && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
        return fd;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

void running_text_load(int fd, struct conf_result *out)
{
    struct stat st = { 0 };
    void *p = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) {
        conf_load_text(STR_NONE, "(running text)", "/", out); /* finds it empty, and says so */
        return;
    }
    conf_load_text(str_of(p, (size_t)st.st_size), "(running text)", "/", out);
    (void)munmap(p, (size_t)st.st_size);
}
