# SPDX-License-Identifier: MIT
"""A resolver of the test's own: names have the addresses that a file says, until it says something else.

n = names({"app.test": "127.0.0.1"}); weir(..., env=n.env); n.write({...}); n.lookups("app.test") → times of the look-ups.
An address may be several with spaces between; none: no such name; "wait 2.5 127.0.0.1": the answer takes so long.
"""
import os
import shutil
import subprocess
import tempfile

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *find(const char *host, char *line, int size)
{
    FILE *f = fopen(getenv("NAMES"), "r");
    size_t n = strlen(host);
    char *found = NULL;
    while (f && !found && fgets(line, size, f))
        if (!strncmp(line, host, n) && line[n] == ' ')
            found = line + n;
    if (f)
        fclose(f);
    return found;
}

static void note(const char *host)
{
    char path[500];
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    snprintf(path, sizeof path, "%s.log", getenv("NAMES"));
    FILE *f = fopen(path, "a");
    fprintf(f, "%s %ld.%09ld\n", host, (long)t.tv_sec, t.tv_nsec);
    fclose(f);
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");
    char line[500], *save, *word;
    note(host);
    const char *found = find(host, line, sizeof line);
    int result = EAI_NONAME;
    *out = NULL;
    for (word = found ? strtok_r((char *)found, " \n", &save) : NULL; word; word = strtok_r(NULL, " \n", &save)) {
        if (!strcmp(word, "wait")) {
            double s = atof(strtok_r(NULL, " \n", &save));
            struct timespec t = { (time_t)s, (long)((s - (time_t)s) * 1e9) };
            nanosleep(&t, NULL);
            continue;
        }
        struct addrinfo **end = out;
        while (*end)
            end = &(*end)->ai_next;
        result = real(word, service, hints, end);
    }
    return result;
}
"""


class Names:
    def __init__(self, names=None):
        self.dir = tempfile.mkdtemp(prefix="weir-names-")
        source, lib, self.path = (os.path.join(self.dir, n) for n in ("names.c", "names.so", "names"))
        with open(source, "w") as f:
            f.write(SOURCE)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", lib, source, "-ldl"], check=True)
        self.env = {"LD_PRELOAD": lib, "NAMES": self.path}
        self.write(names or {})

    def write(self, names):
        with open(self.path + ".new", "w") as f:
            f.writelines("%s %s\n" % item for item in names.items())
        os.rename(self.path + ".new", self.path)

    def lookups(self, name):
        try:
            with open(self.path + ".log") as f:
                return [float(ln.split()[1]) for ln in f if ln.split()[0] == name]
        except FileNotFoundError:
            return []

    def close(self):
        shutil.rmtree(self.dir)
