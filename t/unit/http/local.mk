check_PROGRAMS += t/unit/http/h1_read
t_unit_http_h1_read_SOURCES = t/unit/http/h1_read.c
t_unit_http_h1_read_LDADD = src/libhttp.a src/libbase.a $(CMOCKA_LIBS) $(WEIR_LIBS)
