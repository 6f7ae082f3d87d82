# Each target is a .c file of its own name with a folder of seeds in t/fuzz/corpus; build with --enable-fuzzers.
EXTRA_DIST += t/fuzz/corpus
FUZZ_LIBS = src/libhttp.a src/libbase.a $(WEIR_LIBS)

if FUZZERS
noinst_PROGRAMS += t/fuzz/conf
t_fuzz_conf_SOURCES = t/fuzz/conf.c
t_fuzz_conf_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_conf_LDADD = src/libconf.a $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/forwarded
t_fuzz_forwarded_SOURCES = t/fuzz/forwarded.c
t_fuzz_forwarded_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_forwarded_LDADD = $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/h1_read
t_fuzz_h1_read_SOURCES = t/fuzz/h1_read.c
t_fuzz_h1_read_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_h1_read_LDADD = $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/manifest
t_fuzz_manifest_SOURCES = t/fuzz/manifest.c
t_fuzz_manifest_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_manifest_LDADD = src/libhandler.a $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/proxy_answer
t_fuzz_proxy_answer_SOURCES = t/fuzz/proxy_answer.c
t_fuzz_proxy_answer_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_proxy_answer_LDADD = src/libhandler.a $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/proxy_header
t_fuzz_proxy_header_SOURCES = t/fuzz/proxy_header.c
t_fuzz_proxy_header_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_proxy_header_LDADD = $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/range
t_fuzz_range_SOURCES = t/fuzz/range.c
t_fuzz_range_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_range_LDADD = $(FUZZ_LIBS)

noinst_PROGRAMS += t/fuzz/target
t_fuzz_target_SOURCES = t/fuzz/target.c
t_fuzz_target_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)
t_fuzz_target_LDADD = $(FUZZ_LIBS)
endif
