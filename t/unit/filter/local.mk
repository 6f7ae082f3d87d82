check_PROGRAMS += t/unit/filter/deflate_pool
t_unit_filter_deflate_pool_SOURCES = t/unit/filter/deflate_pool.c
t_unit_filter_deflate_pool_LDADD = src/libfilter.a src/libnet.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
check_PROGRAMS += t/unit/filter/gzip
t_unit_filter_gzip_SOURCES = t/unit/filter/gzip.c
t_unit_filter_gzip_LDADD = src/libfilter.a src/libserve.a src/libhttp.a src/libnet.a src/libconf.a src/libbase.a \
    $(CMOCKA_LIBS) $(WEIR_LIBS)
