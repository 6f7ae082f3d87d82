# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Sourced by contrib/check and contrib/demo: what they need, how to see that it is there, and Debian's package for it.
PY=/usr/bin/python3

need() { # need PACKAGE TEST...: notes the package when the test fails
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}
has() { command -v "$1"; }
module() { [ -x $PY ] && $PY -c "import $1"; }
runtime_of_clang() {
    compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer*.a' ||
        compgen -G '/usr/lib/clang/*/lib/*/libclang_rt.fuzzer*.a'
}

packages_to_build() {
    need build-essential has gcc
    need build-essential has make
    need autoconf has autoreconf
    need automake has automake
    need pkg-config has pkg-config
    need libev-dev test -e /usr/include/ev.h
    need libconfig-dev test -e /usr/include/libconfig.h
    need zlib1g-dev test -e /usr/include/zlib.h
    need libpcre2-dev test -e /usr/include/pcre2.h
    need libssl-dev test -e /usr/include/openssl/evp.h
    need libcrypt-dev test -e /usr/include/crypt.h
    need libxxhash-dev test -e /usr/include/xxhash.h
    need libjansson-dev test -e /usr/include/jansson.h
    pkg-config --exists 'libllhttp >= 9' 2>/dev/null || need node-llhttp test -e /usr/share/llhttp/llhttp.c
}

packages_to_test() {
    need clang has clang
    need libclang-rt-dev runtime_of_clang
    need libcmocka-dev test -e /usr/include/cmocka.h
    need python3-pytest module pytest
    need python3-pytest-xdist module xdist
    need python3-hypothesis module hypothesis
    need python3-websockets module websockets
    need nodejs has node
    need npm has npm
    need strace has strace
    need haproxy has haproxy
    need slowhttptest has slowhttptest
    need xz-utils has xz
    need brotli has brotli
    need zstd has zstd
    need man-db has man
    packages_to_measure
    need chromium has chromium
}

packages_to_measure() { # what the laboratory itself needs; contrib/ab/install brings what its set-ups do
    need python3-scipy module scipy
    need gnuplot-nox has gnuplot
    need apache2-utils has ab
    need wrk has wrk
    need nghttp2-client has h2load
}

packages_to_demo() {
    need python3 test -x $PY
    need python3-scipy module scipy
    need nodejs has node
    need apache2-utils has ab
}

install_missing() { # install_missing LOG GROUP...: as root, else with sudo; says what; nothing missing, nothing called
    local log=$1 sudo=() group
    shift
    packages=()
    for group in "$@"; do "packages_to_$group"; done
    [ ${#packages[@]} -gt 0 ] || return 0
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
    echo "installing: ${packages[*]}"
    [ "$(id -u)" = 0 ] || sudo=(sudo)
    mkdir -p "$(dirname "$log")"
    { "${sudo[@]}" apt-get update && "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${packages[@]}"; } >"$log" 2>&1 || {
        tail -n 20 "$log"
        echo "could not install: ${packages[*]}"
        return 1
    }
}

configured() { # configured: makes ./configure if it is missing or older than what it is made from
    if [ configure -nt configure.ac ] && [ Makefile.in -nt Makefile.am ] &&
        [ -z "$(find src t/unit t/fuzz -name local.mk -newer Makefile.in)" ]; then
        return 0
    fi
    autoreconf -i
}
