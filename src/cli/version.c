/* SPDX-License-Identifier: MIT */
/*
 * weir version: which program this is, and which libraries it runs with, where they can say so. A report of a fault
 * needs both. The first line is the program's alone, for scripts. libconfig and llhttp cannot be asked at run time: for
 * them it is the version that was compiled in. Also -v, -V and --version.
 */
#include <ev.h>
#include <libconfig.h>
#include <llhttp.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>
#include <zlib.h>

#include "cli/cli.h"

int cli_version(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fputs("usage: weir version\n", stderr);
        return CLI_USAGE;
    }
    char pcre2[64] = "";
    uint32_t has_jit = 0;
    unsigned xxhash = XXH_versionNumber();
    if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof pcre2)
        (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    (void)pcre2_config(PCRE2_CONFIG_JIT, &has_jit);
    printf("weir %s\n", WEIR_VERSION);
    printf("libev %d.%d\n", ev_version_major(), ev_version_minor());
    printf("llhttp %d.%d.%d\n", LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH);
    printf("libconfig %d.%d\n", LIBCONFIG_VER_MAJOR, LIBCONFIG_VER_MINOR);
    printf("PCRE2 %s%s\n", pcre2, has_jit ? ", JIT" : "");
    printf("xxHash %u.%u.%u\n", xxhash / 10000, xxhash / 100 % 100, xxhash % 100);
    printf("zlib %s\n", zlibVersion());
    printf("%s\n", OpenSSL_version(OPENSSL_VERSION));
    return EXIT_SUCCESS;
}
